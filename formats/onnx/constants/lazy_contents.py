"""Contents of one constant, made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mtpp.formats.onnx.values import Array


class Contents:
    """Contents of one constant tensor, made once, when they are first asked for.

    Attributes
    ----------
    certain
        Whether no caller can replace what it is made of.
    depth
        Ops between it and what is stored.
    absent
        Name of the tensor and of the file that would be needed, where that is not there.
    sources
        What it is computed from.
    """

    def __init__(
        self,
        make: Callable[[], Array | None],
        *,
        certain: bool = True,
        depth: int = 0,
        sources: Sequence[Contents | None] = (),
    ) -> None:
        self._make: Callable[[], Array | None] | None = make
        self._array: Array | None = None
        self.certain = certain
        self.depth = depth
        self.sources = sources
        self.absent: tuple[str, str] | None = None

    def get(self) -> Array | None:
        """Return the contents; None if they are large, absent, or cannot be computed."""
        if self._make is not None:
            make, self._make = self._make, None
            self._array = make()
        return self._array

    def missing(self) -> tuple[str, str] | None:
        """Return the tensor and the file that it was seen to need and that are not there; None if there are none."""
        if self.absent is not None or self._array is not None:
            return self.absent
        found = (one.missing() for one in self.sources if one is not None)
        return next((one for one in found if one is not None), None)
