"""Type of a tensor in an exported program: element type, shape, size in bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

_DTYPES = {
    1: ("uint8", 1),
    2: ("int8", 1),
    3: ("int16", 2),
    4: ("int32", 4),
    5: ("int64", 8),
    6: ("float16", 2),
    7: ("float32", 4),
    8: ("float64", 8),
    9: ("complex32", 4),
    10: ("complex64", 8),
    11: ("complex128", 16),
    12: ("bool", 1),
    13: ("bfloat16", 2),
    28: ("uint16", 2),
    29: ("float8_e4m3fn", 1),
    30: ("float8_e5m2", 1),
    31: ("float8_e4m3fnuz", 1),
    32: ("float8_e5m2fnuz", 1),
    33: ("float8_e8m0fnu", 1),
    34: ("uint32", 4),
    35: ("uint64", 8),
}
"""Name and bytes of an element by its number in the file (``ScalarType`` of ``torch/_export/serde/schema.py``)."""


WHOLE_DTYPES = frozenset((2, 3, 4, 5, 12, 28, 34, 35))
"""Element types of whole numbers and truth values; bytes may be pictures."""


def is_known_dtype(dtype: object) -> bool:
    """Say whether elements of this type have a size."""
    return dtype in _DTYPES


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type, as the file numbers it, and static shape; strides in elements, None where they are not told.

    Attributes
    ----------
    copies
        How many of this shape there are: more than one inside ``torch.vmap``, which hides the axis of its batch.
    """

    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    copies: int = 1

    @property
    def count(self) -> int:
        """Number of elements of the shape."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size of all elements."""
        return self.copies * self.count * _DTYPES[self.dtype][1]

    @property
    def floating(self) -> bool:
        """True if elements are real or complex numbers, which may have gradients."""
        return self.name.startswith(("float", "bfloat", "complex"))

    @property
    def name(self) -> str:
        """Readable name of the element type: ``float32``."""
        return _DTYPES[self.dtype][0]
