"""A graph as columns, one sequence per field: checked all at once, and row by row only to name what is wrong.

A graph of a million ops has no time, and no memory, for an object per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.errors import InputError
from mtpp.units import Exact

LARGEST_SIZE = 2**62
"""Sizes stay below this many bytes: int64 kernels wrap silently."""

_UNKNOWN_OP = -1
"""In place of the number of an op that there is not."""


class OpColumns(NamedTuple):
    """Ops, one entry per op in every column; see :class:`mtpp.inference.graph.Op`. Those for training may be empty."""

    name: Sequence[str]
    work: Sequence[Exact]
    kind: Sequence[str]
    param_bytes: Sequence[int]
    backward: Sequence[Exact | None] = ()
    kept_bytes: Sequence[int | None] = ()
    trainable_bytes: Sequence[int | None] = ()
    backward_share: Sequence[Exact | None] = ()


class TensorColumns(NamedTuple):
    """Tensors, one entry per tensor in every column; see :class:`mtpp.inference.graph.Tensor`."""

    name: Sequence[str]
    producer: Sequence[str]
    consumers: Sequence[Sequence[str]]
    bytes: Sequence[int | None]
    transfer: Sequence[Exact | None]


class Links(NamedTuple):
    """Ops that make and read each tensor, by number: producers, and consumers as CSR."""

    producer: NDArray[np.int32]
    offsets: NDArray[np.int64]
    consumers: NDArray[np.int32]


def checked_links(
    ops: OpColumns, tensors: TensorColumns, shared: Sequence[int] | None = None, *, abstract: bool
) -> Links:
    """Find the ops that tensors name, and check everything but cycles.

    Parameters
    ----------
    shared
        Bytes of the weights that each op reads with others, beside its ``param_bytes``; None for none.
    abstract
        Whether the graph has no time unit, so that every tensor needs a transfer.

    Notes
    -----
    O(n + pins) time and memory, apart from sorting the pins of tensors with several consumers.
    """
    links = _links({name: v for v, name in enumerate(ops.name)}, tensors)
    sound = (
        _names_are_sound(ops.name)
        and _names_are_sound(tensors.name)
        and _costs_are_sound(ops.work)
        and _sizes_are_sound(ops.param_bytes)
        and _costs_are_sound([cost for cost in ops.backward if cost is not None])
        and _sizes_are_sound([size for size in ops.kept_bytes if size is not None])
        and _training_is_sound(ops, shared)
        and _sizes_are_sound([size for size in tensors.bytes if size is not None])
        and _costs_are_sound([cost for cost in tensors.transfer if cost is not None])
        and all(
            cost is not None or (size is not None and not abstract)
            for cost, size in zip(tensors.transfer, tensors.bytes, strict=True)
        )
        and _links_are_sound(links, len(ops.name))
    )
    if not sound:
        check_rows(ops, tensors, shared, abstract=abstract)
    return links


def _links(index: dict[str, int], tensors: TensorColumns) -> Links:
    m = len(tensors.name)
    producer = np.fromiter((index.get(name, _UNKNOWN_OP) for name in tensors.producer), np.int32, m)
    offsets = np.zeros(m + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, tensors.consumers), np.int64, m), out=offsets[1:])
    readers = chain.from_iterable(tensors.consumers)
    return Links(
        producer, offsets, np.fromiter((index.get(name, _UNKNOWN_OP) for name in readers), np.int32, int(offsets[-1]))
    )


def _names_are_sound(names: Sequence[str]) -> bool:
    distinct = set(names)
    return len(distinct) == len(names) and "" not in distinct


def _costs_are_sound(costs: Sequence[Exact]) -> bool:
    kinds = set(map(type, costs))
    return kinds <= {int, Fraction} and min(map(attrgetter("numerator"), costs), default=0) >= 0


def _sizes_are_sound(sizes: Sequence[int]) -> bool:
    return set(map(type, sizes)) <= {int} and min(sizes, default=0) >= 0 and max(sizes, default=0) < LARGEST_SIZE


def _training_is_sound(ops: OpColumns, shared: Sequence[int] | None) -> bool:
    shares = [share for share in ops.backward_share if share is not None]
    read = _read_bytes(ops, shared) if ops.trainable_bytes else ()
    pairs = [pair for pair in zip(ops.trainable_bytes, read, strict=False) if pair[0] is not None]
    return (
        _costs_are_sound(shares)
        and max(shares, default=0) <= 1
        and _sizes_are_sound([trainable for trainable, _ in pairs if trainable is not None])
        and all(trainable is not None and trainable <= size for trainable, size in pairs)
    )


def _read_bytes(ops: OpColumns, shared: Sequence[int] | None) -> Sequence[int]:
    if shared is None:
        return ops.param_bytes
    return [own + others for own, others in zip(ops.param_bytes, shared, strict=True)]


def _links_are_sound(links: Links, op_count: int) -> bool:
    counts = np.diff(links.offsets)
    tensor = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    several = counts[tensor] > 1
    pins = np.sort(tensor[several] * op_count + links.consumers[several])
    return bool(
        np.all(links.producer != _UNKNOWN_OP)
        and np.all(links.consumers != _UNKNOWN_OP)
        and np.all(links.consumers != links.producer[tensor])
        and np.all(pins[1:] != pins[:-1])
    )


def check_rows(ops: OpColumns, tensors: TensorColumns, shared: Sequence[int] | None = None, *, abstract: bool) -> None:
    """Raise the first fault there is, found row by row; slow."""
    index = _index_names(ops.name, "ops")
    _index_names(tensors.name, "tensors")
    for i, (work, param_bytes) in enumerate(zip(ops.work, ops.param_bytes, strict=True)):
        _check_cost(work, f"/ops/{i}/work")
        check_bytes(param_bytes, f"/ops/{i}/param_bytes")
    for i, cost in enumerate(ops.backward):
        if cost is not None:
            _check_cost(cost, f"/ops/{i}/backward")
    for i, size in enumerate(ops.kept_bytes):
        if size is not None:
            check_bytes(size, f"/ops/{i}/kept_bytes")
    for i, size in enumerate(ops.trainable_bytes):
        if size is not None:
            check_bytes(size, f"/ops/{i}/trainable_bytes")
            if size > (read := _read_bytes(ops, shared)[i]):
                raise InputError(
                    f"{size} of {read} bytes of parameters are trained",
                    where=f"/ops/{i}/trainable_bytes",
                    remedy="they are a part of param_bytes",
                )
    for i, share in enumerate(ops.backward_share):
        if share is not None:
            _check_cost(share, f"/ops/{i}/backward_share")
            if share > 1:
                raise InputError("must be from 0 to 1", where=f"/ops/{i}/backward_share")
    for t, (size, transfer) in enumerate(zip(tensors.bytes, tensors.transfer, strict=True)):
        _check_tensor_cost(size, transfer, t, abstract=abstract)
        made_by = index.get(tensors.producer[t])
        if made_by is None:
            raise unknown_op(tensors.producer[t], f"/tensors/{t}/producer")
        readers: set[int] = set()
        for c, consumer in enumerate(tensors.consumers[t]):
            read_by = index.get(consumer)
            if read_by is None or read_by == made_by or read_by in readers:
                raise _wrong_consumer(consumer, f"/tensors/{t}/consumers/{c}", read_by, made_by)
            readers.add(read_by)


def _index_names(names: Sequence[str], what: str) -> dict[str, int]:
    index: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name:
            raise InputError("empty name", where=f"/{what}/{i}/name")
        if name in index:
            raise InputError(f"duplicate name {name!r}, first used at /{what}/{index[name]}", where=f"/{what}/{i}/name")
        index[name] = i
    return index


def unknown_op(name: str, where: str) -> InputError:
    """Return the error for a name that no op has."""
    return InputError(f"no op is called {name!r}", where=where, remedy="name one of /ops")


def _wrong_consumer(name: str, where: str, op: int | None, producer: int) -> InputError:
    if op is None:
        return unknown_op(name, where)
    if op == producer:
        return InputError(f"op {name!r} consumes its own output (self-loop)", where=where)
    return InputError(f"duplicate consumer {name!r}", where=where, remedy="list each op once")


def _check_cost(value: Exact, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise InputError(f"{value!r} is not an exact number", where=where)
    if value < 0:
        raise InputError("a cost cannot be negative", where=where)


def check_bytes(value: int, where: str) -> None:
    """Raise :class:`~mtpp.errors.InputError` unless *value* is a size: whole, from 0 to below 2^62."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{value!r} is not a whole number of bytes", where=where)
    if not 0 <= value < LARGEST_SIZE:
        raise InputError("a size must be at least 0 and below 2^62 bytes", where=where)


def _check_tensor_cost(size: int | None, transfer: Exact | None, t: int, *, abstract: bool) -> None:
    if size is not None:
        check_bytes(size, f"/tensors/{t}/bytes")
    if transfer is not None:
        _check_cost(transfer, f"/tensors/{t}/transfer")
    elif size is None:
        raise InputError("the tensor has no cost", where=f"/tensors/{t}", remedy="give bytes or transfer")
    elif abstract:
        raise InputError(
            "bytes without transfer in a graph without a time unit",
            where=f"/tensors/{t}",
            remedy='give transfer, or a time_unit other than "1"',
        )
