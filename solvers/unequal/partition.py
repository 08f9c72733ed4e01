"""The best partition over devices that differ, and its proof: an exhaustive search from both sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.initial_partition import first_partition
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.registry import default_proof
from mtpp.solvers.unequal.enumeration import unequal_problem


def partition_unequal(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Search on the instance after merges that hold on devices of every class.

    Raises
    ------
    Infeasible
        Proven, if no partition keeps to the memories of the devices; else because none was found.

    Notes
    -----
    Exponential in the width of the graph at worst. Without a deadline the result depends on the number of evaluations
    alone, as long as the memory suffices.
    """
    reduced = reduce_instance(instance, ended=limits.ended)
    prover = Prover(reduced, limits, unequal_problem(reduced.instance))
    n = reduced.instance.op_count
    timed = limits.deadline.limit_s is not None
    steps = UNLIMITED if timed else n * default_proof(instance)
    best = first_on_devices(instance)
    limits.observer.phase("downset")
    if best is None:
        found = prover.any_partition(steps)
        if found is None:
            raise none_found(instance, "the file's order")
        assert isinstance(found, PlacedPartition)
        lifted = reduced.lift(found)
        costs = stage_costs(instance.on(found.devices), lifted)
        best = SearchResult(lifted, costs.bottleneck, "downset", 1, StopReason.BUDGET)
    limits.tell(best)
    upper = best.bottleneck
    while not prover.exhausted(upper) and limits.stop is None and prover.steps < steps:
        before = prover.steps
        upper = prover.close(upper, steps - prover.steps)
        if prover.steps == before and prover.lower < upper:
            break
    if prover.found is not None and upper < best.bottleneck:
        best = replace(best, partition=reduced.lift(prover.found), bottleneck=upper, found_by="downset")
    stopped = StopReason.OPTIMAL if prover.lower >= upper else limits.stop or StopReason.BUDGET
    return replace(best, evaluations=max(1, -(-prover.steps // n)), stopped=stopped, lower=prover.bound)


def first_on_devices(instance: Instance) -> SearchResult | None:
    """Return a first partition: all ops on one device, or the graph's own order cut into about equal work.

    None if a stage exceeds the memory of its device in each, which proves nothing about others.
    """
    found = [one for one in [first_partition(instance)] if one is not None and not instance.spare]
    whole = np.zeros(instance.op_count, dtype=np.int32)
    for device in sorted({instance.machine.class_of.index(c) for c in instance.machine.class_of}):
        stages = whole + (0 if instance.machine.free else device)
        others = [i for i in range(instance.k) if i != device]
        devices = (device, *others) if instance.machine.free else tuple(range(instance.k))
        partition = PlacedPartition.on(instance, stages, devices)
        placed = instance.on(devices)
        costs = stage_costs(placed, partition)
        if keeps_stage_memory(placed, costs):
            found.append(SearchResult(partition, costs.bottleneck, "one device", 1, StopReason.FINISHED))
    return min(found, key=lambda one: one.bottleneck, default=None)
