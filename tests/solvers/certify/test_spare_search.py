"""The search for partitions that goes on beside bounds."""

from __future__ import annotations

from itertools import pairwise

import pytest
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum

from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.machine.machine import Machine
from mtpp.solvers.certify import spare_search
from mtpp.solvers.certify.spare_search import SpareSearch
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.reduction.reduction import reduce_instance


@pytest.mark.parametrize("seed", range(8))
def test_each_partition_told_is_better_than_the_last_and_the_best_is_optimal(seed: int) -> None:
    """They are of the instance before its merges, whatever partition the search began with; nothing else is told."""
    graph = random_graph(seed, 8)
    instance = Instance.build(graph, Machine.uniform(3, LINK))
    told: list[tuple[Partition, str]] = []
    optimum = brute_force_optimum(graph, LINK, 3)
    limits = SearchLimits(UNLIMITED, lower_bound=optimum)
    search = SpareSearch(reduce_instance(instance), limits, lambda partition, by: told.append((partition, by)))
    start = Partition.from_stages(instance, [0] * 8)
    costs = [bottleneck(instance, start)]
    search.take_turn(start, costs[0], Deadline(20.0), lambda: False)
    costs += [bottleneck(instance, partition) for partition, _ in told]
    assert all(later < earlier for earlier, later in pairwise(costs))
    assert costs[-1] == optimum
    assert {by for _, by in told} <= {"anneal", "brkga"}


def test_a_search_that_is_to_end_tells_nothing() -> None:
    """Nor does one whose time is up; both may be taken up again."""
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    told: list[Partition] = []
    search = SpareSearch(reduce_instance(instance), SearchLimits(UNLIMITED), lambda found, _: told.append(found))
    start = Partition.from_stages(instance, [0] * 8)
    search.take_turn(start, bottleneck(instance, start), Deadline(20.0), lambda: True)
    search.take_turn(start, bottleneck(instance, start), Deadline(0.0), lambda: False)
    assert told == []
    search.take_turn(start, bottleneck(instance, start), Deadline(20.0), lambda: len(told) > 0)
    assert told


def test_a_search_without_memory_lets_the_bounds_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells nothing, and is not begun again."""
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    tries: list[int] = []

    def short(*_: object, **__: object) -> None:
        tries.append(1)
        raise MemoryError

    monkeypatch.setattr(spare_search, "Portfolio", short)
    search = SpareSearch(reduce_instance(instance), SearchLimits(UNLIMITED), lambda *_: pytest.fail("told"))
    start = Partition.from_stages(instance, [0] * 8)
    for _ in range(2):
        search.take_turn(start, bottleneck(instance, start), Deadline(20.0), lambda: False)
    assert tries == [1]
