"""Plans for several levels of devices: Piper's dynamic program of appendix E, decided limit by limit.

Tarnawski et al. (2021), appendix E, with precise accounting of memory and batch size, and tensor parallelism at level
1. The published recursion keeps best times per pair of downsets, devices, s and x. Here a limit on the time turns them
into one number per x (:mod:`mtpp.solvers.planners.nested.splits`), and the least limit with a plan is searched
for, in exact fractions. That no plan is faster than the last one is what the same search says of all limits below it.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.layer_options import layer_options
from mtpp.solvers.planners.nested.segments import OutOfTime, nested_downsets
from mtpp.solvers.planners.nested.splits import Limit, Parts, Splits, Splitter
from mtpp.solvers.planners.piper.bisection import next_question
from mtpp.solvers.planners.piper.kernels.stage_choices import UNBOUNDED
from mtpp.solvers.planners.piper.layer_downsets import Sets, every_downset, prefixes
from mtpp.solvers.planners.piper.minimising import too_little_memory
from mtpp.solvers.planners.topological_orders import topological_orders
from mtpp.solvers.threads import Threads
from mtpp.training.nested_plan import NestedPlan
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import NoPlan, TimeBound

NAME = "piper"

MOST_DOWNSETS = 600
"""Models with more are cut along some orders of their layers: every pair of downsets is kept with what it takes."""

_MOST_MEMORY = UNBOUNDED - 1


def plan_nested(problem: NestedProblem, limits: PlanLimits) -> NestedPlan | NoPlan:
    """Return the fastest nested plan, and what is proven about all of them; or that there is none.

    Without a limit that strikes, the plan is optimal among all plans if the model has at most :data:`MOST_DOWNSETS`
    downsets. Otherwise it is the best plan found, with the best bound proven.

    Notes
    -----
    For each of about a dozen limits and each product of outer degrees, O(D³) times the kinds of parts and the splits
    that no other one beats, D being the number of downsets; O(D² · kinds) memory.
    """
    limits.observer.phase("downsets")
    sets = every_downset(problem.level_one, MOST_DOWNSETS)
    whole = sets is not None
    if sets is None:
        sets = prefixes(problem.level_one, topological_orders(problem.model))
        if len(sets) > MOST_DOWNSETS:
            sets = prefixes(problem.level_one, [problem.model.order])
    with Threads(limits.jobs) as threads:
        return _Search(problem, limits, threads, sets, whole=whole).run()


class _Search:
    """The best plan and the best bound so far."""

    def __init__(
        self,
        problem: NestedProblem,
        limits: PlanLimits,
        threads: Threads,
        sets: Sets,
        *,
        whole: bool,
    ) -> None:
        self._problem = problem
        self._limits = limits
        self._threads = threads
        self._exhaustive = whole
        self._nested = nested_downsets(sets)
        self._notes: list[str] = []
        if not self._exhaustive:
            self._notes.append(f"more than {MOST_DOWNSETS} downsets: stages are cut from some orders of the layers")
        self._parts: Parts | None = None
        self._time: Fraction | None = None
        self._lower = work_bound(problem)

    def run(self) -> NestedPlan | NoPlan:
        """Search."""
        stopped = StopReason.FINISHED
        try:
            self._prepare()
            self._limits.observer.phase("all plans")
            if not self._within(Limit(None)):
                return self._no_plan()
            self._improve()
        except OutOfTime:
            stopped = self._limits.stop or StopReason.INTERRUPTED
        if self._parts is None:
            reason = "no plan was found before the search ended"
            return NoPlan(self._problem.level_one, NAME, False, None, stopped, reason)
        if self._lower.value == self._time:
            stopped = StopReason.OPTIMAL
        return NestedPlan(self._problem, NAME, self._parts, self._lower, stopped, self._notes)

    def _prepare(self) -> None:
        """Work out what stages take."""
        self._limits.observer.phase("stages")
        limits = self._limits
        self._splitter = Splitter(self._problem, self._nested, self._threads, lambda: limits.stop is not None)
        if self._splitter.steps.undecided:
            self._exhaustive = False
            self._notes.append(f"{self._splitter.steps.undecided} knapsacks were given up: slower choices may stand")

    def _within(self, limit: Limit) -> bool:
        """Look for a plan within *limit*, and keep what comes of it."""
        splits = Splits(self._splitter, limit)
        if not splits.possible():
            if self._exhaustive and limit.ticks is not None and limit.ticks > self._lower.value:
                proof = {
                    "less_than": [limit.ticks.numerator, limit.ticks.denominator],
                    "downsets": len(self._nested.sets),
                }
                self._lower = TimeBound(limit.ticks, "downset", Tier.ENUMERATED, proof)
                self._limits.observer.bound(ceil(limit.ticks))
            return False
        parts = splits.pipeline()
        time = NestedPlan(self._problem, NAME, parts, self._lower, StopReason.FINISHED).time_per_sample
        if self._time is not None and time >= self._time:
            return False  # choices that are there cannot be told, as a knapsack was given up
        self._parts, self._time = parts, time
        self._limits.observer.incumbent(ceil(self._time))
        return True

    def _improve(self) -> None:
        """Close the gap: bisect until it is narrow, then ask for anything better at all."""
        floor, gains = self._lower.value, 0
        while self._time is not None and floor < self._time:
            asked, below, close = next_question(floor, self._time, gains)
            assert asked is not None
            if self._within(Limit(asked, below=below)):
                gains += close
            elif below:
                return
            else:
                floor, gains = asked, 0

    def _no_plan(self) -> NoPlan:
        level_one = self._problem.level_one
        self._limits.observer.phase("least memory")
        reason = "no plan fits on the devices"
        if level_one.exact_micro_batches and self._problem.devices < level_one.micro_batches:
            most = f"only to {self._problem.devices} at most"
            reason = f"degrees of data parallelism cannot sum up to {level_one.micro_batches}, {most}"
        stopped, least = StopReason.FINISHED, None
        try:
            least = least_memory(self._splitter)
        except OutOfTime:
            stopped = self._limits.stop or StopReason.INTERRUPTED
        if least is not None:
            reason = too_little_memory(self._problem.devices)
        return NoPlan(level_one, NAME, self._exhaustive, least if self._exhaustive else None, stopped, reason)


def work_bound(problem: NestedProblem) -> TimeBound:
    """Return what the least work of all layers takes, spread over all devices: the rule ``devices``.

    Σ over devices of what they compute per sample is at least Σ over layers of the least t · p of the configurations
    with t ≤ K₁ that fit into the memory alone.
    """
    level_one = problem.level_one
    total = 0
    for v in range(len(problem.model.layers)):
        options = layer_options(level_one, v, level_one.memory_bytes) or layer_options(level_one, v)
        total += min(option.device_compute for option in options)
    return TimeBound(Fraction(total, problem.devices), "work", Tier.EXACT, {"rule": "devices", "total": total})


def least_memory(splitter: Splitter) -> int | None:
    """Return the least memory of a device that leaves a plan over the splitter's downsets, None if none helps."""

    def enough(memory: int) -> bool:
        if splitter.stop():
            raise OutOfTime
        return Splits(splitter.with_memory(memory), Limit(None)).possible()

    if not enough(_MOST_MEMORY):
        return None
    too_little, high = -1, 1
    while not enough(high):
        too_little, high = high, min(16 * high, _MOST_MEMORY)
    while high - too_little > 1:
        middle = (too_little + high) // 2
        if enough(middle):
            high = middle
        else:
            too_little = middle
    return high
