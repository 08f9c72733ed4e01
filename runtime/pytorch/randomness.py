"""Steps of a program that draw random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtpp.runtime.pytorch.flat_program import FlatProgram, attribute
from mtpp.runtime.pytorch.library import pytorch

if TYPE_CHECKING:
    from torch.fx import Node

_OFF = {"train": False, "training": False, "dropout": 0, "dropout_p": 0, "p": 0}
"""Operands with which an operator that may draw does not."""


def random_steps(flat: FlatProgram) -> Iterator[str]:
    """Yield the names of the steps that draw random numbers: a dropout that trains, a distribution."""
    for step in flat.steps:
        if any(_draws(node) for node in _with_nested(step.node)):
            yield step.name


def _draws(node: Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return pytorch().Tag.nondeterministic_seeded in tags and not _is_off(node)


def _with_nested(node: Node) -> Iterator[Node]:
    """Yield a node, and those of the graphs that it runs: branches, bodies of loops."""
    yield node
    for one in node.all_input_nodes:
        graph = attribute(one.graph.owning_module, str(one.target)) if one.op == "get_attr" else None
        for inner in graph.graph.nodes if isinstance(graph, pytorch().fx.GraphModule) else ():
            if inner.op == "call_function":
                yield from _with_nested(inner)


def _is_off(node: Node) -> bool:
    schema = node.target._schema
    for place, argument in enumerate(schema.arguments):
        if argument.name not in _OFF:
            continue
        default = argument.default_value if argument.has_default_value() else None
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name, default)
        if value is not None and value == _OFF[argument.name]:
            return True
    return False
