"""The fewest devices of a machine, or stages on equal devices, on which no stage costs more than a limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import as_placed
from mtpp.solvers import registry
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.downsets.enumeration import downset_problem
from mtpp.solvers.downsets.prover import DEFAULT_MEMORY_BYTES, Problem
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.multilevel import LARGE
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.unequal.neighbours import exhaustive_problem
from mtpp.wording import counted

_STEPS = 1 << 24
"""Of the exhaustive search for each number of devices."""

_FEW_STEPS = 1 << 21
"""The same where a cut of orders has found a number of stages already."""

_PIECE = 1 << 20

_MEMORY_SHARE = 0.5
"""Of the memory, for the downsets of that search: the rest is for while they grow."""

FOUND_BY = "fewest devices"


@dataclass(frozen=True)
class FewestDevices:
    """The fewest devices found that keep to a limit.

    Attributes
    ----------
    used
        Number of devices.
    start
        A partition that keeps to it.
    proven
        Whether no fewer do.
    below
        Bound above the limit for one device fewer, which is what a document can show; None where there is none.
    """

    used: int
    start: SearchResult
    proven: bool
    below: LowerBound | None = None


class _Decision(NamedTuple):
    """Outcome for a number of devices: a partition within the limit or none, and the proof where there is none."""

    found: SearchResult | None
    proven: bool
    bound: LowerBound | None = None


def find_fewest_devices(
    of: Callable[[int], Instance], count: int, limit_of: Callable[[Instance], int], limits: SearchLimits
) -> FewestDevices:
    """Decide for one device, for two and so on whether any partition on so many keeps to a limit.

    Parameters
    ----------
    of
        The instance of which so many devices may be used at most.
    count
        Devices in all.
    limit_of
        Largest cost of a stage in ticks of an instance.
    limits
        Of the whole search. ``evaluations`` are those of each search that is not exhaustive.

    Raises
    ------
    Infeasible
        Proven, if all devices together do not keep to it; else because no partition was found that does.

    Notes
    -----
    A number of devices is passed over by a lower bound or by an exhaustive search that has ended, which are proofs.
    Where neither decides, the default search has to find a partition, and the number found is not proven to be the
    least. Devices that may be used but are not cost nothing: what keeps to the limit on some does so on more.
    """
    whole = of(count)
    refuse_infeasible(whole)
    _refuse_long_op(whole, limit_of(whole))
    proven, below = True, None
    for used in range(1, count + 1):
        limits.observer.phase(counted(used, "device"))
        instance = of(used)
        limit = limit_of(instance)
        decision = _decided(instance, limit, limits)
        if decision.found is not None:
            if below is None and proven and used > 1:
                below = _searched(of(used - 1), limit_of(of(used - 1)), limits)[2]
            return FewestDevices(used, decision.found, proven, below)
        proven, below = proven and decision.proven, decision.bound
        if limits.stop is not None:
            break
    shown = whole.describe(limit_of(whole))
    memory = " within the memory of its device" if whole.device.memory_bytes is not None else ""
    text = f"no plan on all {count} devices keeps each stage to {shown}{memory}"
    raise Infeasible(
        f"proven infeasible: {text}"
        if proven and limits.stop is None
        else f"none found: {text}, as far as was searched",
        parameter="max_bottleneck",
        remedy="allow more time per stage",
    )


def lower_stages(
    of: Callable[[int], Instance],
    used: int,
    start: SearchResult,
    limit_of: Callable[[Instance], int],
    limits: SearchLimits,
) -> FewestDevices:
    """Decide from a partition that keeps to a limit downwards whether one into fewer stages does, on equal devices.

    Parameters
    ----------
    of, limit_of, limits
        As for :func:`find_fewest_devices`.
    used, start
        Number of stages, and the partition into so many.

    Notes
    -----
    Each number of stages has an exhaustive search of limited length, then the default search where that does not end.
    Stages may be empty: where one stage fewer does not do, no smaller number does.
    """
    while used > 1:
        limits.observer.phase(counted(used - 1, "stage"))
        instance = of(used - 1)
        decision = _decided(instance, limit_of(instance), limits, _FEW_STEPS)
        if decision.found is None:
            return FewestDevices(used, start, decision.proven, decision.bound)
        busy, dense = np.unique(decision.found.partition.assignment, return_inverse=True)
        used = len(busy)
        partition = Partition.from_stages(of(used), dense.astype(np.int32))
        start = replace(decision.found, partition=partition, bottleneck=_bottleneck(of(used), partition))
    return FewestDevices(used, start, True)


def _refuse_long_op(instance: Instance, limit: int) -> None:
    longest = int(instance.work.argmax())
    if instance.work[longest] > limit:
        raise Infeasible(
            f"proven infeasible: op {instance.op_names[longest]!r} alone takes "
            f"{instance.describe(int(instance.work[longest]))} on the fastest device for it, more than the "
            f"{instance.describe(limit)} allowed",
            parameter="max_bottleneck",
        )


def _decided(instance: Instance, limit: int, limits: SearchLimits, steps: int = _STEPS) -> _Decision:
    try:
        refuse_infeasible(instance)
    except Infeasible:
        return _Decision(None, True)
    first = first_bound(instance)
    if first.value > limit:
        return _Decision(None, True, first)
    state, partition, bound = _searched(instance, limit, limits, steps)
    if partition is not None:
        ticks = _bottleneck(instance, partition)
        return _Decision(SearchResult(partition, ticks, FOUND_BY, 1, StopReason.FINISHED), True)
    if state == "ended":
        return _Decision(None, True, bound)
    try:
        found = registry.partitioner(registry.DEFAULT).load()(instance, replace(limits, lower_bound=limit))
    except Infeasible as error:
        return _Decision(None, error.problem.startswith("proven infeasible"))
    if found.bottleneck <= limit:
        return _Decision(replace(found, found_by=FOUND_BY), True)
    if found.lower is None or found.lower.value <= limit:
        return _Decision(None, False)
    return _Decision(None, True, found.lower)


def _searched(
    instance: Instance, limit: int, limits: SearchLimits, steps: int = _STEPS
) -> tuple[str, Partition | None, LowerBound | None]:
    """Search exhaustively; return the state of the search, and a partition that it has found, or what it has proven."""
    if instance.cost.counts_ops:
        return "full", None, None
    reduced = reduce_instance(instance, ended=limits.ended)
    inner = reduced.instance
    if inner.op_count > LARGE:
        return "full", None, None
    problem: Problem = downset_problem(inner) if inner.equal_devices else exhaustive_problem(inner)
    memory = DEFAULT_MEMORY_BYTES if limits.memory_bytes is None else limits.memory_bytes
    search = problem.search(limit, int(_MEMORY_SHARE * memory))
    search.advance(steps, min(steps, _PIECE), limits.ended)
    if search.state == "found":
        return search.state, reduced.lift(search.partition()), None
    if search.state == "ended":
        bound = LowerBound(search.limit + 1, "downset", Tier.ENUMERATED, search.proof(reduced))
        return search.state, None, bound
    return search.state, None, None


def _bottleneck(instance: Instance, partition: Partition) -> int:
    return bottleneck(as_placed(instance, partition), partition)
