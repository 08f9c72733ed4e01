"""Last look at a partition whose stages stand on several devices: its devices, costs and memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from mtpp.errors import InconsistentResult, InvalidPartition
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.replicas.costs import ClassFigures, replica_costs
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.solvers.last_look.partition import look_at_bounds, look_at_groups, look_at_sums


def look_at_replicas(
    instance: Instance,
    partition: ReplicatedPartition,
    bottleneck: int,
    found_by: str,
    *,
    together: Sequence[Sequence[str]] = (),
    bounds: Iterable[tuple[str, int]] = (),
) -> None:
    """Derive costs and memory of each stage on each device, and hold them to what the search says.

    As :func:`~mtpp.solvers.last_look.partition.look_at_partition`, whose parameters these are. Work, parameters and
    transfers are summed up once for each class of devices.

    Notes
    -----
    O(classes · (n + pins)).
    """
    try:
        again = partition.over(instance, partition.assignment)
    except InvalidPartition as error:
        raise InconsistentResult(f"the partition found by {found_by} is none: {error.problem}") from None
    plain = Partition(again.assignment, again.k)
    for c, costs in enumerate(ClassFigures.of(instance, again).by_class):
        look_at_sums(instance.of_class(c), plain, costs)
    found = replica_costs(instance, again)
    for s, (each, cost) in enumerate(zip(found.each, found.cost.tolist(), strict=True)):
        ticks = [one for one in each if one is not None]
        if len(ticks) < len(each):
            raise InconsistentResult(f"stage {s}, found by {found_by}, needs more memory than one of its devices has")
        if (0 in ticks) != (cost == 0) or (cost and not _is_shared(cost, ticks)):
            raise InconsistentResult(f"stage {s} costs {cost} ticks on devices that take {ticks} each")
    if found.bottleneck != bottleneck:
        raise InconsistentResult(
            f"{found_by} found a bottleneck of {bottleneck} ticks, and its slowest stage costs {found.bottleneck}"
        )
    look_at_groups(instance, again, together, found_by)
    look_at_bounds(bottleneck, bounds)


def _is_shared(cost: int, ticks: Sequence[int]) -> bool:
    """Return whether devices serve a request every so many ticks together, and not in a tick less."""
    rate = sum(Fraction(1, one) for one in ticks)
    return cost * rate >= 1 > (cost - 1) * rate
