"""Stages of a program as modules: its own nodes, with the tensors that live across a cut going in and coming out."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.results.stage_records import MODEL_INPUT, ConstantResult, Described, StageInput, StageOutput
from mtpp.runtime.pytorch.flat_program import FlatProgram, Step, attribute
from mtpp.runtime.pytorch.input_limits import row_limits
from mtpp.runtime.pytorch.layout import Layout
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.loading import CPU, META
from mtpp.runtime.pytorch.node_kinds import (
    is_check,
    is_computed,
    is_creation_like,
    is_graph,
    is_mutable,
    is_same_tensor,
    number_type,
    writes_in_place,
    writes_unseen,
)

if TYPE_CHECKING:
    from torch.fx import Graph, GraphModule, Node


@dataclass(frozen=True)
class StageModule:
    """One stage of a program.

    Attributes
    ----------
    ops
        How many of the graph's ops it runs.
    inputs, outputs
        What it reads and hands on, in the order of its module's parameters and results.
    module
        Takes tensors, and returns a tuple of them. Parameters and buffers have the names that they have in the program.
    """

    index: int
    ops: int
    inputs: tuple[StageInput, ...]
    outputs: tuple[StageOutput, ...]
    module: GraphModule


@dataclass(frozen=True)
class SplitProgram:
    """All stages of a program that run an op.

    Attributes
    ----------
    inputs, outputs
        Tensors that the whole program takes and returns, each once.
    direct
        (output, input) of the program that are one tensor.
    positions
        Place of each of *outputs* among what the program returns, in its flat order.
    results
        All that the program returns, in its flat order: a tensor as often as it does, numbers, texts and None.
    """

    stages: tuple[StageModule, ...]
    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]
    direct: tuple[tuple[str, str], ...]
    positions: tuple[int, ...]
    results: tuple[Described, ...]


def split_program(
    flat: FlatProgram, results: Sequence[Any], nodes: Sequence[Sequence[str]], labels: Sequence[int], source: str
) -> SplitProgram:
    """Cut a program into stages.

    Parameters
    ----------
    results
        Names of what the program returns, in order; other things where it is no tensor.
    nodes
        Names of the steps of each op of the graph (:class:`mtpp.formats.torch_export.ProgramReading`).
    labels
        Stage of each op.
    source
        What messages call the program.

    Returns
    -------
    Stages whose modules hold the program's own parameters and buffers. What depends on no input is computed by each
    stage that reads it. A tensor from another stage is laid out in memory as it is in the whole program; one that is
    written in place is copied first.

    Notes
    -----
    O(nodes · stages that read what folds).
    """
    if len(set(labels)) > 1:
        for step in flat.steps:
            if writes_unseen(step.node):
                raise InputError(
                    f"{step.name!r} writes what it reads: {step.node.target} is none of PyTorch's own operators, "
                    "and the program does not tell which of its operands change",
                    source=source,
                    remedy="in Python, save it without writes in place: "
                    "torch.export.save(torch.export.load(FILE).run_decompositions(), FILE)",
                )
    cut = _Cut(flat, results, source)
    cut.assign(nodes, labels)
    return cut.split({stage: sum(label == stage for label in labels) for stage in set(labels)})


class _Cut:
    def __init__(self, flat: FlatProgram, results: Sequence[Any], source: str) -> None:
        self.flat, self.source = flat, source
        self.place = {step.node: place for place, step in enumerate(flat.steps)}
        self.owner: dict[Node, int] = {}
        self.shaped_like: dict[Node, Node] = {}
        self.names: dict[Node, str] = {}
        held = [*flat.module.parameters(), *flat.module.buffers()]
        self.on_meta = any(one.device.type == META for one in held)
        returned = zip(map(flat.value_or_other, flat.outputs), results, strict=True)
        named = [(one, one.name) for one in flat.inputs]
        named += [(one, name) for one, name in returned if isinstance(one, pytorch().fx.Node) and isinstance(name, str)]
        taken: set[str] = set()
        for node, name in [*named, *((one.node, one.name) for one in flat.steps)]:
            if node in self.names:
                continue
            own = plain = re.sub(r"\W", "_", name)
            number = 1
            while own in taken:
                own, number = f"{plain}_{number}", number + 1
            taken.add(own)
            self.names[node] = own

    def assign(self, nodes: Sequence[Sequence[str]], labels: Sequence[int]) -> None:
        """Find the stage of each step; those without one are computed wherever they are read."""
        by_name = {step.name: step.node for step in self.flat.steps}
        for names, label in zip(nodes, labels, strict=True):
            for name in names:
                if name not in by_name:
                    raise InputError(
                        f"PyTorch reads the program otherwise: it has no node {name!r}",
                        source=self.source,
                        remedy="export it again with this version of PyTorch",
                    )
                self.owner[by_name[name]] = label
        last = max(labels)
        for step in self.flat.steps:
            node = step.node
            if node in self.owner:
                continue
            if node.target is operator.getitem:
                source = self.flat.value(node.args[0])
                if source in self.owner:
                    self.owner[node] = self.owner[source]
            elif is_mutable(node):  # what a buffer becomes in the end
                value = self.flat.value(node.args[1])
                self.owner[node] = self.owner.get(value, last)
                self.flat.same_as[node] = value
            elif is_creation_like(node):  # its operand may be in a later stage: only the shape of it is looked at
                model = self.flat.value(node.args[0])
                if self.flat.shape(model) is not None and self.flat.strides(model) is not None:
                    self.shaped_like[node] = model

    def reads(self, node: Node) -> list[Node]:
        """Return the nodes whose values a node reads."""
        model = self.shaped_like.get(node)
        found = [self.flat.value(one) for one in node.all_input_nodes]
        return [one for one in found if one is not model]

    def split(self, ops: Mapping[int, int]) -> SplitProgram:
        """Build the modules of all stages."""
        needs = {stage: self._needed(stage) for stage in sorted(ops)}
        readers: dict[Node, list[int]] = {}
        for stage, need in needs.items():
            for node in need.received:
                readers.setdefault(node, []).append(stage)
        results = self._results()
        wanted: dict[int, dict[Node, None]] = {stage: {} for stage in needs}
        for node in [*readers, *results]:
            if node.op != "placeholder":
                wanted[self._home(node, max(ops))][node] = None
        for stage in needs:
            if not wanted[stage]:
                wanted[stage] = dict.fromkeys(self._ends(stage))
        inputs = [node for node in self.flat.inputs if is_computed(node)]
        stages = []
        for stage, need in needs.items():
            if extra := [node for node in wanted[stage] if node not in self.owner]:
                need = self._needed(stage, extra)
            made = sorted(wanted[stage], key=lambda node: self.place.get(node, -1))
            module = _StageGraph(self, stage, need).build(made)
            stages.append(
                StageModule(
                    stage,
                    ops[stage],
                    tuple(
                        StageInput(**vars(self._described(node)), source=self.owner.get(node, MODEL_INPUT))
                        for node in need.received
                    ),
                    tuple(
                        StageOutput(
                            **vars(self._described(node, crosses=node in readers)),
                            readers=tuple(readers.get(node, ())),
                            result=node in results,
                        )
                        for node in made
                    ),
                    module,
                )
            )
        limits = row_limits(self.flat)
        described = [self._model_input(node, limits.get(node)) for node in inputs]
        direct = [node for node in results if node.op == "placeholder"]
        tensors = {node: i for node, i in results.items() if isinstance(node.meta.get("val"), pytorch().Tensor)}
        return SplitProgram(
            tuple(stages),
            tuple(described),
            tuple(self._described(node, crosses=False) for node in tensors),
            tuple((self.names[node], self.names[node]) for node in direct),
            tuple(tensors.values()),
            tuple(self._result(place, one) for place, one in enumerate(self.flat.outputs)),
        )

    def _model_input(self, node: Node, limits: tuple[int, int] | None) -> Described:
        number = None if self.flat.shape(node) is not None else self.flat.number(node)
        if isinstance(number, int):  # the stages were made for this one
            return replace(self._described(node), limits=(int(number), int(number)), fixed=int(number))
        return replace(self._described(node), limits=limits)

    def _home(self, node: Node, last: int) -> int:
        """Return the stage that hands a node on: of what is stored one that reads it, for ops may write it there.

        All ops that touch what is written are in one stage.
        """
        if node.op == "get_attr":
            for step in self.flat.steps:
                if step.node in self.owner and any(is_same_tensor(one, node) for one in self.reads(step.node)):
                    return self.owner[step.node]
        return self.owner.get(node, last)

    def _ends(self, stage: int) -> list[Node]:
        """Return the tensors of a stage that nothing reads: a stage that hands on nothing else returns these.

        A stage all of whose results are dead, or that only changes a buffer, could not be exported otherwise.
        """
        own = [step.node for step in self.flat.steps if self.owner.get(step.node) == stage]
        read = {one for step in self.flat.steps for one in self.reads(step.node)}
        computed = [one for one in own if is_computed(one)]
        return [one for one in computed if one not in read] or computed

    def _results(self) -> dict[Node, int]:
        """Return what the program computes and returns, each with its first place."""
        found: dict[Node, int] = {}
        for place, one in enumerate(self.flat.outputs):
            if isinstance(one, pytorch().fx.Node):
                node = self.flat.value(one)
                if is_computed(node) and self.flat.number(node) is None:
                    found.setdefault(node, place)
        return found

    def _result(self, place: int, one: Any) -> Described:
        """Return what is said of a result: of a tensor its type, of anything else its value."""
        node = self.flat.value_or_other(one)
        value = one
        if isinstance(node, pytorch().fx.Node):
            value = self.flat.number(node)
            if value is None and node.meta.get("val") is not None:
                if is_computed(node):
                    return self._described(node, crosses=False)
                value = node.meta["val"]
        if not isinstance(value, bool | int | float | str | None):
            raise InputError(
                f"result {place} of the program is a {type(value).__name__}",
                source=self.source,
                remedy="export a program that returns tensors, numbers and texts",
            )
        name = f"result_{place}"
        while name in self.names.values():
            name += "_"
        return ConstantResult.of(name, value)

    def _needed(self, stage: int, extra: Sequence[Node] = ()) -> _Need:
        """Return the steps that a stage runs, and what it gets from others."""
        run: set[Node] = {node for node, owner in self.owner.items() if owner == stage}
        received: dict[Node, None] = {}
        waiting = [*run, *extra]
        run.update(extra)
        while waiting:
            for node in self.reads(waiting.pop()):
                if node in run or node.op == "get_attr" or self.flat.number(node) is not None:
                    continue
                if node.op == "placeholder" or node in self.owner:
                    received[node] = None
                else:
                    run.add(node)
                    waiting.append(node)
        steps = [step for step in self.flat.steps if step.node in run and not is_check(step.node)]
        return _Need(steps, sorted(received, key=self._order))

    def _order(self, node: Node) -> tuple[int, int]:
        if node.op == "placeholder":
            return 0, self.flat.inputs.index(node)
        return 1, self.place[node]

    def _described(self, node: Node, *, crosses: bool = True) -> Described:
        """Return a tensor by name; sizes that depend on data are None, which only what *crosses* no cut may have."""
        torch = pytorch()
        value = node.meta.get("val")
        if (number := number_type(value)) is not None:
            return Described(self.names[node], number, ())
        shape: tuple[int | None, ...] | None = self.flat.shape(node)
        if shape is None and isinstance(value, torch.Tensor) and not crosses:
            shape = self.flat.known_sizes(node)
        if not isinstance(value, torch.Tensor) or shape is None:
            raise InputError(
                f"{self.names[node]!r} goes from stage to stage, and its type or size depends on data",
                source=self.source,
                remedy="keep its readers beside it: ‹together›",
            )
        return Described(self.names[node], str(value.dtype).removeprefix("torch."), shape)


@dataclass(frozen=True)
class _Need:
    steps: list[Step]
    received: list[Node]


@dataclass
class _StageGraph:
    """The graph of a stage, being built."""

    cut: _Cut
    stage: int
    need: _Need
    modes: int = field(default=0)

    def build(self, made: Sequence[Node]) -> GraphModule:
        """Return the module of the stage, which makes these tensors."""
        torch = pytorch()
        graph, root, known = torch.fx.Graph(), torch.nn.Module(), {}
        entries = [(node, graph.placeholder(self.cut.names[node])) for node in self.need.received]
        copies = any(writes_in_place(self.cut.flat, step.node) for step in self.need.steps)
        for node, entry in entries:
            known[node] = self._entered(graph, node, entry, copied=copies)
        self._emit(graph, root, known, self.need.steps, 0, set(made))
        graph.output(tuple(self._handed_on(graph, node, self._value(graph, root, known, node)) for node in made))
        return torch.fx.GraphModule(root, graph, f"Stage{self.stage}")

    def _entered(self, graph: Graph, node: Node, entry: Node, *, copied: bool) -> Node:
        """Return what came in, laid out in memory as in the whole program."""
        aten = pytorch().ops.aten
        if not isinstance(node.meta.get("val"), pytorch().Tensor):
            return graph.call_function(aten.item.default, (entry,))
        if copied:
            entry = graph.call_function(aten.clone.default, (entry,))
        shape, strides = self.cut.flat.shape(node), self.cut.flat.strides(node)
        if node.op == "placeholder" or shape is None or strides is None:
            return entry
        layout = Layout.of(shape, strides)
        if layout is None:
            return entry
        for axis in layout.repeated:
            entry = graph.call_function(aten.slice.Tensor, (entry, axis, 0, 1))
        room = graph.call_function(aten.new_empty_strided.default, (entry, layout.shape, layout.strides))
        moved = graph.call_function(aten.copy_.default, (room, entry))
        return graph.call_function(aten.expand.default, (moved, list(shape))) if layout.repeated else moved

    def _handed_on(self, graph: Graph, node: Node, value: Any) -> Any:
        torch = pytorch()
        if node.op == "get_attr":  # a parameter that the program returns
            return graph.call_function(torch.ops.aten.clone.default, (value,))
        if isinstance(node.meta.get("val"), torch.Tensor):
            return value
        dtype = getattr(torch, number_type(node.meta.get("val")) or "int64")
        return graph.call_function(torch.ops.aten.scalar_tensor.default, (value,), {"dtype": dtype})

    def _emit(
        self, graph: Graph, root: Any, known: dict[Node, Any], steps: Sequence[Step], depth: int, later: set[Node]
    ) -> None:
        """Add steps to a graph; *later* is what is read behind them."""
        position = 0
        while position < len(steps):
            step = steps[position]
            if len(step.modes) == depth:
                self._copy(graph, root, known, step.node)
                position += 1
                continue
            end = position
            while end < len(steps) and steps[end].modes[depth : depth + 1] == step.modes[depth : depth + 1]:
                end += 1
            behind = {one for other in steps[end:] for one in self.cut.reads(other.node)}
            self._emit_mode(graph, root, known, steps[position:end], depth, later | behind)
            position = end

    def _emit_mode(
        self, graph: Graph, root: Any, known: dict[Node, Any], steps: Sequence[Step], depth: int, later: set[Node]
    ) -> None:
        """Add a call that runs steps under a mode."""
        torch, flat = pytorch(), self.cut.flat
        mode = steps[0].modes[depth]
        inside = {step.node for step in steps}
        read = {one: None for step in steps for one in self.cut.reads(step.node)}
        given = [node for node in read if node not in inside and flat.number(node) is None and not is_graph(flat, node)]
        inner, inner_root = torch.fx.Graph(), torch.nn.Module()
        own = {node: inner.placeholder(f"operand_{i}") for i, node in enumerate(given)}
        self._emit(inner, inner_root, own, steps, depth + 1, later)
        made = [step.node for step in steps if step.node in later]
        inner.output(tuple(own[node] for node in made))
        name = f"mode_{self.modes}"
        self.modes += 1
        root.add_module(name, torch.fx.GraphModule(inner_root, inner))
        operands = tuple(self._value(graph, root, known, node) for node in given)
        call = graph.call_function(mode.operator, (*mode.before, graph.get_attr(name), *operands))
        for i, node in enumerate(made):
            known[node] = graph.call_function(operator.getitem, (call, i))

    def _copy(self, graph: Graph, root: Any, known: dict[Node, Any], node: Node) -> None:
        torch = pytorch()
        model = self.cut.shaped_like.get(node)
        empty = None if model is None else self._empty_like(graph, model)

        def value(given: Node) -> Any:
            replaced = empty is not None and self.cut.flat.value(given) is model
            return empty if replaced else self._value(graph, root, known, given)

        args, kwargs = (torch.fx.node.map_arg(one, value) for one in (node.args, node.kwargs))
        copied = graph.create_node("call_function", node.target, args, kwargs, name=self.cut.names[node])
        if "nn_module_stack" in node.meta:
            copied.meta["nn_module_stack"] = node.meta["nn_module_stack"]
        known[node] = copied

    def _empty_like(self, graph: Graph, model: Node) -> Node:
        """Return a tensor of the type, shape and strides of another one, with no values."""
        value, flat = model.meta["val"], self.cut.flat
        device = value.device
        if device.type == META and not self.cut.on_meta:
            device = pytorch().device(CPU)
        return graph.call_function(
            pytorch().ops.aten.empty_strided.default,
            (list(flat.shape(model) or ()), list(flat.strides(model) or ())),
            {"dtype": value.dtype, "device": device},
        )

    def _value(self, graph: Graph, root: Any, known: dict[Node, Any], node: Node) -> Any:
        """Return a value in the graph: a node of it, or a number."""
        node = self.cut.flat.value(node)
        if node in known:
            return known[node]
        number = self.cut.flat.number(node)
        if number is not None:
            return number
        assert node.op == "get_attr", node
        held = attribute(node.graph.owning_module, str(node.target))
        path = str(node.target)
        if is_graph(self.cut.flat, node):
            path = f"graph_{path.replace('.', '_')}"
        _place_at(root, path, held)
        known[node] = graph.get_attr(path)
        return known[node]


def _place_at(root: Any, path: str, held: Any) -> None:
    """Make a parameter, a buffer or a graph an attribute of a module, or of one within it."""
    torch = pytorch()
    *outer, name = path.split(".")
    for part in outer:
        if not hasattr(root, part):
            root.add_module(part, torch.nn.Module())
        root = getattr(root, part)
    if isinstance(held, torch.nn.Parameter | torch.nn.Module) or not isinstance(held, torch.Tensor):
        setattr(root, name, held)
    elif not hasattr(root, name):
        root.register_buffer(name, held)
