"""Partitions over devices that differ, and their proofs, against brute force and a second search."""

from __future__ import annotations

from random import Random

import pytest
from device_cells import DeviceCell
from device_claims import claim_of
from random_devices import NEVER, RandomCase, random_case
from seeds import sampled

from mtpp.errors import Infeasible
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.partitioners.auto import partition
from mtpp.solvers.recheck.compiled import Unwatched
from mtpp.solvers.recheck.unequal import search_labels
from mtpp.solvers.unequal.enumeration import UnequalSearch, unequal_problem

SEEDS = sampled(range(10_000), 250)
MEMORY = 2**28


class Cell(DeviceCell[RandomCase]):
    """A cell of such a graph."""


def random_cell(seed: int) -> Cell:
    """Return a random graph on random devices."""
    chance, case = Random(seed), random_case(seed)
    k = len(case.devices)
    return Cell(case, chance.random() < 0.5, chance.randint(1, k) if chance.random() < 0.3 else k)


def solve(cell: Cell) -> SearchResult | None:
    """Return what the default search finds; None where it proves that there is no plan."""
    try:
        return partition(cell.instance(), SearchLimits(evaluations=2_000))
    except Infeasible as error:
        if "proven infeasible" in str(error):
            return None
        raise


@pytest.mark.parametrize("seed", SEEDS)
def test_optimal_as_by_brute_force(seed: int) -> None:
    """The least bottleneck, proven, with stages that cost it on the devices that the plan names."""
    cell = random_cell(seed)
    optimum, found = cell.optimum(), solve(cell)
    if found is None:
        assert optimum == NEVER
        return
    assert found.bottleneck == optimum
    assert found.stopped == "optimal"
    plan, k = found.partition, len(cell.case.devices)
    devices = plan.devices if isinstance(plan, PlacedPartition) else range(k)
    assert cell.free or list(devices) == list(range(k))
    assert cell.case.bottleneck(plan, devices) == optimum
    assert k - len(plan.empty_stages) <= cell.most


@pytest.mark.parametrize("seed", SEEDS)
def test_second_search_comes_to_the_same_labels(seed: int) -> None:
    """Just below the optimum both find none, with equal digests; at the optimum the second one finds a plan."""
    cell = random_cell(seed)
    optimum, instance = cell.optimum(), cell.instance()
    if optimum in (0, NEVER) or instance.uniform:
        return
    search = UnequalSearch(unequal_problem(instance), optimum - 1, MEMORY)
    while search.state == "open":
        search.run(UNLIMITED)
    assert search.state == "ended"
    again = search_labels(claim_of(cell.case, instance, optimum - 1, whole=search.whole), 10**6, Unwatched(), MEMORY)
    assert not again.complete
    assert search.record() == {"downsets": again.downsets, "labels": again.labels, "digest": again.digest}
    assert search_labels(claim_of(cell.case, instance, optimum, whole=True), 10**6, Unwatched(), MEMORY).complete
