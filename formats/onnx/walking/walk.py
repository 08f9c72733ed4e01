"""One pass over a graph in topological order: types, small constants, what folds away, and what the rest costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any, Protocol

import onnx
from onnx import NodeProto, TensorProto

from mtpp.errors import InputError
from mtpp.formats.modelled.op_record import GraphRecord, OpRecord
from mtpp.formats.modelled.open_sizes import Misfit, OpenedSize
from mtpp.formats.modelled.parameter import Parameter
from mtpp.formats.onnx.constants.lazy_contents import Contents
from mtpp.formats.onnx.constants.on_demand import StoredConstants, stored_contents
from mtpp.formats.onnx.control_flow import ControlRecord, control_flow_rule
from mtpp.formats.onnx.control_flow.control_record import BodyRecord
from mtpp.formats.onnx.dimensions import Dimensions
from mtpp.formats.onnx.estimates.certainty import open_axes
from mtpp.formats.onnx.estimates.number_rules import NumbersMade, numbers_of_one
from mtpp.formats.onnx.estimates.operands import Operands
from mtpp.formats.onnx.estimates.partial_values import PartialValue, Sureness
from mtpp.formats.onnx.flops.costs import configuration_inputs, node_cost
from mtpp.formats.onnx.flops.movement import is_view
from mtpp.formats.onnx.node_view import NodeView, kind_of
from mtpp.formats.onnx.scope import NO_AXES, RANK, Known, Scope
from mtpp.formats.onnx.shape_rules.data_sizes import assumed_axes
from mtpp.formats.onnx.shape_rules.largest_sizes import Sizes, largest_sizes
from mtpp.formats.onnx.shapes import (
    KNOWN,
    OutputType,
    ShapeInference,
    Why,
    overruled,
    ranks_are_told,
    with_declarations,
)
from mtpp.formats.onnx.tensor_type import (
    OpaqueType,
    PartialType,
    TensorType,
    ValueType,
    is_known_dtype,
    partial_type,
)
from mtpp.formats.onnx.topology import PlacedNode, check_and_sort, describe, loop_name
from mtpp.formats.onnx.values import array_of, attribute_values
from mtpp.formats.onnx.walking.completion import Completion, settle
from mtpp.formats.onnx.walking.node_outputs import RANDOM, NodeOutputs, is_incomplete, with_contents
from mtpp.formats.onnx.walking.stored_tensors import Path, Place, StoredTensors
from mtpp.machine.device import Device

_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class Fitting(Protocol):
    """What a walk shows its nodes to, where sizes are tried out."""

    def begun(self, node: NodeView) -> None:
        """Look at the next node of the main graph, whose outputs are not known yet."""

    def node(self, node: NodeView, stored: Sequence[bool]) -> None:
        """Look at a node with its outputs, and at which inputs depend on none of the model's.

        Raises ValueError, IndexError or KeyError if it cannot run.
        """

    def declared(self, said: TensorType | None, found: TensorType) -> None:
        """Compare what the file declares of a tensor, None for nothing, with what was found."""

    def rescued(self, problem: str) -> None:
        """Hear of a node that only shapes declared in the file help over; raises ValueError if that will not do."""

    def left_out(self) -> None:
        """Hear of a branch of control flow that cannot run."""

    def overruled(self, sizes: Sequence[int]) -> None:
        """Hear of declared sizes that stand in place of estimates which they contradict."""


class Walk:
    """Walks a graph, and on the way the bodies nested in it.

    Parameters
    ----------
    system
        Models the work of an op from its FLOPs and bytes.
    fit
        Is shown every node, where sizes are tried out.
    constants
        Where constants lie, and which of them a caller may replace.
    widest
        Whether sizes that data decides are the largest that they can be.
    """

    def __init__(
        self,
        system: Device,
        inference: ShapeInference,
        dimensions: Dimensions,
        source: str,
        fit: Fitting | None = None,
        constants: StoredConstants | None = None,
        *,
        widest: bool = True,
    ) -> None:
        self._system = system
        self._inference = inference
        self._outputs = NodeOutputs(inference)
        self._dimensions = dimensions
        self._source = source
        self._fit = fit
        self._constants = constants or StoredConstants()
        self._completion = Completion(dimensions, source, self._constants.folder)
        self.stored = StoredTensors()
        self._read: set[Parameter] = set()
        self._widest = widest
        self.widened = 0
        """Estimates that are smaller than the largest size."""
        self._settled = False
        self._opened = 0
        """Tensors with open axes that were met."""
        self.overruled = 0
        """Estimates that declared sizes contradict."""
        self.estimates: dict[str, OpenedSize] = {}
        """Sizes that may differ from run to run, by ``TENSOR:AXIS``, where they begin to."""
        self.walked = 0
        """Nodes walked over, those of bodies as often as they were."""

    def graph(self, graph: onnx.GraphProto, scope: Scope, path: Path = ()) -> GraphRecord:
        """Walk over *graph*, whose inputs are already known in *scope*.

        Parameters
        ----------
        path
            Of a body, from the main graph.
        """
        nodes = check_and_sort(graph, scope.outer, self._source)
        self._define_initializers(graph, scope, path)
        declared = {value.name: value.type for group in (graph.output, graph.value_info) for value in group}
        consumed = {name for placed in nodes for name in placed.reads}
        returned = {value.name for value in graph.output}
        record = GraphRecord(read=self._read)
        for placed in nodes:
            op = self._node(placed, scope, declared, consumed, returned, path)
            if op is None:
                record.folded += 1
            else:
                record.ops.append(op)
                record.random = record.random or placed.node.op_type in RANDOM
        return record

    def _define_initializers(self, graph: onnx.GraphProto, scope: Scope, path: Path) -> None:
        for tensor in graph.initializer:
            kind = self._initializer_type(tensor.name, tensor.data_type, tensor.dims)
            fixed = scope.level > 0 or tensor.name not in self._constants.defaults
            contents = stored_contents(tensor, self._constants.folder, self._source, certain=fixed)
            axes = NO_AXES if fixed else self._constants.free_axes(tensor.name, kind)
            parameter = self.stored.of(path, tensor.name, kind.bytes)
            known = Known(kind, scope.level, parameter, open_axes=axes, contents=contents)
            if (value := array_of(tensor)) is not None:
                known.take(PartialValue.uniform(value, Sureness.CERTAIN if fixed else Sureness.ASSUMED))
            scope.define(tensor.name, known)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            kind = self._initializer_type(name, sparse.values.data_type, sparse.dims)
            stored = TensorType(kind.dtype, tuple(sparse.values.dims)).bytes
            stored += TensorType(TensorProto.INT64, tuple(sparse.indices.dims)).bytes
            scope.define(name, Known(kind, scope.level, self.stored.of(path, name, stored)))

    def _initializer_type(self, name: str, dtype: int, dims: Sequence[int]) -> TensorType:
        if not is_known_dtype(dtype) or any(size < 0 for size in dims):
            raise InputError(
                f"tensor {name!r} has element type {dtype} and shape {list(dims)}",
                source=self._source,
                where="initializers",
                remedy="the file may be damaged, or newer than the installed onnx package",
            )
        return TensorType(dtype, tuple(dims))

    def _node(
        self,
        placed: PlacedNode,
        scope: Scope,
        declared: Mapping[str, onnx.TypeProto],
        consumed: set[str],
        returned: set[str],
        path: Path,
    ) -> OpRecord | None:
        """Make the node's outputs known; return its record, or None if it folds away."""
        node = placed.node
        self.walked += 1
        inputs = [scope.find(name) if name else None for name in node.input]
        for known in inputs if self._settled else ():
            if known is not None:
                known.assume()
        kind = kind_of(node.domain, node.op_type)
        view = NodeView(
            kind,
            self._inference.version(node.domain),
            attribute_values(node.attribute),
            [known.type if known else None for known in inputs],
            [known.value if known else None for known in inputs],
        )
        if self._fit is not None and scope.level == 0:
            self._fit.begun(view)
        control: ControlRecord | None = None
        sizes: list[int] = []
        values: Sequence[PartialValue | None] | None = None
        reason = KNOWN
        rule = control_flow_rule(kind)
        if rule is not None:
            view = with_contents(view, inputs)
            walk_body = _BodyWalk(self, scope, path, placed, self._dimensions.trips_of(node))
            try:
                control = rule(view, inputs, scope.level, walk_body)
            except InputError:
                raise
            except _MISFITS as error:
                raise self._misfit(node, error) from None
            constant = not control.captured and not control.random and _all_constant(inputs)
            types: list[OutputType] = [*control.types, *(PartialType() for _ in node.output)][: len(node.output)]
            sure = [*control.sure, *types[len(control.sure) :]][: len(types)]
            if control.left_out and self._opened:  # with other sizes that depend on data, it may run
                sure = [None for _ in types]
            ranked = ranks_are_told(types, node.output, declared)
            types = with_declarations(types, node.output, declared)
            if self._inference.trusting:
                types, sizes = overruled(types, sure, node.output, declared)
            if control.open_size is not None:
                types = [
                    self._completion.closed(name, kind_, control.open_size)
                    for name, kind_ in zip(node.output, types, strict=True)
                ]
        else:
            try:
                told = self._outputs.told(placed, view, inputs, scope, declared)
            except InputError:
                raise
            except _MISFITS as error:
                raise self._misfit(node, error) from None
            view, values, constant, reason = told.view, told.values, told.constant, told.reason
            types, sure, ranked, sizes = told.types, told.sure, told.ranked, told.sizes
        self.overruled += len(sizes)
        largest: Sequence[Sizes] = ()
        if control is None and any(is_incomplete(one) for one in sure):
            largest = largest_sizes(view, inputs, len(node.output))
            if self._widest and not sizes:
                said = declared if self._inference.trusting else {}
                wider, values = self._completion.widened(node, view, types, sure, largest, values, said)
                self.widened += wider != types
                types = wider
        types = [self._completion.as_given(*triple) for triple in zip(node.output, types, sure, strict=True)]
        outputs = self._completion.completed(node, view, types, consumed, returned, reason, largest)
        if self._fit is not None:
            stored = [known is not None and known.parameter is not None for known in inputs]
            self._show(node, view, stored, outputs, declared, reason)
            for _ in range(0 if control is None else control.left_out):
                self._fit.left_out()
            self._fit.overruled(sizes)
        root = self._root(view, inputs) if constant else None
        made = NumbersMade(Operands(view, inputs, outputs))
        contents: dict[int, Contents] = {}
        if constant and values is None and control is None:
            contents = dict(enumerate(self._outputs.computed(node, inputs, types)))
        for position, (name, known_type) in enumerate(zip(node.output, outputs, strict=True)):
            if not name or known_type is None:
                continue
            parameter = None
            if constant:
                size = 0 if isinstance(known_type, OpaqueType) else known_type.bytes
                value = values[position] if values is not None and position < len(values) else None
                parameter = root if position == 0 else None
                parameter = parameter or self._folded(path, name, size, view, inputs, control, value)
            axes = open_axes(known_type, sure[position], ranked=ranked[position])
            known = Known(known_type, scope.level, parameter, open_axes=axes, contents=contents.get(position))
            results = None if control is None else control.results[position : position + 1]
            known.maker = partial(made.output, position) if results is None else partial(numbers_of_one, results)
            if results and len(results[0]) == 1 and (partly := results[0][0].partial) is not None:
                known.take(partly.at_most(Sureness.ASSUMED))
            if axes and isinstance(known_type, TensorType):
                told_here = largest[position] if position < len(largest) else {}
                open_trips = sizes or (control is not None and control.assumed)
                known.assumed_axes = axes if open_trips else assumed_axes(view, inputs, known_type, axes, told_here)
                self._settled |= settle(known_type, axes, told_here)
            if values is not None and (value := values[position] if position < len(values) else None) is not None:
                known.take(value)
            scope.define(name, known)
            self._opened += bool(axes)
            begins = not any(one is not None and one.open_axes for one in inputs)
            if axes and begins and isinstance(known_type, TensorType):
                shape = declared.get(name)
                self.estimates |= self._dimensions.opened_sizes(name, known_type, sorted(axes - {RANK}), shape)
        if constant:
            return None
        record = OpRecord(index=placed.position, label=node.name.strip(), kind=kind)
        record.outputs = [
            (name, None if t is None or isinstance(t, OpaqueType) else t.bytes)
            for name, t in zip(node.output, outputs, strict=True)
            if name
        ]
        reads = self._collect_inputs(placed, record, scope, configuration_inputs(kind), control)
        if control is not None:
            _take_over(record, control, captured_by_bodies=True)
        else:
            self._cost(node, record, view, outputs, reads)
        return record

    def _folded(
        self,
        path: Path,
        name: str,
        size: int,
        view: NodeView,
        inputs: Sequence[Known | None],
        control: ControlRecord | None,
        value: PartialValue | None,
    ) -> Parameter:
        """Return a constant that a node makes.

        Files of stages hold small whole numbers as they are (:mod:`mtpp.formats.onnx.stages.needs`), and what the shape
        of an activation tells; of anything else they hold the operands.
        """
        configuration = configuration_inputs(view.kind)
        read = [known for i, known in enumerate(inputs) if known is not None and i not in configuration]
        whole = value is not None and value.least is Sureness.CERTAIN and value.array.dtype.kind in "iub"
        parts = [one.parameter for one in read if one.parameter is not None]
        parts += starmap(Parameter, () if control is None else control.parameters.items())
        if not parts or (not path and (whole or not _all_constant(read))):
            return self.stored.of(path, name, size)
        return Parameter(name, size, parts)

    def _root(self, view: NodeView, inputs: Sequence[Known | None]) -> Parameter | None:
        """Return the stored parameter that a folded op shows as it is, or with its axes in another order."""
        if inputs and inputs[0] is not None and (is_view(view) or view.kind == "Transpose"):
            return inputs[0].parameter
        return None

    def _collect_inputs(
        self,
        placed: PlacedNode,
        record: OpRecord,
        scope: Scope,
        configuration: frozenset[int],
        control: ControlRecord | None,
    ) -> int:
        """Enter activations and parameters that the node reads; return their bytes."""
        explicit = list(placed.node.input)
        settled = {explicit[index] for index in configuration if index < len(explicit)}
        settled -= {name for index, name in enumerate(explicit) if index not in configuration}
        # The bodies of control flow report what they capture, if all were walked; those of other ops count as read by
        # the op.
        names = explicit if control is not None and not control.left_out else placed.reads
        reads = 0
        for name in dict.fromkeys(names):
            known = scope.find(name) if name else None
            if known is None:
                continue
            if known.parameter is None:
                record.inputs[name] = known.level
                reads += 0 if isinstance(known.type, OpaqueType) else known.type.bytes
            elif name not in settled:
                record.parameters |= known.parameter.stored
                self._read.add(known.parameter)
                reads += known.parameter.bytes
        return reads

    def _cost(
        self, node: NodeProto, record: OpRecord, view: NodeView, outputs: Sequence[ValueType | None], reads: int
    ) -> None:
        full = NodeView(view.kind, view.opset, view.attributes, view.inputs, view.values, outputs)
        try:
            cost, modelled = node_cost(full)
        except _MISFITS as error:
            raise self._misfit(node, error) from None
        if not modelled:
            record.not_modelled[view.kind] += 1
        writes = sum(kind.bytes for kind in outputs if kind is not None and not isinstance(kind, OpaqueType))
        traffic = (reads if cost.reads is None else cost.reads) + (writes if cost.writes is None else cost.writes)
        record.flops, record.macs = cost.flops, cost.macs
        record.work_ps = self._system.modelled_work_ps(cost.flops, traffic)

    def contradicted_trips(self, node: NodeProto, trips: int) -> InputError:
        """Return the error for trips that are given, and are not those that the model makes."""
        return InputError(
            f"the model makes {trips} trips", source=self._source, where=describe(node), remedy="leave ‹trips› out"
        )

    def body(self, body: onnx.GraphProto, arguments: Sequence[Known], outer: Scope, path: Path) -> BodyRecord:
        """Walk over a body whose inputs are *arguments*, inside the graph of *outer*."""
        scope = Scope(outer)
        if len(body.input) != len(arguments):
            raise ValueError(f"the body takes {len(body.input)} inputs, not {len(arguments)}")
        for value, known in zip(body.input, arguments, strict=True):
            scope.define(value.name, known)
        walked = self.graph(body, scope, path)
        record = BodyRecord(random=walked.random, find=scope.find)
        for op in walked.ops:
            _take_over(record, op)
            for note in op.notes:
                record.notes.append({**note, "op": f"/{op.place}{note['op']}", "kind": note["kind"] or op.kind})
            record.captured |= {name: level for name, level in op.inputs.items() if level < scope.level}
        for value in body.output:
            result = scope.find(value.name)
            if result is None:
                raise ValueError(f"the body's output {value.name!r} has no type")
            record.outputs.append(result)
            if result.parameter is not None and result.parameter.bytes:
                record.parameters |= result.parameter.stored
            elif result.parameter is None and result.level < scope.level:
                record.captured[value.name] = result.level
        return record

    def _show(
        self,
        node: NodeProto,
        view: NodeView,
        stored: Sequence[bool],
        outputs: Sequence[ValueType | None],
        declared: Mapping[str, onnx.TypeProto],
        reason: Why,
    ) -> None:
        """Show a node with its outputs to what looks for sizes that fit."""
        assert self._fit is not None
        try:
            if reason.misfit:
                self._fit.rescued(reason.text)
            self._fit.node(NodeView(view.kind, view.opset, view.attributes, view.inputs, view.values, outputs), stored)
        except _MISFITS as error:
            raise self._misfit(node, error) from None
        for name, found in zip(node.output, outputs, strict=True):
            if name in declared and isinstance(found, TensorType):
                said = partial_type(declared[name])
                self._fit.declared(said.complete() if isinstance(said, PartialType) else None, found)

    def _misfit(self, node: NodeProto, error: Exception) -> Misfit:
        return Misfit(
            f"operands do not fit the operator: {error}",
            source=self._source,
            where=describe(node),
            remedy=self._dimensions.remedy_of_misfit(),
        )


class _BodyWalk:
    """Walks over the bodies of one op (:class:`mtpp.formats.onnx.control_flow.BodyWalk`)."""

    def __init__(self, walk: Walk, scope: Scope, path: Path, placed: PlacedNode, given_trips: int | None) -> None:
        self._walk, self._scope, self._path, self._placed = walk, scope, path, placed
        self.label = loop_name(placed.node)
        self.given_trips = given_trips

    def __call__(self, body: onnx.GraphProto, inputs: Sequence[Known], name: str) -> BodyRecord:
        place = Place.of(self._placed.node, self._placed.position, name)
        return self._walk.body(body, inputs, self._scope, (*self._path, place))

    def stored_in(self, body: onnx.GraphProto, name: str) -> dict[str, int]:
        place = Place.of(self._placed.node, self._placed.position, name)
        return self._walk.stored.in_body(body, (*self._path, place))

    def walked(self) -> int:
        return self._walk.walked

    def contradiction(self, trips: int) -> InputError:
        return self._walk.contradicted_trips(self._placed.node, trips)


def _take_over(record: Any, part: Any, captured_by_bodies: bool = False) -> None:
    """Add the sums of a part to a whole."""
    record.work_ps += part.work_ps
    record.flops += part.flops
    record.macs += part.macs
    record.parameters |= part.parameters
    record.not_modelled += part.not_modelled
    if captured_by_bodies:
        record.notes += part.notes
        record.inputs |= part.captured


def _all_constant(inputs: Sequence[Known | None]) -> bool:
    return all(known is None or known.parameter is not None for known in inputs)
