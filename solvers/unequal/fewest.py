"""The fewest devices of a machine on which no stage costs more than a limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers import registry
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.downsets.enumeration import downset_problem
from mtpp.solvers.downsets.prover import DEFAULT_MEMORY_BYTES, Problem
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.multilevel import LARGE
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.unequal.neighbours import exhaustive_problem

_STEPS = 1 << 24
"""Of the exhaustive search for each number of devices."""

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
    """

    used: int
    start: SearchResult
    proven: bool


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
    proven = True
    for used in range(1, count + 1):
        limits.observer.phase(f"{used} device{'s' if used > 1 else ''}")
        instance = of(used)
        limit = limit_of(instance)
        found, decided = _decided(instance, limit, limits)
        if found is not None:
            return FewestDevices(used, found, proven)
        proven = proven and decided
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


def _refuse_long_op(instance: Instance, limit: int) -> None:
    longest = int(instance.work.argmax())
    if instance.work[longest] > limit:
        raise Infeasible(
            f"proven infeasible: op {instance.op_names[longest]!r} alone takes "
            f"{instance.describe(int(instance.work[longest]))} on the fastest device for it, more than the "
            f"{instance.describe(limit)} allowed",
            parameter="max_bottleneck",
        )


def _decided(instance: Instance, limit: int, limits: SearchLimits) -> tuple[SearchResult | None, bool]:
    """Return a partition within the limit, or none, and whether that is proven."""
    try:
        refuse_infeasible(instance)
    except Infeasible:
        return None, True
    if first_bound(instance).value > limit:
        return None, True
    state = "full"
    if not instance.cost.counts_ops:
        state, partition = _searched(instance, limit, limits)
        if partition is not None:
            return SearchResult(partition, _bottleneck(instance, partition), FOUND_BY, 1, StopReason.FINISHED), True
    if state == "ended":
        return None, True
    try:
        found = registry.partitioner(registry.DEFAULT).load()(instance, replace(limits, lower_bound=limit))
    except Infeasible as error:
        return None, error.problem.startswith("proven infeasible")
    if found.bottleneck <= limit:
        return replace(found, found_by=FOUND_BY), True
    return None, found.lower is not None and found.lower.value > limit


def _searched(instance: Instance, limit: int, limits: SearchLimits) -> tuple[str, Partition | None]:
    """Search exhaustively; return the state of the search, and a partition where it has found one."""
    reduced = reduce_instance(instance, ended=limits.ended)
    inner = reduced.instance
    if inner.op_count > LARGE:
        return "full", None
    problem: Problem = downset_problem(inner) if inner.equal_devices else exhaustive_problem(inner)
    memory = DEFAULT_MEMORY_BYTES if limits.memory_bytes is None else limits.memory_bytes
    search = problem.search(min(limit, problem.most_ticks), int(_MEMORY_SHARE * memory))
    search.advance(_STEPS, _PIECE, limits.ended)
    return search.state, reduced.lift(search.partition()) if search.state == "found" else None


def _bottleneck(instance: Instance, partition: Partition) -> int:
    placed = instance.on(partition.devices) if isinstance(partition, PlacedPartition) else instance
    return bottleneck(placed, partition)
