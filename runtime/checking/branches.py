"""Conditions of the Ifs of a model: which of their branches inputs reach."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableSequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from mtpp.formats.onnx.local_functions.attributes import FunctionKey, called_key, function_key, standard_domain
from mtpp.formats.onnx.topology import describe, reads, subgraphs

_SIZES = frozenset(("Shape", "Size"))
_BRANCHES = ((True, "then_branch"), (False, "else_branch"))
_SHOWN = 3

_AXES_ARE_INPUTS = 13
"""First operator set in which ReduceSum takes its axes as an input."""

_SCANS_WITHOUT_BATCH = 9
_WAYS = 2
_PREFIX = "mtpp ways "

Count = tuple[str, str]
"""Name of a tensor, int64, with how often the condition of an If was true and false, and the place of that If."""


def conditions_of(model: onnx.ModelProto) -> dict[str, str]:
    """Return the condition of each If of the main graph that contents of inputs decide, with the place of the If."""
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


def count_branches(model: ModelProto) -> dict[str, str]:
    """Change a model so that it returns how often branches ran; return the places of nested Ifs by those outputs.

    Notes
    -----
    An If that is not run is counted by the branch beside it as two zeros; what a body counts in each round is added up.
    O(nodes).
    """
    work = _Counting({function_key(one): one for one in model.functions})
    counts = work.counts_of(model.graph.node, "", _operator_set(model.opset_import))
    model.graph.output.extend(_described(name) for name, _ in counts)
    return dict(counts)


@dataclass
class _Counting:
    """The change of one model.

    Attributes
    ----------
    done
        Counts of each function that was changed already.
    """

    functions: dict[FunctionKey, FunctionProto]
    done: dict[FunctionKey, list[Count]] = field(default_factory=dict)
    used: int = 0

    def counts_of(self, nodes: MutableSequence[NodeProto], outer: str, operator_set: int) -> list[Count]:
        """Have a list of nodes count; return the counts."""
        old = [*nodes]
        del nodes[:]
        found: list[Count] = []
        for node in old:
            place = describe(node) + (f" in {outer}" if outer else "")
            if called_key(node) in self.functions:
                made = self._of_call(node)
            elif standard_domain(node.domain):
                made = []
            elif node.op_type == "If":
                made = self._of_branches(node, place, operator_set)
            elif node.op_type == "Loop" or (node.op_type == "Scan" and operator_set >= _SCANS_WITHOUT_BATCH):
                made = self._of_rounds(node, place, operator_set)
            else:
                made = []
            nodes.append(node)
            if node.op_type == "Loop" or node.op_type == "Scan":
                made = [self._added_up(nodes, name, one, operator_set) for name, one in made]
            if node.op_type == "If" and outer and not standard_domain(node.domain):
                made.append((self._own(nodes, node.input[0]), place))
            found += made
        return found

    def _of_branches(self, node: NodeProto, place: str, operator_set: int) -> list[Count]:
        """Count in both branches: each returns zeros for the counts of the other one."""
        bodies = [(one.name, one.g) for one in node.attribute if one.type == AttributeProto.GRAPH]
        made = [(body, self.counts_of(body.node, place, operator_set)) for _, body in bodies]
        found = []
        for body, counts in made:
            for name, inner in counts:
                for other, _ in made:
                    own = name
                    if other is not body:
                        own = self._name()
                        zeros = helper.make_tensor(own, TensorProto.INT64, [_WAYS], [0] * _WAYS)
                        other.node.append(helper.make_node("Constant", [], [own], value=zeros))
                    other.output.append(_described(own))
                found.append((self._output(node, len(body.output)), inner))
        return found

    def _of_rounds(self, node: NodeProto, place: str, operator_set: int) -> list[Count]:
        """Count in each round of a body: the rounds are stacked."""
        body: GraphProto = next(one.g for one in node.attribute if one.name == "body")
        carried = len(body.output) - (1 if node.op_type == "Loop" else 0)
        found = []
        for name, inner in self.counts_of(body.node, place, operator_set):
            body.output.append(_described(name))
            carried += 1
            found.append((self._output(node, carried), inner))
        for one in node.attribute:
            if one.name in ("scan_output_axes", "scan_output_directions"):
                one.ints.extend([0] * len(found))
        return found

    def _of_call(self, node: NodeProto) -> list[Count]:
        """Count in the function that a node calls."""
        key = called_key(node)
        function = self.functions[key]
        if key not in self.done:
            self.done[key] = []
            operator_set = _operator_set(function.opset_import)
            self.done[key] = self.counts_of(function.node, f"function {function.name}", operator_set)
            function.output.extend(name for name, _ in self.done[key])
        plain = len(function.output) - len(self.done[key])
        return [(self._output(node, plain + place + 1), inner) for place, (_, inner) in enumerate(self.done[key])]

    def _own(self, nodes: MutableSequence[NodeProto], condition: str) -> str:
        """Add nodes that count a condition once."""
        true, flat, plain, false, both = (self._name() for _ in range(5))
        shape = helper.make_tensor(flat, TensorProto.INT64, [1], [1])
        nodes.append(helper.make_node("Constant", [], [flat], value=shape))
        nodes.append(helper.make_node("Reshape", [condition, flat], [plain]))
        nodes.append(helper.make_node("Cast", [plain], [true], to=TensorProto.INT64))
        negated = self._name()
        nodes.append(helper.make_node("Not", [plain], [negated]))
        nodes.append(helper.make_node("Cast", [negated], [false], to=TensorProto.INT64))
        nodes.append(helper.make_node("Concat", [true, false], [both], axis=0))
        return both

    def _added_up(self, nodes: MutableSequence[NodeProto], name: str, place: str, operator_set: int) -> Count:
        """Add nodes that sum the counts of all rounds of a body."""
        total = self._name()
        if operator_set < _AXES_ARE_INPUTS:
            nodes.append(helper.make_node("ReduceSum", [name], [total], axes=[0], keepdims=0))
            return total, place
        axes = self._name()
        first = helper.make_tensor(axes, TensorProto.INT64, [1], [0])
        nodes.append(helper.make_node("Constant", [], [axes], value=first))
        nodes.append(helper.make_node("ReduceSum", [name, axes], [total], keepdims=0))
        return total, place

    def _output(self, node: NodeProto, count: int) -> str:
        """Give a node another output, its last one of *count*; return its name."""
        while len(node.output) < count:
            node.output.append(self._name())
        return str(node.output[count - 1])

    def _name(self) -> str:
        self.used += 1
        return f"{_PREFIX}{self.used}"


def _described(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, [_WAYS])


def _operator_set(imports: Any) -> int:
    return max((one.version for one in imports if not standard_domain(one.domain)), default=1)
