"""Conditions of the Ifs of a model: which of their branches inputs reach."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx
    from onnx import NodeProto

_SIZES = frozenset(("Shape", "Size"))
_BRANCHES = ((True, "then_branch"), (False, "else_branch"))
_SHOWN = 3


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


def nested_conditions(model: onnx.ModelProto) -> list[str]:
    """Return the places of the Ifs in bodies and functions whose condition contents of inputs may decide.

    A body runs any number of times, or not at all: no output of the model itself tells which branches ran.
    """
    from mtpp.formats.onnx.topology import describe, reads, subgraphs

    functions = {(one.domain, one.name, one.overload): one for one in model.functions}
    called: set[tuple[tuple[str, str, str], tuple[bool, ...]]] = set()
    found: dict[str, None] = {}

    def walk(nodes: Iterable[NodeProto], decided: set[str], outer: str) -> None:
        for node in nodes:
            place = describe(node) + (f" in {outer}" if outer else "")
            if outer and node.op_type == "If" and decided.intersection(node.input):
                found[place] = None
            if node.op_type not in _SIZES and decided.intersection(reads(node)):
                decided.update(name for name in node.output if name)
            for _, body in subgraphs(node):
                states = [] if decided.isdisjoint(reads(node)) else [value.name for value in body.input]
                walk(body.node, {*decided, *states}, place)
            key = node.domain, node.op_type, node.overload
            if key in functions:
                given = tuple(name in decided for name in node.input)
                if (key, given) not in called:
                    called.add((key, given))
                    inner = {name for name, data in zip(functions[key].input, given, strict=False) if data}
                    walk(functions[key].node, inner, f"function {node.op_type}")

    stored = {tensor.name for tensor in model.graph.initializer}
    walk(model.graph.node, {value.name for value in model.graph.input} - stored, "")
    return list(found)


def unseen(places: Collection[str]) -> list[str]:
    """Say of Ifs that which of their branches ran is not known."""
    if not places:
        return []
    shown = ", ".join([*places][:_SHOWN]) + (f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else "")
    return [f"which branches ran is not known of {shown}: one that did not was not compared"]


def with_conditions(
    model: onnx.ModelProto, conditions: Collection[str], nested: Collection[str]
) -> tuple[bytes, dict[str, str]]:
    """Return a model, serialized, that returns its conditions, and how often branches of nested Ifs ran.

    Returns
    -------
    It, and the places of those of *nested* by the outputs that count them.
    """
    import onnx
    from onnx import TensorProto, helper

    from mtpp.runtime.checking.observed_branches import count_branches

    wider = onnx.ModelProto()
    wider.CopyFrom(model)
    del wider.graph.output[:]
    counts = count_branches(wider) if nested else {}
    wider.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.BOOL, None) for name in conditions)
    return bytes(wider.SerializeToString()), {name: place for name, place in counts.items() if place in nested}


def missed(conditions: Mapping[str, str], reached: Collection[tuple[str, bool]], tried: int) -> list[str]:
    """Say of each branch that no input reached that it was not compared."""
    return [
        f"the {branch} of {place} ran for none of {tried} inputs: it was not compared"
        for name, place in conditions.items()
        for value, branch in _BRANCHES
        if (name, value) not in reached
    ]
