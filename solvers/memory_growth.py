"""The least factor by which all limits on memory have to grow for a partition to exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.progress import Silent
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.machine.link import Link
from mtpp.names import DIRECT
from mtpp.solvers import registry
from mtpp.solvers.best_so_far import Forgetful
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.limits import SearchLimits
from mtpp.units import format_bytes

PROVEN = "proven infeasible: "
"""Beginning of an error of limits that no partition keeps to."""

_EVALUATIONS = 300
"""Candidates for each factor that is tried."""

_CLOSE = Fraction(1, 1000)
"""Factors that differ by less are not told apart by halving what lies between, but by one last search."""

_MOST_FACTORS = 60


@dataclass(frozen=True)
class Growth:
    """Limits on memory grown together until a partition keeps to them.

    Attributes
    ----------
    factor
        Of all limits: a partition has been found that needs no more.
    proven
        Whether none needs less.
    device
        Number of the device that is the fullest there.
    held_bytes
        What its stage holds.
    limit_bytes
        Its limit as it is.
    """

    factor: Fraction
    proven: bool
    device: int
    held_bytes: int
    limit_bytes: int


def least_growth(instance: Instance, limits: SearchLimits) -> Growth | None:
    """Search for the least factor by which all limits on memory have to grow, times of ops left aside.

    Returns
    -------
    The least factor found, any of at most 1 where the limits do as they are; None where some device has no limit, or
    none of them is above zero.

    Notes
    -----
    Each factor that is tried is a search for any partition on the same devices with larger limits, in which nothing
    takes time: a proof that there is none is one for all times. At the end limits are tried that are just too small
    for the best partition found; where none keeps to these, its factor is the least. At most 60 searches.
    """
    sizes = [device.memory_bytes for device in instance.machine.devices]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or max(known) == 0:
        return None
    return _Search(_without_times(instance), limits).run()


class _Search:
    """One search over factors: the least one found, and one below which there is nothing."""

    def __init__(self, instance: Instance, limits: SearchLimits) -> None:
        self._instance = instance
        limits.observer.phase("memory that would do")
        self._limits = replace(
            limits,
            evaluations=_EVALUATIONS,
            lower_bound=instance.most_ticks,
            observer=Silent(),  # its partitions have other limits, and no times
            keeper=Forgetful(),
        )
        self._partitioner = registry.partitioner(registry.DEFAULT).load()
        largest = max(range(instance.k), key=lambda j: instance.machine.devices[j].memory_bytes or 0)
        self._best = self._growth(Partition.from_stages(instance, np.full(instance.op_count, largest, dtype=np.int32)))
        self._proven = True

    def run(self) -> Growth:
        """Halve what lies between the factors, then look just below the least one found."""
        low, factors = Fraction(1), 0
        while self._best.factor > 1 and factors < _MOST_FACTORS and self._limits.stop is None:
            factors += 1
            best = self._best.factor
            if best - low > _CLOSE * low:
                middle = (low + best) / 2
                if not self._try(lambda size, factor=middle: floor(size * factor)):  # type: ignore[misc]
                    low = middle
            elif not self._try(lambda size, factor=best: max(size, ceil(size * factor) - 1)):  # type: ignore[misc]
                return replace(self._best, proven=self._proven)
        return replace(self._best, proven=False)

    def _try(self, grown: Callable[[int], int]) -> bool:
        """Search for a partition that keeps to grown limits; return whether one was found."""
        instance = _with_limits(self._instance, grown)
        try:
            refuse_infeasible(instance)
            found = self._partitioner(instance, self._limits).partition
        except Infeasible as error:
            self._proven = error.problem.startswith(PROVEN)
            return False
        self._best = min(self._best, self._growth(found), key=lambda growth: growth.factor)
        return True

    def _growth(self, partition: Partition) -> Growth:
        """Return the factor that a partition needs."""
        instance, devices = self._instance, range(self._instance.k)
        own = tuple(partition.devices) if isinstance(partition, PlacedPartition) else tuple(devices)
        held = stage_costs(instance.on(own), partition).held_bytes.tolist()
        needed = []
        for size, j in zip(held, own, strict=True):
            limit = instance.machine.devices[j].memory_bytes or 0
            if size and limit:
                needed.append(Growth(Fraction(size, limit), False, j, size, limit))
        return max(needed, key=lambda growth: growth.factor, default=Growth(Fraction(0), False, 0, 0, 0))


def _without_times(instance: Instance) -> Instance:
    """Return the same ops on the same memories where nothing takes time but what a fast memory does not hold.

    No stage has replicas: they would need memory, and save nothing.
    """
    groups = [
        replace(
            group,
            device=replace(
                group.device,
                peak_flops_per_s=None,
                memory_bandwidth_bytes_per_s=None,
                link=Link(group.device.link.bandwidth_bytes_per_s if group.device.fast_memory_bytes else 1),
                speed=1,
                costs="",
            ),
        )
        for group in instance.machine.groups
    ]
    machine = replace(instance.machine, groups=tuple(groups), transport=DIRECT, pair_links=())
    cost = replace(
        instance.cost,
        machine=machine,
        boundary=None,
        work=np.zeros((len(machine.classes), instance.op_count), dtype=np.int64),
        transfer=np.zeros((len(machine.links), instance.tensor_count), dtype=np.int64),
    )
    return replace(instance, cost=cost, replicas=False)


def _with_limits(instance: Instance, grown: Callable[[int], int]) -> Instance:
    """Return the same instance with other limits on memory."""
    machine = instance.machine.altered(lambda one: replace(one, memory_bytes=grown(one.memory_bytes or 0)))
    return replace(instance, cost=replace(instance.cost, machine=machine))


def with_growth(error: Infeasible, instance: Instance, limits: SearchLimits) -> Infeasible:
    """Return the error of limits on memory that no partition keeps to, with the least growth of all that would do."""
    if error.parameter not in ("machine", "stage_memory") or limits.stop is not None or instance.cost.counts_ops:
        return error
    growth = least_growth(instance, limits)
    if growth is None or growth.factor <= 1:
        return error
    least = "the least, proven" if growth.proven else "less may do, not proven"
    factor = _decimal(growth.factor)
    if instance.uniform:
        text = (
            f"{growth.held_bytes:,} bytes ({format_bytes(growth.held_bytes)}) for each would do, × {factor} ({least})"
        )
    else:
        name = instance.machine.names[growth.device]
        text = (
            f"all limits × {factor} would do ({least}): device {name!r}, the fullest then, would hold "
            f"{growth.held_bytes:,} bytes, its limit is {growth.limit_bytes:,}"
        )
    return Infeasible(f"{error.problem}; {text}", source=error.source, where=error.where, remedy=error.remedy)


def with_hint(problem: str) -> str:
    """Return the problem of a cell with the way to learn the least growth, where limits on memory are what fails."""
    if not problem.startswith(PROVEN) or problem.startswith(f"{PROVEN}no plan has") or "stage_times" in problem:
        return problem
    return f"{problem}; `mtpp partition` tells how far the limits have to grow"


def _decimal(factor: Fraction) -> str:
    """Return a factor rounded up, to a thousandth if it is below a hundred, else to a whole number."""
    return f"{ceil(factor * 1000) / 1000:.3f}" if factor < 100 else f"{ceil(factor):,}"
