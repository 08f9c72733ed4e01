"""The form of a cost rule of ONNX: what a node computes, from its types and attributes."""

from __future__ import annotations

from collections.abc import Callable

from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.onnx.node_view import NodeView

CostRule = Callable[[NodeView], NodeCost]
"""Raises ValueError, IndexError or ZeroDivisionError if the node's types do not fit its operator."""


def per_output_element(flops: int) -> CostRule:
    """Return a rule that counts *flops* for each element of the first output."""
    return lambda node: NodeCost(flops=flops * node.output().count)


def per_input_element(flops: int) -> CostRule:
    """Return a rule that counts *flops* for each element of the first input."""
    return lambda node: NodeCost(flops=flops * node.input(0).count)
