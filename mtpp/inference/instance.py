"""Problem as solvers see it: a graph on a machine, cut into k stages, every cost in integer ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph, Int32Array, Int64Array
from mtpp.inference.live_tensors import NO_INTERFACE, Interface, LiveTensors, live_tensors
from mtpp.inference.merged_names import MemberNames
from mtpp.inference.stage_cost import StageCost, require_one_chain
from mtpp.inference.states import live_inputs
from mtpp.machine.boundary_cost import BoundaryCost
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.pair_link import PairLink
from mtpp.machine.ticks import message_ticks, work_ticks
from mtpp.units import PICOSECONDS, Exact, InTicks

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
        Number of stages, one for each device; empty ones cost nothing.
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
    spare
        Stages that have to stay empty at least: k − spare devices are used at most.
    replicas
        Whether a stage may stand on several devices, which take turns at its requests.
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
    spare: int = 0
    replicas: bool = False

    @classmethod
    def build(
        cls,
        graph: CostGraph,
        machine: Machine,
        times: Sequence[Sequence[Exact] | None] | None = None,
        *,
        most_used: int | None = None,
    ) -> Instance:
        """Turn the costs of *graph* on *machine*, a stage for each device, into ticks, each rounded up once.

        Parameters
        ----------
        times
            For each class of devices the time of each op on one, in units of the graph, whatever the class's speed;
            None: the graph's own work, at the class's speed.
        most_used
            Devices that may be used at most; None: all.

        Raises
        ------
        InputError
            If there is no device, if the total cost times k reaches 2^62 ticks or all sizes 2^61 bytes, if an abstract
            graph (time unit ``"1"``) meets a fast memory or a latency, which are times, or if its costs are too small
            for ticks.

        Notes
        -----
        Timed graphs: 1 tick = 1 ps, so the same graph written in s, ms, µs or ns gives the same instance.
        Abstract ones: 1 tick per unit if every cost is an integer and no device or link has another speed than 1, else
        the largest power of ten from 1 to 10^18 with k · (Σ work + Σ transfer) < 2^53. At 10^18 costs have to be whole
        ticks, or 10^6 on average. O(n + pins) for each class of devices.
        """
        k = machine.count
        used = k if most_used is None else most_used
        machine.require_one_level()
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}", source="-k")
        if not 1 <= used <= k:
            raise InputError(f"must be from 1 to {k}, the number of devices, not {used}", source="-k")
        if graph.time_unit == "1":
            _require_no_times(machine)
        counted = [bool(device.stage_times_ps) for device in machine.classes]
        if any(counted):
            require_one_chain(graph, machine)
        rows = times or [None] * len(machine.classes)
        speeds = [1 if row else device.speed for row, device in zip(rows, machine.classes, strict=True)]
        given = (link.speed for link in machine.pair_links if link.speed is not None)
        whole = all(speed == 1 for speed in (*speeds, *(link.speed for link in machine.links), *given))
        ticks_per_unit = _ticks_per_unit(graph, used, whole)
        work = [
            [0] * graph.op_count if no_work else work_ticks(graph.work if row is None else row, ticks_per_unit, speed)
            for row, speed, no_work in zip(rows, speeds, counted, strict=True)
        ]
        links: Sequence[Link | PairLink] = machine.pairs.links if machine.neighbours else machine.links
        moved = [message_ticks(graph.transfer, graph.tensor_bytes, link, ticks_per_unit) for link in links]
        sizes = np.where(graph.tensor_bytes == UNKNOWN_BYTES, 0, graph.tensor_bytes)
        interface = NO_INTERFACE
        if machine.device.peak == "order":
            interface = Interface(live_inputs(graph.inputs, graph.states), np.array(graph.results, dtype=np.int32))
        states = graph.states.of_sequences(machine.classes[0].sequences)
        live = sum(sizes.tolist()) + sum(interface.inputs.bytes.tolist())
        kept = graph.all_bytes + sum(states.bytes.tolist())
        _refuse_too_large(graph, machine, ticks_per_unit, work, moved, kept, live)
        transfer = np.array(moved, dtype=np.int64).reshape(len(moved), graph.tensor_count)
        boundary = BoundaryCost.of(machine.pairs, transfer) if machine.neighbours else None
        offsets, pins = _pins(graph)
        instance = cls(
            op_names=graph.op_names,
            cost=StageCost.of(
                machine,
                np.array(work, dtype=np.int64),
                transfer if boundary is None else boundary.least,
                graph.param_bytes + graph.weights.shared_out(graph.op_count),
                graph.weights,
                states,
                boundary,
            ),
            k=k,
            time_unit=graph.time_unit,
            ticks_per_unit=ticks_per_unit,
            tensor_bytes=sizes,
            pin_offsets=offsets,
            pins=pins,
            order=graph.order,
            interface=interface,
            spare=k - used,
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
        """Parameters of each op and its share of what it reads with others, in bytes, int64, shape (n,).

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

    @property
    def most_used(self) -> int:
        """Devices that may be used at most, and stages that may have ops."""
        return self.k - self.spare

    @property
    def uniform(self) -> bool:
        """Whether all devices are of one class, and transport is direct."""
        return len(self.machine.classes) == 1 and not self.machine.neighbours

    @property
    def equal_devices(self) -> bool:
        """Whether stages cost the same on all devices, by their ops and tensors, and all devices may be used."""
        return self.uniform and not self.spare and not self.cost.counts_ops

    def on(self, devices: Sequence[int]) -> Instance:
        """Return the same ops on some of the devices, by their numbers: stage i on the i-th of them.

        A plan whose devices stand anywhere is a plan of this instance with stages in order.

        Raises
        ------
        InputError
            If a number is no device, or a device is named twice.
        """
        used = min(self.most_used, len(devices))
        cost = self.cost.on(devices)
        return replace(self, cost=cost, k=len(devices), spare=len(devices) - used)

    @cached_property
    def envelope(self) -> Instance:
        """The same ops on equal devices with the best figure of any device for each quantity, k − spare of them.

        No partition costs more on it: its lower bounds hold here. Itself where all devices are used and equal.
        """
        if self.equal_devices:
            return self
        cost = self.cost.enveloped().on(range(self.most_used))
        return replace(self, cost=cost, k=self.most_used, spare=0)

    def of_class(self, c: int) -> Instance:
        """Return the same ops on k devices of one class, by its position in :attr:`Machine.classes`.

        Transport is direct, of neighbours over the best link that another device gives the class.
        """
        cost = self.cost.on([self.machine.class_of.index(c)])
        transfer = self.cost.transfer[[self.cost.link_of[c]]]
        machine = Machine.uniform(self.k, self.machine.classes[c])
        return replace(self, cost=replace(cost, machine=machine, transfer=transfer, boundary=None, by_class=False))

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
        """No stage holds more: parameters and states, and the largest reserve or all tensors and inputs."""
        peak = max(device.activation_reserve_bytes for device in self.machine.classes)
        if self.device.peak == "order":
            peak = int((self if self.ground is None else self.ground.instance).live.sizes.sum())
        return self.cost.all_bytes + peak

    @cached_property
    def memory_matters(self) -> bool:
        """Whether a device has a memory that not everything at once fits into."""
        memories = chain.from_iterable((one.fast_memory_bytes, one.memory_bytes) for one in self.machine.classes)
        return any(memory is not None and memory < self.most_bytes for memory in memories)

    @property
    def peaks_in_order(self) -> bool:
        """Whether what a stage pays, or whether it may be, depends on its working memory in the graph's order."""
        return self.device.peak == "order" and self.memory_matters

    @cached_property
    def most_ticks(self) -> int:
        """No stage costs more: all work, all transfers and the overflow of everything at once; below 2^62 / k.

        Of neighbours all transfers twice, over the slowest link.
        """
        work, transfer = self.cost.work.sum(axis=1).tolist(), self.cost.transfer.sum(axis=1).tolist()
        if self.cost.boundary is not None:
            transfer = [2 * max(self.cost.boundary.ticks.sum(axis=1).tolist(), default=0)] * len(transfer)
        by_class = zip(work, self.cost.link_of.tolist(), self.machine.classes, strict=True)
        most = self.most_bytes
        return max(
            max(one.stage_times_ps)
            if one.stage_times_ps
            else int(own + transfer[link]) + self.cost.overflow(most, 0, one)
            for own, link, one in by_class
        )

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


def _require_no_times(machine: Machine) -> None:
    """Raise InputError if a figure of a device is a time, of an abstract graph."""
    if any(device.fast_memory_bytes is not None for device in machine.classes):
        raise InputError(
            "a fast memory needs a graph with a time unit: overflow is a time",
            where="/time_unit",
            remedy="give the graph a time unit, or use a system without a fast memory (‹system›, ‹fast_memory›)",
        )
    if any(device.stage_times_ps for device in machine.classes):
        raise InputError("stage_times need a graph with a time unit", where="/time_unit", remedy="give the graph one")
    if any(link.latency_ps for link in machine.links) or any(link.latency_ps for link in machine.pair_links):
        raise InputError("a latency needs a graph with a time unit", where="/time_unit", remedy="give the graph one")


def _refuse_too_large(
    graph: CostGraph,
    machine: Machine,
    ticks_per_unit: int,
    work: Sequence[Sequence[int]],
    transfer: Sequence[Sequence[int]],
    kept_bytes: int,
    live_bytes: int,
) -> None:
    """Raise InputError if sums of sizes or costs could leave the integers of kernels, on any class of devices.

    Parameters
    ----------
    kept_bytes
        Of all parameters and states.
    live_bytes
        Of all tensors and inputs, where working memory depends on the order of ops.
    """
    in_order = machine.device.peak == "order"
    for device, own in zip(machine.classes, work, strict=True):
        held = kept_bytes + (live_bytes if in_order else device.activation_reserve_bytes)
        if held >= LARGEST_MEMORY:
            raise InputError("the sizes are too large: their total reaches 2^61 bytes", remedy="check the sizes")
        if machine.neighbours:  # at both boundaries
            moved: Sequence[int] = [2 * max(ticks) for ticks in zip(*transfer, strict=True)]
        else:
            moved = transfer[machine.links.index(device.link)]
        overflow = 0 if device.fast_memory_bytes is None else device.link.streaming_ps(held)
        overflow += max(device.stage_times_ps, default=0)
        if machine.count * (sum(own) + sum(moved) + overflow) >= LARGEST_TOTAL:
            raise InputError(
                f"the costs are too large: {machine.count} × their total reaches 2^62 ticks of 1/{ticks_per_unit} "
                f"{graph.time_unit if graph.time_unit != '1' else 'unit'}",
                where=_largest_cost(own, moved),
                remedy="check the costs, the time unit and the bandwidth",
            )


def _ticks_per_unit(graph: CostGraph, k: int, whole: bool) -> int:
    """Return the ticks of a unit; *whole* tells whether whole costs come to whole ticks on all devices."""
    if graph.time_unit != "1":
        return PICOSECONDS[graph.time_unit]
    costs: list[Exact] = [*graph.work, *(cost for cost in graph.transfer if cost is not None)]
    total = Fraction(sum(costs))
    if (whole and all(cost.denominator == 1 for cost in costs)) or not total:
        return 1
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
