"""Plans for several levels of devices: Piper's dynamic program of appendix E, decided limit by limit.

Tarnawski et al. (2021), appendix E, with precise accounting of memory and batch size, and tensor parallelism at level 1.
The published recursion keeps best times per pair of downsets, devices, s and x; here a limit on the time turns them into
one number per x (:mod:`mtpp.solvers.planners.hierarchical_splits`), and the least limit with a plan is searched for, in
exact fractions. That no plan is faster than the last one is what the same search says of every limit below it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

from mtpp.hierarchical_plan import HierarchicalPlan
from mtpp.hierarchical_problem import HierarchicalProblem
from mtpp.solvers.planners.hierarchical_segments import StageCosts, nested_downsets, stage_kinds
from mtpp.solvers.planners.hierarchical_splits import Limit, Splits, Splitter
from mtpp.solvers.planners.layer_downsets import Sets, every_downset, prefixes
from mtpp.solvers.planners.planning import NoPlan, PlanLimits
from mtpp.solvers.threads import Threads
from mtpp.training_plan import TimeBound

PLANNER = "piper"

MOST_DOWNSETS = 1_500
"""Of models with more, only those along a topological order are looked at: there is a pair for every two."""

_NARROW = 512
"""Once the bounds are as close as one part in this many, the question is whether anything is better at all."""


def plan_hierarchical(problem: HierarchicalProblem, limits: PlanLimits) -> HierarchicalPlan | NoPlan:
    """Return the fastest nested plan, and what is proven about all of them.

    With as many downsets as are kept in pairs the search is exhaustive and the plan optimal, unless a limit strikes: then
    it is the best so far, with the best bound so far. There is no search for the least memory once a limit struck.

    Notes
    -----
    O(D³ · kinds · K₁²) per limit and product of outer degrees, D being the number of downsets; O(D² · kinds) memory.
    """
    sets = every_downset(problem.level_one, MOST_DOWNSETS)
    whole = sets is not None
    if sets is None:
        sets = prefixes(problem.level_one, [problem.model.order])
    with Threads(limits.jobs) as threads:
        return _Search(problem, limits, sets, threads, whole=whole).run()


class _Search:
    """The best plan and the best bound so far."""

    def __init__(
        self, problem: HierarchicalProblem, limits: PlanLimits, sets: Sets, threads: Threads, *, whole: bool
    ) -> None:
        self._threads = threads
        self._problem = problem
        self._limits = limits
        self._nested = nested_downsets(sets)
        self._exhaustive = whole
        self._notes = (
            [] if whole else [f"only stages along one order of the layers, of more than {MOST_DOWNSETS} downsets"]
        )
        self._best: HierarchicalPlan | None = None
        self._lower = work_bound(problem)

    def run(self) -> HierarchicalPlan | NoPlan:
        """Search."""
        problem, limits = self._problem, self._limits
        limits.observer.phase("stages")
        kinds = stage_kinds(problem)
        costs = StageCosts(problem, self._nested, kinds)
        while not costs.finished:
            if limits.stop:
                reason = "the limit struck before it was known what stages take"
                return NoPlan(problem.level_one, PLANNER, False, None, limits.stop, reason)
            costs.advance()
        steps = costs.result()
        if steps.undecided:
            self._exhaustive = False
            self._notes.append(f"{steps.undecided} knapsacks were not solved to the end")
        self._splitter = Splitter(problem, self._nested, kinds, costs, steps)
        limits.observer.phase("limits")
        if not self._within(Limit(None)):
            return self._no_plan()
        self._improve()
        assert self._best is not None
        stopped = "finished" if self._best.lower.value == self._best.time_per_sample else limits.stop or "finished"
        return replace(self._best, stopped=stopped)

    def _within(self, limit: Limit) -> bool:
        """Look for a plan within *limit*; keep what comes of it."""
        splits = Splits(self._splitter, limit)
        if not splits.possible():
            if self._exhaustive and limit.ticks is not None:
                self._raise(limit.ticks)
            return False
        plan = HierarchicalPlan(self._problem, PLANNER, splits.pipeline(), self._lower, "finished", self._notes)
        self._best = plan
        self._limits.observer.incumbent(ceil(plan.time_per_sample))
        return True

    def _raise(self, ticks: Fraction) -> None:
        """Note that no plan takes less than *ticks*."""
        if ticks > self._lower.value:
            self._lower = TimeBound(ticks, "downset", "enumerated", {"downsets": len(self._nested.sets)})
            self._limits.observer.bound(ceil(ticks))
        if self._best is not None:
            self._best = replace(self._best, lower=self._lower)

    def _improve(self) -> None:
        """Close the gap: halve it until it is narrow, then ask for anything better at all."""
        assert self._best is not None
        low = min(self._lower.value, self._best.time_per_sample)
        halve = True
        while low < self._best.time_per_sample and not self._limits.stop:
            high = self._best.time_per_sample
            if halve and (high - low) * _NARROW > high:
                middle = (low + high) / 2 if high < 4 * low else max(low * 2, high / 16)
                if not self._within(Limit(_short(middle, low, high))):
                    low = _short(middle, low, high)
                continue
            if not self._within(Limit(high, below=True)):
                return
            # Many plans may be nearly as good as each other: every other time, halve what is left.
            middle = (low + self._best.time_per_sample) / 2
            if low < self._best.time_per_sample and not self._within(Limit(middle)):
                low = middle

    def _no_plan(self) -> NoPlan:
        level_one = self._problem.level_one
        least = None if self._limits.stop else least_memory(self._splitter, self._limits)
        if level_one.exact_micro_batches and self._problem.devices < level_one.micro_batches:
            reason = f"degrees cannot sum up to {level_one.micro_batches} on {self._problem.devices} devices"
        elif least is None:
            reason = "no amount of memory helps"
        else:
            reason = "no stages fit into the memory"
        return NoPlan(level_one, PLANNER, self._exhaustive, least, self._limits.stop or "finished", reason)


def _short(middle: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Return a fraction of few digits near *middle*, between *low* and *high*."""
    whole = Fraction(round(middle))
    return whole if low < whole < high else middle


def work_bound(problem: HierarchicalProblem) -> TimeBound:
    """Return what all layers' least work takes, spread over all devices."""
    level_one = problem.level_one
    work = sum(
        min(
            t * one.compute_ticks
            for t, by_layer in zip(level_one.degrees, level_one.choices, strict=True)
            for one in by_layer[i]
        )
        for i in range(len(problem.model.layers))
    )
    return TimeBound(Fraction(work, problem.devices), "work", "exact", {"work": work, "devices": problem.devices})


def least_memory(splitter: Splitter, limits: PlanLimits) -> int | None:
    """Return the least memory of a device with which there is a plan, None if no amount helps or a limit strikes."""

    def enough(memory: int) -> bool:
        return Splits(splitter.with_memory(memory), Limit(None)).possible()

    high = 2**62 - 1
    if not enough(high):
        return None
    low = -1
    # Most answers are far below what 64 bits hold.
    probe = 1
    while probe < high and not limits.stop:
        if enough(probe):
            high = probe
            break
        low = probe
        probe *= 16
    while high - low > 1:
        if limits.stop:
            return None
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
