"""Small random graphs on devices with links between pairs, with optima by brute force, written from the definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil
from random import Random
from typing import Any

from random_devices import NEVER, RandomCase, random_case

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine
from mtpp.machine.pair_link import GivenLink
from mtpp.names import FIXED, FREE, NEIGHBOURS

SECOND = 10**12


@dataclass(frozen=True)
class NeighbourCase:
    """A graph and devices whose tensors pass from neighbour to neighbour.

    Attributes
    ----------
    case
        The graph, and the figures of each device.
    table
        Number of the table of each device.
    links
        By two tables what a ``[[link]]`` gives: bandwidth, latency, link speed, each of them or None.
    given
        Whether the transfer of each tensor is given; else it has bytes alone.
    """

    case: RandomCase
    table: tuple[int, ...]
    links: tuple[tuple[tuple[int, int], tuple[int | None, int | None, Fraction | None]], ...]
    given: tuple[bool, ...]

    @property
    def count(self) -> int:
        """Number of devices."""
        return len(self.table)

    def machine(self, *, free: bool) -> Machine:
        """Return the devices, in order or to stand anywhere."""
        reserve = 3 if self.case.peak == "reserve" else 0
        groups = []
        for name in range(max(self.table) + 1):
            speed, link, latency, limit, fast = self.case.devices[self.table.index(name)]
            own = Link(SECOND, latency, link)
            device = Device("d", SECOND, SECOND, own, fast, reserve, self.case.peak, limit, speed)
            groups.append(DeviceGroup(device, self.table.count(name), f"d{name}"))
        levels = (Level(self.count, groups[0].device.link),)
        links = tuple(GivenLink((f"d{a}", f"d{b}"), *figures) for (a, b), figures in self.links)
        return Machine(tuple(groups), levels, "m", FREE if free else FIXED, NEIGHBOURS, links)

    def document(self) -> dict[str, Any]:
        """Return the graph as an mtpp-graph."""
        case = self.case
        rows = enumerate(zip(case.tensors, self.given, strict=True))
        return {
            "format": "mtpp-graph",
            "version": 1,
            "name": "g",
            "time_unit": "ps",
            "ops": [
                {"name": f"o{v}", "work": work, "param_bytes": size}
                for v, (work, size) in enumerate(zip(case.work, case.params, strict=True))
            ],
            "tensors": [
                {
                    "name": f"t{t}",
                    "producer": f"o{u}",
                    "consumers": [f"o{v}" for v in readers],
                    "bytes": size,
                    **({"transfer": moved} if given else {}),
                }
                for t, ((u, readers, moved, size), given) in rows
            ],
        }

    def graph(self) -> CostGraph:
        """Return the graph."""
        case = self.case
        ops = [Op(f"o{v}", w, param_bytes=p) for v, (w, p) in enumerate(zip(case.work, case.params, strict=True))]
        rows = zip(case.tensors, self.given, strict=True)
        tensors = [
            Tensor(f"t{t}", f"o{u}", tuple(f"o{v}" for v in readers), bytes=size, transfer=moved if given else None)
            for t, ((u, readers, moved, size), given) in enumerate(rows)
        ]
        return CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=tensors)

    def instance(self, most: int, *, free: bool) -> Instance:
        """Return the instance in ticks."""
        return Instance.build(self.graph(), self.machine(free=free), most_used=most)

    def own_cost(self, inside: frozenset[int], device: int) -> int:
        """Return work and overflow of a stage, :data:`NEVER` above the memory limit."""
        speed, link, _, limit, fast = self.case.devices[device]
        held = sum(self.case.params[v] for v in inside)
        held += 3 if self.case.peak == "reserve" else self.case._peak(set(inside))
        if limit is not None and held > limit:
            return NEVER
        streamed = 0 if fast is None else ceil(max(0, held - fast) / link)
        return sum(ceil(self.case.work[v] / speed) for v in inside) + streamed

    def boundary(self, done: frozenset[int], one: int, other: int) -> int:
        """Return what each of two stages pays for the boundary after the ops that are done."""
        pair = frozenset((self.table[one], self.table[other]))
        row = next((figures for names, figures in self.links if frozenset(names) == pair), (None, None, None))
        (_, link, latency, _, _), (_, other_link, other_latency, _, _) = (
            self.case.devices[one],
            self.case.devices[other],
        )
        bandwidth = min(link, other_link) * SECOND if row[0] is None else Fraction(row[0])
        wait = max(latency, other_latency) if row[1] is None else row[1]
        speed = min(link, other_link) if row[2] is None else row[2]
        paid = 0
        for (u, readers, moved, size), given in zip(self.case.tensors, self.given, strict=True):
            if u in done and set(readers) - done:
                paid += wait + ceil(moved / speed if given else size * SECOND / bandwidth)
        return paid

    def stage_costs(self, stages: Sequence[Sequence[int]], devices: Sequence[int]) -> list[int]:
        """Return the costs of stages that are not empty, in pipeline order."""
        done: frozenset[int] = frozenset()
        costs = []
        for i, (stage, device) in enumerate(zip(stages, devices, strict=True)):
            left = self.boundary(done, devices[i - 1], device) if i else 0
            done |= frozenset(stage)
            right = self.boundary(done, device, devices[i + 1]) if i + 1 < len(devices) else 0
            costs.append(self.own_cost(frozenset(stage), device) + left + right)
        return costs

    def optimum(self, most: int, *, free: bool) -> int:
        """Return the least bottleneck of any partition on at most *most* devices; :data:`NEVER` if there is none."""
        return self._least(self.case.downsets(), most, free=free)

    def cut_optimum(self, order: Sequence[int], most: int, *, free: bool) -> int:
        """Return the least bottleneck of any cut of one order."""
        return self._least([sum(1 << v for v in order[:end]) for end in range(self.case.ops + 1)], most, free=free)

    def _least(self, prefixes: Sequence[int], most: int, *, free: bool) -> int:
        return min((worst for worst, _ in self._frontier(prefixes, most, free=free)), default=NEVER)

    def frontier(self, most: int, *, free: bool) -> list[tuple[int, int]]:
        """Return bottleneck and latency of all plans that no other one beats in both, in increasing bottleneck."""
        return self._frontier(self.case.downsets(), most, free=free)

    def _frontier(self, prefixes: Sequence[int], most: int, *, free: bool) -> list[tuple[int, int]]:
        downsets = [frozenset(v for v in range(self.case.ops) if bits >> v & 1) for bits in prefixes]
        own, boundary = cache(self.own_cost), cache(self.boundary)

        @cache
        def best(done: frozenset[int], used: frozenset[int], last: int, paid: int) -> tuple[tuple[int, int], ...]:
            """Return the figures of the last stage and all after it, given what it paid so far."""
            if len(done) == self.case.ops:
                return ((paid, paid),)
            found = []
            first = 0 if free else last + 1
            for i in range(first, self.count) if len(used) < most else ():
                if i in used:
                    continue
                between = 0 if last < 0 else boundary(done, last, i)
                for end in downsets:
                    if done < end and (cost := own(end - done, i)) < NEVER:
                        rest = best(end, used | {i}, i, between + cost)
                        found += [(max(paid + between, worst), paid + between + total) for worst, total in rest]
            return tuple(_unbeaten(found))

        return list(best(frozenset(), frozenset(), -1, 0))


def _unbeaten(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for worst, total in sorted(set(points)):
        if not kept or total < kept[-1][1]:
            kept.append((worst, total))
    return kept


def random_neighbours(seed: int) -> NeighbourCase:
    """Return a graph of at most seven ops on at most four devices in at most three tables, some pairs with links."""
    chance = Random(seed)
    case = replace(random_case(chance.randrange(10**9)), weights=())
    if case.ops < 7 and chance.random() < 0.3:
        case = replace(case, work=(*case.work, 30), params=(*case.params, 1))
    kinds = [chance.choice(case.devices) for _ in range(chance.randint(1, 3))]
    table = sorted(chance.randrange(len(kinds)) for _ in range(chance.randint(1, 4)))
    table = [sorted(set(table)).index(one) for one in table]
    names = range(max(table) + 1)
    pairs = [(a, b) for a in names for b in names if a < b or (a == b and table.count(a) > 1)]
    links = []
    for pair in pairs:
        if chance.random() < 0.6:
            figures = (
                chance.choice([None, SECOND, 4 * SECOND, SECOND // 5]),
                chance.choice([None, 0, 0, 2, 9]),
                chance.choice([None, Fraction(1), Fraction(3), Fraction(1, 4)]),
            )
            links.append((pair if chance.random() < 0.5 else pair[::-1], figures))
    given = tuple(chance.random() < 0.6 for _ in case.tensors)
    devices = tuple(kinds[one % len(kinds)] for one in table)
    return NeighbourCase(replace(case, devices=devices), tuple(table), tuple(links), given)
