"""Types of a node's outputs: by onnx's own shape inference, then by our rules, then as the file declares them.

Inference runs node by node, in topological order, on static shapes: so it sees the small constants evaluated on
the way (:mod:`mtpp.formats.onnx.values`), goes on after ops that onnx does not know, and is never misled by stale
value_info.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import onnx
from onnx import NodeProto, TensorProto, TypeProto, defs, shape_inference

from mtpp.formats.onnx.estimates.certainty import moves_in_sequence, unmoved_types
from mtpp.formats.onnx.estimates.partial_values import Sureness
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.sequences import sequence_output_types
from mtpp.formats.onnx.shape_rules.argument_sizes import argument_sizes
from mtpp.formats.onnx.shape_rules.contrib_shapes import STANDARD_TWINS, contrib_output_types
from mtpp.formats.onnx.shape_rules.executed_sizes import executed_output_types
from mtpp.formats.onnx.shape_rules.layout_shapes import BLOCKED_TWINS, LARGEST_BLOCK, layout_output_types
from mtpp.formats.onnx.shape_rules.standard_shapes import standard_output_types
from mtpp.formats.onnx.shape_rules.window_sizes import windows
from mtpp.formats.onnx.tensor_type import OpaqueType, PartialType, SequenceType, TensorType, ValueType, partial_type

_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)

_TWINS = {**STANDARD_TWINS, **BLOCKED_TWINS}

_AXIS_ATTRIBUTES = ("axis", "axes", "perm", "batch_axis", "time_axis")
_HIGHEST_NEW_AXIS = 64
"""Unsqueeze may add several axes, and names them as they stand in its output."""

_LETTERS = re.compile(r"[A-Za-z ]*(\.\.\.)?[A-Za-z ]*")


class Inferred(NamedTuple):
    """Types of a node's outputs.

    Attributes
    ----------
    types
        As complete as it can be told, by estimates and declarations where nothing is certain.
    sure
        The same by nothing but certain sizes and arguments: an axis that is open here depends on data. None for a
        sequence or another value of which nothing is certain.
    ranked
        Whether the file or the caller, and no estimate, says how many axes there are.
    declared
        Declared sizes that stand in place of estimates which they contradict.
    why
        Why a type is not complete.
    """

    types: list[OutputType]
    sure: list[OutputType | None]
    ranked: list[bool]
    declared: list[int]
    why: Why


class Why(NamedTuple):
    """Why the type of a node's output is not complete.

    Attributes
    ----------
    text
        For people; empty where nothing went wrong.
    misfit
        Whether its operands do not fit: other sizes may.
    absent
        A constant that would tell it, and the file that this lies in, which is not there.
    estimated
        Whether estimates fill gaps that nothing else does.
    """

    text: str = ""
    misfit: bool = False
    absent: tuple[str, str] | None = None
    estimated: bool = False


KNOWN = Why()
_OWN_DOMAINS = ("com.microsoft", "com.ms.")
"""What domains of operators that ONNX Runtime makes itself begin with."""

OutputType = PartialType | SequenceType | OpaqueType


@lru_cache(maxsize=512)
def _schema(op_type: str, version: int, domain: str) -> defs.OpSchema | None:
    """Return the schema in force, the last one of an op that was removed, or the first of one that came later.

    Exporters do write LayerNormalization into opset 12 models: ONNX Runtime runs them.
    """
    for bound in (version, 10**6):
        try:
            schema = defs.get_schema(op_type, bound, domain)
        except defs.SchemaError:
            continue
        while schema.deprecated and schema.since_version > 1:
            try:
                schema = defs.get_schema(op_type, schema.since_version - 1, domain)
            except defs.SchemaError:
                return None
        return schema
    return None


class ShapeInference:
    """Infers output types, one node at a time.

    Parameters
    ----------
    opsets
        Version by domain.
    channel_block
        Channels in a block, in models laid out in blocks of channels.
    trusting
        Whether declared sizes go before estimates.
    """

    def __init__(
        self,
        opsets: Mapping[str, int],
        ir_version: int,
        channel_block: int = LARGEST_BLOCK,
        *,
        trusting: bool = True,
    ) -> None:
        self.trusting = trusting
        self._opsets = dict(opsets)
        self._imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        self._ir_version = max(ir_version, 3)
        self._channel_block = channel_block

    def version(self, domain: str) -> int:
        """Return the version of a domain's operator set, 1 if the model does not say."""
        return self._opsets.get("" if domain == "ai.onnx" else domain, 1)

    def infer(
        self, node: NodeProto, view: NodeView, inputs: Sequence[Known | None], declared: Mapping[str, TypeProto]
    ) -> Inferred:
        """Return the types of the outputs of *node*, and what is certain of them."""
        types, reason, estimated = self._told(node, view, inputs)
        certain = all(known is None or known.is_certain for known in inputs)
        if certain and not estimated and not moves_in_sequence(view):
            sure: list[OutputType | None] = [*types]
        else:
            sure = self._sure(node, view, inputs, types)
        ranked = ranks_are_told(types, node.output, declared)
        types = with_declarations(types, node.output, declared)
        sizes: list[int] = []
        if self.trusting:
            types, sizes = overruled(types, sure, node.output, declared)
        return Inferred(_typed_like_input(types, view), sure, ranked, sizes, reason._replace(estimated=estimated))

    def _told(
        self, node: NodeProto, view: NodeView, inputs: Sequence[Known | None]
    ) -> tuple[list[OutputType], Why, bool]:
        """Return one type per output of *node*, why it is not complete, and whether estimates fill gaps of it."""
        reason = KNOWN
        try:
            own = self._own(node, view)
        except _MISFITS as error:
            own, reason = [], Why(str(error), misfit=True)
        if own is not None:
            types = [_output_type(own[i] if i < len(own) else None) for i in range(len(node.output))]
        elif (fault := fault_that_inference_misses(view, len(node.output))) is not None:
            types, reason = [PartialType() for _ in node.output], Why(fault, misfit=True)
        else:
            types, reason = self._by_schema(node, inputs)
            if not _all_complete(types):
                types = _filled(types, view)
        estimated = not reason.misfit and not _all_complete(types)
        if estimated:
            types = _by_arguments(types, view, inputs, Sureness.ASSUMED)
        return types, reason, estimated

    def _own(self, node: NodeProto, view: NodeView) -> Sequence[ValueType | PartialType | None] | None:
        """Return the types of the outputs of an op that onnx does not know; None where it does, or nobody does."""
        own: Sequence[ValueType | PartialType | None] | None = sequence_output_types(view)
        if own is None:
            own = executed_output_types(view)
        if own is None and not self._has_schema(node):
            own = contrib_output_types(view)
            if own is None:
                own = layout_output_types(view, self._channel_block)
        return own

    def _sure(
        self, node: NodeProto, view: NodeView, inputs: Sequence[Known | None], types: Sequence[OutputType]
    ) -> list[OutputType | None]:
        """Return what nothing but certain sizes and arguments tell of the outputs."""

        def own_rule(view: NodeView) -> Sequence[ValueType | PartialType | None]:
            return self._own(node, view) or ()

        try:
            if self._own(node, view) is not None:
                return _by_arguments(unmoved_types(own_rule, view, inputs, types), view, inputs, Sureness.CERTAIN)
        except _MISFITS:
            return [None for _ in node.output]
        found, reason = self._by_schema(node, inputs, sure=True)
        if reason.misfit:
            return [None for _ in node.output]
        found = _by_arguments(found, view, inputs, Sureness.CERTAIN)
        if not _all_complete(found):
            own = unmoved_types(standard_output_types, view, inputs, types)
            found = [
                kind.merged(told) if isinstance(kind, PartialType) and isinstance(told, PartialType) else kind
                for kind, told in zip(found, own, strict=True)
            ]
        return [*found]

    def _has_schema(self, node: NodeProto) -> bool:
        domain = "" if node.domain == "ai.onnx" else node.domain
        return _schema(node.op_type, self.version(domain), domain) is not None

    def _by_schema(
        self, node: NodeProto, inputs: Sequence[Known | None], *, sure: bool = False
    ) -> tuple[list[OutputType], Why]:
        unknown: list[OutputType] = [PartialType() for _ in node.output]
        domain = "" if node.domain == "ai.onnx" else node.domain
        twin = _TWINS.get(f"{domain}:{node.op_type}")
        if twin is not None:
            op_type, used = twin
            twin_node = NodeProto(op_type=op_type, input=node.input[:used], output=node.output[:1])
            schema = _schema(op_type, self.version(""), "")
            known_attributes = schema.attributes if schema else {}
            twin_node.attribute.extend(a for a in node.attribute if a.name in known_attributes)
            node = twin_node
        else:
            schema = _schema(node.op_type, self.version(domain), domain)
        if schema is None:
            return unknown, Why(_without_rule(domain))
        types: dict[str, TypeProto] = {}
        data: dict[str, TensorProto] = {}
        for name, known in zip(node.input, inputs, strict=False):
            if not name or known is None:
                continue
            proto = known.sure_type_proto if sure else known.type_proto
            if proto is None:
                return unknown, Why(f"input {name!r} is no tensor")
            types[name] = proto
            contents = None if sure and known.elements is not None else known.tensor_proto
            if contents is not None:
                data[name] = contents
        try:
            result = shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=self._imports, ir_version=self._ir_version
            )
        except Exception as error:  # onnx raises several unrelated types here, RuntimeError among them
            return unknown, Why(" ".join(str(error).split())[:200], misfit=True)
        found = [partial_type(result[name]) if name in result else PartialType() for name in node.output]
        return [*found, *unknown[len(found) :]], KNOWN


def _without_rule(domain: str) -> str:
    """Say that an operator has no rule; those of ONNX Runtime can be avoided."""
    if domain.startswith(_OWN_DOMAINS):
        return "no rule for this operator of ONNX Runtime: save the model at its level ORT_ENABLE_BASIC"
    return "no shape rule for this operator"


def _typed_like_input(types: list[OutputType], view: NodeView) -> list[OutputType]:
    """Take the first input's element type where an op unknown to everybody does not say; the user may give sizes."""
    dtype = next((kind.dtype for kind in view.inputs if isinstance(kind, TensorType)), None)
    return [
        PartialType(dtype, kind.dims) if isinstance(kind, PartialType) and kind.dtype is None else kind
        for kind in types
    ]


def _all_complete(types: Sequence[OutputType]) -> bool:
    return all(not isinstance(kind, PartialType) or kind.complete() is not None for kind in types)


def _filled(types: Sequence[OutputType], view: NodeView) -> list[OutputType]:
    """Fill gaps that onnx leaves from our own rules for standard ops."""
    try:
        told = standard_output_types(view)
    except _MISFITS:
        told = []
    result = list(types)
    for position, (kind, own) in enumerate(zip(types, told, strict=False)):
        if isinstance(kind, PartialType) and own is not None:
            result[position] = _partial(own) if kind.dims is None else kind.merged(_partial(own))
    return result


def _by_arguments(
    types: Sequence[OutputType | None], view: NodeView, inputs: Sequence[Known | None], least: Sureness
) -> list[Any]:
    """Fill gaps from the elements of arguments that are known."""
    try:
        told = argument_sizes(view, inputs, least, len(types)) or ()
    except _MISFITS:
        told = ()
    result = list(types)
    for position, (kind, sizes) in enumerate(zip(types, told, strict=False)):
        if isinstance(kind, PartialType) and sizes is not None:
            result[position] = kind.merged(PartialType(None, sizes))
    return result


def _partial(kind: TensorType | PartialType) -> PartialType:
    return kind if isinstance(kind, PartialType) else PartialType(kind.dtype, kind.shape)


def _output_type(kind: ValueType | PartialType | None) -> OutputType:
    if kind is None:
        return PartialType()
    return _partial(kind) if isinstance(kind, TensorType | PartialType) else kind


def ranks_are_told(types: Sequence[OutputType], names: Sequence[str], declared: Mapping[str, TypeProto]) -> list[bool]:
    """Say of each output whether its number of axes is declared, or up to the caller, in place of inferred."""
    told = []
    for kind, name in zip(types, names, strict=True):
        said = partial_type(declared[name]) if name in declared else None
        declares = isinstance(said, PartialType) and said.dims is not None
        told.append(declares or (isinstance(kind, PartialType) and kind.dims is None))
    return told


def overruled(
    types: Sequence[OutputType],
    sure: Sequence[OutputType | None],
    names: Sequence[str],
    declared: Mapping[str, TypeProto],
) -> tuple[list[OutputType], list[int]]:
    """Put declared sizes in place of estimates that they contradict; return those sizes as well.

    A declared size of an axis that depends on data stays an estimate, if a better one.
    """
    result, sizes = list(types), []
    for position, (kind, certain, name) in enumerate(zip(types, sure, names, strict=True)):
        said = partial_type(declared[name]) if name in declared else None
        if not isinstance(kind, PartialType) or not isinstance(said, PartialType):
            continue
        if kind.dims is None or said.dims is None or len(kind.dims) != len(said.dims):
            continue
        fixed = certain.dims if isinstance(certain, PartialType) and certain.dims else (None,) * len(kind.dims)
        dims = list(kind.dims)
        for axis, (size, one) in enumerate(zip(kind.dims, said.dims, strict=True)):
            if isinstance(one, int) and isinstance(size, int) and size != one and fixed[axis] != size:
                dims[axis] = one
                sizes.append(one)
        result[position] = PartialType(kind.dtype, tuple(dims))
    return result, sizes


def with_declarations(
    types: Sequence[OutputType], names: Sequence[str], declared: Mapping[str, TypeProto]
) -> list[OutputType]:
    """Fill what inference left open from value_info; an inferred size is never overruled by a declared one."""
    result: list[OutputType] = []
    for kind, name in zip(types, names, strict=True):
        if isinstance(kind, PartialType) and kind.complete() is None and name in declared:
            said = partial_type(declared[name])
            if isinstance(said, PartialType):
                kind = kind.merged(said)
            elif kind == PartialType():
                kind = said
        result.append(kind)
    return result


def fault_that_inference_misses(node: NodeView, outputs: int) -> str | None:
    """Say what is wrong with a node on which shape inference must not be run; None if nothing is."""
    check = _CHECKS.get(node.kind)
    return _wrong_axis(node) or (check(node, outputs) if check is not None else None)


def _wrong_axis(node: NodeView) -> str | None:
    first = node.inputs[0] if node.inputs else None
    if not isinstance(first, TensorType):
        return None
    # Ops that add an axis may name the one behind the last.
    above = first.rank - 1 if node.kind in ("LayerNormalization", "RMSNormalization") else first.rank
    for name in _AXIS_ATTRIBUTES:
        value = node.attributes.get(name)
        highest = _HIGHEST_NEW_AXIS if name == "axes" else above
        for axis in [value] if isinstance(value, int) else value if isinstance(value, list) else []:
            if isinstance(axis, int) and not -highest - 1 <= axis <= highest:
                return f"{name} {axis} is no axis of a tensor of rank {first.rank}"
    return None


def _wrong_split(node: NodeView, outputs: int) -> str | None:
    parts = node.attributes.get("num_outputs", outputs)
    if parts != outputs:
        return f"num_outputs is {parts}, but the node has {outputs} outputs"
    return None


def _wrong_equation(node: NodeView, outputs: int) -> str | None:
    left, _, right = node.text("equation", "").partition("->")
    if all(_LETTERS.fullmatch(term) for term in [*left.split(","), right]):
        return None
    return "the equation is not one of letters, commas and an arrow"


def _window_too_large(weight_input: int) -> Callable[[NodeView, int], str | None]:
    """Return the check of a convolution whose weights are that input: ONNX Runtime refuses a window without a place."""

    def check(node: NodeView, outputs: int) -> str | None:
        x, weight = (node.inputs[i] if i < len(node.inputs) else None for i in (0, weight_input))
        if not isinstance(x, TensorType) or not isinstance(weight, TensorType) or weight.rank != x.rank:
            return None  # shape inference says what is wrong
        kernel, sizes = weight.shape[2:], x.shape[2:]
        try:
            found = windows(node, sizes, kernel)
        except MalformedNode:
            return None
        if all(window.room >= 0 for window in found):
            return None
        return f"the window {'×'.join(map(str, kernel))} does not fit into {'×'.join(map(str, sizes))}"

    return check


def _pool_too_large(node: NodeView, outputs: int) -> str | None:
    """Check that no window is so much larger than what it slides over that less than nothing would be left."""
    x, kernel = node.inputs[0] if node.inputs else None, node.integers("kernel_shape")
    if not isinstance(x, TensorType) or not kernel:
        return None
    try:
        found = windows(node, x.shape[2:], kernel)
    except MalformedNode:
        return None
    if all(window.room >= -window.stride for window in found):
        return None
    return f"the window {'×'.join(map(str, kernel))} does not fit into {'×'.join(map(str, x.shape[2:]))}"


def _mirror_too_large(node: NodeView, outputs: int) -> str | None:
    """Check that what is added by reflection is there to be reflected."""
    first, pads = node.inputs[0] if node.inputs else None, node.value(1)
    if node.text("mode", "constant") != "reflect" or not isinstance(first, TensorType) or pads is None or node.has(3):
        return None
    widths = [int(width) for width in pads.reshape(-1)]
    if len(widths) != 2 * first.rank:
        return None
    for axis, size in enumerate(first.shape):
        widest = max(widths[axis], widths[first.rank + axis])
        if widest >= max(size, 1):
            return f"{widest} elements cannot be reflected from {size} (axis {axis})"
    return None


_CHECKS: dict[str, Callable[[NodeView, int], str | None]] = {
    "AveragePool": _pool_too_large,
    "Conv": _window_too_large(1),
    "ConvInteger": _window_too_large(1),
    "Einsum": _wrong_equation,
    "LpPool": _pool_too_large,
    "MaxPool": _pool_too_large,
    "Pad": _mirror_too_large,
    "QLinearConv": _window_too_large(3),
    "Split": _wrong_split,
    "com.microsoft:FusedConv": _window_too_large(1),
}
