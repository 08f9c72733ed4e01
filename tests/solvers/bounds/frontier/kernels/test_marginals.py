"""Passes over the ops of a stage against all labellings of small graphs."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import numpy as np
from graph_strategies import LINK, random_graph

from mtpp.array_types import BoolArray, Int64Array
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.kernels.fronts import EXACT, FULL, NONE, Arcs, arcs_of, prices_of, rests_behind
from mtpp.solvers.bounds.frontier.kernels.layers import (
    AFTER,
    BEFORE,
    INSIDE,
    LABELS,
    Layers,
    costs_ahead,
    costs_behind,
    trimmed,
    within_cost,
)
from mtpp.solvers.bounds.frontier.kernels.marginals import WHOLE, FrontsAhead, Swept, fronts_ahead, sweep
from mtpp.solvers.bounds.frontier.scan import Room, best_labelling, best_slope, scan_layers
from mtpp.solvers.bounds.frontier.scan_order import scan_orders

_ALL = 1 << BEFORE | 1 << INSIDE | 1 << AFTER


class Stage(NamedTuple):
    """States of a stage of a small graph, and all its labellings within the limit: by position, with their costs."""

    layers: Layers
    arcs: Arcs
    labels: Int64Array
    cost: Int64Array
    limit: int

    @property
    def ops(self) -> int:
        """Number of ops."""
        return self.labels.shape[1]

    def worths(self, worth: Int64Array) -> Int64Array:
        """Return what each labelling is worth."""
        return worth[np.arange(self.ops), self.labels].sum(axis=1)

    def most(self, worth: Int64Array) -> int:
        """Return the most that a labelling is worth."""
        return int(self.worths(worth).max())

    def through(self, worth: Int64Array, i: int) -> list[int]:
        """Return the most that a labelling is worth with each label of an op."""
        worths = self.worths(worth)
        return [int(worths[self.labels[:, i] == label].max(initial=NONE)) for label in range(LABELS)]

    def front(self, worth: Int64Array) -> list[tuple[int, int]]:
        """Return the costs and worths of labellings that no other one beats in both."""
        found: list[tuple[int, int]] = []
        for cost, value in sorted(zip(self.cost.tolist(), (-self.worths(worth)).tolist(), strict=True)):
            if not found or -value > found[-1][1]:
                found.append((cost, -value))
        return found

    def swept(
        self,
        worth: Int64Array,
        movable: BoolArray,
        *,
        forwards: bool,
        entries: int = 1 << 20,
        guess: int = 0,
        reach: int = WHOLE,
    ) -> Swept:
        """Pass over the ops."""
        layers, limit = self.layers, self.limit
        ahead, behind, slope = costs_ahead(layers, False), costs_behind(layers), best_slope(layers, worth, limit)
        return sweep(layers, self.arcs, worth, movable, forwards, ahead, behind, limit, slope, guess, reach, entries)

    def ahead(self, worth: Int64Array, floor: int | None = None) -> FrontsAhead:
        """Return the fronts of completions, of ways that may be worth *floor*."""
        slope = best_slope(self.layers, worth, self.limit)
        prices = prices_of(slope)
        need = np.full(len(prices), NONE) if floor is None else (floor << slope.shift) - prices * self.limit
        behind = rests_behind(self.layers, worth, slope)
        return fronts_ahead(self.layers, worth, slope, behind, need, costs_behind(self.layers), self.limit, 1 << 20)


def drawn_stages(seed: int, count: int) -> list[Stage]:
    """Draw stages of a graph of up to 6 ops with hyperedges, ties and costs of 0; none where nothing is allowed."""
    pick = random.Random(seed)
    graph = random_graph(
        seed, pick.randint(1, 6), largest_cost=pick.choice((0, 1, 3, 20)), consumers_per_tensor=pick.choice((0.8, 2.0))
    )
    instance = Instance.build(graph, Machine.uniform(count, LINK))
    order = pick.choice(scan_orders(instance))
    position = np.argsort(order.order).tolist()
    work, n = instance.work[order.order], instance.op_count
    pins = [
        [position[v] for v in instance.pins[begin:end].tolist()]
        for begin, end in itertools.pairwise(instance.pin_offsets.tolist())
    ]
    labels = np.array(list(itertools.product(range(LABELS), repeat=n)), dtype=np.int64)
    for maker, *readers in pins:
        for reader in readers:
            labels = labels[labels[:, maker] <= labels[:, reader]]
    inside = labels == INSIDE
    cost = inside @ work
    for ticks, ends in zip(instance.transfer.tolist(), pins, strict=True):
        cost = cost + ticks * (inside[:, ends].any(axis=1) & ~inside[:, ends].all(axis=1))
    limit = pick.randint(0, int(work.sum() + instance.transfer.sum()))
    steps = order.steps(instance.work, instance.transfer)
    stages = []
    for _ in range(count):
        allowed = np.array([pick.choice((_ALL, _ALL, pick.randint(1, _ALL))) for _ in range(n)], dtype=np.int64)
        layers = scan_layers(steps, allowed, Room(), lazy=False)
        layers = trimmed(layers, within_cost(layers, limit))
        kept = (cost <= limit) & (allowed >> labels & 1).all(axis=1)
        assert kept.any() == (len(layers.target) > 0)
        if not kept.any():
            return []
        stages.append(Stage(layers, arcs_of(layers), labels[kept], cost[kept], limit))
    return stages


def drawn_worth(pick: random.Random, ops: int) -> Int64Array:
    """Draw the worth of each label of each op."""
    largest = pick.choice((1, 4, 1000, 10**9))
    return np.array([[pick.randint(-largest, largest) for _ in range(LABELS)] for _ in range(ops)], dtype=np.int64)


def nothing_moves(stage: Stage) -> BoolArray:
    """Return that no op may be evened out."""
    return np.zeros(stage.ops, dtype=np.bool_)


def test_worths_through_each_label() -> None:
    """With nothing to even out, through values and last front are those of all labellings, either way."""
    for seed in range(300):
        for stage in drawn_stages(seed, 1):
            worth = drawn_worth(random.Random(seed), stage.ops)
            for forwards in (False, True):
                one = stage.swept(worth.copy(), nothing_moves(stage), forwards=forwards)
                assert one.state == EXACT
                assert one.through.tolist() == [stage.through(worth, i) for i in range(stage.ops)]
                assert list(zip(one.cost.tolist(), one.worth.tolist(), strict=True)) == stage.front(worth)
                assert not one.moved.any()


def test_fronts_of_completions() -> None:
    """The front ahead of the first state is that of all labellings, or of those that are worth enough, and more."""
    for seed in range(300):
        for stage in drawn_stages(seed, 1):
            worth = drawn_worth(random.Random(seed), stage.ops)
            fronts = stage.ahead(worth)
            rows = slice(fronts.starts[0], fronts.ends[0])
            front = fronts.entries.cost[rows].tolist(), fronts.entries.worth[rows].tolist()
            assert list(zip(*front, strict=True)) == stage.front(worth)
            floor = stage.most(worth) - random.Random(seed).randint(-1, 10)
            fronts = stage.ahead(worth, floor)
            rows = slice(fronts.starts[0], fronts.ends[0])
            found = set(zip(fronts.entries.cost[rows].tolist(), fronts.entries.worth[rows].tolist(), strict=True))
            whole = stage.front(worth)
            assert {one for one in whole if one[1] >= floor} <= found <= set(whole)


def test_labellings_within_reach() -> None:
    """Whatever the best one is thought to be worth, what is worth no less than *least* is known, and nothing else."""
    left_out = 0
    for seed in range(300):
        for stage in drawn_stages(seed, 1):
            pick = random.Random(seed)
            worth = drawn_worth(pick, stage.ops)
            most, reach = stage.most(worth), pick.choice((1, 3, 100, 10**9))
            guess = most + pick.choice((0, 0, 1, -1, 5, -5, 300, -300, 10**10, -(10**10)))
            one = stage.swept(
                worth.copy(), nothing_moves(stage), forwards=pick.random() < 0.5, guess=guess, reach=reach
            )
            assert one.least <= most - reach // 2
            for i in range(stage.ops):
                known = [value if value >= one.least else NONE for value in stage.through(worth, i)]
                assert one.through[i].tolist() == known
                left_out += known != stage.through(worth, i)
            front = [entry for entry in stage.front(worth) if entry[1] >= one.least]
            assert list(zip(one.cost.tolist(), one.worth.tolist(), strict=True)) == front
    assert left_out > 100


def test_best_labelling() -> None:
    """However far off its worth is thought to be, it is worth most, and costs no more than the limit."""
    for seed in range(300):
        for stage in drawn_stages(seed, 1):
            pick = random.Random(seed)
            worth = drawn_worth(pick, stage.ops)
            ahead, slope = costs_ahead(stage.layers, False), best_slope(stage.layers, worth, stage.limit)
            gap, reach = pick.choice((0, 5, 10**6)), pick.choice((1, 100))
            found = best_labelling(
                stage.layers, stage.arcs, worth, slope, ahead, stage.limit, gap, reach, most_entries=1 << 20
            )
            assert found is not None
            assert found.worth == stage.most(worth)
            at = stage.labels.tolist().index(found.labels.tolist())
            assert stage.worths(worth)[at] == found.worth


def test_what_moves_evens_sides_out() -> None:
    """Half of what one side is better by is taken from it, by the worths that the ops before have left."""
    for seed in range(300):
        for stage in drawn_stages(seed, 1):
            pick = random.Random(seed)
            worth, forwards = drawn_worth(pick, stage.ops), pick.random() < 0.5
            movable: BoolArray = np.array([pick.random() < 0.6 for _ in range(stage.ops)])
            after = worth.copy()
            one = stage.swept(after, movable, forwards=forwards)
            expected = worth.copy()
            for i in range(stage.ops):
                through = stage.through(expected, i)
                assert one.through[i].tolist() == through
                left, right = (through[:AFTER], through[AFTER:]) if forwards else (through[:INSIDE], through[INSIDE:])
                shift = 0
                if movable[i] and max(left) > NONE and max(right) > NONE:
                    shift = int((max(left) - max(right)) / 2)  # towards 0
                assert one.moved[i] == shift
                expected[i, : AFTER if forwards else INSIDE] -= shift
            assert after.tolist() == expected.tolist()
            assert one.worth[-1] == stage.most(expected)


def test_the_most_in_all_never_rises() -> None:
    """Whichever stages and ops are passed over, forwards and back, Σ M does not rise, and no credit changes."""
    moved = 0
    for seed in range(400):
        pick = random.Random(seed)
        stages = drawn_stages(seed, pick.randint(2, 4))
        if not stages:
            continue
        worths = [drawn_worth(pick, stage.ops) for stage in stages]
        total = sum(stage.most(worth) for stage, worth in zip(stages, worths, strict=True))
        for _ in range(4):
            movable: BoolArray = np.array([pick.random() < 0.8 for _ in range(stages[0].ops)])
            forwards = pick.random() < 0.5
            j = pick.randint(0, len(stages) - 2) if forwards else pick.randint(1, len(stages) - 1)
            most, reach = stages[j].most(worths[j]), pick.choice((WHOLE, WHOLE, 1, 2, 10, 1000, 10**9))
            guess = most + pick.randint(-3, 3)
            one = stages[j].swept(worths[j], movable, forwards=forwards, guess=guess, reach=reach)
            # An op is before or in stage j exactly if it is before stage j + 1.
            if forwards:
                worths[j + 1][:, BEFORE] += one.moved
            else:
                worths[j - 1][:, : INSIDE + 1] += one.moved[:, None]
            now = sum(stage.most(worth) for stage, worth in zip(stages, worths, strict=True))
            moved += int(one.moved.any())
            assert now <= total
            total = now
    assert moved > 100


def test_too_little_room() -> None:
    """Fewer entries than there are, and nothing is said."""
    for seed in range(100):
        for stage in drawn_stages(seed, 1):
            worth = drawn_worth(random.Random(seed), stage.ops)
            whole = stage.swept(worth.copy(), nothing_moves(stage), forwards=True)
            fronts = stage.ahead(worth)
            needed = fronts.used
            assert stage.swept(worth.copy(), nothing_moves(stage), forwards=True, entries=needed).state == whole.state
            assert stage.swept(worth.copy(), nothing_moves(stage), forwards=True, entries=needed - 1).state == FULL
