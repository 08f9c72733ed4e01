"""Plans whose tensors pass from neighbour to neighbour, and their proofs, against brute force and a second search."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from device_cells import DeviceCell
from random_devices import NEVER, random_order
from random_neighbours import NeighbourCase, random_neighbours
from seeds import sampled

from mtpp.errors import Infeasible
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.orders.neighbour_slicing import slicer_of
from mtpp.solvers.partitioners.auto import partition

SEEDS = sampled(range(10_000), 200)


class Cell(DeviceCell[NeighbourCase]):
    """A cell of such a graph."""

    def bottleneck(self, plan: Partition) -> int:
        """Return the largest cost of a plan's stages on the devices that it names."""
        devices = plan.devices if isinstance(plan, PlacedPartition) else range(self.case.count)
        assert self.free or list(devices) == list(range(self.case.count))
        busy = [i for i in range(plan.k) if i not in plan.empty_stages]
        assert len(busy) <= self.most
        stages = [np.flatnonzero(plan.assignment == i).tolist() for i in busy]
        return max(self.case.stage_costs(stages, [devices[i] for i in busy]))


def random_cell(seed: int) -> Cell:
    """Return a random graph on random devices with links."""
    chance, case = Random(seed), random_neighbours(seed)
    k = case.count
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
    """The least bottleneck, proven, with stages that cost it on the devices that the plan names; no bound is above."""
    cell = random_cell(seed)
    optimum, found = cell.optimum(), solve(cell)
    assert first_bound(cell.instance()).value <= optimum
    if found is None:
        assert optimum == NEVER
        return
    assert found.bottleneck == optimum == cell.bottleneck(found.partition)
    assert found.stopped == "optimal"


@pytest.mark.parametrize("seed", SEEDS)
def test_cuts_of_an_order_are_the_best(seed: int) -> None:
    """The least bottleneck over all cuts of a random order, and places of devices."""
    cell = random_cell(seed)
    order = random_order(cell.case.case, Random(seed + 1))
    cut = slicer_of(cell.instance(), cell.most, free=cell.free).best(np.array(order, dtype=np.int32))
    optimum = cell.case.cut_optimum(order, cell.most, free=cell.free)
    assert (NEVER if cut is None else cut.bottleneck) == optimum
    if cut is not None:
        placed = PlacedPartition(cut.partition.assignment, cut.partition.k, cut.devices)
        assert cell.bottleneck(placed) == optimum


@pytest.mark.parametrize("seed", SEEDS)
def test_no_envelope_is_above(seed: int) -> None:
    """Equal devices with the best link of any pair, and direct transport, cost no more than any plan does."""
    cell = random_cell(seed)
    optimum = cell.optimum()
    if optimum < NEVER:
        found = partition(cell.instance().envelope, SearchLimits(evaluations=2_000))
        assert found.bottleneck <= optimum
