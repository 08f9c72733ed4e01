"""Chains of layers on devices with degrees: tables, decisions and plans against brute force over all of them."""

from __future__ import annotations

from random import Random

import pytest
from layer_chains import all_plans, random_case

from mtpp.solvers.layer_chains.decision import is_feasible, least_bottleneck
from mtpp.solvers.layer_chains.search import fastest_plan, least_latency_plan
from mtpp.solvers.layer_chains.tables import ChainTables


@pytest.mark.parametrize("block", range(8))
def test_best_plans_are_those_of_brute_force(block: int) -> None:
    """Least bottleneck, with limits on latency and with none; least latency likewise; whether there is any plan."""
    for seed in range(25 * block, 25 * (block + 1)):
        draw = Random(seed)
        case = random_case(draw)
        most = draw.randint(1, case.machine.count)
        none_empty = draw.random() < 0.3
        devices = case.devices(most, none_empty=none_empty)
        tables = ChainTables.of(case.choices(), case.groups)
        plans = sorted(set(all_plans(case, most, most if none_empty else 1)))
        assert is_feasible(tables, devices) == bool(plans), seed
        if not plans:
            assert least_bottleneck(tables, devices) is None
            assert fastest_plan(tables, devices) is None
            assert least_latency_plan(tables, devices) is None
            continue
        best = plans[0][0]
        assert least_bottleneck(tables, devices) == best, seed
        assert is_feasible(tables, devices, best), seed
        assert not is_feasible(tables, devices, best - 1), seed
        for latency in (None, *sorted({t for _, t in plans})[:6], min(t for _, t in plans) - 1):
            due = min(((b, t) for b, t in plans if latency is None or t <= latency), default=None)
            found = fastest_plan(tables, devices, max_latency=latency)
            assert due == (None if found is None else (found.bottleneck, found.latency)), seed
        for bottleneck in (None, *sorted({b for b, _ in plans})[:6], best - 1):
            least = min((t for b, t in plans if bottleneck is None or b <= bottleneck), default=None)
            found = least_latency_plan(tables, devices, max_bottleneck=bottleneck)
            assert least == (None if found is None else found.latency), seed
