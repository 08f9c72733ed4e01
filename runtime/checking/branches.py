"""Conditions of the Ifs of a model: which of their branches inputs reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_SIZES = frozenset(("Shape", "Size"))
_BRANCHES = ((True, "then_branch"), (False, "else_branch"))


def conditions_of(model: onnx.ModelProto) -> dict[str, str]:
    """Return the condition of each If of the main graph that contents of inputs decide, with the place of the If."""
    from mtpp.formats.onnx.topology import describe, reads

    stored = {tensor.name for tensor in model.graph.initializer}
    decided = {value.name for value in model.graph.input} - stored
    found: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "If" and node.input and node.input[0] in decided:
            found.setdefault(node.input[0], describe(node))
        if node.op_type not in _SIZES and decided.intersection(reads(node)):
            decided.update(name for name in node.output if name)
    return found


def with_conditions(model: onnx.ModelProto, conditions: Collection[str]) -> bytes:
    """Return a model, serialized, that returns its conditions."""
    import onnx
    from onnx import TensorProto, helper

    wider = onnx.ModelProto()
    wider.CopyFrom(model)
    del wider.graph.output[:]
    wider.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.BOOL, None) for name in conditions)
    return bytes(wider.SerializeToString())


def missed(conditions: Mapping[str, str], reached: Collection[tuple[str, bool]], tried: int) -> list[str]:
    """Say of each branch that no input reached that it was not compared."""
    return [
        f"the {branch} of {place} ran for none of {tried} inputs: it was not compared"
        for name, place in conditions.items()
        for value, branch in _BRANCHES
        if (name, value) not in reached
    ]
