"""Shapes of tensors by name, and the few forms that they are made from."""

from __future__ import annotations

from collections.abc import Callable

from mtpp.formats.language_models.configuration import Configuration


class Projection(tuple[int, ...]):
    """Shape of a matrix that every token is multiplied by."""


class SourceProjection(tuple[int, ...]):
    """Shape of a matrix that every token of the encoder is multiplied by, once."""


class ExpertStack(tuple[int, ...]):
    """Shape of matrices of experts, one an expert, of which a token is multiplied by few."""


Shapes = dict[str, tuple[int, ...]]
"""Name within a layer → shape."""

Block = Callable[[Configuration, int], Shapes]
"""Tensors of a part of a layer, by configuration and number of the layer."""


def linear(name: str, rows: int, columns: int, *, bias: bool = False) -> Shapes:
    """Return a projection of *columns* to *rows*."""
    shapes: Shapes = {f"{name}.weight": Projection((rows, columns))}
    if bias:
        shapes[f"{name}.bias"] = (rows,)
    return shapes


def norm(name: str, width: int, *, bias: bool = False) -> Shapes:
    """Return a normalisation."""
    return {f"{name}.{kind}": (width,) for kind in (("weight", "bias") if bias else ("weight",))}


def norms_of(*names: str, bias: bool | str = False) -> Block:
    """Return normalisations of tokens."""

    def block(c: Configuration, layer: int) -> Shapes:
        shapes: Shapes = {}
        for name in names:
            shapes |= norm(name, c.hidden, bias=c.flag(bias))
        return shapes

    return block


def together(*blocks: Block) -> Block:
    """Return the tensors of several blocks."""

    def block(c: Configuration, layer: int) -> Shapes:
        shapes: Shapes = {}
        for one in blocks:
            shapes |= one(c, layer)
        return shapes

    return block


def nothing(c: Configuration, layer: int) -> Shapes:
    """Return no tensors."""
    return {}
