"""Weights that a file stores in fewer bits than an op reads them with: behind Cast and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Iterable

from mtpp.formats.onnx.scope import Parameter

_UNPACKING = frozenset(("Cast", "DequantizeLinear", "com.microsoft:DequantizeLinear"))


class UnpackedWeights:
    """Bytes that are stored for constants that ops make larger, found while a graph is walked over.

    Attributes
    ----------
    stored
        By the name of what is read.
    """

    def __init__(self) -> None:
        self.stored: dict[str, int] = {}

    def fold(self, kind: str, made: Parameter, read: Iterable[Parameter | None]) -> None:
        """Enter a constant that a node of some kind makes of others."""
        parts = [one for one in read if one is not None]
        if kind in _UNPACKING or any(one.root in self.stored for one in parts):
            self.stored.setdefault(made.root, sum(self.stored.get(one.root, one.bytes) for one in parts))
