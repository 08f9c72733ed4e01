"""Partitions whose stages stand on several devices, against brute force."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from random_devices import NEVER, RandomCase, random_case
from random_replicas import replicated_bottleneck, replicated_optimum
from seeds import sampled

from mtpp.inference.instance import Instance
from mtpp.inference.replicas.partition import replicating
from mtpp.solvers.unequal.replica_enumeration import ReplicaSearch, replica_problem

SEEDS = sampled(range(10_000), 250)
MEMORY = 2**26


@dataclass(frozen=True)
class Cell:
    """A graph on devices in one of the two orders, of which *most* may be used."""

    case: RandomCase
    free: bool
    most: int

    def instance(self) -> Instance:
        """Return the instance in ticks."""
        return replicating(self.case.instance(self.most, free=self.free))

    def optimum(self) -> int:
        """Return the least bottleneck by brute force."""
        return replicated_optimum(self.case, self.most, free=self.free)


def random_cell(seed: int) -> Cell:
    """Return a random graph on random devices."""
    chance, case = Random(seed), random_case(seed)
    k = len(case.devices)
    return Cell(case, chance.random() < 0.5, chance.randint(1, k) if chance.random() < 0.3 else k)


def search(instance: Instance, limit: int) -> ReplicaSearch:
    """Return a search that has come to its end."""
    found = replica_problem(instance).search(limit, MEMORY)
    found.advance(2**50, 2**50, lambda: False)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_found_at_the_optimum_and_not_below(seed: int) -> None:
    """At the least bottleneck there is a plan that costs it, on devices that hold it; a tick below there is none."""
    cell = random_cell(seed)
    optimum, instance = cell.optimum(), cell.instance()
    if optimum == NEVER:
        assert search(instance, instance.most_ticks).state == "ended"
        return
    found = search(instance, optimum)
    assert found.state == "found"
    plan = found.partition()
    assert replicated_bottleneck(cell.case, plan, plan.replicas) == optimum
    assert sum(map(len, plan.replicas[: plan.stage_count])) <= cell.most
    if optimum:
        assert search(instance, optimum - 1).state == "ended"
