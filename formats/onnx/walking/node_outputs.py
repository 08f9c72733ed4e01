"""Outputs of a node without a body: types, what is certain of them, contents, and whether they are constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx
from onnx import NodeProto, TensorProto

from mtpp.formats.onnx.constants.lazy_contents import Contents
from mtpp.formats.onnx.constants.on_demand import computed_contents
from mtpp.formats.onnx.estimates.contents import contents_of, shape_window
from mtpp.formats.onnx.estimates.partial_values import PartialValue, Sureness
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import RANK, Known, Scope
from mtpp.formats.onnx.shape_rules.operand_sizes import check_operands, check_rows
from mtpp.formats.onnx.shapes import KNOWN, OutputType, ShapeInference, Why
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, partial_type
from mtpp.formats.onnx.topology import PlacedNode
from mtpp.formats.onnx.values import MOST_ELEMENTS, dtype_number, is_evaluated

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Kinds of ops that draw random numbers: each is an op of the graph even if it reads nothing."""

SHAPE_ONLY = frozenset({"EyeLike", "SequenceLength", "Shape", "Size"})
"""Ops that look at their input's static shape only: their result depends on no data."""

_MOST_FLOATS = 64
_FLOATS = frozenset({TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.FLOAT16})


@dataclass(frozen=True)
class Told:
    """Facts about the outputs of a node.

    Attributes
    ----------
    view
        The node, with contents of its inputs that were looked at.
    types, sure, ranked, reason, sizes
        As :class:`mtpp.formats.onnx.shapes.Inferred` has them.
    values
        Contents of the outputs; None where they are not known.
    constant
        Whether the node depends on no input of the model.
    """

    view: NodeView
    types: list[OutputType]
    sure: list[OutputType | None]
    ranked: list[bool]
    values: list[PartialValue] | None
    constant: bool
    reason: Why = KNOWN
    sizes: list[int] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """True if a size of an output may depend on contents that were not looked at."""
        return any(map(is_incomplete, (*self.types, *self.sure)))


class NodeOutputs:
    """Tells what a node makes, by inference and by constants."""

    def __init__(self, inference: ShapeInference) -> None:
        self._inference = inference

    def told(
        self,
        placed: PlacedNode,
        view: NodeView,
        inputs: Sequence[Known | None],
        scope: Scope,
        declared: Mapping[str, onnx.TypeProto],
    ) -> Told:
        """Return what is known of the outputs of a node; constants are looked at only if a size is open without."""
        node = placed.node
        told = self._by_known(placed, view, inputs, scope, declared)
        if not told.is_open:
            return told
        looked = with_contents(view, inputs)
        if looked is not view:
            told = self._by_known(placed, looked, inputs, scope, declared)
        if told.is_open and told.constant and all(known is None or known.on_demand is not None for known in inputs):
            made = self.computed(node, inputs, told.types)
            arrays = [one.get() for one in made]
            if all(array is not None and is_evaluated(array) for array in arrays):
                sureness = Sureness.CERTAIN if all(one.certain for one in made) else Sureness.ASSUMED
                values = [PartialValue.uniform(array, sureness) for array in arrays if array is not None]
                types: list[OutputType] = [PartialType(dtype_number(one.array), one.array.shape) for one in values]
                certain: list[OutputType | None] = [*types] if sureness is Sureness.CERTAIN else told.sure
                return replace(told, values=values, types=types, sure=certain, reason=KNOWN)
        if told.reason.misfit or not (told.reason.estimated or any(map(is_incomplete, told.types))):
            return told
        # What does not say how large it is itself would be told by a constant that is not there.
        open_names = [name for name, kind in zip(node.output, told.sure, strict=True) if is_incomplete(kind)]
        if all(name in declared and not is_incomplete(partial_type(declared[name])) for name in open_names):
            return told
        missing = (known.contents.missing() for known in inputs if known is not None and known.contents is not None)
        absent = next((one for one in missing if one is not None), None)
        return told if absent is None else replace(told, reason=told.reason._replace(absent=absent))

    def computed(self, node: NodeProto, inputs: Sequence[Known | None], types: Sequence[OutputType]) -> list[Contents]:
        """Return the contents of the outputs of a constant node, to be made on demand."""
        kinds = [kind if isinstance(kind, PartialType) else None for kind in types]
        given = [None if known is None else known.on_demand for known in inputs]
        return computed_contents(node, given, self._inference.version(node.domain), kinds)

    def _by_known(
        self,
        placed: PlacedNode,
        view: NodeView,
        inputs: Sequence[Known | None],
        scope: Scope,
        declared: Mapping[str, onnx.TypeProto],
    ) -> Told:
        """Return what sizes, and contents that were looked at already, tell of the outputs of a node without a body."""
        node, kind = placed.node, view.kind
        constant = kind not in RANDOM and (
            all(_is_constant(scope.find(name)) for name in placed.reads)
            or (kind in SHAPE_ONLY and _looks_at_certain_sizes(view, inputs))
        )
        values = None if kind in RANDOM else contents_of(view, inputs, len(node.output))
        if values is None:
            check_rows(view)
            check_operands(view)
        types: list[OutputType] = [PartialType(dtype_number(one.array), one.array.shape) for one in values or ()]
        types = [*types, *(PartialType() for _ in node.output)][: len(node.output)]
        if values is not None and all(value.least is Sureness.CERTAIN for value in values):
            constant = constant or all(value.array.dtype.kind in "iub" for value in values)
            return Told(view, types, [*types], [False for _ in types], values, constant)
        inferred = self._inference.infer(node, view, inputs, declared)
        if values is None:
            types = inferred.types
        reason = inferred.why if values is None else KNOWN
        return Told(view, types, inferred.sure, inferred.ranked, values, constant, reason, inferred.declared)


def with_contents(view: NodeView, inputs: Sequence[Known | None]) -> NodeView:
    """Return a node with contents of its inputs that may decide sizes; the node itself if none are made on demand."""
    fetched = [known.fetch() for known in inputs if known is not None and _may_decide(known)]
    return replace(view, values=[known.value if known else None for known in inputs]) if any(fetched) else view


def _may_decide(known: Known) -> bool:
    """Say whether contents of a tensor may decide sizes: whole numbers, masks, and a few floats that scale."""
    if not isinstance(known.type, TensorType):
        return False
    return known.type.count <= (_MOST_FLOATS if known.type.dtype in _FLOATS else MOST_ELEMENTS)


def is_incomplete(kind: OutputType | None) -> bool:
    """Say whether an axis of a type is open, or the type is not known."""
    return kind is None or (isinstance(kind, PartialType) and kind.complete() is None)


def _is_constant(known: Known | None) -> bool:
    return known is not None and known.parameter is not None


def _looks_at_certain_sizes(view: NodeView, inputs: Sequence[Known | None]) -> bool:
    """Say whether what an op on shapes looks at of its input is certain."""
    first = inputs[0] if inputs else None
    if first is None or not isinstance(first.type, TensorType):
        return first is not None and not first.open_axes
    if view.kind != "Shape":
        return not first.open_axes
    return RANK not in first.open_axes and not first.open_axes.intersection(shape_window(view, first.type.rank))
