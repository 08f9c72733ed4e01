"""Small random graphs on devices that differ, with costs and optima by brute force, written from the definitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import ceil
from random import Random
from typing import Any

import numpy as np
from composed_graphs import composed_edges

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.weights import Weight
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine
from mtpp.names import FIXED, FREE

NEVER = 10**18
"""Cost of a stage that exceeds the memory of its device, and of a plan that there is not."""


@dataclass(frozen=True)
class RandomCase:
    """A graph and devices.

    Attributes
    ----------
    work, params
        Of each op.
    tensors
        Producer, readers, transfer at link speed 1, bytes.
    weights
        Bytes and readers of weights that several ops read.
    devices
        Speed, link speed, latency, memory limit and fast memory.
    peak
        One of :data:`~mtpp.names.PEAK_MODES`; the reserve is 3 bytes.
    """

    work: tuple[int, ...]
    params: tuple[int, ...]
    tensors: tuple[tuple[int, tuple[int, ...], int, int], ...]
    weights: tuple[tuple[int, tuple[int, ...]], ...]
    devices: tuple[tuple[Fraction, Fraction, int, int | None, int | None], ...]
    peak: str

    @property
    def ops(self) -> int:
        """Number of ops."""
        return len(self.work)

    def machine(self, *, free: bool = False) -> Machine:
        """Return the devices, in order or to stand anywhere."""
        reserve = 3 if self.peak == "reserve" else 0
        devices = [
            Device("d", 10**12, 10**12, Link(10**12, latency, link), fast, reserve, self.peak, limit, speed)
            for speed, link, latency, limit, fast in self.devices
        ]
        levels = (Level(len(devices), devices[0].link),)
        return Machine(tuple(DeviceGroup(device, 1) for device in devices), levels, order=FREE if free else FIXED)

    def graph(self) -> CostGraph:
        """Return the graph."""
        ops = [Op(f"o{v}", w, param_bytes=p) for v, (w, p) in enumerate(zip(self.work, self.params, strict=True))]
        tensors = [
            Tensor(f"t{t}", f"o{u}", tuple(f"o{v}" for v in readers), bytes=size, transfer=moved)
            for t, (u, readers, moved, size) in enumerate(self.tensors)
        ]
        weights = [
            Weight(f"w{i}", size, tuple(f"o{v}" for v in readers)) for i, (size, readers) in enumerate(self.weights)
        ]
        return CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=tensors, weights=weights)

    def document(self) -> dict[str, Any]:
        """Return the graph as an mtpp-graph."""
        ops = zip(self.work, self.params, strict=True)
        return {
            "format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps",
            "ops": [{"name": f"o{v}", "work": work, "param_bytes": size} for v, (work, size) in enumerate(ops)],
            "tensors": [
                {"name": f"t{t}", "producer": f"o{u}", "consumers": [f"o{v}" for v in readers], "bytes": size,
                 "transfer": moved}
                for t, (u, readers, moved, size) in enumerate(self.tensors)
            ],
            "weights": [
                {"name": f"w{i}", "bytes": size, "readers": [f"o{v}" for v in readers]}
                for i, (size, readers) in enumerate(self.weights)
            ],
        }  # fmt: skip

    def instance(self, most: int | None = None, *, free: bool = False) -> Instance:
        """Return the instance in ticks, of which at most *most* devices may be used; None: all."""
        return Instance.build(self.graph(), self.machine(free=free), most_used=most)

    def cost(self, stage: Sequence[int], device: int) -> int:
        """Return f_j(S) in ticks, :data:`NEVER` above the memory limit."""
        if not stage:
            return 0
        speed, link, latency, limit, fast = self.devices[device]
        inside = set(stage)
        held = sum(self.params[v] for v in inside) + (3 if self.peak == "reserve" else self._peak(inside))
        held += sum(size for size, readers in self.weights if inside & set(readers))
        if limit is not None and held > limit:
            return NEVER
        paid = sum(ceil(self.work[v] / speed) for v in inside)
        for u, readers, moved, _ in self.tensors:
            if inside & {u, *readers} and {u, *readers} - inside:
                paid += ceil(moved / link) + latency
        return paid + (0 if fast is None else ceil(max(0, held - fast) / link))

    def _peak(self, inside: set[int]) -> int:
        """Return the most bytes live while the ops run in the file's order."""
        order, peak = sorted(inside), 0
        for now in order:
            live = 0
            for u, readers, _, size in self.tensors:
                touched = sorted(inside & {u, *readers})
                kept = u in inside and set(readers) - inside
                if touched and touched[0] <= now <= (order[-1] if kept else touched[-1]):
                    live += size
            peak = max(peak, live)
        return peak

    def bottleneck(self, partition: Partition, devices: Sequence[int]) -> int:
        """Return the largest stage cost of a partition whose stage i stands on ``devices[i]``."""
        assert sorted(devices) == list(range(len(self.devices)))
        stages = [np.flatnonzero(partition.assignment == i).tolist() for i in range(partition.k)]
        return max(self.cost(stage, device) for stage, device in zip(stages, devices, strict=True))

    def downsets(self) -> list[int]:
        """Return all sets of ops that hold what their ops read, as bits."""
        before = [0] * self.ops
        for u, readers, _, _ in self.tensors:
            for v in readers:
                before[v] |= 1 << u
        every = range(1 << self.ops)
        return [bits for bits in every if all(before[v] & ~bits == 0 for v in range(self.ops) if bits >> v & 1)]

    def optimum(self, most: int, *, free: bool) -> int:
        """Return the least bottleneck of any partition on at most *most* devices; :data:`NEVER` if there is none."""
        return self._least(self.downsets(), most, free=free)

    def cut_optimum(self, order: Sequence[int], most: int, *, free: bool) -> int:
        """Return the least bottleneck of any cut of one order."""
        return self._least([sum(1 << v for v in order[:end]) for end in range(self.ops + 1)], most, free=free)

    def frontier(self, most: int, *, free: bool) -> list[tuple[int, int]]:
        """Return bottleneck and latency of all plans that no other one beats in both, in increasing bottleneck."""
        count, whole = len(self.devices), (1 << self.ops) - 1
        prefixes = self.downsets()
        cost = cache(lambda bits, i: self.cost([v for v in range(self.ops) if bits >> v & 1], i))

        @cache
        def pairs(done: int, used: int) -> tuple[tuple[int, int], ...]:
            if done == whole:
                return ((0, 0),)
            found = set()
            first = 0 if free else used.bit_length()
            for i in range(first, count) if used.bit_count() < most else ():
                for end in prefixes:
                    if used >> i & 1 or end == done or end & done != done:
                        continue
                    paid = cost(end & ~done, i)
                    if paid < NEVER:
                        found |= {(max(paid, top), paid + rest) for top, rest in pairs(end, used | 1 << i)}
            return tuple(undominated(found))

        return list(pairs(0, 0))

    def _least(self, prefixes: Sequence[int], most: int, *, free: bool) -> int:
        count, whole = len(self.devices), (1 << self.ops) - 1
        cost = cache(lambda bits, i: self.cost([v for v in range(self.ops) if bits >> v & 1], i))

        @cache
        def least(done: int, used: int) -> int:
            if done == whole:
                return 0
            best = NEVER
            first = 0 if free else used.bit_length()
            for i in range(first, count) if used.bit_count() < most else ():
                for end in prefixes:
                    if not used >> i & 1 and end != done and end & done == done and cost(end & ~done, i) < best:
                        best = min(best, max(cost(end & ~done, i), least(end, used | 1 << i)))
            return best

        return least(0, 0)


def undominated(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs of which no other one is as small in both numbers, the smallest first number first."""
    kept: list[tuple[int, int]] = []
    for one in sorted(pairs):
        if not kept or one[1] < kept[-1][1]:
            kept.append(one)
    return kept


def random_case(seed: int) -> RandomCase:
    """Return a graph of at most six ops on at most four devices of at most three classes."""
    chance = Random(seed)
    n = chance.randint(1, 6)
    pairs = list(combinations(range(n), 2))
    tensors = []
    for u, v in chance.choices(pairs, k=chance.randint(0, n + 2)) if pairs else ():
        others = {w for w in range(u + 1, n) if chance.random() < 0.3}
        tensors.append((u, tuple(sorted({v, *others})), chance.choice([0, 1, 5, 20, 60]), chance.choice([0, 10, 30])))
    weights = [(chance.randint(1, 12), tuple(chance.sample(range(n), 2))) for _ in range(chance.choice([0, 0, n // 2]))]
    peak = chance.choice(["reserve", "reserve", "order"])
    classes = []
    for _ in range(chance.randint(1, 3)):
        limit = chance.choice([None, None, chance.randint(5, 25)])
        if limit is not None and (peak == "order" or weights):
            limit *= chance.choice([1, 3, 5])
        fast = chance.choice([None, None, None, chance.randint(5, 20)])
        speed = chance.choice([Fraction(1), Fraction(2), Fraction(1, 3), Fraction(5, 2)])
        link = chance.choice([Fraction(1), Fraction(2), Fraction(1, 8)])
        classes.append((speed, link, chance.choice([0, 0, 3]), limit, fast))
    return RandomCase(
        tuple(chance.choice([0, 1, 7, 30, 60]) for _ in range(n)),
        tuple(chance.choice([0, 1, 5, 9]) for _ in range(n)),
        tuple(tensors),
        tuple(weights),
        tuple(chance.choice(classes) for _ in range(chance.randint(1, 4))),
        peak,
    )


def composed_case(seed: int, most_ops: int = 6) -> RandomCase:
    """Return a series-parallel graph whose weights are read by one op each, on devices as :func:`random_case` draws."""
    chance = Random(seed)
    devices = random_case(seed).devices
    n = chance.randint(2, most_ops)
    readers: dict[int, list[list[int]]] = {}
    for u, v in composed_edges(n, seed, series=chance.choice([0.4, 0.6, 0.8])):
        sets = readers.setdefault(u, [])
        joined = [one for one in sets if v not in one]
        if joined and chance.random() < 0.5:
            chance.choice(joined).append(v)
        else:
            sets.append([v])
    tensors = [
        (u, tuple(sorted(one)), chance.choice([0, 1, 5, 20, 60]), 10) for u, sets in readers.items() for one in sets
    ]
    work = tuple(chance.choice([0, 1, 7, 30, 60]) for _ in range(n))
    return RandomCase(
        work, tuple(chance.choice([0, 1, 5, 9]) for _ in range(n)), tuple(tensors), (), devices, "reserve"
    )


def random_order(case: RandomCase, chance: Random) -> list[int]:
    """Return a random topological order."""
    order: list[int] = []
    while len(order) < case.ops:
        waiting = {v for u, readers, _, _ in case.tensors if u not in order for v in readers}
        order.append(chance.choice([v for v in range(case.ops) if v not in order and v not in waiting]))
    return order
