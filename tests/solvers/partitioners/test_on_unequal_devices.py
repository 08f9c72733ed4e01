"""Partitioners on devices that differ: real costs, no more devices than allowed, never below the optimum."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from random_devices import NEVER, random_case

from mtpp.errors import Infeasible, InputError
from mtpp.names import ENGINE_RULES, SERIES_PARALLEL
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.local_search.initial_partition import first_partition
from mtpp.solvers.registry import PARTITIONERS

HEURISTICS = sorted(set(PARTITIONERS) - {"auto", "downset"})
"""All that prove nothing."""


@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("name", HEURISTICS)
def test_costs_are_those_of_the_devices(name: str, order: str) -> None:
    """Of the stages in the order of the list, or as the partition says."""
    found = 0
    for seed in range(25):
        case = random_case(seed)
        count = len(case.devices)
        plain = case.instance()
        machine = replace(plain.machine, order=order)
        spare = Random(seed).randrange(count)
        instance = replace(plain, spare=spare, cost=replace(plain.cost, machine=machine))
        if instance.peaks_in_order and not PARTITIONERS[name].peaks_in_order:
            continue
        try:
            best = PARTITIONERS[name].load()(instance, SearchLimits(20))
        except (Infeasible, InputError):
            continue
        found += 1
        assert best.bottleneck == case.bottleneck(best.partition, best.devices or range(count))
        assert best.bottleneck >= case.optimum(count - spare, free=order == "free")
        assert len(set(best.partition.assignment.tolist())) <= count - spare
    assert found >= 2


def test_orders_are_cut_on_devices_that_may_move() -> None:
    """In free order no partitioner that cuts orders keeps devices in the order of the list where another is better."""
    moved = 0
    for seed in range(60):
        case = random_case(seed)
        instance = case.instance(free=True)
        order = instance.order.tolist()
        try:
            found = PARTITIONERS["slice"].load()(instance, SearchLimits(1))
        except Infeasible:
            continue
        least = case.cut_optimum(order, instance.k, free=True)
        assert found.bottleneck == case.bottleneck(found.partition, found.devices or range(instance.k)) == least
        moved += least < case.cut_optimum(order, instance.k, free=False)
    assert moved >= 3


def test_a_first_partition_is_none_worse_than_the_rules_of_engines() -> None:
    """What a search leaves whose time is over at once; it keeps to the memories and to the devices that may be used."""
    found = 0
    for seed in range(60):
        case = random_case(seed)
        most = max(1, len(case.devices) - seed % 2)
        instance = case.instance(most, free=seed % 3 == 0)
        first = first_partition(instance)
        rules = []
        for name in ENGINE_RULES:
            with suppress(Infeasible, InputError):
                rules.append(PARTITIONERS[name].load()(instance, SearchLimits(1)).bottleneck)
        if first is None:
            assert not rules
            continue
        found += 1
        assert first.bottleneck == case.bottleneck(first.partition, range(instance.k)) <= min(rules, default=NEVER)
        assert len(set(first.partition.assignment.tolist())) <= most
    assert found > 20


def test_series_parallel_takes_direct_transport() -> None:
    """One line says so."""
    instance = next(
        one for one in (random_case(seed).instance() for seed in range(50)) if not (one.uniform or one.peaks_in_order)
    )
    machine = replace(instance.machine, transport="neighbours")
    passing = replace(instance, cost=replace(instance.cost, machine=machine))
    with pytest.raises(InputError, match="which tensors pass a stage from neighbour to neighbour"):
        PARTITIONERS[SERIES_PARALLEL].load()(passing, SearchLimits(20))
