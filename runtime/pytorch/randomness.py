"""Steps of a program that draw random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtpp.runtime.pytorch.flat_program import FlatProgram
from mtpp.runtime.pytorch.library import pytorch

if TYPE_CHECKING:
    from torch.fx import Node

_OFF = {"train": False, "training": False, "dropout": 0, "dropout_p": 0, "p": 0}
"""Operands with which an operator that may draw does not."""


def random_steps(flat: FlatProgram) -> Iterator[str]:
    """Yield the names of the steps that draw random numbers: a dropout that trains, a distribution."""
    torch = pytorch()
    for step in flat.steps:
        tags = getattr(step.node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags and not _is_off(step.node):
            yield step.name


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
