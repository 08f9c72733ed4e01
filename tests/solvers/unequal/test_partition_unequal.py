"""Partitions over devices that differ, and their proofs, against brute force and a second search."""

from __future__ import annotations

from math import ceil

import pytest
from device_oracle import NO_PLAN, DeviceCell, random_cell
from seeds import sampled

from mtpp.errors import Infeasible
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.partitioners.auto import partition
from mtpp.solvers.recheck.claim import DownsetClaim, Edge, GroundTensor, StageMemory
from mtpp.solvers.recheck.compiled import Unwatched
from mtpp.solvers.recheck.unequal import UnequalClaim, search_labels
from mtpp.solvers.unequal.enumeration import UnequalSearch, unequal_problem

SEEDS = sampled(range(10_000), 250)
MEMORY = 2**28


def solve(cell: DeviceCell) -> SearchResult | None:
    """Return what the default search finds; None where it proves that there is no plan."""
    try:
        return partition(cell.instance(), SearchLimits(evaluations=2_000))
    except Infeasible as error:
        if "proven infeasible" in str(error):
            return None
        raise


def claim_of(cell: DeviceCell, limit: int) -> UnequalClaim:
    """Return the claim that no plan of a cell has all stages cost at most *limit*, from the definitions."""
    instance = cell.instance()
    in_order = cell.devices[0].peak == "order"
    n = len(cell.work)
    claims = []
    for device in instance.machine.classes:
        rate = int(device.link.bandwidth_bytes_per_s * device.link.speed)
        ground = tuple(GroundTensor(t.bytes, t.maker, t.readers) for t in cell.tensors if t.bytes) if in_order else ()
        memory = StageMemory(
            device.fast_memory_bytes,
            device.memory_bytes,
            rate,
            None if in_order else device.activation_reserve_bytes,
            tuple(range(n)) if in_order else (),
            ground,
        )
        edges = (
            Edge(ceil(t.transfer / device.link.speed) + device.link.latency_ps, t.maker, t.readers)
            for t in cell.tensors
        )
        work = tuple(ceil(work / device.speed) for work in cell.work)
        maximal = not instance.peaks_in_order
        claims.append(DownsetClaim(work, cell.params, tuple(edges), memory, n, limit, crossings=False, maximal=maximal))
    return UnequalClaim(tuple(claims), tuple(instance.machine.class_of), cell.most, cell.free)


@pytest.mark.parametrize("seed", SEEDS)
def test_optimal_as_by_brute_force(seed: int) -> None:
    """The least bottleneck, proven, with stages that cost it on the devices that the plan names."""
    cell = random_cell(seed)
    optimum, found = cell.optimum(), solve(cell)
    if found is None:
        assert optimum == NO_PLAN
        return
    assert found.bottleneck == optimum
    assert found.stopped == "optimal"
    plan = found.partition
    devices = plan.devices if isinstance(plan, PlacedPartition) else range(len(cell.devices))
    assert sorted(devices) == list(range(len(cell.devices)))
    assert cell.free or list(devices) == list(range(len(cell.devices)))
    stages = [[v for v, s in enumerate(plan.assignment.tolist()) if s == i] for i in range(len(cell.devices))]
    assert max(cell.stage_cost(ops, cell.devices[i]) for ops, i in zip(stages, devices, strict=True)) == optimum
    assert sum(map(bool, stages)) <= cell.most


@pytest.mark.parametrize("seed", SEEDS)
def test_second_search_comes_to_the_same_labels(seed: int) -> None:
    """Just below the optimum both find none, with equal digests; at the optimum the second one finds a plan."""
    cell = random_cell(seed)
    optimum, instance = cell.optimum(), cell.instance()
    if optimum in (0, NO_PLAN) or instance.uniform:
        return
    search = UnequalSearch(unequal_problem(instance), optimum - 1, MEMORY)
    search.run(UNLIMITED)
    assert search.state == "ended"
    again = search_labels(claim_of(cell, optimum - 1), 10**6, Unwatched(), MEMORY)
    assert not again.complete
    assert search.record() == {"downsets": again.downsets, "labels": again.labels, "digest": again.digest}
    assert search_labels(claim_of(cell, optimum), 10**6, Unwatched(), MEMORY).complete
