"""Partitions over devices that differ: never below the optimum, never slower than the rules of engines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from random import Random

import numpy as np
import pytest
from random_devices import NEVER, RandomCase, random_case

from mtpp.errors import Infeasible, InputError
from mtpp.inference.objective import bottleneck
from mtpp.inference.placed_partition import as_placed
from mtpp.names import ENGINE_RULES
from mtpp.solvers.best_so_far import BestSoFar
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.local_search import device_matching, device_portfolio
from mtpp.solvers.local_search.device_matching import ClassCosts, match_devices
from mtpp.solvers.local_search.device_portfolio import DeviceResult, search_devices
from mtpp.solvers.registry import partitioner
from mtpp.solvers.stage_cost.kernels import stage_cost

CASES = range(110)


def found_in(case: RandomCase, most: int, free: bool, evaluations: int = 200) -> DeviceResult | None:
    """Return what the search finds, after some checks of it."""
    try:
        found = search_devices(case.instance(), SearchLimits(evaluations=evaluations), most, free=free)
    except Infeasible:
        return None
    assert found.bottleneck == case.bottleneck(found.partition, found.devices)
    assert len(set(found.partition.assignment.tolist())) <= most
    assert free or found.devices == tuple(range(len(case.devices)))
    return found


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", CASES)
def test_no_partition_is_below_the_optimum(seed: int, free: bool) -> None:
    """And its bottleneck is the real one."""
    case = random_case(seed)
    count = len(case.devices)
    most = Random(seed).choice([count, Random(seed).randint(1, count)])
    found = found_in(case, most, free)
    least = case.optimum(most, free=free)
    assert (least == NEVER) >= (found is None)
    assert found is None or found.bottleneck >= least


def test_nearly_all_small_graphs_are_solved() -> None:
    """Of graphs of at most six ops."""
    cases = [random_case(seed) for seed in CASES[:60]]
    found = [found_in(case, len(case.devices), True) for case in cases]
    least = [case.optimum(len(case.devices), free=True) for case in cases]
    solved = [one is not None and one.bottleneck == best for one, best in zip(found, least, strict=True)]
    assert sum(solved) >= len(least) - least.count(NEVER) - 2


@pytest.mark.parametrize("seed", CASES[:60])
def test_no_rule_of_engines_is_faster(seed: int) -> None:
    """Not even where the search hardly begins."""
    case = random_case(seed)
    for free in (False, True):
        found = found_in(case, len(case.devices), free, evaluations=1)
        for rule in ENGINE_RULES:
            try:
                other = partitioner(rule).load()(case.instance(), SearchLimits(evaluations=1))
            except (Infeasible, InputError):
                continue
            assert found is not None
            assert found.bottleneck <= other.bottleneck


def test_large_graphs_are_contracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition is one of the graph, on the devices that it names."""
    monkeypatch.setattr(device_portfolio, "_LARGE", 3)
    monkeypatch.setattr(device_portfolio, "_TARGET", 3)
    monkeypatch.setattr(device_portfolio, "_TARGET_PER_STAGE", 1)
    for seed in CASES[:40]:
        case = random_case(seed)
        for free in (False, True):
            found_in(case, len(case.devices), free)


def test_the_result_is_the_same_for_any_number_of_threads() -> None:
    """As long as no clock ends the search."""
    instance = random_case(5).instance()
    one, three = (search_devices(instance, SearchLimits(evaluations=300, jobs=jobs), free=True) for jobs in (1, 3))
    assert one.partition.assignment.tolist() == three.partition.assignment.tolist()
    assert one[1:4] == three[1:4]


def _least(costs: np.ndarray, class_of: Sequence[int], *, free: bool) -> int:
    stages = range(costs.shape[1])
    seats = [seats for seats in permutations(range(len(class_of)), len(stages)) if free or list(seats) == sorted(seats)]
    return min((max(int(costs[class_of[seats[i]], i]) for i in stages) for seats in seats), default=stage_cost.NEVER)


@pytest.mark.parametrize("most", [0, 256])
@pytest.mark.parametrize("seed", CASES)
def test_devices_are_matched_as_by_brute_force(monkeypatch: pytest.MonkeyPatch, seed: int, most: int) -> None:
    """The best devices for given stages, in the order of the list and in any; by augmenting paths and by flows."""
    monkeypatch.setattr(device_matching, "_MOST_RECURSIVE", most)
    chance = Random(seed)
    class_of = [chance.randrange(3) for _ in range(chance.randint(1, 5))]
    rows = [[chance.choice([1, 2, 5, 9, stage_cost.NEVER]) for _ in range(3)] for _ in "abc"]
    costs = np.array(rows, dtype=np.int64)[:, : chance.randint(1, 3)]
    for free in (False, True):
        matched = match_devices(costs, class_of, free=free)
        least = _least(costs, class_of, free=free)
        if matched is None:
            assert least >= stage_cost.NEVER
            continue
        cost, devices = matched
        assert cost == least == max(int(costs[class_of[device], i]) for i, device in enumerate(devices))
        assert len(set(devices)) == len(devices)
        assert free or devices == sorted(devices)


def test_costs_by_class_are_those_of_the_devices() -> None:
    """What a stage costs on a device of each class, above every cost beyond a memory limit."""
    case = random_case(7)
    instance = case.instance()
    stage = np.zeros(case.ops, dtype=np.int32)
    costs = ClassCosts(instance).of(stage, 1)
    for device, c in enumerate(instance.machine.class_of):
        real = case.cost(range(case.ops), device)
        assert (int(costs[c, 0]) >= stage_cost.NEVER) if real == NEVER else int(costs[c, 0]) == real


@pytest.mark.parametrize("free", [False, True])
def test_the_best_is_told_on_the_way(free: bool) -> None:
    """A caller who cannot wait has a partition, on devices in an order of its own where that is free."""
    instance = random_case(5).instance(free=free)
    keeper = BestSoFar()
    found = search_devices(instance, SearchLimits(50, keeper=keeper), free=free)
    told = keeper.partition()
    assert told is not None
    partition, ticks, _ = told
    assert ticks == found.bottleneck
    assert bottleneck(as_placed(instance, partition), partition) == ticks
