"""From a graph to a plan: ticks, contraction, bound, search, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mtpp.errors import InconsistentResult, Infeasible, InvalidPartition
from mtpp.host.stop_reason import StopReason
from mtpp.inference.contraction import Contraction, contract_named
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.inference.replicas.partition import ReplicatedPartition, with_single_devices
from mtpp.solvers import registry
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.bounds.replica_room import replica_room_bound
from mtpp.solvers.certify.closing import search_and_close
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.last_look.partition import look_at_partition
from mtpp.solvers.last_look.replicas import look_at_replicas
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.memory_growth import PROVEN
from mtpp.solvers.timed_search import search_in_time


def solve(
    instance: Instance,
    graph: CostGraph,
    limits: SearchLimits,
    *,
    algorithm: str = registry.DEFAULT,
    together: Sequence[Sequence[str]] = (),
    contraction: Contraction | None = None,
    start: SearchResult | None = None,
    closing: bool = False,
) -> Plan:
    """Search for a partition of *graph* and prove a lower bound.

    Parameters
    ----------
    instance
        Of *graph*, with the k that is asked for.
    limits
        Its ``lower_bound`` is replaced by the one that is proven here.
    together
        Groups of op names that must share a stage; bound and search respect them.
    contraction
        Of *instance* by these groups, where :func:`contract_groups` has made it before.
    start
        A partition that is at hand (of the contracted instance, if there are groups); the result is not worse.
    closing
        Whether a search with a time limit leaves a part of it to the bounds of ``certify``, if it has no proof by then.

    Raises
    ------
    InputError
        If an algorithm or op does not exist, or an algorithm cannot handle the instance.
    Infeasible
        Proven, if an op or the total is plainly above the stage memory; else if the search found no partition.
    InconsistentResult
        If bound, bottleneck and partition contradict each other: a bug.
    """
    entry = registry.partitioner(algorithm)
    contraction = contraction or contract_groups(instance, together)
    inner = contraction.instance if contraction else instance
    refuse_infeasible(inner)
    lower = replica_room_bound(inner) if instance.replicas else first_bound(inner)
    limits.observer.bound(lower.value)
    closing = closing and limits.deadline.limit_s is not None and not instance.replicas
    own = replace(limits, lower_bound=lower.value)
    try:
        if closing:
            found = search_and_close(entry.load(), inner, own, entry.budget(inner))
        else:
            found = search_in_time(entry.load(), inner, own)
    except Infeasible as error:
        if start is None and closing and limits.stop is None and not error.problem.startswith(PROVEN):
            return solve(instance, graph, limits, algorithm=algorithm, together=together, contraction=contraction)
        if start is None:
            raise
        found = replace(start, stopped=limits.stop or StopReason.BUDGET)
    if start is not None and start.bottleneck < found.bottleneck:
        found = replace(found, partition=start.partition, bottleneck=start.bottleneck, found_by=start.found_by)
    if found.lower is not None and found.lower.value > lower.value:
        lower = found.lower
    if instance.replicas:
        found = replace(found, partition=with_single_devices(inner, found.partition))
    placed = instance if found.devices is None else instance.on(found.devices)
    plan = Plan(
        graph=graph,
        instance=placed,
        partition=lifted(contraction, found.partition, found.found_by),
        lower=lower,
        algorithm=algorithm,
        found_by=found.found_by,
        seed=limits.seed,
        evaluations=found.evaluations,
        stopped=found.stopped,
        together=together,
        coverage=found.coverage,
        devices=found.devices,
    )
    bounds = [(lower.method, lower.value)]
    if isinstance(plan.partition, ReplicatedPartition):
        look_at_replicas(
            plan.instance, plan.partition, found.bottleneck, found.found_by, together=together, bounds=bounds
        )
        return plan
    look_at_partition(
        plan.instance,
        plan.partition,
        found.bottleneck,
        found.found_by,
        together=together,
        bounds=bounds,
        costs=plan.costs,
    )
    return plan


def lifted(contraction: Contraction | None, partition: Partition, found_by: str) -> Partition:
    """Return a partition of the instance, given one of what its groups of ops were contracted to."""
    try:
        return contraction.lift(partition) if contraction else partition
    except InvalidPartition as error:
        raise InconsistentResult(f"the partition found by {found_by} is none: {error.problem}") from None


def contract_groups(instance: Instance, together: Sequence[Sequence[str]]) -> Contraction | None:
    """Merge the groups in what :func:`solve` searches; None if there are none."""
    return contract_named(instance, together) if together else None
