"""Parts of f_j(S) as kernels take them: work, transfer, memory and working memory; see :mod:`mtpp.solvers.arrays`."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple, Protocol

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.live_tensors import NO_PRODUCER
from mtpp.inference.weights import NO_WEIGHTS, Weights
from mtpp.inference.working_memory import least_peaks
from mtpp.machine.device import Device

UNLIMITED_BYTES = 2**62 - 1
"""Stands for a memory that nothing can fill: all sizes of an instance together are below 2^61."""

NO_MEMORY = 0
"""No memory is given: stages pay nothing for theirs."""

RESERVE = 1
"""Every stage has the same peak."""

IN_ORDER = 2
"""The peak of a stage is its working memory when it runs its ops in the graph's order."""

_PICOSECONDS_PER_S = 10**12

FAST_BYTES, LIMIT_BYTES = 0, 1
"""Columns of memory: what exceeds the first is paid for; no stage may exceed the second."""

RESERVE_BYTES = 2
"""A peak that every stage has at least."""

NUMERATOR, DENOMINATOR, CHUNK = 3, 4, 5
"""Of :func:`~mtpp.solvers.stage_cost.kernels.stage_cost.ceil_scaled`, which turns bytes into ticks."""

SPLIT, UNIT = 6, 7
"""Of :attr:`~mtpp.inference.stage_cost.StageCost.state_code`; the first is 0 where weights and states are one sum."""


class MemoryArrays(NamedTuple):
    """Memory of a stage by class of device.

    Attributes
    ----------
    mode
        How the peak of a stage is found: :data:`NO_MEMORY`, :data:`RESERVE` or :data:`IN_ORDER`.
    figures
        A row for each class of :data:`FAST_BYTES` to :data:`UNIT`, int64, shape (classes, 8): one array, as each array
        of a tuple takes time in every call.
    """

    mode: int
    figures: Int64Array


class CostArrays(NamedTuple):
    """Parts of f_j(S) for the kernels in :mod:`mtpp.solvers.stage_cost.kernels.stage_cost`.

    Attributes
    ----------
    class_of
        Class of the device of each stage, int64, shape (k,); None where there is one class and one link. None is a type
        of its own to numba: kernels then have no trace of classes, and are compiled twice at most.
    work, work_row
        Ticks by class and op in one row of classes · n, int64, and where those of each stage begin, as *class_of*.
    transfer, transfer_row
        The same by link and tensor; a weight that several ops read is a tensor that takes no time, after all others,
        and so is a state.
    param_bytes
        Of each op, int64, shape (n,), and after them of each weight that several ops read, which a stage holds once,
        and of each state.
    memory, mode
        What a stage may hold, and pays for more; its mode once more, which hot loops ask without taking the tuple out.
    """

    class_of: Int64Array | None
    work: Int64Array
    work_row: Int64Array | None
    transfer: Int64Array
    transfer_row: Int64Array | None
    param_bytes: Int64Array
    memory: MemoryArrays
    mode: int


class CostRows(Protocol):
    """Fields of :class:`CostArrays` that give the ticks of ops and tensors, in it or in a tuple that has them too."""

    @property
    def work(self) -> Int64Array: ...  # noqa: D102
    @property
    def work_row(self) -> Int64Array | None: ...  # noqa: D102
    @property
    def transfer(self) -> Int64Array: ...  # noqa: D102
    @property
    def transfer_row(self) -> Int64Array | None: ...  # noqa: D102


class GroundArrays(NamedTuple):
    """The graph's ops in its own order, with the tensors that take memory: all that peaks in order depend on.

    A place is the position of an op of the graph (the ground, where ops were merged) in the graph's order.

    Attributes
    ----------
    place_offsets, places
        Places of the graph's ops that each op stands for, ascending, CSR, int64, shape (n + 1,), and int32.
    least_peaks
        Bytes, of each op: the least peak of any stage that holds it, int64, shape (n,).
    tensor_offsets, tensors
        Tensors that the op at each place makes or reads, inputs of the graph among them, CSR, int64, shape (ground
        ops + 1,), and int32.
    producer
        Place of the op that makes each tensor, int32; −1 for inputs.
    consumers
        Number of the ground's ops that read each tensor, int32; one more for results, which no stage reads all of.
    sizes
        Bytes of each tensor, above 0, int64.
    """

    place_offsets: Int64Array
    places: Int32Array
    least_peaks: Int64Array
    tensor_offsets: Int64Array
    tensors: Int32Array
    producer: Int32Array
    consumers: Int32Array
    sizes: Int64Array


_WHOLE, _HALF = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)

NO_GROUND = GroundArrays(_WHOLE, _HALF, _WHOLE, _WHOLE, _HALF, _HALF, _HALF, _WHOLE)
"""Stands for the ground where peaks are not those of running in order: it has no places."""


def cost_arrays(instance: Instance, stages: int | None = None, tensors: Int64Array | None = None) -> CostArrays:
    """Return the parts of f_j of an instance; O(n + m), do it once per search.

    Parameters
    ----------
    stages
        Their number; None: k.
    tensors
        Those that are kept, in this order; None: all.
    """
    cost = instance.cost
    class_of = cost.class_of(instance.k if stages is None else stages)
    transfer = cost.transfer if tensors is None else cost.transfer[:, tensors]
    weights = shared_weights(instance)
    transfer = np.pad(transfer, ((0, 0), (0, len(weights.bytes))))
    memory = memory_arrays(instance)
    alike = len(cost.work) == 1 and len(transfer) == 1
    return CostArrays(
        None if alike else class_of,
        cost.work.flatten(),
        None if alike else class_of * cost.work.shape[1],
        transfer.flatten(),
        None if alike else cost.link_of[class_of] * transfer.shape[1],
        np.concatenate([cost.own_bytes, weights.bytes]),
        memory,
        memory.mode,
    )


def shared_weights(instance: Instance) -> Weights:
    """Return the weights that several ops read, and states; none where everything at once fits into the memories."""
    return instance.cost.coded if instance.memory_matters else NO_WEIGHTS


def memory_arrays(instance: Instance) -> MemoryArrays:
    """Return the memories of each class of devices: none where everything at once fits into them; O(n + m)."""
    classes = instance.machine.classes
    if not instance.memory_matters:
        return _memory(NO_MEMORY, [(UNLIMITED_BYTES, UNLIMITED_BYTES, 0, 1, 1, 1, 0, 1)] * len(classes))
    in_order = instance.peaks_in_order
    code = instance.cost.state_code
    rows = [(*_device_memory(device, in_order), *code) for device in classes]
    return _memory(IN_ORDER if in_order else RESERVE, rows)


def _memory(mode: int, rows: Sequence[Sequence[int]]) -> MemoryArrays:
    return MemoryArrays(mode, np.array(rows, dtype=np.int64))


def _device_memory(device: Device, in_order: bool) -> tuple[int, int, int, int, int, int]:
    fast, limit = (
        UNLIMITED_BYTES if size is None else min(size, UNLIMITED_BYTES)
        for size in (device.fast_memory_bytes, device.memory_bytes)
    )
    reserve = 0 if in_order else device.activation_reserve_bytes
    if device.fast_memory_bytes is None:
        return fast, limit, reserve, 1, 1, 1
    rate = device.link.rate
    numerator = _PICOSECONDS_PER_S * rate.denominator
    divisor = gcd(numerator, rate.numerator)
    numerator, denominator = numerator // divisor, rate.numerator // divisor
    chunk = 61 - denominator.bit_length()
    if chunk < 1 or numerator >= UNLIMITED_BYTES:
        raise InputError(
            "the bandwidth is too large or too fine for exact overflow",
            parameter="bandwidth",
            remedy="stay below 1 EB/s, with a speed of few digits",
        )
    return fast, limit, reserve, numerator, denominator, min(chunk, 20)


def ground_arrays(instance: Instance) -> GroundArrays:
    """Return what the peaks of stages that run in the graph's order depend on; O(pins·log pins), the ground's pins."""
    ground = instance if instance.ground is None else instance.ground.instance
    op_of = np.arange(instance.op_count, dtype=np.int32) if instance.ground is None else instance.ground.op_of
    place = np.empty(ground.op_count, dtype=np.int32)
    place[ground.order] = np.arange(ground.op_count, dtype=np.int32)
    op_at = op_of[ground.order]
    live = ground.live
    pin_place = place[live.pins]
    tensor_of_pin = live.tensor_of_pin
    holds = live.sizes > 0
    made = np.where(live.producer == NO_PRODUCER, NO_PRODUCER, place[live.producer]).astype(np.int32)
    kept = holds[tensor_of_pin]
    number = (np.cumsum(holds) - 1).astype(np.int32)
    by_place = np.argsort(pin_place[kept], kind="stable")
    return GroundArrays(
        _offsets(op_at, instance.op_count),
        np.argsort(op_at, kind="stable").astype(np.int32),
        least_peaks(instance),
        _offsets(pin_place[kept], ground.op_count),
        number[tensor_of_pin[kept]][by_place],
        made[holds],
        live.consumers[holds],
        live.sizes[holds],
    )


def _offsets(keys: Int32Array, count: int) -> Int64Array:
    """Return where each key begins once the keys are sorted, and their number, int64, shape (count + 1,)."""
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=offsets[1:])
    return offsets
