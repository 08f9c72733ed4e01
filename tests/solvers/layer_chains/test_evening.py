"""Plans of chains made even, against brute force over all cuts and devices."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest
from layer_chains import all_plans, random_case

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.layer_chains.evening import evened
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.solve import solve


@pytest.mark.parametrize("block", range(4))
def test_most_devices_within_the_bottleneck(block: int) -> None:
    """The bottleneck stays, memory and groups are kept, and no plan within it has more stages."""
    tried = 0
    for seed in range(20 * block, 20 * (block + 1)):
        draw = Random(seed)
        case = random_case(draw)
        degree = min(case.graphs)
        case = replace(case, graphs={degree: case.graphs[degree]}, degrees=((degree,),) * len(case.degrees))
        graph, most = case.graphs[degree], draw.randint(1, case.machine.count)
        instance = Instance.build(graph, case.machine, most_used=most)
        try:
            plan = solve(instance, graph, SearchLimits(1000, deadline=Deadline(None)), together=case.groups)
        except Infeasible:
            continue
        tried += 1
        even = evened(plan, instance)
        assert even.bottleneck <= plan.bottleneck, seed
        assert keeps_stage_memory(even.instance, even.costs), seed
        stages = [m for m in range(1, most + 1) if any(b <= plan.bottleneck for b, _ in all_plans(case, m, m))]
        if stages:  # otherwise no plan of intervals is as good
            assert int((even.costs.ops > 0).sum()) == stages[-1], seed
    assert tried > 5


def test_even_costs() -> None:
    """The least sum of squares of all plans with so many stages."""
    draw = Random(7)
    for _ in range(30):
        n, k = draw.randint(4, 9), draw.randint(2, 4)
        ops = [Op(f"l{i}", draw.randint(1, 9)) for i in range(n)]
        tensors = [Tensor(f"t{i}", f"l{i}", [f"l{i + 1}"], 0) for i in range(n - 1)]
        graph = CostGraph.build(name="chain", time_unit="ps", ops=ops, tensors=tensors)
        instance = Instance.build(graph, Machine.uniform(k, Device("device", None, None, Link(10**12))))
        plan = solve(instance, graph, SearchLimits(1000, deadline=Deadline(None)))
        squares = []
        for cuts in combinations(range(1, n), k - 1):
            stages = np.array([sum(cut <= i for cut in cuts) for i in range(n)], dtype=np.int32)
            costs = stage_costs(instance, Partition.from_stages(instance, stages))
            if costs.bottleneck <= plan.bottleneck:
                squares.append(sum(cost**2 for cost in costs.cost.tolist()))
        even = evened(plan, instance)
        assert even.bottleneck == plan.bottleneck
        if squares:
            assert sum(cost**2 for cost in even.costs.cost.tolist()) == min(squares)
