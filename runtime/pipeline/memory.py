"""Memory that processes share without a name: nothing of it can be left behind, however they end.

It is passed on as an open file descriptor and goes with the last process that has it open, so there is nothing to
unlink and nothing in ``/dev/shm``, whose size containers limit.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.host.capacity import free_bytes
from mtpp.runtime.element_types import Contents, Packed, element_type, packed_bits, stored_bytes, unpacked
from mtpp.units import format_bytes

Shape = tuple[int | None, ...]
"""Sizes of a tensor; None for one that only a run tells."""

_ALIGNMENT = 64
"""Bytes: a line of the cache, which is also what kernels like their tensors aligned to."""

_SIZE_BYTES = 8
_PAGE = mmap.PAGESIZE
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Region:
    """A tensor's place in a slot.

    Attributes
    ----------
    dtype
        By its name in the manifest, or numpy's of texts.
    shape
        None for a size that is another one in each batch; all sizes then stand before the tensor.
    offset
        In bytes from the start of the slot.
    room
        Bytes for the tensor.
    """

    name: str
    dtype: str
    shape: Shape
    offset: int
    room: int


@dataclass(frozen=True)
class Layout:
    """The tensors of one batch, side by side in a slot.

    Attributes
    ----------
    slot_bytes
        A whole number of pages.
    """

    regions: tuple[Region, ...]
    slot_bytes: int

    @classmethod
    def of(cls, tensors: Sequence[tuple[str, str, Shape]], rooms: Mapping[str, int] | None = None) -> Layout:
        """Lay out tensors given by name, name of their type, and shape.

        Parameters
        ----------
        rooms
            Bytes for tensors of open size, by name; none where absent.
        """
        regions, end = [], 0
        for name, dtype, shape in tensors:
            known = tuple(size for size in shape if size is not None)
            is_open = len(known) < len(shape)
            room = (rooms or {}).get(name, 0) if is_open else stored_bytes(dtype, prod(known))
            regions.append(Region(name, dtype, shape, end, room))
            end += _aligned(_SIZE_BYTES * len(shape)) * is_open + _aligned(room)
        return cls(tuple(regions), max(1, -(-end // _PAGE)) * _PAGE)

    def with_rooms(self, rooms: Mapping[str, int]) -> Layout:
        """Return it with bytes set aside for tensors of open size, by name."""
        return Layout.of([(region.name, region.dtype, region.shape) for region in self.regions], rooms)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True)
class OpenTensor:
    """A tensor in a slot that is no array on the same memory in each batch.

    Its sizes differ between batches, or its elements share bytes.

    Attributes
    ----------
    sizes
        Of the batch that lies there, int64.
    memory
        Its room, as bytes.
    fixed
        Whether its sizes are the same in each batch.
    """

    name: str
    dtype: np.dtype[Any]
    sizes: Array
    memory: Array
    fixed: bool = False

    def array(self) -> Contents:
        """Return the tensor of the batch that lies there, on the same memory."""
        shape = tuple(self.sizes.tolist())
        bits = packed_bits(self.dtype)
        if bits is not None:
            return Packed(self.dtype, shape, self.memory[: -(-prod(shape) * bits // 8)])
        return np.ndarray(shape, self.dtype, buffer=self.memory)

    def put(self, array: Contents) -> None:
        """Write a tensor there; raise InputError if there is no room for it."""
        if not isinstance(array, Packed) and packed_bits(self.dtype) is not None:
            array = Packed.of(array)
        if self.fixed and array.shape != tuple(self.sizes.tolist()):
            raise InputError(
                f"its shape is {list(array.shape)}, not {self.sizes.tolist()} as the manifest says",
                where=f"tensor {self.name!r}",
                remedy="split the model again, with the sizes that it has",
            )
        if array.nbytes > self.memory.size:
            raise InputError(
                f"it takes {format_bytes(array.nbytes)}, more than in the runs before: there is room for "
                f"{format_bytes(self.memory.size)}",
                where=f"tensor {self.name!r}",
                remedy="cut the model where no tensor of a size that depends on data crosses",
            )
        self.sizes[...] = array.shape
        own = self.array()
        if isinstance(own, Packed) and isinstance(array, Packed):
            own.data[...] = array.data
        elif not isinstance(own, Packed) and not isinstance(array, Packed):
            own[...] = array


View = Array | OpenTensor
"""A tensor in a slot."""


def put(view: View, contents: Contents) -> None:
    """Write a tensor where a view lies; raise InputError if it does not fit."""
    if isinstance(view, OpenTensor):
        view.put(contents)
    else:
        view[...] = unpacked(contents)


def arrays(views: Mapping[str, View]) -> dict[str, Contents]:
    """Return the tensors of the batch that lies in a slot, by name."""
    return {name: view.array() if isinstance(view, OpenTensor) else view for name, view in views.items()}


@dataclass(frozen=True)
class Ring:
    """Shared memory for several batches, used in turn; it travels to another process with its descriptor.

    Attributes
    ----------
    descriptor
        Of the open file, which has the same number in every process that is given it.
    """

    descriptor: int
    layout: Layout
    slots: int

    @classmethod
    def make(cls, layout: Layout, slots: int, what: str) -> Ring:
        """Make one with all of its memory, so that no page is missing later; *what* says whose tensors they are."""
        return cls(anonymous_memory(layout.slot_bytes * slots, what), layout, slots)

    def views(self) -> tuple[Mapping[str, View], ...]:
        """Return for each slot its tensors by name, as arrays on the shared memory."""
        memory = map_memory(self.descriptor, self.layout.slot_bytes * self.slots)
        return tuple(
            {
                region.name: _view(region, memory, slot * self.layout.slot_bytes + region.offset)
                for region in self.layout.regions
            }
            for slot in range(self.slots)
        )

    def close(self) -> None:
        """Close the descriptor in this process; views stay as they are."""
        os.close(self.descriptor)


def _view(region: Region, memory: mmap.mmap, offset: int) -> View:
    shape = tuple(size for size in region.shape if size is not None)
    dtype = element_type(region.dtype) or np.dtype(region.dtype)
    if len(shape) == len(region.shape) and packed_bits(dtype) is None:
        return np.ndarray(shape, dtype, buffer=memory, offset=offset)
    if len(shape) == len(region.shape):
        sizes: Array = np.array(shape, np.int64)
    else:
        sizes = np.ndarray((len(region.shape),), np.int64, buffer=memory, offset=offset)
        offset += _aligned(_SIZE_BYTES * len(region.shape))
    room: Array = np.ndarray((region.room,), np.uint8, buffer=memory, offset=offset)
    return OpenTensor(region.name, dtype, sizes, room, fixed=len(shape) == len(region.shape))


def anonymous_memory(size: int, what: str) -> int:
    """Return the descriptor of *size* bytes of shared memory, all of them zero."""
    free = free_bytes()  # asking for more would wake the kernel's out-of-memory killer
    if free is not None and size > free:
        raise _too_little(size, what, f"{format_bytes(free)} are free")
    descriptor: int | None = None
    try:
        descriptor = _nameless_file()
        os.truncate(descriptor, size)
        _commit(descriptor, size)
    except OSError as error:
        if descriptor is not None:
            os.close(descriptor)
        raise _too_little(size, what, error.strerror or str(error)) from None
    return descriptor


def map_memory(descriptor: int, size: int) -> mmap.mmap:
    """Map shared memory, with all of its pages at once where the system can."""
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    return mmap.mmap(descriptor, size, flags=flags)


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mtpp", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:  # which has no name any more
        return os.dup(file.fileno())


def _commit(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    zeros = bytes(_CHUNK)
    for offset in range(0, size, _CHUNK):
        os.pwrite(descriptor, zeros[: size - offset], offset)


def _too_little(size: int, what: str, reason: str) -> InputError:
    return InputError(
        f"no {format_bytes(size)} of shared memory for {what}: {reason}",
        remedy="use a smaller ‹queue_depth›",
    )
