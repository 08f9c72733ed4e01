"""Types of a node's outputs: by onnx's own shape inference, then by our rules, then as the file declares them.

Inference runs node by node, in topological order, on static shapes: so it sees the small constants evaluated on
the way (:mod:`mtpp.formats.onnx.values`), goes on after ops that onnx does not know, and is never misled by stale
value_info.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import onnx
from onnx import NodeProto, TensorProto, TypeProto, defs, shape_inference

from mtpp.formats.onnx.inference_guard import fault_that_inference_misses
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.sequences import sequence_output_types
from mtpp.formats.onnx.shape_rules.contrib_shapes import STANDARD_TWINS, contrib_output_types
from mtpp.formats.onnx.shape_rules.executed_sizes import executed_output_types
from mtpp.formats.onnx.shape_rules.layout_shapes import BLOCKED_TWINS, LARGEST_BLOCK, layout_output_types
from mtpp.formats.onnx.shape_rules.standard_shapes import standard_output_types
from mtpp.formats.onnx.tensor_type import OpaqueType, PartialType, SequenceType, TensorType, ValueType, partial_type

_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)

_TWINS = {**STANDARD_TWINS, **BLOCKED_TWINS}


class Why(NamedTuple):
    """Why the type of a node's output is not complete.

    Attributes
    ----------
    text
        For people; empty where nothing went wrong.
    misfit
        Whether its operands do not fit: other sizes may.
    """

    text: str = ""
    misfit: bool = False


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
    """

    def __init__(self, opsets: Mapping[str, int], ir_version: int, channel_block: int = LARGEST_BLOCK) -> None:
        self._opsets = dict(opsets)
        self._imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        self._ir_version = max(ir_version, 3)
        self._channel_block = channel_block

    def version(self, domain: str) -> int:
        """Return the version of a domain's operator set, 1 if the model does not say."""
        return self._opsets.get("" if domain == "ai.onnx" else domain, 1)

    def infer(
        self, node: NodeProto, view: NodeView, inputs: Sequence[Known | None], declared: Mapping[str, TypeProto]
    ) -> tuple[list[OutputType], Why]:
        """Return one type per output of *node*, as complete as it can be told, and why it is not complete."""
        reason = KNOWN
        try:
            own: Sequence[ValueType | PartialType | None] | None = sequence_output_types(view)
            if own is None:
                own = executed_output_types(view)
            if own is None and not self._has_schema(node):
                own = contrib_output_types(view)
                if own is None:
                    own = layout_output_types(view, self._channel_block)
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
        return _typed_like_input(with_declarations(types, node.output, declared), view), reason

    def _has_schema(self, node: NodeProto) -> bool:
        domain = "" if node.domain == "ai.onnx" else node.domain
        return _schema(node.op_type, self.version(domain), domain) is not None

    def _by_schema(self, node: NodeProto, inputs: Sequence[Known | None]) -> tuple[list[OutputType], Why]:
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
            proto = known.type_proto
            if proto is None:
                return unknown, Why(f"input {name!r} is no tensor")
            types[name] = proto
            contents = known.tensor_proto
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


def _partial(kind: TensorType | PartialType) -> PartialType:
    return kind if isinstance(kind, PartialType) else PartialType(kind.dtype, kind.shape)


def _output_type(kind: ValueType | PartialType | None) -> OutputType:
    if kind is None:
        return PartialType()
    return _partial(kind) if isinstance(kind, TensorType | PartialType) else kind


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
