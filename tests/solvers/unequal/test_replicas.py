"""Partitions whose stages stand on several devices, and their proofs, against brute force and a second search."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from device_claims import claim_of
from random_devices import NEVER, RandomCase, random_case
from random_replicas import replicated_bottleneck, replicated_optimum
from seeds import sampled

from mtpp.errors import Infeasible
from mtpp.inference.instance import Instance
from mtpp.inference.replicas.partition import ReplicatedPartition, replicating
from mtpp.solvers.bounds.replica_room import replica_room_bound
from mtpp.solvers.last_look.replicas import look_at_replicas
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.partitioners.auto import partition
from mtpp.solvers.recheck.compiled import Unwatched
from mtpp.solvers.recheck.replicas import ReplicaClaim, search_replicas
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


@pytest.mark.parametrize("seed", SEEDS)
def test_optimal_as_by_brute_force(seed: int) -> None:
    """The least bottleneck, proven, by a bound that is not above it, and the last look agrees."""
    cell = random_cell(seed)
    optimum, instance = cell.optimum(), cell.instance()
    assert replica_room_bound(instance).value <= optimum
    if optimum == NEVER:
        with pytest.raises(Infeasible, match="proven infeasible"):
            partition(instance, SearchLimits(evaluations=2_000))
        return
    found = partition(instance, SearchLimits(evaluations=2_000))
    assert found.bottleneck == optimum
    assert found.stopped == "optimal"
    plan = found.partition
    assert isinstance(plan, ReplicatedPartition)
    assert replicated_bottleneck(cell.case, plan, plan.replicas) == optimum
    look_at_replicas(instance, plan, optimum, found.found_by)


@pytest.mark.parametrize("seed", SEEDS)
def test_second_search_comes_to_the_same_labels(seed: int) -> None:
    """Just below the optimum both find none, with equal digests; at the optimum the second one finds a plan."""
    cell = random_cell(seed)
    optimum, instance = cell.optimum(), cell.instance()
    if optimum in (0, NEVER):
        return
    problem = replica_problem(instance)
    mine = search(instance, optimum - 1)
    assert mine.state == "ended"
    prices = tuple(problem.devices.prices.tolist())

    def claim(limit: int, *, whole: bool) -> ReplicaClaim:
        plain = claim_of(cell.case, instance, limit, whole=whole)
        return ReplicaClaim(plain.of_class, plain.class_of, plain.most, plain.free, prices)

    again = search_replicas(claim(optimum - 1, whole=mine.whole), 10**6, Unwatched(), MEMORY)
    assert again is not None
    assert not again.complete
    assert mine.record() == {"downsets": again.downsets, "labels": again.labels, "digest": again.digest}
    found = search_replicas(claim(optimum, whole=True), 10**6, Unwatched(), MEMORY)
    assert found is not None
    assert found.complete
