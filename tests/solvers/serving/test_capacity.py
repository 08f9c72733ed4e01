"""The largest number at which some stages fit, against all ways of cutting and of placing."""

from __future__ import annotations

from itertools import combinations, permutations
from random import Random

import pytest
from layer_memories import graph_of, random_problem

from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.language_models.capacity import largest
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.layer_chains.interval_sums import cuts_between
from mtpp.solvers.serving.capacity import CapacityProblem


def fits(problem: CapacityProblem, value: int) -> bool:
    """Look at all cuts, and at all devices in all orders, adding up the stages as evaluated partitions."""
    context, sequences, batch = problem.load.at(value)
    (memory,), devices = problem.holdings[0].phases, problem.devices
    device = Device("d", None, None, Link(10), peak="order", memory_bytes=2**50, sequences=sequences)
    graph, ops = graph_of(memory, context, batch), len(memory.weights)
    cuts = cuts_between(problem.groups, ops)
    for used in range(devices.least_used, min(ops, devices.most_used) + 1):
        instance = Instance.build(graph, Machine.uniform(used, device))
        for inner in combinations([place for place in range(1, ops) if cuts[place]], used - 1):
            stages = [sum(v >= place for place in inner) for v in range(ops)]
            costs = stage_costs(instance, Partition.from_stages(instance, stages))
            kept = (costs.param_bytes + costs.state_bytes).tolist()
            for order in (permutations if devices.free else combinations)(range(len(devices.class_of)), used):
                rows = [problem.holdings[devices.class_of[d]] for d in order]
                if all(
                    row.limit is None or held + (peak if row.reserve is None else row.reserve) <= row.limit
                    for row, held, peak in zip(rows, kept, costs.peak_bytes.tolist(), strict=True)
                ):
                    return True
    return False


@pytest.mark.parametrize("objective", ["context", "sequences"])
def test_the_largest_number_is_that_of_all_cuts_and_orders(objective: str) -> None:
    """In both orders of devices, with groups, few devices, none empty; the next number fits nowhere."""
    random, ends = Random(5), {"none": 0, "some": 0, "any": 0}
    for _ in range(120):
        problem = random_problem(random, objective)
        found = problem.largest_fit()
        if found is None:
            ends["none"] += 1
            assert not fits(problem, 1)
        elif found.next_infeasible is None:
            ends["any"] += 1
            assert fits(problem, found.value)
            assert fits(problem, 100 * found.value)
        else:
            ends["some"] += 1
            assert found.next_infeasible == found.value + 1
            assert fits(problem, found.value)
            assert not fits(problem, found.value + 1)
    assert min(ends.values()) > 9, ends


def test_any_number_may_be_the_largest() -> None:
    """None, all, and each in between, with few looks at any."""
    for settled in (1, 2, 3, 10, 33):
        for most in range(settled):
            asked: list[int] = []
            assert largest(lambda number: asked.append(number) or number <= most, settled) == most  # noqa: B023
            assert len(asked) <= 2 * settled.bit_length() + 2
        assert largest(lambda number: True, settled) is None


def test_groups_are_not_cut() -> None:
    """Whatever the order of their members."""
    assert cuts_between([], 3).all()
    assert cuts_between([[2, 1], [3]], 4).tolist() == [True, True, False, True, True]
