"""One cell of a table of certificates: a partition, then bounds from cheap to strong until the ratio will do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from threading import Lock
from typing import TypeVar

from mtpp.host.deadline import Deadline
from mtpp.host.ending import EndedEarly, TimedThread, reason_to_end
from mtpp.host.progress import Observer, Silent
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import PROOF_TIERS, Certificate, LowerBound
from mtpp.inference.certificate_table import BoundFigure, with_small_proof
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.names import CAPACITY, DOWNSET, SIMPLE
from mtpp.solvers.aim import Aim
from mtpp.solvers.bounds.cheap import CHEAP
from mtpp.solvers.bounds.envelope import on_envelope
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.registry import BOUNDS, bound_entry
from mtpp.solvers.bounds.registry import lanes as bounds_in_lanes
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.certify.cell_state import CellLimits, Certification
from mtpp.solvers.certify.device_reduction import DeviceReduction
from mtpp.solvers.certify.headway import Headway
from mtpp.solvers.certify.lane_turns import LaneTurns
from mtpp.solvers.certify.spare_search import SpareSearch
from mtpp.solvers.compilation import search_clock
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.last_look.partition import look_at_bounds
from mtpp.solvers.limits import UNLIMITED, Limits, SearchLimits, SearchResult
from mtpp.solvers.local_search.initial_partition import first_partition
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.registry import partitioner

R = TypeVar("R")

_PARTITION_SHARE = 0.15
"""Of the time of a cell, at most, for the first partition."""

_LIMITED_SHARE = 0.5
"""The same where the latency is limited: a search without the limit comes first."""

_ALONE_SHARE = 0.85
"""The same where no bound says more than the search does; what is left is for it to come to an end in."""

_REDUCTION_SHARE = 0.2
"""Of the time of a cell, at most, for merges that leave the optimum as it is."""

_ENDS_AT = 0.96
"""Part of its time after which a bound is to end by itself, so that what it has proven is not lost."""

_LEFT_S = 0.05
"""Seconds that the last steps of a bound may take less than expected."""

_GRACE_S = 0.5
"""Seconds by which work may overrun its time before it is given up: HiGHS takes its time to come to an end."""

_NOTHING = BoundResult(None, solved=False)


def certify(
    instance: Instance,
    limits: CellLimits,
    report: Callable[[Certification], None] = lambda state: None,
    interrupted: Callable[[], bool] = lambda: False,
    observer: Observer | None = None,
    found: SearchResult | None = None,
) -> Certification:
    """Partition an instance and raise a lower bound until the ratio will do, or the time is up.

    The cheap bounds come one after the other, then the lanes of strong ones side by side in the time left, as
    :class:`~mtpp.solvers.bounds.registry.BoundEntry` says of each. A bound that stands still makes room for the next
    one of its lane, and goes on after it. Meanwhile the search for partitions goes on, on equal devices and with a time
    limit, if a core is free.

    Parameters
    ----------
    report
        Is told what is known after every step: who has to end this process loses nothing.
    interrupted
        Tells whether the user wants the work to end now.
    observer
        Is told of phases, partitions and bounds.
    found
        The best partition of a search that has ended, in place of one here.

    Raises
    ------
    Infeasible
        Proven, or because no partition was found.
    InconsistentResult
        If bounds, bottleneck and partition contradict each other: a bug.
    """
    refuse_infeasible(instance)
    return _CellWork(instance, limits, report, interrupted, observer or Silent(), found).run()


class _CellWork:
    """What is known of a cell, and how it comes to be known."""

    def __init__(
        self,
        instance: Instance,
        limits: CellLimits,
        report: Callable[[Certification], None],
        interrupted: Callable[[], bool],
        observer: Observer,
        given: SearchResult | None = None,
    ) -> None:
        self._given = given
        self._start = search_clock()
        self._instance, self._equal = instance, instance.envelope
        self._aim = Aim(instance, limits.goal)
        self._limits = limits
        self._report = report
        self._interrupted = interrupted
        self._observer = observer
        self._deadline = Deadline(limits.time_limit_s, clock=search_clock)
        self._thread = TimedThread()
        self._lock = Lock()
        self._given_up = self._short = False
        self._headway = Headway()
        self._seen: Partition | None = None
        self._searched: StopReason | None = None
        self._resume: dict[str, Callable[[BoundLimits], BoundResult]] = {}
        self._shares: dict[str, tuple[StageShares, ...]] = {}  # of the reduced instance, by bound

    def run(self) -> Certification:
        """Reduce the graph, search for a partition, and try the bounds until that is enough."""
        try:
            self._tell_first()
            self._reduced = self._reduce()
            self._by_devices = DeviceReduction(self._instance, self._to_end)
            self._state = self._partitioned()
            self._spare = self._spare_search()
            return self._bounded()
        except BaseException:
            self.give_up()  # or work that was begun would go on, with nobody to hear of it
            raise
        finally:
            self._thread.close()

    def _reduce(self) -> ReducedInstance:
        if self._aim.searched_alone:
            return ReducedInstance(self._equal)
        limits = Limits(deadline=self._deadline.share(_REDUCTION_SHARE), interrupted=self._to_end)
        reduced = self._in_time(lambda: reduce_instance(self._equal, ended=limits.ended), limits.deadline)
        return reduced or ReducedInstance(self._equal)

    def _spare_search(self) -> SpareSearch | None:
        """Return the search for what bounds leave free; None without a clock, whose results depend on counts alone."""
        limits = self._limits
        if limits.time_limit_s is None or limits.each or not self._on_equal or not self._aim.plain:
            return None
        own = SearchLimits(UNLIMITED, seed=limits.seed, interrupted=self._to_end)
        return SpareSearch(self._reduced, own, self._take_partition)

    def _bounded(self) -> Certification:
        """Try the bounds."""
        strong = [name for name in BOUNDS if BOUNDS[name].lane is not None]
        tried = {name for name, figure in self._state.bounds.items() if figure.solved or name not in strong}
        names = [name for name in self._limits.bounds if name not in tried]
        lanes = [] if self._limits.each else bounds_in_lanes(self._reduced.instance, names)
        weak = [name for name in names if name not in strong] if lanes else names
        for number, name in enumerate(weak):
            if self._stopped():
                break
            self._observer.phase(name)
            share = BOUNDS[name].share if lanes else 1 / (len(weak) - number)
            self._try_to_the_end(name, self._deadline.share(share), self._thread)
        LaneTurns(self, self._deadline, self._headway, self._observer).take(lanes)
        with self._lock:
            stopped = self._stopped() or (StopReason.TIME_LIMIT if self._cut_short() else StopReason.FINISHED)
            self.give_up()  # nothing is told after this
            return self._told(stopped=stopped)

    def _look(self, state: Certification) -> None:
        """Derive the bottleneck of a new partition once more, and hold all bounds against it."""
        if state.partition is None or state.upper is None:
            return
        single = [(name, figure.value) for name, figure in state.bounds.items() if figure.value is not None]
        bounds = [*((bound.method, bound.value) for bound in (state.lower, state.proven)), *single]
        if state.partition is not self._seen:
            self._aim.look(state.partition, state.upper, str(state.upper_algorithm), bounds)
            self._seen = state.partition
        look_at_bounds(state.upper, bounds)

    def _try_to_the_end(self, name: str, deadline: Deadline, thread: TimedThread) -> None:
        """Work at a bound, and go on where it can be resumed."""
        self.attempt(name, deadline, thread)
        while name in self._resume and deadline.remaining_s() > _LEFT_S and not self.over():
            self.attempt(name, deadline, thread)

    def unfinished(self, name: str) -> bool:
        """Tell whether a bound can go on where it ended."""
        return name in self._resume

    def seconds(self, name: str) -> float:
        """Return how long a bound has been worked at."""
        figure = self._state.bounds.get(name)
        return 0.0 if figure is None else figure.seconds

    def reached(self, name: str) -> int:
        """Return the ticks that a bound has come to; 0 for none."""
        figure = self._state.bounds.get(name)
        return 0 if figure is None else figure.value or 0

    def through(self, name: str) -> bool:
        """Tell whether a bound has come to its end, or was not worked at for a reason."""
        figure = self._state.bounds.get(name)
        return name in self._state.left_out or (figure is not None and figure.solved)

    def search(self, seconds: float, thread: TimedThread, ended: Callable[[], bool]) -> None:
        """Search for better partitions for so long, or until *ended* says so, while bounds leave a core free."""
        spare, state, jobs = self._spare, self._state, self._limits.jobs
        if spare is None or state.partition is None or state.upper is None or self._headway.fills(jobs):
            return
        best = state.partition, state.upper
        deadline = Deadline(min(seconds, self._deadline.remaining_s()), clock=search_clock)

        def ends() -> bool:
            return ended() or self._headway.fills(jobs)

        self._in_time(lambda: spare.take_turn(*best, deadline, ends), deadline, thread)

    def _take_partition(self, partition: Partition, found_by: str) -> None:
        """Take in what the search has found, unless nobody waits for it any more."""
        with self._lock:
            better = {} if self._given_up else self._better(partition, found_by)
            if better:
                upper = self._told(**better).upper
                assert upper is not None
                self._observer.incumbent(upper)

    def give_up(self) -> None:
        """End all work that has begun: nobody waits for its result."""
        self._given_up = True

    def over(self) -> bool:
        """Tell whether all work is over."""
        return bool(self._stopped()) or self._given_up or self._nearly_over()

    def _to_end(self) -> bool:
        """Tell whether the user has ended the run, or nobody waits for its result."""
        return self._interrupted() or self._given_up

    def _cut_short(self) -> bool:
        """Tell whether a bound could go on, or its time was up."""
        if self._aim.searched_alone and self._searched == StopReason.TIME_LIMIT:
            return True
        if self._limits.time_limit_s is None or all(figure.solved for figure in self._state.bounds.values()):
            return False
        return bool(self._resume) or self._nearly_over()

    def _nearly_over(self) -> bool:
        """Tell whether the time left is what bounds leave to come to an end in."""
        limit_s = self._limits.time_limit_s
        return limit_s is not None and self._deadline.remaining_s() <= (1 - _ENDS_AT) * limit_s + _LEFT_S

    def _tell_first(self) -> None:
        """Report a cut into stages of equal work and the simple bound: ending this process early leaves that."""
        untold = self._limits.cutoff is not None or not self._on_equal or not self._aim.plain
        if self._limits.time_limit_s is None or untold:
            return
        first = first_partition(self._instance)
        if first is None:
            return
        lower = simple_bound(self._instance)
        seconds = search_clock() - self._start
        figures = {"simple": BoundFigure(lower.value, seconds, True)}
        found = first.partition, first.bottleneck, first.found_by
        self._report(Certification(*found, lower, lower, figures, seconds, seconds))

    def _in_time(self, work: Callable[[], R], deadline: Deadline, thread: TimedThread | None = None) -> R | None:
        """Return what some work comes to, None if it was given up or had not enough memory.

        It is not begun where the user has ended the run, and runs beside this thread, which hears that.
        """
        if self._interrupted():
            return None
        try:
            return (thread or self._thread).run(
                work, deadline, lambda: reason_to_end(deadline, self._to_end), grace_s=_GRACE_S
            )
        except EndedEarly as end:
            self._short = self._short or end.stopped is StopReason.MEMORY_LIMIT
            return None

    def _partitioned(self) -> Certification:
        """Return what is known after the search for a partition."""
        instance, limits = self._instance, self._limits
        lower = self._aim.first_bound()
        proof = with_small_proof(lower, SIMPLE) if self._aim.searched_alone else None
        figures = {SIMPLE: BoundFigure(lower.value, search_clock() - self._start, True, proof)}
        first = next((name for name in limits.bounds if BOUNDS[name].first and not limits.each), None)
        if first is not None:  # so that the search knows when it is done
            began = search_clock()
            known = BoundLimits(
                instance.most_ticks,
                lower=lower.value,
                deadline=self._deadline.share(BOUNDS[first].share),
                interrupted=self._to_end,
            )
            inner = self._reduced.instance
            result = self._in_time(lambda: bound_entry(first).load()(inner, known), known.deadline) or _NOTHING
            proven = self._proven(result, first)
            value = None if proven is None else proven.value
            proof = with_small_proof(proven, first)
            figures[first] = BoundFigure(value, search_clock() - began, result.solved, proof)
            lower = max(lower, proven or lower, key=_rank)
        if limits.cutoff is not None:
            self._state = Certification(None, None, None, lower, lower, figures, 0.0, 0.0)
            return self._told()
        began = search_clock()
        entry = partitioner(limits.algorithm)
        search = SearchLimits(
            entry.budget(instance) if limits.time_limit_s is None else UNLIMITED,
            deadline=self._deadline.share(self._partition_share),
            lower_bound=lower.value,
            seed=limits.seed,
            jobs=limits.jobs,
            memory_bytes=limits.memory_bytes,
            observer=self._observer,
            interrupted=self._interrupted,
            cheap_bounds=not set(CHEAP) <= set(limits.bounds),
        )
        cut_at_once = self._interrupted() and self._on_equal and self._aim.plain
        known_cut = first_partition(instance) if cut_at_once else None
        found = self._given or known_cut or self._aim.search(entry.load(), search)
        seconds, self._searched = search_clock() - began, found.stopped
        if found.lower is not None and not limits.each:
            method, solved = found.lower.method, found.stopped == StopReason.OPTIMAL
            proof = with_small_proof(found.lower, method)
            if method != SIMPLE or found.lower.value > lower.value:
                figures[method] = BoundFigure(found.lower.value, seconds, solved, proof)
            lower = max(lower, found.lower, key=_rank)
        self._state = Certification(
            found.partition, found.bottleneck, found.found_by, lower, lower, figures, seconds, 0.0
        )
        return self._told()

    @property
    def _partition_share(self) -> float:
        """Part of the time that is left for the search for a partition."""
        if self._aim.plain or self._limits.each:
            return _PARTITION_SHARE
        return _ALONE_SHARE if self._aim.searched_alone else _LIMITED_SHARE

    def _told(self, **changes: object) -> Certification:
        """Take in what is new and report it."""
        seconds = search_clock() - self._start
        new = replace(self._state, total_seconds=seconds, **changes)  # type: ignore[arg-type]
        self._look(new)
        self._state = new
        self._report(new)
        return new

    def attempt(
        self, name: str, deadline: Deadline, thread: TimedThread, ended: Callable[[], bool] = lambda: False
    ) -> None:
        """Begin a bound, or go on with it, until its time is up or *ended* says so, and take in what it comes to."""
        limits, state = self._limits, self._state
        entry, resume = bound_entry(name), self._resume.pop(name, None)
        before = self.seconds(name) if resume is not None else 0.0
        upper = self._cutoff if state.upper is None else state.upper
        known = state.proven if entry.tier in PROOF_TIERS else state.lower
        began = search_clock()

        def work() -> BoundResult:
            with self._headway.at_work(name, self._observer) as observer:
                return worked(observer)

        def worked(observer: Observer) -> BoundResult:
            asked = BoundLimits(
                upper,
                None if state.partition is None or not self._on_equal else self._reduced.carry(state.partition),
                0 if limits.each else known.value,
                None if limits.each else _enough(upper, limits.target_ratio),
                deadline=deadline.share(_ENDS_AT),
                seed=limits.seed,
                jobs=limits.jobs,
                memory_bytes=limits.memory_bytes,
                proof_bytes=limits.proof_bytes,
                observer=observer,
                interrupted=lambda: self._to_end() or bool(self._closed()) or ended(),
                reduced=self._reduction(name),
                goal=limits.goal,
                shares=tuple(one for known in list(self._shares.values()) for one in known),
            )
            on_devices = name == CAPACITY or (name == DOWNSET and not (self._on_equal and self._aim.plain))
            inner = self._instance if on_devices else self._reduction(name).instance
            return resume(asked) if resume is not None else entry.load()(inner, asked)

        result = self._in_time(work, deadline, thread) or _NOTHING
        seconds = before + search_clock() - began
        with self._lock:
            if result.resume is not None:
                self._resume[name] = result.resume
            if result.shares:
                self._shares[name] = result.shares
            self._take_in(name, result, seconds)

    def _take_in(self, name: str, result: BoundResult, seconds: float) -> None:
        state, lower = self._state, self._state.lower
        if result.left_out:
            self._told(left_out={**state.left_out, name: result.left_out})
            return
        proven = self._proven(result, name)
        best = state.proven
        if proven is not None:
            lower = max(lower, proven, key=_rank)
            best = max(best, proven, key=_value) if proven.is_proof else best
            if lower.value > state.lower.value:
                self._observer.bound(lower.value)
        better: dict[str, object] = {}
        if result.partition is not None and (self._on_equal or self._by_devices.serves(name)):
            better = self._better(self._reduction(name).lift(result.partition), name)
        before = state.bounds.get(name)
        figure = BoundFigure(None, seconds, result.solved)
        if before is not None and before.value is not None:
            figure = replace(figure, value=before.value, proof=before.proof)
        if proven is not None and (figure.value is None or proven.value > figure.value):
            figure = replace(figure, value=proven.value, proof=with_small_proof(proven, name))
        self._told(lower=lower, proven=best, bounds=state.bounds | {name: figure}, **better)

    def _better(self, partition: Partition, found_by: str) -> dict[str, object]:
        """Return a partition as a change of the state, no change if it is no better than the one known."""
        upper, goal = self._state.upper, self._aim.goal
        if upper is None:
            return {}
        costs = self._aim.costs(partition)
        if goal.value(costs) >= upper or not goal.keeps(costs):
            return {}
        return {"partition": partition, "upper": goal.value(costs), "upper_algorithm": found_by}

    def _reduction(self, name: str) -> ReducedInstance:
        """Return the instance that a bound is searched on, reduced."""
        return self._by_devices.get() if self._by_devices.serves(name) else self._reduced

    def _proven(self, result: BoundResult, name: str) -> LowerBound | None:
        """Return a bound on the reduced instance as one on the instance, whose proof says what was merged."""
        lower = result.lower
        if lower is None:
            return None
        of_chain = self._instance.cost.counts_ops and lower.method == DOWNSET  # nothing is merged there
        if lower.method not in (SIMPLE, CAPACITY) and "merges" not in lower.proof and not of_chain:
            lower = replace(lower, proof={"merges": self._reduction(name).record(), **lower.proof})
        return on_envelope(lower, self._instance)

    @property
    def _on_equal(self) -> bool:
        """Whether bounds are of the instance itself, which is on equal devices, and not of its envelope."""
        return self._instance.equal_devices

    @property
    def _cutoff(self) -> int:
        assert self._limits.cutoff is not None
        return min(self._limits.cutoff, self._aim.most_ticks)

    def _closed(self) -> StopReason | None:
        """Say by which kind of bound the ratio asked for is reached, as in ``stopped``; None if it is not."""
        limits, state = self._limits, self._state
        if limits.each or state.upper is None:
            return None
        enough = _enough(state.upper, limits.target_ratio)
        if state.proven.value >= enough:
            return StopReason.TARGET
        if limits.proofs_only or state.lower.is_proof:
            return None
        reached = state.lower.value >= enough or Certificate(state.upper, state.lower).closed_by_solver
        return StopReason.SOLVER_TARGET if reached else None

    def _stopped(self) -> StopReason | None:
        closed = self._closed()
        if closed:
            return closed
        ended = reason_to_end(self._deadline, self._interrupted)
        return StopReason.MEMORY_LIMIT if self._short and ended is not StopReason.INTERRUPTED else ended


def _rank(bound: LowerBound) -> tuple[int, bool]:
    return bound.value, bound.is_proof


def _value(bound: LowerBound) -> int:
    return bound.value


def _enough(upper: int, target_ratio: Fraction) -> int:
    """Return the least bound that proves the ratio."""
    return -(-upper * target_ratio.denominator // target_ratio.numerator)
