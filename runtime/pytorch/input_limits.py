"""Ranges of whole numbers for inputs of a program that are made up: rows of tables, numbers that it checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.fx import Node

    from mtpp.runtime.pytorch.flat_program import FlatProgram

_TABLES = frozenset(("embedding", "_embedding_bag", "embedding_bag"))
_NUMBERS = frozenset(("item", "_local_scalar_dense"))
_PASSING = frozenset(
    ("_to_copy", "alias", "clone", "contiguous", "detach", "expand", "flatten", "permute", "reshape", "select", "slice",
     "squeeze", "t", "to", "transpose", "unsqueeze", "view")
)  # fmt: skip
"""Operators whose result holds numbers of their first operand and no others."""

_SIGNS = {"add": 1, "sub": -1}
_ROOM = 3
"""Numbers above the least one that are drawn where there is no largest."""


def row_limits(flat: FlatProgram) -> dict[Node, tuple[int, int]]:
    """Return the least and the largest number of each input that picks rows of a table, or that the program checks.

    A table may be read some rows further on (``positions + 2``); ``torch._check`` limits a number that the program
    reads out of a tensor.
    """
    ends: dict[Node, tuple[list[int], list[int]]] = {}

    def note(source: Node, offset: int, least: int | None, most: int | None) -> None:
        lower, upper = ends.setdefault(source, ([], []))
        lower += [] if least is None else [least - offset]
        upper += [] if most is None else [most - offset]

    for step in flat.steps:
        name, args = _name(step.node), step.node.args
        if name in _TABLES and len(args) > 1:
            table = flat.value_or_other(args[0])
            shape = flat.shape(table) if hasattr(table, "meta") else None
            source, offset = _origin(flat, args[1])
            if source in flat.inputs and shape:
                note(source, offset, 0, shape[0] - 1)
        elif name in _NUMBERS and args:
            source, offset = _origin(flat, args[0])
            limits = flat.ranges.get(str(step.node.meta.get("val")))
            if source in flat.inputs and limits is not None and limits != (None, None):
                note(source, offset, *limits)
    return {source: _range(*pair) for source, pair in ends.items()}


def _range(lower: list[int], upper: list[int]) -> tuple[int, int]:
    most = min(upper) if upper else None
    least = max([*lower, 0] if most is None or most >= 0 else lower or [most])
    most = least + _ROOM if most is None else most
    return min(least, most), most


def _origin(flat: FlatProgram, value: Any) -> tuple[Any, int]:
    """Return the node that numbers come from, and what has been added to them on the way."""
    source, offset = flat.value_or_other(value), 0
    while getattr(source, "op", "") == "call_function":
        name = _name(source)
        if name in _SIGNS and len(source.args) > 1 and type(source.args[1]) is int and not source.kwargs:
            offset += _SIGNS[name] * source.args[1]
        elif name not in _PASSING:
            break
        source = flat.value_or_other(source.args[0])
    return source, offset


def _name(node: Any) -> str:
    """Return the name of a node's operator without its overload: ``embedding``."""
    return str(getattr(node.target, "_opname", "") or getattr(node.target, "__name__", "")).partition(".")[0]
