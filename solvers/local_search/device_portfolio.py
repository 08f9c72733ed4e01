"""Partitions over devices that differ: annealing, cuts of orders and matchings of devices to stages, in turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from math import ceil
from time import monotonic
from typing import NamedTuple

import numpy as np

from mtpp.errors import Infeasible, InputError
from mtpp.host.stop_reason import StopReason
from mtpp.inference.contraction import Contraction, merge
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.inference.stage_cost import StageCost
from mtpp.machine.device import DeviceGroup
from mtpp.machine.machine import Machine
from mtpp.names import ENGINE_RULES
from mtpp.solvers.arrays import order_arrays
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.annealing import COOL, HOT, WARM, Annealer, Assignment, Schedule, Start
from mtpp.solvers.local_search.device_matching import ClassCosts, match_devices
from mtpp.solvers.orders.device_slicing import DeviceCut
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.orders.neighbour_slicing import slicer_of
from mtpp.solvers.reduction.coarsening import coarsen
from mtpp.solvers.registry import partitioner
from mtpp.solvers.step_times import move_s
from mtpp.solvers.threads import Threads

_POOL = 8
_RUNS = 8
_SCHEDULES = (HOT, WARM, COOL, WARM)
_FIRST_SWEEPS = 200
"""Moves per op in a run of the first round; each round doubles it."""

_LONGEST_SWEEPS = 10_000
_FIRST_ORDERS = 16
_TWIN_SWEEPS = 400
"""Evaluations for a partition that balances memory, where no order can be cut."""

_LARGE = 8_000
_TARGET = 3_000
_TARGET_PER_STAGE = 125
_COARSE_SHARE = 0.6
_REFINING = Schedule(0.0004, 0.00005, 12.0, 24.0)
_REFINING_SWEEPS = 30
_LEAST_S = 0.02


class Seated(NamedTuple):
    """An assignment of ops to seats, and the device that has each seat.

    Attributes
    ----------
    bottleneck
        In ticks.
    stage
        Seat of each op, int32, shape (n,); no edge goes back.
    seats
        Devices, as many as may be used.
    found_by
        Name of what found it.
    """

    bottleneck: int
    stage: Int32Array
    seats: tuple[int, ...]
    found_by: str


class DeviceResult(NamedTuple):
    """A partition whose stage i stands on the i-th of the devices, which are all of the machine's.

    Attributes
    ----------
    bottleneck
        In ticks.
    found_by
        Name of the algorithm that found it.
    evaluations
        Candidates evaluated.
    stopped
        Why the search ended.
    """

    partition: Partition
    devices: tuple[int, ...]
    bottleneck: int
    found_by: str
    evaluations: int
    stopped: StopReason

    def placed(self, instance: Instance, *, free: bool) -> SearchResult:
        """Return the result as partitioners do."""
        partition = self.partition
        if free:
            partition = PlacedPartition.on(instance, partition.assignment, self.devices)
        return SearchResult(partition, self.bottleneck, self.found_by, self.evaluations, self.stopped)


class DevicePortfolio:
    """A pool of good partitions of one instance over devices that differ, improved in rounds.

    It begins with the file's order, cut, and with the rules of engines. A round anneals from some of the pool, each on
    its own devices, gives the stages found the devices that are best for them, and cuts the orders that the pool
    implies. Some runs begin with two devices swapped. Without a deadline the result depends on the seed
    and the number of evaluations alone.

    Parameters
    ----------
    most
        Devices that may be used.
    free
        Whether devices may stand in any order.

    Raises
    ------
    Infeasible
        If no partition keeps to the memory limits of the devices.
    """

    def __init__(self, instance: Instance, limits: SearchLimits, threads: Threads, most: int, *, free: bool) -> None:
        self._instance = instance
        self._limits = limits
        self._threads = threads
        self._most = most
        self._free = free
        self._slicer = slicer_of(instance, most, free=free)
        self._costs = ClassCosts(instance)
        self._class_of = instance.cost.class_of(instance.k).tolist()
        self._stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(limits.seed, spawn_key=(2,))))
        self._annealers: dict[tuple[int, ...], Annealer] = {}
        self._rounds = 0
        self.evaluations = 0
        self.pool: list[Seated] = []
        self._begin()

    @property
    def best(self) -> Seated:
        """The best partition so far."""
        return self.pool[0]

    @property
    def stop(self) -> StopReason | None:
        """Why the search has to end now, or None to go on."""
        if self.best.bottleneck <= self._limits.lower_bound:
            return StopReason.OPTIMAL
        if self.evaluations >= self._limits.evaluations:
            return StopReason.BUDGET
        return self._limits.stop

    def improve(self) -> StopReason:
        """Run rounds, each twice as long as the one before, until something ends them; return that."""
        n, limits = self._instance.op_count, self._limits
        length = _FIRST_SWEEPS * n
        speed = move_s(self._instance) * ceil(_RUNS / limits.jobs)
        while (stopped := self.stop) is None:
            if limits.evaluations < UNLIMITED:
                length = min(length, max(1, (limits.evaluations - self.evaluations) * n // _RUNS))
            if limits.deadline.limit_s is not None:
                if limits.deadline.remaining_s() < _LEAST_S:
                    return StopReason.TIME_LIMIT
                length = min(length, max(n, int(limits.deadline.remaining_s() / (2 * speed))))
            begin = monotonic()
            self.round(length)
            speed = max(monotonic() - begin, 1e-9) / length
            length = min(2 * length, _LONGEST_SWEEPS * n)
        return stopped

    def round(self, length: int) -> None:
        """Anneal from some of the pool, that many moves a run, and cut the orders that the pool implies."""
        self._limits.observer.phase("anneal")
        starts: dict[tuple[int, ...], list[Start]] = defaultdict(list)
        for run in range(_RUNS):
            one = self.pool[run % len(self.pool)]
            schedule = HOT if self._rounds == 0 else _SCHEDULES[run % len(_SCHEDULES)]
            seats = self._swapped(one.seats) if run % 2 else one.seats
            starts[seats].append(Start(one.stage, schedule))
        self._rounds += 1
        proposals = 0
        for seats, group in starts.items():
            found, made = self._annealer(seats).round(group, length)
            proposals += made
            on = self._instance.on(seats)
            self._offer(Seated(_true_ticks(on, one), one.stage, seats, "anneal") for one in found)
        self._count(ceil(proposals / self._instance.op_count))
        if self._limits.stop is None:
            self._cut()

    def result(self, stopped: StopReason) -> DeviceResult:
        """Return the best partition with all devices of the machine."""
        return seated_result(self._instance, self.best, self.evaluations, stopped, free=self._free)

    def add(self, cut: DeviceCut, found_by: str) -> None:
        """Take in a partition that another search has found, stage i on the i-th of its devices."""
        self._offer([self._cut_seated(cut, found_by)])

    def _begin(self) -> None:
        """Fill the pool with cuts of the file's order, and the rules of engines."""
        self._limits.observer.phase("first partition")
        self._slice(self._instance.order, None)
        for rule in ENGINE_RULES:
            self._add_rule(rule)
        ordering = order_arrays(self._instance)
        tried = 0
        while not self.pool and tried < _FIRST_ORDERS and self._limits.stop is None:
            self._slice(kahn_order(ordering, self._stream.random(self._instance.op_count)), None)
            tried += 1
        if not self.pool:
            self._add_balanced_memory()
        if not self.pool:
            raise none_found(self._instance, f"{tried + 1} orders")

    def _add_rule(self, rule: str) -> None:
        """Take in the partition by a rule of engines, if it is one of this instance, on the best devices for it."""
        quiet = SearchLimits(evaluations=1)
        try:
            found = partitioner(rule).load()(replace(self._instance, spare=self._instance.k - self._most), quiet)
        except (Infeasible, InputError):
            return
        self._count(1)
        self.add(DeviceCut(found.partition, tuple(range(self._instance.k)), found.bottleneck), rule)

    def _add_balanced_memory(self) -> None:
        """Take in partitions that fill the memories of devices evenly, by the same search of another instance."""
        twin = memory_twin(self._instance)
        if twin is None:
            return
        budget = min(_TWIN_SWEEPS, self._limits.evaluations)
        inner = DevicePortfolio(
            twin,
            replace(SearchLimits(evaluations=budget), seed=self._limits.seed, deadline=self._limits.deadline),
            self._threads,
            self._most,
            free=self._free,
        )
        inner.improve()
        self._count(inner.evaluations)
        for one in inner.pool:
            matched = self._matched(one.stage, None, "anneal")
            if matched is not None:
                self._offer([matched])

    def _slice(self, order: Int32Array, cutoff: int | None) -> None:
        """Cut an order."""
        (cut,) = self._threads.map(lambda one: self._slicer.best(one, cutoff, exact=False), [order])
        self._count(1)
        if cut is not None:
            self.add(cut, "slice")

    def _cut(self) -> None:
        """Cut the orders that run the stages of the pool one after the other."""
        self._limits.observer.phase("orders")
        ordering = order_arrays(self._instance)
        for one in list(self.pool):
            if self._limits.stop is not None:
                return
            noise = self._stream.random(self._instance.op_count)
            priorities = (noise + self._most - 1 - one.stage) / self._most
            self._slice(kahn_order(ordering, priorities), self.best.bottleneck)

    def _offer(self, found: Iterable[Seated]) -> None:
        """Take partitions into the pool, also on better devices, the best first, each once."""
        before = self.pool[0].bottleneck if self.pool else None
        every = [*self.pool]
        for one in found:
            if one.bottleneck <= self._instance.most_ticks:  # within the memory limits
                every += [one, *self._reseated(one)]
        distinct = {(one.seats, one.stage.tobytes()): one for one in every}
        self.pool = sorted(distinct.values(), key=lambda one: one.bottleneck)[:_POOL]
        if self.pool and (before is None or self.pool[0].bottleneck < before):
            best = self.pool[0]
            self._limits.observer.incumbent(best.bottleneck)
            result = self.result(StopReason.BUDGET)
            placed = partial(result.placed, self._instance, free=self._free)
            self._limits.keeper.offer(best.bottleneck, best.found_by, lambda: placed().partition)

    def _reseated(self, one: Seated) -> list[Seated]:
        """Return the same stages on the devices that are best for them, where that is better."""
        matched = self._matched(one.stage, one.bottleneck, one.found_by)
        return [] if matched is None else [matched]

    def _matched(self, stage: Int32Array, cutoff: int | None, found_by: str) -> Seated | None:
        """Return stages on the devices that are best for them, those of neighbours joined where that is better.

        None if that is not below *cutoff* ticks, or no devices have memory for them.
        """
        used = np.unique(stage)
        dense = np.searchsorted(used, stage).astype(np.int32)
        if self._instance.cost.boundary is not None:
            whole = merge(self._instance, dense, len(used))
            slicer = slicer_of(whole.instance, self._most, free=self._free)
            cut = slicer.best(whole.instance.order, cutoff)
            return (
                None if cut is None else self._cut_seated(cut._replace(partition=whole.lift(cut.partition)), found_by)
            )
        matched = match_devices(self._costs.of(dense, len(used)), self._class_of, free=self._free)
        if matched is None or (cutoff is not None and matched[0] >= cutoff):
            return None
        return self._seated(matched[0], dense, matched[1], found_by)

    def _cut_seated(self, cut: DeviceCut, found_by: str) -> Seated:
        """Return a cut with unused devices on the seats that are left."""
        used = np.unique(cut.partition.assignment)
        dense = np.searchsorted(used, cut.partition.assignment).astype(np.int32)
        return self._seated(cut.bottleneck, dense, [cut.devices[i] for i in used.tolist()], found_by)

    def _seated(self, bottleneck: int, dense: Int32Array, devices: list[int], found_by: str) -> Seated:
        """Give unused devices the seats that are left, so that stages may be added."""
        left = [i for i in range(self._instance.k) if i not in set(devices)]
        seats = [*devices, *left][: self._most]
        if self._free:
            return Seated(bottleneck, dense, tuple(seats), found_by)
        seats.sort()
        place = np.array([seats.index(device) for device in devices], dtype=np.int32)
        return Seated(bottleneck, place[dense], tuple(seats), found_by)

    def _swapped(self, seats: tuple[int, ...]) -> tuple[int, ...]:
        """Return the devices with two of different classes swapped, or one for a device without a seat.

        In fixed order the second alone; the seats stay sorted.
        """
        left = [i for i in range(self._instance.k) if i not in set(seats)]
        every = [*seats, *left]
        one = int(self._stream.integers(len(seats)))
        others = [
            place
            for place in range(0 if self._free else len(seats), len(every))
            if not self._free or self._class_of[every[place]] != self._class_of[every[one]]
        ]
        if others:
            other = others[int(self._stream.integers(len(others)))]
            every[one], every[other] = every[other], every[one]
        chosen = every[: len(seats)]
        return tuple(chosen if self._free else sorted(chosen))

    def _annealer(self, seats: tuple[int, ...]) -> Annealer:
        if seats not in self._annealers:
            if len(self._annealers) >= 4 * _RUNS:
                self._annealers.clear()
            inner, limits = self._instance.on(seats), self._limits
            seed = limits.seed + self._rounds
            self._annealers[seats] = Annealer(inner, len(seats), self._threads, seed, limits.ended)
        return self._annealers[seats]

    def _count(self, evaluations: int) -> None:
        self.evaluations += evaluations
        self._limits.observer.evaluated(evaluations)


def _true_ticks(instance: Instance, found: Assignment) -> int:
    """Return the bottleneck of what annealing found: with neighbours it counts direct transfers over the best links."""
    if instance.cost.boundary is None or found.bottleneck > instance.most_ticks:
        return found.bottleneck
    return bottleneck(instance, Partition.from_stages(instance, found.stage))


def seated_result(
    instance: Instance, one: Seated, evaluations: int, stopped: StopReason, *, free: bool
) -> DeviceResult:
    """Return a partition with all devices of the machine: in fixed order, stage i on device i."""
    seats, stage = one.seats, one.stage
    if not free:
        seats, stage = (), np.array(one.seats, dtype=np.int32)[stage]
    devices = (*seats, *(i for i in range(instance.k) if i not in set(seats)))
    partition = Partition.from_stages(instance, stage)
    return DeviceResult(partition, devices, one.bottleneck, one.found_by, evaluations, stopped)


def memory_twin(instance: Instance) -> Instance | None:
    """Return an instance whose work is the share of a device's memory that the parameters of an op take.

    None if no device has a limit. Devices with equal memories stay of their classes.
    """
    classes = instance.machine.classes
    rooms = [
        None if one.memory_bytes is None else max(1, one.memory_bytes - one.activation_reserve_bytes) for one in classes
    ]
    top = max((room for room in rooms if room is not None), default=None)
    if top is None:
        return None
    params = instance.cost.read_bytes
    shares = [0.0 if room is None else top / room for room in rooms]
    work = np.array([np.ceil(params * share).astype(np.int64) for share in shares])
    endless = [replace(one, memory_bytes=None, fast_memory_bytes=None, speed=c + 1) for c, one in enumerate(classes)]
    groups = tuple(DeviceGroup(endless[c], 1) for c in instance.machine.class_of)
    machine = Machine(groups, instance.machine.levels)
    nothing = np.zeros((len(machine.links), instance.tensor_count), dtype=np.int64)
    return replace(instance, cost=StageCost(machine, work, nothing, params))


def search_devices(
    instance: Instance, limits: SearchLimits, most: int | None = None, *, free: bool = False
) -> DeviceResult:
    """Search for a partition over devices that differ.

    Parameters
    ----------
    most
        Devices that may be used; None: as many as the instance says.
    free
        Whether devices may stand in any order.

    Returns
    -------
    A partition that is never slower than the rules of engines.

    Raises
    ------
    Infeasible
        If none keeps to the memory limits of the devices.

    Notes
    -----
    Graphs of more than 8,000 ops are contracted first; the partition of the contraction is refined level by level.
    O(n + pins) per sweep; O(n + m·k) memory per run.
    """
    used = instance.most_used if most is None else most
    with Threads(limits.jobs) as threads:
        if instance.op_count <= _LARGE:
            portfolio = DevicePortfolio(instance, limits, threads, used, free=free)
            return portfolio.result(portfolio.improve())
        return _by_levels(instance, limits, threads, used, free=free)


def _by_levels(instance: Instance, limits: SearchLimits, threads: Threads, most: int, *, free: bool) -> DeviceResult:
    """Search a contraction of a few thousand ops, then refine its partition level by level."""
    limits.observer.phase("contract")
    levels = coarsen(instance, max(_TARGET, _TARGET_PER_STAGE * most), ended=limits.ended)
    bounded = limits.evaluations < UNLIMITED
    whole = DevicePortfolio(instance, limits, threads, most, free=free)
    found = whole.best
    if not levels:
        return whole.result(whole.improve())
    scale = instance.op_count / levels[-1].instance.op_count
    part = replace(
        limits,
        evaluations=max(1, int(_COARSE_SHARE * scale * limits.evaluations)) if bounded else UNLIMITED,
        deadline=limits.deadline.share(_COARSE_SHARE),
        keeper=SearchLimits(evaluations=1).keeper,
    )
    try:
        coarse = DevicePortfolio(levels[-1].instance, part, threads, most, free=free)
        coarse.improve()
        spent = whole.evaluations + max(1, int(coarse.evaluations / scale))
        found = min(_refined(coarse.best, levels, limits, threads, free=free), found, key=lambda one: one.bottleneck)
    except Infeasible:  # ops of the contraction may be too large
        spent = whole.evaluations
    stopped = StopReason.OPTIMAL if found.bottleneck <= limits.lower_bound else limits.stop or StopReason.BUDGET
    return seated_result(instance, found, spent, stopped, free=free)


def _refined(found: Seated, levels: list[Contraction], limits: SearchLimits, threads: Threads, *, free: bool) -> Seated:
    """Carry a partition of the last level back to the first instance, annealing it a little at every level."""
    for index in range(len(levels) - 1, -1, -1):
        level = levels[index]
        inner = level.original
        found = found._replace(stage=found.stage[level.group_of])
        again, sweeps = True, _REFINING_SWEEPS
        annealer: Annealer | None = None
        while again and not limits.ended() and found.bottleneck > limits.lower_bound and len(found.seats) > 1:
            limits.observer.phase(f"refine {inner.op_count:,} ops")
            if annealer is None:
                annealer = Annealer(inner.on(found.seats), len(found.seats), threads, limits.seed, limits.ended)
            starts = [Start(found.stage, _REFINING)] * max(2, limits.jobs)
            results, _ = annealer.round(starts, sweeps * inner.op_count)
            on = inner.on(found.seats)
            ticks, best = min(((_true_ticks(on, one), one) for one in results), key=lambda pair: pair[0])
            if ticks < found.bottleneck:
                found = Seated(ticks, best.stage, found.seats, "anneal")
                limits.observer.incumbent(found.bottleneck)
            again, sweeps = index == 0 and limits.deadline.limit_s is not None, 2 * sweeps
    return found
