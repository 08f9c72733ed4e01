"""From a graph to a plan: ticks, contraction, bound, search, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from mtpp.errors import InconsistentResult, Infeasible, InvalidPartition
from mtpp.host.ending import EndedEarly, run_in_time
from mtpp.host.memory_limit import limited_memory, spare_memory
from mtpp.host.progress import Counting
from mtpp.host.stop_reason import StopReason
from mtpp.inference.contraction import Contraction, contract_named
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.inference.replicas.partition import ReplicatedPartition, with_single_devices
from mtpp.solvers import registry
from mtpp.solvers.best_so_far import BestSoFar
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.bounds.replica_room import replica_room_bound
from mtpp.solvers.feasibility import none_found, refuse_infeasible
from mtpp.solvers.last_look.partition import look_at_partition
from mtpp.solvers.last_look.replicas import look_at_replicas
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.initial_partition import first_partition


def solve(
    instance: Instance,
    graph: CostGraph,
    limits: SearchLimits,
    *,
    algorithm: str = registry.DEFAULT,
    together: Sequence[Sequence[str]] = (),
    contraction: Contraction | None = None,
    start: SearchResult | None = None,
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
    try:
        found = search_in_time(entry.load(), inner, replace(limits, lower_bound=lower.value))
    except Infeasible:
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


def search_in_time(
    partitioner: registry.Partitioner, instance: Instance, limits: SearchLimits, *, none: Infeasible | None = None
) -> SearchResult:
    """Search, and where a limit is past before the search comes back, return the best that it has told of.

    That is at least a cut of the graph's own order into stages of about equal work, made beforehand where there is a
    limit. Without one only Ctrl-C gives a search up, a moment after it was asked to end.

    Parameters
    ----------
    none
        Raised where nothing was found, for a search whose objective is not the bottleneck: no cut is made for it.

    Raises
    ------
    Infeasible
        As the partitioner; or because nothing that keeps to the stage memory was found in the time.
    """
    best = BestSoFar()
    limited = limits.deadline.limit_s is not None or limited_memory()
    first = first_partition(instance) if limited and none is None else None
    if first is not None:
        cut = first.partition
        best.offer(first.bottleneck, first.found_by, lambda: cut)
    given_up = Event()
    counting = Counting(limits.observer)
    own = replace(limits, keeper=best, observer=counting, interrupted=lambda: given_up.is_set() or limits.interrupted())
    try:
        return run_in_time(lambda: partitioner(instance, own), limits.deadline, lambda: limits.stop)
    except Infeasible:
        ended = limits.stop
        if first is None or ended is None:
            raise
        stopped = ended
    except EndedEarly as end:
        given_up.set()  # or it might go on beside what comes next
        stopped = end.stopped
    spare_memory()
    found = best.partition()
    if found is None and none is not None:
        raise none
    if found is None and not limited and (first := first_partition(instance)) is not None:
        found = first.partition, first.bottleneck, first.found_by
    if found is None:
        raise none_found(instance, "the file's order in the time")
    partition, bottleneck, found_by = found
    if bottleneck <= limits.lower_bound:
        stopped = StopReason.OPTIMAL
    return SearchResult(partition, bottleneck, found_by, max(1, counting.count), stopped, lower=best.lower)


def contract_groups(instance: Instance, together: Sequence[Sequence[str]]) -> Contraction | None:
    """Merge the groups in what :func:`solve` searches; None if there are none."""
    return contract_named(instance, together) if together else None
