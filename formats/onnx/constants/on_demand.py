"""Contents of constants made on demand: of stored tensors, of those beside the model, and of what ops make of them.

Shapes are computed with small constants, which a walk evaluates at once (:mod:`mtpp.formats.onnx.values`). A size may
as well depend on a mask, on boxes, on more numbers than that: these are looked at only where a size is open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mtpp.errors import InputError
from mtpp.formats.onnx.constants.lazy_contents import Contents
from mtpp.formats.onnx.external_data import external_place
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, partial_type
from mtpp.formats.onnx.topology import overridable_names, subgraphs
from mtpp.formats.onnx.values import Array, Attributes, attribute_values

MOST_ELEMENTS = 8192
"""Of a constant that is looked at, and of what is made of it."""

_DEEPEST = 100
"""Ops that one constant is computed by, one after the other."""

_RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
_SLOW = frozenset(
    {"Attention", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU", "LSTM", "QLinearConv", "RNN"}
)
_AT_MOST_AS_MANY = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Unique"})
"""Ops whose output sizes only their data tells, and is bounded by that of their inputs."""


@dataclass(frozen=True)
class StoredConstants:
    """Initializers of a model.

    Attributes
    ----------
    folder
        Where external data lies; None where there is no such place.
    defaults
        Those that a caller may replace, with what the model declares of them.
    """

    folder: Path | None = None
    defaults: Mapping[str, onnx.TypeProto] = field(default_factory=dict)

    @classmethod
    def of(cls, model: onnx.ModelProto, folder: Path | None) -> StoredConstants:
        """Return those of a model whose external data lies in *folder*."""
        names = overridable_names(model)
        return cls(folder, {value.name: value.type for value in model.graph.input if value.name in names})

    def free_axes(self, name: str, kind: TensorType) -> frozenset[int]:
        """Return the axes of a default whose size the model does not fix: a caller may give another one."""
        declared = partial_type(self.defaults[name])
        dims = declared.dims if isinstance(declared, PartialType) else None
        if dims is None or len(dims) != kind.rank:
            return frozenset(range(-1, kind.rank))
        return frozenset(axis for axis, dim in enumerate(dims) if not isinstance(dim, int))


def stored_contents(tensor: TensorProto, folder: Path | None, source: str, *, certain: bool = True) -> Contents:
    """Return the contents of a stored tensor.

    Parameters
    ----------
    folder
        Where external data lies; None where there is no such place.
    """

    def make() -> Array | None:
        if math.prod(tensor.dims) > MOST_ELEMENTS or tensor.data_type == TensorProto.STRING:
            return None
        if tensor.data_location == TensorProto.EXTERNAL:
            return _external(tensor, folder, source, contents)
        try:
            return numpy_helper.to_array(tensor)
        except (ValueError, TypeError):
            return None

    contents = Contents(make, certain=certain)
    return contents


def _external(tensor: TensorProto, folder: Path | None, source: str, contents: Contents) -> Array | None:
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    if folder is not None:
        place = external_place(tensor, folder, source)
        if place is not None and place.is_there:
            whole = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
            kind = TensorType(tensor.data_type, tuple(tensor.dims))
            try:
                with place.path.open("rb") as file:
                    file.seek(place.offset)
                    whole.raw_data = file.read(kind.bytes)
                return numpy_helper.to_array(whole)
            except OSError as error:
                raise InputError(
                    f"{location!r} cannot be read: {error.strerror}",
                    source=source,
                    where=f"external data of {tensor.name!r}",
                ) from None
            except (ValueError, TypeError):
                return None
    contents.absent = tensor.name, location
    return None


def computed_contents(
    node: onnx.NodeProto, inputs: Sequence[Contents | None], opset: int, types: Sequence[PartialType | None]
) -> list[Contents]:
    """Return the contents of the outputs of a node, by those of its inputs.

    Parameters
    ----------
    inputs
        None where an optional one is left out.
    types
        Of the outputs, as far as shapes tell.
    """
    certain = all(one is None or one.certain for one in inputs)
    depth = 1 + max((one.depth for one in inputs if one is not None), default=0)
    made: list[list[Array] | None] = []

    def outputs() -> list[Array] | None:
        if not made:
            made.append(_run(node, inputs, opset, types) if depth <= _DEEPEST else None)
        return made[0]

    def one(position: int) -> Callable[[], Array | None]:
        def make() -> Array | None:
            arrays = outputs()
            return arrays[position] if arrays is not None else None

        return make

    return [
        Contents(one(position), certain=certain, depth=depth, sources=inputs) for position in range(len(node.output))
    ]


def _run(
    node: onnx.NodeProto, inputs: Sequence[Contents | None], opset: int, types: Sequence[PartialType | None]
) -> list[Array] | None:
    if node.domain not in ("", "ai.onnx") or node.op_type in _RANDOM | _SLOW or any(True for _ in subgraphs(node)):
        return None
    if node.op_type not in _AT_MOST_AS_MANY and not all(_is_small(kind) for kind in types):
        return None
    arrays: list[Array | None] = []
    for one in inputs:
        array = None if one is None else one.get()
        if one is not None and array is None:
            return None
        arrays.append(array)
    return evaluated(node, arrays, opset)


def _is_small(kind: PartialType | None) -> bool:
    complete = None if kind is None else kind.complete()
    return complete is not None and complete.count <= MOST_ELEMENTS


def evaluated(node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int) -> list[Array] | None:
    """Run one standard op: by our own rule, else with onnx's reference implementation.

    Returns
    -------
    One array per output; None if it cannot run.
    """
    own = _OWN.get(node.op_type)
    if own is None:
        return _by_reference(node, inputs, opset)
    try:
        results = own(inputs, attribute_values(node.attribute))
    except (
        ArithmeticError,
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ):  # it does not fit its operator
        return None
    return [*results][: len(node.output)]


def _compress(inputs: Sequence[Array | None], attributes: Attributes) -> Sequence[Array]:
    data, mask = inputs[0], inputs[1]
    assert data is not None
    assert mask is not None
    axis = attributes.get("axis")
    # A mask may be shorter than the axis: what is behind it is left out.
    return [np.compress(mask, data.reshape(-1) if axis is None else data, axis=0 if axis is None else axis)]


def _unique(inputs: Sequence[Array | None], attributes: Attributes) -> Sequence[Array]:
    """Unlike the reference implementation (1.23), in the order of first places where that is asked for."""
    data = inputs[0]
    assert data is not None
    if data.dtype.kind == "f" and np.isnan(data).any():
        raise ValueError("how often it counts is not said")
    axis = attributes.get("axis")
    values, first, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not attributes.get("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, inverse, counts = first[order], place[inverse], counts[order]
    return [values, *(one.astype(np.int64) for one in (first, inverse, counts))]


_OWN: dict[str, Callable[[Sequence[Array | None], Attributes], Sequence[Array]]] = {
    "Compress": _compress,
    "Unique": _unique,
}


def _by_reference(node: onnx.NodeProto, inputs: Sequence[Array | None], opset: int) -> list[Array] | None:
    from onnx.reference import ReferenceEvaluator

    arrays = _with_defaults(node, inputs)
    names = [f"i{position}" if array is not None else "" for position, array in enumerate(arrays)]
    outputs = [f"o{position}" if name else "" for position, name in enumerate(node.output)]
    alone = helper.make_node(node.op_type, names, outputs)
    alone.attribute.extend(node.attribute)
    feeds = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
    graph = helper.make_graph(
        [alone],
        "constant",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        with np.errstate(all="ignore"):
            results = dict(
                zip([name for name in outputs if name], ReferenceEvaluator(model).run(None, feeds), strict=True)
            )
    except Exception:  # whatever its implementations stumble over
        return None
    if not all(isinstance(result, np.ndarray | np.generic) for result in results.values()):
        return None
    return [np.asarray(results[name]) if name else np.zeros(0) for name in outputs]


def _with_defaults(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> list[Array | None]:
    """Return the inputs of a node with those filled in without which the reference implementation does not run."""
    arrays = [*inputs]
    if node.op_type == "NonMaxSuppression":
        arrays += [None] * (4 - len(arrays))
        arrays[2] = np.zeros(1, np.int64) if arrays[2] is None else arrays[2].reshape(-1)
        arrays[3] = np.zeros(1, np.float32) if arrays[3] is None else arrays[3].reshape(-1)
    return arrays
