"""Problem as solvers see it: a graph on a machine, cut into k stages, every cost in integer ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import gcd

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph, Int32Array, Int64Array
from mtpp.inference.live_tensors import NO_INTERFACE, Interface, LiveTensors, live_tensors
from mtpp.inference.merged_names import MemberNames
from mtpp.inference.stage_cost import StageCost
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.units import PICOSECONDS, Exact, InTicks, ceil_ratio

LARGEST_TOTAL = 2**62
"""k · (Σ work + Σ transfer + overflow) must stay below this many ticks: int64 kernels wrap silently."""

LARGEST_MEMORY = 2**61
"""All that could be in one stage together must stay below this many bytes, for the same reason."""

_EXACT_FLOAT = 2**53

FINEST = 10**18
"""Most ticks in a unit of an abstract graph: documents hold numbers below 2^63."""

_LEAST_TICKS = 10**6
"""Costs that :data:`FINEST` ticks do not make whole have to come to as many on average, for rounding not to matter."""


@dataclass(frozen=True, eq=False)
class Instance(InTicks):
    """Graph × machine × k in int64 ticks. Make one with :meth:`build`.

    Attributes
    ----------
    op_names
        Names of the ops, for messages and results.
    cost
        f_j(S): what the ops and tensors cost on each class of devices.
    k
        Number of stages; empty ones cost nothing.
    time_unit, ticks_per_unit
        Unit of the graph's costs and the ticks in one of it; 1 tick = 1 ps unless the unit is ``"1"``.
    tensor_bytes
        Bytes of each tensor, int64, shape (m,); bytes that the graph does not give are 0 here.
    pin_offsets, pins
        Ops that touch each tensor, CSR, producer first, then its consumers; int64, shape (m + 1,) and int32.
    order
        The graph's own topological order, int32, shape (n,).
    interface
        Inputs and results of the graph, where working memory counts; of no meaning where ops were merged.
    members
        Names of the graph's ops that each op stands for, where some were merged; None where none were.
    ground
        The ops before any were merged, and where they are now; None where none were.
    """

    op_names: Sequence[str]
    cost: StageCost
    k: int
    time_unit: str
    ticks_per_unit: int
    tensor_bytes: Int64Array
    pin_offsets: Int64Array
    pins: Int32Array
    order: Int32Array
    interface: Interface = NO_INTERFACE
    members: MemberNames | None = None
    ground: Ground | None = None

    @classmethod
    def build(cls, graph: CostGraph, machine: Machine) -> Instance:
        """Turn the costs of *graph* on *machine*, a stage for each device, into ticks, each rounded up once.

        Raises
        ------
        InputError
            If there is no device, if the total cost times k reaches 2^62 ticks or all sizes 2^61 bytes, if an abstract
            graph (time unit ``"1"``) meets a fast memory, whose overflow is a time, or if its costs are too small for
            ticks.

        Notes
        -----
        Timed graphs: 1 tick = 1 ps, so the same graph written in s, ms, µs or ns gives the same instance.
        Abstract ones: 1 tick per unit if every cost is an integer, else the largest power of ten from 1 to 10^18 with
        k · (Σ work + Σ transfer) < 2^53. At 10^18 costs have to be whole ticks, or 10^6 on average. O(n + pins).
        """
        k, device = machine.count, machine.device
        machine.require_uniform()
        if device.speed != 1 or device.link.latency_ps > 0:
            raise InputError("stages of inference have neither speed nor latency", parameter="system")
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}", source="-k")
        if graph.time_unit == "1" and device.fast_memory_bytes is not None:
            raise InputError(
                "a fast memory needs a graph with a time unit: overflow is a time",
                where="/time_unit",
                remedy="give the graph a time unit, or use a system without a fast memory (‹system›, ‹fast_memory›)",
            )
        ticks_per_unit = _ticks_per_unit(graph, k)
        work = _ticks(graph.work, ticks_per_unit)
        transfer = [
            link if given is None else _tick(given, ticks_per_unit)
            for given, link in zip(graph.transfer, _link_ticks(graph.tensor_bytes, device.link), strict=True)
        ]
        sizes = np.where(graph.tensor_bytes == UNKNOWN_BYTES, 0, graph.tensor_bytes)
        interface = NO_INTERFACE
        if device.peak == "order":
            interface = Interface(graph.inputs, np.array(graph.results, dtype=np.int32))
        held = graph.all_bytes
        held += device.activation_reserve_bytes if device.peak == "reserve" else sum(sizes.tolist())
        held += sum(interface.inputs.bytes.tolist())
        if held >= LARGEST_MEMORY:
            raise InputError("the sizes are too large: their total reaches 2^61 bytes", remedy="check the sizes")
        overflow = 0 if device.fast_memory_bytes is None else device.link.streaming_ps(held)
        if k * (sum(work) + sum(transfer) + overflow) >= LARGEST_TOTAL:
            raise InputError(
                f"the costs are too large: {k} × their total reaches 2^62 ticks of 1/{ticks_per_unit} "
                f"{graph.time_unit if graph.time_unit != '1' else 'unit'}",
                where=_largest_cost(work, transfer),
                remedy="check the costs, the time unit and the bandwidth",
            )
        offsets, pins = _pins(graph)
        instance = cls(
            op_names=graph.op_names,
            cost=StageCost(
                machine,
                np.array([work], dtype=np.int64),
                np.array([transfer], dtype=np.int64),
                graph.param_bytes + graph.weights.shared_out(graph.op_count),
                graph.weights,
            ),
            k=k,
            time_unit=graph.time_unit,
            ticks_per_unit=ticks_per_unit,
            tensor_bytes=sizes,
            pin_offsets=offsets,
            pins=pins,
            order=graph.order,
            interface=interface,
        )
        for array in (instance.cost.work, instance.cost.transfer, sizes, offsets, pins):
            array.setflags(write=False)
        return instance

    @property
    def machine(self) -> Machine:
        """Devices, of which stage j stands on the j-th."""
        return self.cost.machine

    @property
    def device(self) -> Device:
        """Envelope of the devices: for each quantity the best of any."""
        return self.cost.device

    @property
    def work(self) -> Int64Array:
        """Ticks of each op on the device that takes least for it, int64, shape (n,)."""
        return self.cost.least_work

    @property
    def transfer(self) -> Int64Array:
        """Ticks of each tensor over the fastest link, int64, shape (m,)."""
        return self.cost.least_transfer

    @property
    def param_bytes(self) -> Int64Array:
        """Parameters of each op and its share of the weights that it reads with others, in bytes, int64, shape (n,).

        A stage holds at least the sum of its ops'; see :attr:`~mtpp.inference.stage_cost.StageCost.param_bytes`.
        """
        return self.cost.param_bytes

    @property
    def op_count(self) -> int:
        """Number of ops, n."""
        return len(self.work)

    @property
    def tensor_count(self) -> int:
        """Number of tensors, m."""
        return len(self.transfer)

    def members_of(self, op: int) -> tuple[str, ...]:
        """Return the names of the graph's ops that *op* stands for."""
        return (self.op_names[op],) if self.members is None else self.members[op]

    @cached_property
    def first_members(self) -> Int64Array:
        """First of the graph's ops, by number in file order, that each op stands for, int64, shape (n,)."""
        if self.ground is None:
            return np.arange(self.op_count, dtype=np.int64)
        first = np.full(self.op_count, len(self.ground.op_of), dtype=np.int64)
        np.minimum.at(first, self.ground.op_of, np.arange(len(self.ground.op_of)))
        return first

    def ground_below(self, group_of: Int32Array) -> Ground:
        """Return the ground of the instance in which op v of this one goes into op ``group_of[v]``."""
        if self.ground is None:
            return Ground(self, group_of)
        return Ground(self.ground.instance, group_of[self.ground.op_of])

    @cached_property
    def most_bytes(self) -> int:
        """No stage holds more: all parameters, and the reserve or all tensors and inputs at once; below 2^61."""
        peak = self.device.activation_reserve_bytes
        if self.device.peak == "order":
            peak = int((self if self.ground is None else self.ground.instance).live.sizes.sum())
        return int(self.param_bytes.sum()) + peak

    @cached_property
    def memory_matters(self) -> bool:
        """Whether there is a memory that not everything at once fits into."""
        memories = (self.device.fast_memory_bytes, self.device.memory_bytes)
        return any(memory is not None and memory < self.most_bytes for memory in memories)

    @property
    def peaks_in_order(self) -> bool:
        """Whether what a stage pays, or whether it may be, depends on its working memory in the graph's order."""
        return self.device.peak == "order" and self.memory_matters

    @cached_property
    def most_ticks(self) -> int:
        """No stage costs more: all work, all transfers and the overflow of everything at once; below 2^62 / k."""
        return int(self.work.sum()) + int(self.transfer.sum()) + self.cost.overflow(self.most_bytes, 0)

    @cached_property
    def live(self) -> LiveTensors:
        """Tensors and inputs that take working memory; of an instance with no merged ops."""
        return live_tensors(self.tensor_bytes, self.pins, self.pin_offsets, self.interface)

    @cached_property
    def producer(self) -> Int32Array:
        """Op that makes each tensor, int32, shape (m,)."""
        return self.pins[self.pin_offsets[:-1]]

    @cached_property
    def edges(self) -> tuple[Int32Array, Int32Array]:
        """Producer and consumer of every (tensor, consumer) pair, two int32 arrays."""
        counts = np.diff(self.pin_offsets) - 1
        is_consumer = np.ones(len(self.pins), dtype=bool)
        is_consumer[self.pin_offsets[:-1]] = False
        return np.repeat(self.producer, counts), self.pins[is_consumer]

    @cached_property
    def tensor_of_pin(self) -> Int32Array:
        """Tensor that each of :attr:`pins` is one of, int32."""
        return np.repeat(np.arange(self.tensor_count, dtype=np.int32), np.diff(self.pin_offsets))

    @cached_property
    def op_tensors(self) -> tuple[Int64Array, Int32Array]:
        """Tensors that each op makes or reads, CSR: offsets int64, shape (n + 1,), and tensors int32."""
        by_op = np.argsort(self.pins, kind="stable")
        offsets = np.zeros(self.op_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.pins, minlength=self.op_count), out=offsets[1:])
        return offsets, self.tensor_of_pin[by_op]

    @cached_property
    def successors(self) -> tuple[Int64Array, Int32Array]:
        """Distinct successors of each op, CSR: offsets int64, shape (n + 1,), and ops int32, ascending."""
        sources, targets = self.edges
        n = self.op_count
        keys = np.unique(sources.astype(np.int64) * n + targets)
        offsets = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys // n, minlength=n), out=offsets[1:])
        return offsets, (keys % n).astype(np.int32)

    def successor_lists(self) -> list[list[int]]:
        """Return :attr:`successors` as a list for each op."""
        offsets, successors = self.successors
        rows = successors.tolist()
        return [rows[begin:end] for begin, end in pairwise(offsets.tolist())]


@dataclass(frozen=True, eq=False)
class Ground:
    """What an instance was before any of its ops were merged: working memory depends on it.

    Attributes
    ----------
    instance
        The original, with nothing merged.
    op_of
        Op of the merged instance that each op of the original went into, int32.
    """

    instance: Instance
    op_of: Int32Array


def _ticks_per_unit(graph: CostGraph, k: int) -> int:
    if graph.time_unit != "1":
        return PICOSECONDS[graph.time_unit]
    costs: list[Exact] = [*graph.work, *(cost for cost in graph.transfer if cost is not None)]
    if all(cost.denominator == 1 for cost in costs):
        return 1
    total = Fraction(sum(costs))
    limit = _EXACT_FLOAT / (k * total)
    scale = 1
    while scale * 10 < limit and scale < FINEST:
        scale *= 10
    few = _LEAST_TICKS * sum(1 for cost in costs if cost)
    if scale == FINEST and total * scale < few and any((cost * scale).denominator > 1 for cost in costs):
        raise InputError(
            f"the costs are too small: their average is below {_LEAST_TICKS / FINEST:g} units",
            where=_largest_cost(list(graph.work), [cost or 0 for cost in graph.transfer]),
            remedy="multiply all of them by a power of ten, or give the graph a time unit",
        )
    return scale


def _tick(cost: Exact, ticks_per_unit: int) -> int:
    if type(cost) is int:  # what nearly every cost is, in a graph of millions
        return cost * ticks_per_unit
    return ceil_ratio(cost.numerator * ticks_per_unit, cost.denominator)


def _ticks(costs: Sequence[Exact], ticks_per_unit: int) -> list[int]:
    return [_tick(cost, ticks_per_unit) for cost in costs]


def _link_ticks(sizes: Int64Array, link: Link) -> list[int]:
    """Return the time of each tensor on the link; meaningless where the size is not known."""
    rate = link.bandwidth_bytes_per_s
    divisor = gcd(PICOSECONDS["s"], rate)
    numerator, denominator = PICOSECONDS["s"] // divisor, rate // divisor
    if int(sizes.max(initial=0)) * numerator + denominator < 2**63:
        ticks: list[int] = (-(-(sizes * numerator) // denominator)).tolist()
        return ticks
    return [link.streaming_ps(size) for size in sizes.tolist()]


def _largest_cost(work: Sequence[Exact], transfer: Sequence[Exact]) -> str:
    """Return the place of the largest cost as a JSON pointer."""
    op = max(range(len(work)), key=work.__getitem__)
    if transfer and max(transfer) > work[op]:
        return f"/tensors/{max(range(len(transfer)), key=transfer.__getitem__)}"
    return f"/ops/{op}/work"


def _pins(graph: CostGraph) -> tuple[Int64Array, Int32Array]:
    m = graph.tensor_count
    offsets = graph.consumer_offsets + np.arange(m + 1, dtype=np.int64)
    pins = np.empty(len(graph.consumers) + m, dtype=np.int32)
    pins[offsets[:-1]] = graph.tensor_producer
    is_consumer = np.ones(len(pins), dtype=bool)
    is_consumer[offsets[:-1]] = False
    pins[is_consumer] = graph.consumers
    return offsets, pins
