"""Ranges of whole numbers that inputs of a program may hold, where they are made up: rows of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.fx import Node

    from mtpp.runtime.pytorch.flat_program import FlatProgram

_TABLES = frozenset(("embedding", "_embedding_bag", "embedding_bag"))
_PASSING = frozenset(
    ("_to_copy", "alias", "clone", "contiguous", "detach", "expand", "flatten", "permute", "reshape", "select", "slice",
     "squeeze", "t", "to", "transpose", "unsqueeze", "view")
)  # fmt: skip
"""Operators whose result holds numbers of their first operand and no others."""


def row_limits(flat: FlatProgram) -> dict[Node, tuple[int, int]]:
    """Return the least and the largest number of each input that picks rows of a table."""
    found: dict[Node, tuple[int, int]] = {}
    for step in flat.steps:
        if _name(step.node) not in _TABLES or len(step.node.args) < 2:
            continue
        table, source = (flat.value(one) for one in step.node.args[:2])
        while getattr(source, "op", "") == "call_function" and _name(source) in _PASSING:
            source = flat.value(source.args[0])
        shape = flat.shape(table) if hasattr(table, "meta") else None
        if source in flat.inputs and shape:
            most = min(shape[0] - 1, found.get(source, (0, shape[0]))[1])
            found[source] = (0, max(0, most))
    return found


def _name(node: Any) -> str:
    """Return the name of a node's operator without its overload: ``embedding``."""
    return str(getattr(node.target, "_opname", "") or getattr(node.target, "__name__", "")).partition(".")[0]
