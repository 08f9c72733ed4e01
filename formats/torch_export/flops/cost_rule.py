"""The form of a cost rule of ATen: what a call computes, from the types of its tensors and its other operands."""

from __future__ import annotations

from collections.abc import Callable

from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.torch_export.call_view import CallView

CostRule = Callable[[CallView], NodeCost]
"""Raises ValueError, IndexError, TypeError or ZeroDivisionError if the operands do not fit the operator."""


def per_output_element(flops: int) -> CostRule:
    """Return a rule that counts *flops* for each element of the first output."""
    return lambda call: NodeCost(flops=flops * call.output().count)


def per_input_element(flops: int) -> CostRule:
    """Return a rule that counts *flops* for each element of the first tensor."""
    return lambda call: NodeCost(flops=flops * call.first().count)


def nothing(call: CallView) -> NodeCost:
    """Return the cost of what takes no time."""
    return NodeCost(flops=0, reads=0, writes=0)


def move(call: CallView) -> NodeCost:
    """Return the cost of reading all operands and writing all results."""
    return NodeCost(flops=0)
