"""Tensors that are always cut together, made one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance


def unite_parallel_tensors(instance: Instance) -> Instance:
    """Give tensors with the same producer and the same readers one tensor with their summed transfer and bytes.

    A stage cuts all of them or none, so no stage cost changes; merging ops leaves many such tensors. Only for
    instances with merged ops, whose tensors nobody looks up in the graph any more.

    Notes
    -----
    O(pins·log pins). Tensors are compared by a sum of random numbers, one per reader, and then reader by reader; two
    different ones with equal sums only stay apart.
    """
    m = instance.tensor_count
    if m < 2:
        return instance
    readers = np.diff(instance.pin_offsets) - 1
    tensor = np.repeat(np.arange(m, dtype=np.int64), readers + 1)
    # Readers come in any order; sorted, equal sets of them are equal rows.
    sorted_pins = np.sort(tensor * instance.op_count + instance.pins) % instance.op_count
    numbers = np.random.Generator(np.random.PCG64(0)).integers(0, 2**64, instance.op_count, dtype=np.uint64)
    digest = np.add.reduceat(numbers[instance.pins], instance.pin_offsets[:-1])
    order = np.lexsort((digest, readers, instance.producer))
    same = _equal_to_the_one_before(instance, order, readers, digest, sorted_pins)
    first = order[~same]  # a stable sort: the first of its kind in the graph's order
    kind = np.empty(m, dtype=np.int64)
    kind[order] = first[np.cumsum(~same) - 1]
    transfer = np.zeros(m, dtype=np.int64)
    size = np.zeros(m, dtype=np.int64)
    np.add.at(transfer, kind, instance.transfer)
    np.add.at(size, kind, instance.tensor_bytes)
    kept = kind == np.arange(m)
    offsets = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(readers[kept] + 1, out=offsets[1:])
    return replace(
        instance,
        transfer=transfer[kept],
        tensor_bytes=size[kept],
        pin_offsets=offsets,
        pins=instance.pins[kept[tensor]],
    )


def _equal_to_the_one_before(
    instance: Instance, order: Int64Array, readers: Int64Array, digest: np.ndarray, sorted_pins: Int64Array
) -> np.ndarray:
    """Return, along *order*, whether a tensor has the producer and the readers of the one before."""
    before, here = order[:-1], order[1:]
    likely = (
        (instance.producer[before] == instance.producer[here])
        & (readers[before] == readers[here])
        & (digest[before] == digest[here])
    )
    pairs = np.flatnonzero(likely)
    length = readers[here[pairs]] + 1
    pair = np.repeat(np.arange(len(pairs)), length)
    step = np.arange(len(pair)) - np.repeat(np.cumsum(length) - length, length)
    mine = sorted_pins[instance.pin_offsets[here[pairs]][pair] + step]
    other = sorted_pins[instance.pin_offsets[before[pairs]][pair] + step]
    differs = np.bincount(pair, weights=mine != other, minlength=len(pairs)) > 0
    same = np.zeros(len(order), dtype=bool)
    same[1 + pairs[~differs]] = True
    return same
