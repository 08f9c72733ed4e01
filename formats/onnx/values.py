"""Small constants evaluated where shapes depend on them: Shape → Gather → Concat → Reshape and the like.

Weights are never evaluated: only integers and booleans of at most :data:`MOST_ELEMENTS` elements, and the handful
of floats that scale a Resize.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_TO_THE_LAST = frozenset((2**31 - 1, 2**63 - 1))
"""Ends that stand for all that is left in the direction of the step, backwards too."""

MOST_ELEMENTS = 8192
MOST_FLOATS = 16

Array = NDArray[Any]
Attributes = Mapping[str, Any]
Evaluator = Callable[[Sequence[Array | None], Attributes, int], Sequence[Array]]

_TYPES: dict[int, np.dtype[Any]] = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.DOUBLE: np.dtype(np.float64),
    TensorProto.INT8: np.dtype(np.int8),
    TensorProto.INT16: np.dtype(np.int16),
    TensorProto.INT32: np.dtype(np.int32),
    TensorProto.INT64: np.dtype(np.int64),
    TensorProto.UINT8: np.dtype(np.uint8),
    TensorProto.UINT16: np.dtype(np.uint16),
    TensorProto.UINT32: np.dtype(np.uint32),
    TensorProto.UINT64: np.dtype(np.uint64),
    TensorProto.BOOL: np.dtype(np.bool_),
}
_FAILURES = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    TypeError,
    ValueError,
)
"""What a broken node can raise on the way; it is then simply not evaluated."""
_NUMBERS = {dtype: number for number, dtype in _TYPES.items()}


def is_small(dtype: int, count: int) -> bool:
    """Say whether a tensor of *count* elements may be evaluated."""
    kind = _TYPES.get(dtype)
    return kind is not None and count <= (MOST_FLOATS if kind.kind == "f" else MOST_ELEMENTS)


def dtype_of(number: int) -> np.dtype[Any]:
    """Return numpy's type of an element type that is evaluated."""
    return _TYPES[number]


def is_evaluated(array: Array) -> bool:
    """Say whether an array is of a type that ops are evaluated on."""
    return array.dtype in _NUMBERS


def array_of(tensor: TensorProto) -> Array | None:
    """Return the contents of a small tensor; None if it is large, absent (external) or of another type."""
    if tensor.data_location == TensorProto.EXTERNAL or not is_small(tensor.data_type, math.prod(tensor.dims)):
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError):
        return None


def tensor_of(array: Array) -> TensorProto:
    """Return an array as shape inference wants it."""
    contiguous = np.ascontiguousarray(array)
    return TensorProto(data_type=_NUMBERS[array.dtype], dims=array.shape, raw_data=contiguous.tobytes())


def dtype_number(array: Array) -> int:
    """Return the ONNX element type of an evaluated array."""
    return _NUMBERS[array.dtype]


def evaluate(op_type: str, inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> list[Array] | None:
    """Evaluate one op on small constants.

    Parameters
    ----------
    inputs
        None where an optional input is left out.
    outputs
        Number of outputs the node names.

    Returns
    -------
    One array per output; None if the op is not among those that shapes are computed with, or cannot be evaluated.
    """
    evaluator = _EVALUATORS.get(op_type)
    if evaluator is None:
        return None
    with np.errstate(all="ignore"):
        try:
            results = [np.asarray(result) for result in evaluator(inputs, attributes, outputs)]
        except _FAILURES:
            return None
    usable = all(r.dtype in _NUMBERS and is_small(_NUMBERS[r.dtype], r.size) for r in results)
    return results if usable else None


def can_evaluate(op_type: str) -> bool:
    """Say whether :func:`evaluate` knows the op."""
    return op_type in _EVALUATORS


def _given(inputs: Sequence[Array | None], index: int) -> Array | None:
    return inputs[index] if index < len(inputs) else None


def _need(inputs: Sequence[Array | None], index: int) -> Array:
    array = _given(inputs, index)
    if array is None:
        raise ValueError(f"input {index} is left out")
    return array


def _ints(inputs: Sequence[Array | None], index: int, attributes: Attributes, name: str) -> list[int] | None:
    """Return a list that newer operator sets pass as an input and older ones as an attribute."""
    array = _given(inputs, index)
    if array is not None:
        return [int(x) for x in np.atleast_1d(array)]
    value = attributes.get(name)
    if value is None:
        return None
    return [int(value)] if isinstance(value, int) else [int(x) for x in value]


def _elementwise(function: Callable[..., Any], keep_type: bool = True) -> Evaluator:
    def run(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
        arrays = [_need(inputs, index) for index in range(len(inputs))]
        _check_size(*(a.shape for a in arrays))
        result = np.asarray(function(*arrays))
        return [result.astype(arrays[0].dtype) if keep_type else result]

    return run


def _check_size(*shapes: tuple[int, ...]) -> None:
    """Refuse a result that is too large before it is made."""
    if math.prod(np.broadcast_shapes(*shapes)) > MOST_ELEMENTS:
        raise ValueError("too many elements")


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        if not np.all(b):
            raise ZeroDivisionError
        # ONNX rounds integer quotients towards zero; numpy's // rounds down.
        result: Array = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
        return result
    quotient: Array = a / b
    return quotient


def _modulo(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    a, b = _need(inputs, 0), _need(inputs, 1)
    if not np.all(b):
        raise ZeroDivisionError
    return [np.fmod(a, b) if attributes.get("fmod") else np.mod(a, b)]


def _cast(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    return [_need(inputs, 0).astype(_TYPES[attributes["to"]])]


def _gather(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    data, indices, axis = _need(inputs, 0), _need(inputs, 1), attributes.get("axis", 0)
    _check_size((data.size // max(1, data.shape[axis]), indices.size))
    return [np.take(data, indices, axis=axis)]


def _slice(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    data = _need(inputs, 0)
    starts = _ints(inputs, 1, attributes, "starts")
    ends = _ints(inputs, 2, attributes, "ends")
    if starts is None or ends is None:
        raise ValueError("no bounds")
    axes = _ints(inputs, 3, attributes, "axes") or list(range(len(starts)))
    steps = _ints(inputs, 4, attributes, "steps") or [1] * len(starts)
    index = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        taken = slice_range(data.shape[axis], start, end, step)
        index[axis] = slice(taken.start, None if taken.stop < 0 else taken.stop, step) if taken else slice(0)
    return [data[tuple(index)]]


def _squeeze(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    axes = _ints(inputs, 1, attributes, "axes")
    return [np.squeeze(_need(inputs, 0), axis=None if axes is None else tuple(axes))]


def _reshape(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    data = _need(inputs, 0)
    shape = _ints(inputs, 1, attributes, "shape") or []
    if not attributes.get("allowzero"):
        shape = [data.shape[axis] if size == 0 else size for axis, size in enumerate(shape)]
    return [data.reshape(shape)]


def _full(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    shape = tuple(int(x) for x in _need(inputs, 0))
    _check_size(shape)
    value = attributes.get("value")
    fill = np.zeros(1, dtype=np.float32) if value is None else array_of(value)
    if fill is None:
        raise ValueError("not a plain value")
    return [np.full(shape, fill.reshape(-1)[0], dtype=fill.dtype)]


def _expand(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    data = _need(inputs, 0)
    shape = tuple(int(x) for x in _need(inputs, 1))
    _check_size(data.shape, shape)
    return [np.broadcast_to(data, np.broadcast_shapes(data.shape, shape))]


def _range(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    start, limit, delta = (_need(inputs, i).reshape(-1)[0] for i in range(3))
    if abs(float(limit) - float(start)) > MOST_ELEMENTS * abs(float(delta)):
        raise ValueError("too many elements")
    return [np.arange(start, limit, delta, dtype=start.dtype)]


def _reduce(function: Callable[..., Any]) -> Evaluator:
    def run(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
        data = _need(inputs, 0)
        axes = _ints(inputs, 1, attributes, "axes")
        if axes is None and attributes.get("noop_with_empty_axes"):
            return [data]
        axis = None if axes is None else tuple(axes)
        return [np.asarray(function(data, axis=axis, keepdims=bool(attributes.get("keepdims", 1)))).astype(data.dtype)]

    return run


def _split(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    data = _need(inputs, 0)
    axis = attributes.get("axis", 0)
    sizes = _ints(inputs, 1, attributes, "split")
    if sizes is None:
        chunk = -(-data.shape[axis] // outputs)
        sizes = [chunk] * (outputs - 1)
    else:
        sizes = sizes[:-1]
    return np.split(data, np.cumsum(sizes), axis=axis) if sizes else [data]


def _tile(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    data, repeats = _need(inputs, 0), _need(inputs, 1)
    _check_size((data.size, *(int(x) for x in repeats)))
    return [np.tile(data, tuple(int(x) for x in repeats))]


def _scatter_nd(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    if attributes.get("reduction", b"none") not in (b"none", "none"):
        raise ValueError("reduction")
    data, indices, updates = _need(inputs, 0).copy(), _need(inputs, 1), _need(inputs, 2)
    data[tuple(np.moveaxis(indices, -1, 0))] = updates
    return [data]


def _same(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    return [_need(inputs, 0)]


def _constant(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    for name, dtype in (("value_int", np.int64), ("value_ints", np.int64)):
        if name in attributes:
            return [np.array(attributes[name], dtype=dtype)]
    for name in ("value_float", "value_floats"):
        if name in attributes:
            return [np.array(attributes[name], dtype=np.float32)]
    array = array_of(attributes["value"])
    if array is None:
        raise ValueError("not a small number")
    return [array]


def _nonzero(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    return [np.array(np.nonzero(_need(inputs, 0)), dtype=np.int64)]


def _cumsum(inputs: Sequence[Array | None], attributes: Attributes, outputs: int) -> Sequence[Array]:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise ValueError("variant")
    data = _need(inputs, 0)
    return [np.cumsum(data, axis=int(_need(inputs, 1).reshape(-1)[0])).astype(data.dtype)]


_EVALUATORS: dict[str, Evaluator] = {
    "Abs": _elementwise(np.abs),
    "Add": _elementwise(np.add),
    "And": _elementwise(np.logical_and),
    "Cast": _cast,
    "Ceil": _elementwise(np.ceil),
    "Concat": lambda inputs, attributes, outputs: [
        np.concatenate([_need(inputs, i) for i in range(len(inputs))], axis=attributes.get("axis", 1))
    ],
    "Constant": _constant,
    "ConstantOfShape": _full,
    "CumSum": _cumsum,
    "Div": _elementwise(_divide),
    "Equal": _elementwise(np.equal, keep_type=False),
    "Expand": _expand,
    "Floor": _elementwise(np.floor),
    "Gather": _gather,
    "Greater": _elementwise(np.greater, keep_type=False),
    "GreaterOrEqual": _elementwise(np.greater_equal, keep_type=False),
    "Identity": _same,
    "Less": _elementwise(np.less, keep_type=False),
    "LessOrEqual": _elementwise(np.less_equal, keep_type=False),
    "Max": _elementwise(lambda *arrays: np.maximum.reduce(np.broadcast_arrays(*arrays))),
    "Min": _elementwise(lambda *arrays: np.minimum.reduce(np.broadcast_arrays(*arrays))),
    "Mod": _modulo,
    "Mul": _elementwise(np.multiply),
    "Neg": _elementwise(np.negative),
    "NonZero": _nonzero,
    "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or),
    "Pow": _elementwise(np.power),
    "Range": _range,
    "ReduceMax": _reduce(np.max),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Reshape": _reshape,
    "ScatterND": _scatter_nd,
    "Slice": _slice,
    "Split": _split,
    "Sqrt": _elementwise(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _elementwise(np.subtract),
    "Tile": _tile,
    "Transpose": lambda inputs, attributes, outputs: [np.transpose(_need(inputs, 0), attributes.get("perm"))],
    "Unsqueeze": lambda inputs, attributes, outputs: [
        np.expand_dims(_need(inputs, 0), tuple(_ints(inputs, 1, attributes, "axes") or ()))
    ],
    "Where": _elementwise(lambda condition, a, b: np.where(condition, a, b), keep_type=False),
    "Xor": _elementwise(np.logical_xor),
}


def attribute_values(attributes: Sequence[Any]) -> dict[str, Any]:
    """Return a node's attributes as Python values by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in attributes}


def slice_range(size: int, start: int, end: int, step: int = 1) -> range:
    """Return the places that a slice of an axis takes, in their order.

    A start before the first element is that element, backwards too, where Python takes nothing.
    """
    start += size if start < 0 else 0
    if step < 0:
        first = min(max(start, 0), size - 1)
        last = -1 if end in _TO_THE_LAST else min(max(end + (size if end < 0 else 0), -1), size - 1)
    else:
        first = min(max(start, 0), size)
        last = min(max(end + (size if end < 0 else 0), 0), size)
    return range(first, last, step)
