"""An instance, and the state of a search, as the kernels of the downset search take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.arrays import grouped
from mtpp.solvers.downsets.kernels.downset_layout import FRAME
from mtpp.solvers.stage_cost.cost_arrays import (
    NO_GROUND,
    GroundArrays,
    MemoryArrays,
    ground_arrays,
    memory_arrays,
    shared_weights,
)
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER

ByteArray = NDArray[np.uint8]
WordArray = NDArray[np.uint64]


class DownsetArrays(NamedTuple):
    """An instance whose ops are numbered along a topological order; tensors without a consumer are left out.

    Attributes
    ----------
    work, param_bytes
        Ticks and bytes of each op, int64, shape (n,).
    transfer, producer
        Ticks and op of each tensor, int64 and int32, shape (m,).
    consumer_offsets, consumers
        Ops that read each tensor, CSR, int64, shape (m + 1,), and int32.
    read_offsets, read, made_offsets, made
        Tensors that each op reads and makes, two CSR.
    successor_offsets, successors, predecessor_offsets, predecessors
        Distinct neighbours of each op, two CSR.
    owed
        Ticks of each tensor that some later stage pays at least, where it is cut: *transfer* on equal devices. int64.
    giver
        Whether an op can always leave its stage for one before that holds all its predecessors, uint8, shape (n,):
        see :func:`givers`.
    most_cost
        What an op adds to the cost of any stage at most: its work and all its tensors, int64, shape (n,). All 0, which
        tells nothing, if their sum is too large.
    key
        Random word of each op; a downset's key is the exclusive or of its ops', uint64, shape (n,).
    memory
        What stages may hold.
    shared
        A row for each reader of a weight that several ops read, and of a state: op, weight, bytes, and the share of
        them in the op's parameters; int64, shape (rows, 4), rows of a weight one after the other. Empty where stages
        hold their ops' shares: :func:`holding_whole`.
    """

    work: Int64Array
    param_bytes: Int64Array
    transfer: Int64Array
    producer: Int32Array
    consumer_offsets: Int64Array
    consumers: Int32Array
    read_offsets: Int64Array
    read: Int32Array
    made_offsets: Int64Array
    made: Int32Array
    successor_offsets: Int64Array
    successors: Int32Array
    predecessor_offsets: Int64Array
    predecessors: Int32Array
    owed: Int64Array
    giver: ByteArray
    most_cost: Int64Array
    key: WordArray
    memory: MemoryArrays
    shared: Int64Array


class DownsetStore(NamedTuple):
    """The downsets reached, in the order in which they were.

    Attributes
    ----------
    bits
        Op v is in the downset if bit v mod 64 of word v // 64 is set, uint64, shape (capacity, words).
    keys
        Exclusive or of the ops' keys, uint64.
    level, parent
        Fewest stages that it takes, and the downset that the last of them follows, int32; −1 for none.
    work, params
        Ticks and bytes of the ops in it, int64.
    crossing
        Ticks of the tensors that are made in it and read after it, int64.
    table
        Hash table with linear probing: numbers of downsets by their keys, −1 where free, int32, a power of two.
    """

    bits: WordArray
    keys: WordArray
    level: Int32Array
    parent: Int32Array
    work: Int64Array
    params: Int64Array
    crossing: Int64Array
    table: Int32Array


class DownsetScratch(NamedTuple):
    """The state of the expansion of one downset.

    Attributes
    ----------
    status
        Of each op, uint8; see :mod:`mtpp.solvers.downsets.kernels.downset_layout`.
    open_ops
        Ops within reach, ascending, int32.
    stack
        Ops that wait to be put outside, int32.
    need
        Work on a path to each op from the downset, the op included: it takes at least that to reach it, int64.
    loss
        Work on a path from each op on within reach: at least that stays outside with it, int64.
    left, left_before
        Consumers of each tensor that are neither in the stage nor before it, now and at its beginning, int32.
    crosses
        Whether it is certain that a tensor made in the stage or before is read after it, uint8.
    frames
        One after the other, one per decision, int64. The last n items are weights of the ops of which no stage holds
        more than a capacity, 0 where there are none: an array of their own slows all searches down by a tenth.
    trail_kind, trail_item
        Changes in the order in which they were made, uint8 and int32.
    chosen, places, pins_left
        For peaks in the graph's order: marks and places of the ops of a stage, and what the kernel of peaks needs.
    """

    status: ByteArray
    open_ops: Int32Array
    stack: Int32Array
    need: Int64Array
    loss: Int64Array
    left: Int32Array
    left_before: Int32Array
    crosses: ByteArray
    frames: Int64Array
    trail_kind: ByteArray
    trail_item: Int32Array
    chosen: ByteArray
    places: Int32Array
    pins_left: Int32Array


def downset_arrays(instance: Instance, device_class: int | None = None) -> DownsetArrays:
    """Return the arrays of *instance*, ops numbered along its own order; O(n + pins·log pins).

    Parameters
    ----------
    device_class
        Whose ticks and memories they hold; None: those of the envelope.
    """
    all_work, all_transfer, memory = instance.work, instance.transfer, memory_arrays(instance)
    if device_class is not None:
        cost = instance.cost
        all_work, all_transfer = cost.work[device_class], cost.transfer[cost.link_of[device_class]]
        memory = memory._replace(figures=memory.figures[device_class : device_class + 1])
    n = instance.op_count
    place = np.empty(n, dtype=np.int32)
    place[instance.order] = np.arange(n, dtype=np.int32)
    reads = np.diff(instance.pin_offsets) - 1
    kept = reads > 0
    producer = place[instance.producer[kept]]
    transfer = all_transfer[kept].copy()
    counts = reads[kept]
    tensors = np.arange(len(producer), dtype=np.int32)
    consumers = place[instance.edges[1]]
    consumer_offsets = np.zeros(len(producer) + 1, dtype=np.int64)
    np.cumsum(counts, out=consumer_offsets[1:])
    edges = np.unique(np.repeat(producer, counts).astype(np.int64) * n + consumers)
    tails, heads = (edges // n).astype(np.int32), (edges % n).astype(np.int32)
    work = all_work[instance.order]
    read = grouped(consumers, np.repeat(tensors, counts), n)
    made = grouped(producer, tensors, n)
    most_cost = work.copy()
    np.add.at(most_cost, producer, transfer)
    np.add.at(most_cost, consumers, np.repeat(transfer, counts))
    if sum(most_cost.tolist()) >= NEVER:  # a tensor counts once per op: more than all costs, which do not wrap
        most_cost[:] = 0
    return DownsetArrays(
        work,
        instance.param_bytes[instance.order],
        transfer,
        producer,
        consumer_offsets,
        consumers,
        *read,
        *made,
        *grouped(tails, heads, n),
        *grouped(heads, tails, n),
        transfer,
        givers(instance)[instance.order].astype(np.uint8),
        most_cost,
        np.random.Generator(np.random.PCG64(n)).integers(0, 2**64, n, dtype=np.uint64),
        memory,
        np.zeros((0, 4), dtype=np.int64),
    )


def holding_whole(instance: Instance, arrays: DownsetArrays) -> DownsetArrays:
    """Return the arrays of *instance* where stages hold whole what several ops read, not their ops' shares of it.

    An op that is added to a stage may then add more than its own parameters, so no op is a giver.
    """
    cost = instance.cost
    place = np.empty(instance.op_count, dtype=np.int64)
    place[instance.order] = np.arange(instance.op_count)
    rows = shared_weights(instance)
    shares = rows.shares.copy()
    if not cost.states_join:
        shares[len(cost.weights.readers) :] = 0
    weight = rows.weight_of_reader
    shared = np.stack([place[rows.readers], weight, rows.bytes[weight], shares], axis=1)
    return arrays._replace(giver=np.zeros_like(arrays.giver), shared=np.ascontiguousarray(shared))


def givers(instance: Instance) -> NDArray[np.bool_]:
    """Tell of each op whether any stage without its predecessors is better off without it, bool, shape (n,).

    Such a stage saves the work of the op, and the transfers of what only the op reads; it pays for what the op makes.
    On devices of every class the first has to be at least the second. Its parameters and, in the graph's order, its
    peak do not grow either.
    """
    cost = instance.cost
    reads = np.diff(instance.pin_offsets) - 1
    sole = reads == 1
    gains = np.ones(instance.op_count, dtype=bool)
    for c, link in enumerate(cost.link_of):
        gain = cost.work[c].copy()
        np.add.at(gain, instance.pins[instance.pin_offsets[:-1][sole] + 1], cost.transfer[link][sole])
        np.subtract.at(gain, instance.producer[reads > 0], cost.transfer[link][reads > 0])
        gains &= gain >= 0
    return gains


def downset_store(arrays: DownsetArrays, capacity: int) -> DownsetStore:
    """Return a store with room for *capacity* downsets whose first row is the empty one."""
    words = -(-len(arrays.work) // 64)
    return DownsetStore(
        np.zeros((capacity, words), dtype=np.uint64),
        np.zeros(capacity, dtype=np.uint64),
        np.zeros(capacity, dtype=np.int32),
        np.full(capacity, -1, dtype=np.int32),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.full(table_size(capacity), -1, dtype=np.int32),
    )


def grown(rows: NDArray[Any], capacity: int, fill: int = 0) -> NDArray[Any]:
    """Return rows with room for more."""
    return np.concatenate([rows, np.full((capacity - len(rows), *rows.shape[1:]), fill, rows.dtype)])


def table_size(capacity: int) -> int:
    """Return the slots of the hash table of that many downsets: the power of two from twice as many on."""
    return 1 << (2 * capacity - 1).bit_length()


def bytes_per_downset(arrays: DownsetArrays) -> int:
    """Return what one downset takes in a store at most, in bytes."""
    return 8 * -(-len(arrays.work) // 64) + 40 + 4 * 4


def downset_scratch(arrays: DownsetArrays, ground: GroundArrays) -> DownsetScratch:
    """Return scratch for one search."""
    n, m = len(arrays.work), len(arrays.transfer)
    changes = n + m + len(arrays.consumers) + 1
    return DownsetScratch(
        np.zeros(n, dtype=np.uint8),
        np.zeros(n, dtype=np.int32),
        np.zeros(n, dtype=np.int32),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(m, dtype=np.int32),
        np.zeros(m, dtype=np.int32),
        np.zeros(m, dtype=np.uint8),
        np.zeros((n + 3) * FRAME + n, dtype=np.int64),
        np.zeros(changes, dtype=np.uint8),
        np.zeros(changes, dtype=np.int32),
        np.zeros(len(ground.places), dtype=np.uint8),
        np.zeros(len(ground.places), dtype=np.int32),
        np.zeros(len(ground.sizes), dtype=np.int32),
    )


def ordered_ground(instance: Instance) -> GroundArrays:
    """Return what peaks in the graph's order depend on, ops numbered as in :func:`downset_arrays`."""
    if not instance.peaks_in_order:
        return NO_GROUND
    ground = ground_arrays(instance)
    counts = np.diff(ground.place_offsets)[instance.order]
    offsets = np.zeros(instance.op_count + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    places = [ground.places[ground.place_offsets[v] : ground.place_offsets[v + 1]] for v in instance.order.tolist()]
    return ground._replace(
        place_offsets=offsets, places=np.concatenate(places), least_peaks=ground.least_peaks[instance.order]
    )
