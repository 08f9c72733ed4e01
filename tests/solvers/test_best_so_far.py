"""What is kept of a search that is given up, and searches whose time is over before they begin."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from mtpp.datasets.chain import chain
from mtpp.datasets.layered import layered_network
from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.host.memory_limit import memory_limited
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.names import FILL, MEMORY
from mtpp.solvers.best_so_far import BestSoFar, Lifted
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.initial_partition import first_partition
from mtpp.solvers.reduction.coarsening import coarsen
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.registry import PARTITIONERS
from mtpp.solvers.solve import solve
from mtpp.solvers.timed_search import search_in_time

K = 4


def instance_of(n: int = 120) -> Instance:
    """Return a layered network on the default system."""
    return Instance.build(layered_network(n), Machine.uniform(K, load_device()))


def over() -> SearchLimits:
    """Return limits whose time has passed long ago."""
    return SearchLimits(UNLIMITED, deadline=Deadline(-100.0), jobs=1)


def hangs(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Tell of a partition into one stage, then never come back."""
    everything = Partition.from_stages(instance, np.zeros(instance.op_count, dtype=np.int32))
    limits.keeper.offer(5, "hangs", lambda: everything)
    threading.Event().wait()
    raise AssertionError


def test_the_best_is_kept() -> None:
    """A worse partition does not take the place of a better one."""
    kept, instance = BestSoFar(), instance_of()
    partitions = [Partition.from_stages(instance, np.full(instance.op_count, i, dtype=np.int32)) for i in range(3)]
    for cost, partition in zip((7, 3, 5), partitions, strict=True):
        kept.offer(cost, f"at {cost}", lambda partition=partition: partition)  # type: ignore[misc]
    assert kept.partition() == (partitions[1], 3, "at 3")


def test_what_is_found_after_merges_is_kept_as_it_is_before_them() -> None:
    """A keeper for the smaller instance lifts what it is offered."""
    instance = instance_of()
    reduced = reduce_instance(instance)
    small = reduced.instance
    assert small.op_count < instance.op_count
    partition = Partition.from_stages(small, np.zeros(small.op_count, dtype=np.int32))
    kept = BestSoFar()
    Lifted(kept, reduced.lift).offer(1, "it", lambda: partition)
    found = kept.partition()
    assert found is not None
    assert len(found[0].assignment) == instance.op_count


def test_a_search_that_never_comes_back_leaves_what_it_told_of() -> None:
    """The partition offered last is the result, and the time what ended it."""
    found = search_in_time(hangs, instance_of(), over())
    assert (found.found_by, found.bottleneck, found.stopped) == ("hangs", 5, "time-limit")


def test_a_search_without_memory_leaves_a_partition() -> None:
    """A MemoryError ends the search as the limit that it comes from."""

    def greedy(instance: Instance, limits: SearchLimits) -> SearchResult:
        raise MemoryError

    instance = instance_of()
    with memory_limited(2**40, read=lambda: 2**20, end=lambda: None):
        found = search_in_time(greedy, instance, SearchLimits(10))
    assert found.stopped == "memory-limit"
    assert found.bottleneck == bottleneck(instance, found.partition)


def test_a_search_that_finds_nothing_in_its_time_leaves_a_first_partition() -> None:
    """What an algorithm does not find in time may be there all the same; without a limit its word is taken."""

    def finds_nothing(instance: Instance, limits: SearchLimits) -> SearchResult:
        raise Infeasible("none found")

    instance = instance_of()
    assert search_in_time(finds_nothing, instance, over()).stopped == "time-limit"
    with pytest.raises(Infeasible):
        search_in_time(finds_nothing, instance, SearchLimits(10))


@pytest.mark.parametrize("algorithm", sorted(set(PARTITIONERS) - {MEMORY, FILL}))
def test_time_that_is_over_at_the_beginning(algorithm: str) -> None:
    """Every algorithm gives a valid partition, says what ended it, and has hardly begun."""
    graph = layered_network(120)
    instance = Instance.build(graph, Machine.uniform(K, load_device()))
    plan = solve(instance, graph, over(), algorithm=algorithm)
    assert plan.certificate.upper == bottleneck(instance, plan.partition)
    assert plan.stopped in ("time-limit", "optimal", "finished")
    assert plan.evaluations <= 100


def test_a_first_partition_is_none_worse_than_one_stage() -> None:
    """Where cutting costs more than it saves, everything is in one stage."""
    for n in (1, 2, 50):
        instance = Instance.build(chain(n), Machine.uniform(K, load_device().overriding(bandwidth_bytes_per_s=1)))
        first = first_partition(instance)
        assert first is not None
        assert first.bottleneck == bottleneck(instance, first.partition) <= int(instance.work.sum())


def test_a_first_partition_keeps_to_the_stage_memory() -> None:
    """There is none where its stages would need more; a search that finds nothing in time says so."""
    instance = instance_of()
    least = int(instance.param_bytes.max())
    tight = replace(instance, cost=replace(instance.cost, machine=instance.machine.with_memory(least)))
    assert first_partition(tight) is None

    def finds_nothing(instance: Instance, limits: SearchLimits) -> SearchResult:
        threading.Event().wait()
        raise AssertionError

    with pytest.raises(Infeasible, match="none found"):
        search_in_time(finds_nothing, tight, over())


def test_merging_and_contracting_end_when_they_are_told() -> None:
    """Nothing is merged when the time is over at the beginning, and less when it ends on the way."""
    instance = instance_of(600)
    assert reduce_instance(instance, ended=lambda: True).rounds == ()
    assert coarsen(instance, 10, ended=lambda: True) == []
    looks = iter([False, False] + [True] * 10**6)
    some = reduce_instance(instance, ended=lambda: next(looks))
    assert 0 < len(some.rounds) <= len(reduce_instance(instance).rounds)
