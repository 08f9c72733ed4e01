"""Tensors as headers list them, and the limits that every header keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from mtpp.errors import InputError

MOST_TENSORS = 2**22
MOST_HEADER_BYTES = 256 * 2**20
MOST_DIMENSIONS = 64

_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a checkpoint; its shape is row-major."""

    name: str
    type: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def elements(self) -> int:
        """Number of elements as stored."""
        return prod(self.shape)


def refuse_overlaps(spans: Iterable[tuple[int, int, str]], source: str, *, gaps: bool) -> int:
    """Refuse tensors that share bytes, and return the end of the last one.

    Parameters
    ----------
    spans
        Begin, end and name of each.
    gaps
        Whether bytes between two of them may belong to none.
    """
    last, before = 0, ""
    for begin, end, name in sorted(spans):
        if begin < last:
            raise InputError(f"overlaps with {before!r}", source=source, where=name, remedy="the file is broken")
        if begin > last and not gaps:
            text = f"{begin - last:,} bytes before it belong to no tensor"
            raise InputError(text, source=source, where=name, remedy="the file is broken")
        last, before = end, name
    return last


def elements_of(shape: tuple[int, ...], source: str, name: str) -> int:
    """Return the number of elements of a shape, which has to be one that a file can hold."""
    if len(shape) > MOST_DIMENSIONS or any(size < 0 or size > _LARGEST for size in shape):
        raise InputError(f"has the shape {list(shape)[:8]}", source=source, where=name, remedy="the file is broken")
    count = prod(shape)
    if count > _LARGEST:
        raise InputError(f"has {count:.3g} elements", source=source, where=name, remedy="the file is broken")
    return count
