"""Plans for several levels of devices within a limit on their time (paper, appendix E).

For a limit T, all that has to be known of a set of layers on the devices inside one device of level ℓ, P being the
product of the degrees around it, is which sums of degrees x it can have and how many micro-batches in flight it
tolerates with each: more only takes more memory. So the recursion's pairs (s, x) become one number per x, and best
times become yes or no.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array
from mtpp.solvers.planners.nested.kernels.split_tolerances import (
    Kinds,
    fewest_devices,
    split_table,
    split_tolerances,
)
from mtpp.solvers.planners.nested.segments import (
    CostSteps,
    OutOfTime,
    all_cost_steps,
    crossing_sums,
    stage_kinds,
)
from mtpp.solvers.planners.piper.arrays import choice_arrays
from mtpp.solvers.planners.piper.kernels.cost_steps import Nested, fit_until, tolerated_in_flight
from mtpp.solvers.planners.piper.kernels.stage_choices import LEAST, UNBOUNDED
from mtpp.solvers.planners.piper.kernels.stage_options import knapsack_scratch
from mtpp.solvers.planners.piper.stage_making import make_stage
from mtpp.solvers.threads import Threads
from mtpp.training.nested_plan import Superstage
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import LayerStage
from mtpp.units import ceil_ratio

Parts = Sequence[Superstage] | Sequence[LayerStage]
"""A split, in pipeline order."""

_INNER_AT_ONCE = 4
"""Inner downsets that one thread looks at in one go."""


@dataclass(frozen=True)
class Limit:
    """No stage or superstage may take more than *ticks*, or as much if *below*; None: any time will do."""

    ticks: Fraction | None
    below: bool = False

    def budget(self, denominator: int) -> int:
        """Return the largest integer that, divided by *denominator*, is within the limit."""
        if self.ticks is None:
            return UNBOUNDED
        numerator, divisor = self.ticks.numerator * denominator, self.ticks.denominator
        most = -(-numerator // divisor) - 1 if self.below else numerator // divisor
        return min(most, UNBOUNDED)


class Splitter:
    """What does not depend on a limit: sets of layers, what stages and superstages cost."""

    def __init__(
        self,
        problem: NestedProblem,
        nested: Nested,
        threads: Threads,
        stop: Callable[[], bool],
    ) -> None:
        self.problem = problem
        self.nested = nested
        self.kinds = stage_kinds(problem)
        self.arrays = choice_arrays(problem.level_one)
        self.scratch = knapsack_scratch(len(problem.model.layers), len(self.arrays.compute))
        self.threads = threads
        self.stop = stop
        self.steps = all_cost_steps(problem, nested, self.kinds, self.arrays, threads, stop)
        self.crossing = crossing_sums(problem, nested)
        self.cap = problem.most_in_flight

    def with_memory(self, memory: int) -> Splitter:
        """Return the same for devices of *memory* bytes on which time is of no account."""
        other = copy(self)
        most = fit_until(self.nested, self.arrays, self.kinds, self.cap, memory, self.scratch)
        fits = most > 0
        starts = np.zeros(most.size + 1, dtype=np.int64)
        np.cumsum(fits.ravel(), out=starts[1:])
        other.steps = CostSteps(starts, most[fits], np.zeros(int(fits.sum()), dtype=np.int64), 0)
        return other

    def largest_sum(self, level: int, around: int) -> int:
        """Return the largest sum of degrees inside one device of level *level* + 1, with degrees *around* it."""
        devices = 1
        for one in self.problem.machine.levels[:level]:
            devices *= one.devices
        return min(devices, self.cap // around)

    def most_in_flight(self, around: int) -> int:
        """Return how many micro-batches there can be in flight inside a superstage."""
        return -(-self.cap // around)

    def devices(self, level: int) -> int:
        """Return K of a level."""
        return self.problem.machine.levels[level - 1].devices


class Splits:
    """All splits within one limit."""

    def __init__(self, splitter: Splitter, limit: Limit) -> None:
        self._on = splitter
        self._limit = limit
        self._tolerances: dict[tuple[int, int], Int32Array] = {}
        self._kinds: dict[tuple[int, int], Kinds] = {}
        self._need: NDArray[np.int32] | None = None

    def _kinds_at(self, level: int, around: int) -> Kinds:
        """Return the parts that a split at *level* may have, *around* being the product of the degrees around it."""
        key = (level, around)
        if key not in self._kinds:
            self._kinds[key] = self._stages(around) if level == 1 else self._superstages(level, around)
        return self._kinds[key]

    def _stages(self, around: int) -> Kinds:
        kinds, steps = self._on.kinds, self._on.steps
        budgets = [
            self._limit.budget(around * int(d) * int(spread))
            for d, spread in zip(kinds.data, kinds.spread, strict=True)
        ]
        cap = self._on.most_in_flight(around)
        most = tolerated_in_flight(
            steps.starts, steps.in_flight, steps.cost, kinds.data, np.array(budgets, dtype=np.int64), cap
        )
        return Kinds.of(kinds.uses, kinds.data, most, self._on.largest_sum(1, around), exactly=self._exactly)

    def _superstages(self, level: int, around: int) -> Kinds:
        edges, weights = self._on.crossing[level - 2]
        largest, cap = self._on.largest_sum(level, around), self._on.most_in_flight(around)
        uses: list[int] = []
        adds: list[int] = []
        columns = []
        for d in self._on.problem.data_degrees[level - 1]:
            within = edges * d + (d - 1) * weights <= self._limit.budget(around * d * d)
            if not within.any():
                continue
            inside = self._tolerances_at(level - 1, around * d)
            for x in range(1, min(inside.shape[1] - 1, largest // d) + 1):
                most = np.minimum(inside[:, x].astype(np.int64) * d, cap) * within
                if most.any():
                    uses.append(d)
                    adds.append(d * x)
                    columns.append(most.astype(np.int32))
        table = np.stack(columns, axis=1) if columns else np.zeros((len(edges), 0), dtype=np.int32)
        columns_of = np.array(uses, dtype=np.int64), np.array(adds, dtype=np.int64)
        return Kinds.of(*columns_of, table, largest, exactly=self._exactly)

    def _tolerances_at(self, level: int, around: int) -> Int32Array:
        """Return what splits of each pair of downsets tolerate inside a device of *level* + 1, by sum of degrees."""
        key = (level, around)
        if key not in self._tolerances:
            kinds = self._kinds_at(level, around)
            self._tolerances[key] = self._tolerances_of(kinds, level, around)
        return self._tolerances[key]

    def _tolerances_of(self, kinds: Kinds, level: int, around: int) -> Int32Array:
        on = self._on
        if on.stop():
            raise OutOfTime
        largest = on.largest_sum(level, around)
        stood = np.zeros((len(on.nested.outer), largest + 1), dtype=np.int32)

        def fill(first: int) -> None:
            last = min(first + _INNER_AT_ONCE, len(on.nested.sets))
            rest = (on.devices(level), largest, on.most_in_flight(around), self._exactly, stood)
            split_tolerances(first, last, on.nested.pair_of, kinds, *rest)

        on.threads.map(fill, range(0, len(on.nested.sets), _INNER_AT_ONCE))
        return stood

    @property
    def _exactly(self) -> bool:
        return self._on.problem.level_one.exact_micro_batches

    def possible(self) -> bool:
        """Tell whether there is a plan within the limit."""
        return self._best_sum() is not None

    def _best_sum(self) -> int | None:
        on = self._on
        top = len(on.problem.machine.levels)
        if self._exactly and on.cap < on.problem.level_one.micro_batches:
            return None
        if self._need is None:
            kinds = self._kinds_at(top, 1)
            self._need = fewest_devices(on.nested.pair_of, kinds, on.devices(top), on.cap, self._exactly)
        full = self._need[-1]
        if self._exactly:
            return on.cap if full[on.cap] <= on.devices(top) else None
        within = np.nonzero(full <= on.devices(top))[0]
        return int(within[0]) if len(within) else None

    def pipeline(self) -> Parts:
        """Return a plan within the limit, which has to be possible."""
        degrees = self._best_sum()
        assert degrees is not None
        assert self._need is not None
        need = self._need
        level = len(self._on.problem.machine.levels)
        kinds = self._kinds_at(level, 1)
        outer = len(need) - 1
        parts = []
        while outer:
            middle, kind = self._top_part(kinds, outer, degrees)
            parts.append(self._part(level, 1, kinds, outer, middle, kind, degrees))
            outer, degrees = middle, degrees - int(kinds.adds[kind])
        return parts  # type: ignore[return-value]

    def _top_part(self, kinds: Kinds, outer: int, degrees: int) -> tuple[int, int]:
        assert self._need is not None
        used = self._need[outer, degrees]
        for middle in range(outer):
            pair = self._on.nested.pair_of[outer, middle]
            if pair < 0:
                continue
            for kind in np.nonzero(kinds.most[pair] >= degrees)[0]:
                rest = degrees - kinds.adds[kind]
                if rest >= 0 and self._need[middle, rest] == used - kinds.uses[kind]:
                    return middle, int(kind)
        raise AssertionError("every entry of the table comes from another one")

    def _part(
        self, level: int, around: int, kinds: Kinds, outer: int, middle: int, kind: int, in_flight: int
    ) -> Superstage | LayerStage:
        """Return one part of a split, with *in_flight* micro-batches from it on, as a plan has it."""
        if level == 1:
            return self._stage(outer, middle, int(kinds.uses[kind]), int(kinds.adds[kind]), in_flight)
        d, degrees = int(kinds.uses[kind]), int(kinds.adds[kind] // kinds.uses[kind])
        return Superstage(d, self._split(level - 1, around * d, outer, middle, degrees, -(-in_flight // d)))

    def _split(self, level: int, around: int, outer: int, inner: int, degrees: int, in_flight: int) -> Parts:
        """Return a split of *outer* without *inner* that tolerates *in_flight* micro-batches."""
        on = self._on
        kinds = self._kinds_at(level, around)
        largest = on.largest_sum(level, around)
        rest = (on.devices(level), largest, on.most_in_flight(around), self._exactly)
        table = split_table(inner, on.nested.pair_of, kinds, *rest)
        devices = int(np.nonzero(table[outer, :, degrees] >= in_flight)[0][0])
        parts = []
        while outer != inner:
            middle, kind = self._inner_part(kinds, table, outer, inner, devices, degrees, in_flight)
            parts.append(self._part(level, around, kinds, outer, middle, kind, in_flight))
            outer, devices = middle, devices - int(kinds.uses[kind])
            degrees, in_flight = degrees - int(kinds.adds[kind]), in_flight - int(kinds.adds[kind])
        return parts  # type: ignore[return-value]

    def _inner_part(
        self,
        kinds: Kinds,
        table: NDArray[np.int32],
        outer: int,
        inner: int,
        devices: int,
        degrees: int,
        in_flight: int,
    ) -> tuple[int, int]:
        pair_of = self._on.nested.pair_of
        for middle in range(inner, outer):
            pair = pair_of[outer, middle]
            if pair < 0 or (middle != inner and pair_of[middle, inner] < 0):
                continue
            for kind in np.nonzero(kinds.most[pair] >= in_flight)[0]:
                uses, adds = int(kinds.uses[kind]), int(kinds.adds[kind])
                if uses > devices or adds > degrees:
                    continue
                stood = table[middle, devices - uses, degrees - adds]
                if stood > 0 and stood >= in_flight - adds:
                    return middle, int(kind)
        raise AssertionError("every entry of the table comes from another one")

    def _stage(self, outer: int, inner: int, uses: int, d: int, in_flight: int) -> LayerStage:
        """Return a stage with the best choices for its layers."""
        on = self._on
        j = on.problem.level_one.degrees.index(uses // d)
        sets = on.nested.sets
        question = (d, j, ceil_ratio(in_flight, d), LEAST, on.scratch)
        return make_stage(on.problem.level_one, on.arrays, sets[outer], sets[inner], *question)
