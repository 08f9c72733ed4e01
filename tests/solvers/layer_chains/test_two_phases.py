"""Latencies of another phase than costs: searches and the verifier's decision against brute force on random tables."""

from __future__ import annotations

from itertools import combinations, permutations, product
from random import Random

import numpy as np
import pytest

from mtpp.checker.intervals.decision import Line, Stages, plan_exists
from mtpp.inference.goal import Goal
from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.prices import prices_above
from mtpp.solvers.layer_chains.search import fastest_plan, least_latency_plan
from mtpp.solvers.layer_chains.tables import NEVER, Alternative, ChainTables


def random_tables(draw: Random) -> tuple[ChainTables, list[int]]:
    """Return tables of a few ops, whose costs and latencies have nothing to do with each other, and devices."""
    n, classes = draw.randint(1, 6), draw.randint(1, 3)
    alternatives = tuple(Alternative(c, t) for c in range(classes) for t in range(1, draw.randint(1, 2) + 1))
    shape = (len(alternatives), n + 1, n + 1)
    longer = np.arange(n + 1)[np.newaxis, :] > np.arange(n + 1)[:, np.newaxis]
    feasible = np.array([draw.random() < 0.8 for _ in range(np.prod(shape))]).reshape(shape) & longer
    cost, latency = (np.array([draw.randint(0, 20) for _ in range(np.prod(shape))]).reshape(shape) for _ in range(2))
    tables = ChainTables(alternatives, np.where(feasible, cost, NEVER), np.where(feasible, latency, NEVER), feasible)
    devices = [draw.randrange(classes) for _ in range(draw.randint(1, 4))]
    return tables, [sorted(set(devices)).index(c) for c in devices]


def plans_of(tables: ChainTables, class_of: list[int], *, free: bool, least: int, most: int) -> set[tuple[int, int]]:
    """Return bottleneck and latency of every plan."""
    n, found = tables.op_count, set()
    for stages in range(least, min(n, most) + 1):
        for cuts in combinations(range(1, n), stages - 1):
            ends = list(zip((0, *cuts), (*cuts, n), strict=True))
            for devices in (permutations if free else combinations)(range(len(class_of)), stages):
                ways = [
                    [
                        (int(tables.cost[a, start, stop]), int(tables.latency[a, start, stop]))
                        for a, one in enumerate(tables.alternatives)
                        if one.device_class == class_of[device] and tables.feasible[a, start, stop]
                    ]
                    for device, (start, stop) in zip(devices, ends, strict=True)
                ]
                found |= {(max(b for b, _ in plan), sum(t for _, t in plan)) for plan in product(*ways)}
    return found


@pytest.mark.parametrize("block", range(5))
def test_limits_on_both(block: int) -> None:
    """Least bottleneck within any latency and the reverse, in free and fixed order; the decision with prices."""
    for seed in range(40 * block, 40 * (block + 1)):
        draw = Random(seed)
        tables, class_of = random_tables(draw)
        free, most = draw.random() < 0.5, draw.randint(1, len(class_of))
        none_empty = draw.random() < 0.3
        devices = ChainDevices.of(class_of, free=free, most_used=most, none_empty=none_empty)
        plans = plans_of(tables, class_of, free=free, least=devices.least_used, most=most)
        kept = [[a for a, one in enumerate(tables.alternatives) if one.device_class == c] for c in devices.classes]
        ticks, times = (
            [[[[x if x < NEVER else None for x in row] for row in table[a].tolist()] for a in own] for own in kept]
            for table in (tables.cost, tables.latency)
        )
        stages, line = Stages(tables.op_count, ticks, times), Line(class_of, free, most, devices.least_used)
        for latency in (None, 5, 15, *draw.sample(sorted({t for _, t in plans}), min(3, len({t for _, t in plans})))):
            within = [(b, t) for b, t in plans if latency is None or t <= latency]
            best = fastest_plan(tables, devices, max_latency=latency)
            assert min(within, default=None) == (None if best is None else (best.bottleneck, best.latency)), seed
            if best is not None:
                goal = Goal(limit=latency)
                own = {} if goal.plain else prices_above(tables, devices, goal, best.bottleneck)
                assert plan_exists(stages, line, most=best.bottleneck, latency=latency, **own), seed
                assert not plan_exists(stages, line, most=best.bottleneck - 1, latency=latency, **own), seed
        for bottleneck in (None, 5, 15):
            due = min((t for b, t in plans if bottleneck is None or b <= bottleneck), default=None)
            least = least_latency_plan(tables, devices, max_bottleneck=bottleneck)
            assert due == (None if least is None else least.latency), seed
            if due is not None:
                own = prices_above(tables, devices, Goal("latency", bottleneck), due)
                assert plan_exists(stages, line, most=bottleneck, latency=due, **own), seed
                assert not plan_exists(stages, line, most=bottleneck, latency=due - 1, **own), seed
