"""Element types by the names that manifests have for them, as numpy arrays hold them; several to a byte as bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mtpp.array_types import Array

_PLAIN = frozenset(
    ["bool", "float16", "float32", "float64", "complex64", "complex128"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
"""Types that numpy has itself."""

_EIGHT_BITS = ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")

_REGISTERED = {
    "bfloat16": "bfloat16",
    "float8e8m0": "float8_e8m0fnu", "float8_e8m0fnu": "float8_e8m0fnu",
    **{f"float8{dash}{kind}": f"float8_{kind}" for dash in ("", "_") for kind in _EIGHT_BITS},
    "float4e2m1": "float4_e2m1fn",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4)},
}  # fmt: skip
"""Names in :mod:`ml_dtypes` of the others, by those in ONNX (``float8e4m3fn``) and in PyTorch (``float8_e4m3fn``)."""

_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}
"""Size of the types of which several share a byte, the first one in its lowest bits."""

HALF_COMPLEX = "complex32"
"""Type of PyTorch that no array library has: four bytes."""


@cache
def element_type(name: str) -> np.dtype[Any] | None:
    """Return the type of arrays that hold such elements, one to a place; None for sequences, texts and unknown types.

    >>> element_type("float8e4m3fn").itemsize, element_type("string")
    (1, None)
    """
    if name in _PLAIN:
        return np.dtype(name)
    if name == HALF_COMPLEX:
        return np.dtype("V4")
    if name not in _REGISTERED:
        return None
    import ml_dtypes

    own = getattr(ml_dtypes, _REGISTERED[name], None)
    return None if own is None else np.dtype(own)


def is_numpys(dtype: np.dtype[Any]) -> bool:
    """Say whether numpy has a type itself, texts included; :mod:`ml_dtypes` registers its own under any kind."""
    return dtype.name in _PLAIN or dtype.kind in "OSU"


def packed_bits(dtype: np.dtype[Any]) -> int | None:
    """Return the bits of an element where several share a byte; None where each has its own."""
    return _BITS.get(dtype.name)


def stored_bytes(name: str, count: int) -> int:
    """Return the bytes that as many elements take; *name* may be numpy's of texts."""
    dtype = element_type(name) or np.dtype(name)
    bits = packed_bits(dtype)
    return count * dtype.itemsize if bits is None else -(-count * bits // 8)


def is_whole(name: str) -> bool:
    """Say whether elements are whole numbers or truth values."""
    return name == "bool" or name.startswith(("int", "uint"))


def is_float(name: str) -> bool:
    """Say whether elements are real floating-point numbers, those of few bits included."""
    return "float" in name


def cast(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers as elements of a type; halves of complex numbers have no imaginary part."""
    if dtype != element_type(HALF_COMPLEX):
        return values.astype(dtype)
    halves = np.zeros((*values.shape, 2), np.float16)
    halves[..., 0] = values
    return halves.view(dtype).reshape(values.shape)


def as_declared(array: Array, name: str) -> Array | None:
    """Return an array as one of the type with that name, None where it is of another one.

    Files of arrays have bytes without a type in place of types that numpy does not have itself.
    """
    dtype = element_type(name)
    if dtype is not None and not is_numpys(dtype) and array.dtype == np.dtype(f"V{dtype.itemsize}"):
        array = np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    return array if array.dtype == dtype else None


@dataclass(frozen=True)
class Packed:
    """A tensor whose elements share bytes: what arrays are of all others.

    Attributes
    ----------
    dtype
        Of :meth:`unpacked`.
    data
        The bytes, elements in order.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    data: Array

    @classmethod
    def of(cls, array: Array) -> Packed:
        """Return an array with its elements put together.

        >>> Packed.of(np.array([1, -2, 3]).astype(element_type("int4"))).data.tolist()
        [225, 3]
        """
        bits = _BITS[array.dtype.name]
        share = 8 // bits
        flat = np.zeros(-(-array.size // share) * share, np.uint8)
        flat[: array.size] = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
        rows = flat.reshape(-1, share) << (bits * np.arange(share, dtype=np.uint8))
        return cls(array.dtype, array.shape, np.bitwise_or.reduce(rows, axis=1).astype(np.uint8))

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.data.size)

    def copy(self) -> Packed:
        """Return it with bytes of its own."""
        return Packed(self.dtype, self.shape, self.data.copy())

    def tobytes(self) -> bytes:
        """Return the bytes; bits behind the last element are 0."""
        unused = 8 * self.nbytes - self.size * _BITS[self.dtype.name]
        data = self.data.tobytes()
        return data[:-1] + bytes([data[-1] & (0xFF >> unused)]) if unused else data

    def unpacked(self) -> Array:
        """Return an array of the elements, one to a byte."""
        bits = _BITS[self.dtype.name]
        share = 8 // bits
        shifts = bits * np.arange(share, dtype=np.uint8)
        parts = (self.data.reshape(-1, 1) >> shifts) & ((1 << bits) - 1)
        array: Array = parts.reshape(-1)[: self.size].astype(np.uint8).view(self.dtype).reshape(self.shape)
        return array


Contents = Array | Packed
"""Contents of a tensor."""


def unpacked(contents: Contents) -> Array:
    """Return contents as an array with one element to a place."""
    return contents.unpacked() if isinstance(contents, Packed) else contents
