"""Small graphs on random devices, and their optimum by brute force, from the definitions alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from random import Random

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine

RATE = 10**12
NO_PLAN = 2**62


@dataclass(frozen=True)
class SmallTensor:
    """A tensor between ops by number."""

    maker: int
    readers: tuple[int, ...]
    transfer: int
    bytes: int


@dataclass(frozen=True)
class DeviceCell:
    """A graph of few ops on few devices.

    Attributes
    ----------
    most
        Devices that may be used.
    """

    work: tuple[int, ...]
    params: tuple[int, ...]
    tensors: tuple[SmallTensor, ...]
    devices: tuple[Device, ...]
    free: bool
    most: int

    def instance(self) -> Instance:
        """Return the cell as the product has it."""
        graph = CostGraph.build(
            name="cell",
            time_unit="ps",
            ops=[Op(f"op{v}", work, param_bytes=held) for v, (work, held) in enumerate(zip(self.work, self.params))],  # noqa: B905
            tensors=[
                Tensor(f"t{i}", f"op{t.maker}", tuple(f"op{v}" for v in t.readers), bytes=t.bytes, transfer=t.transfer)
                for i, t in enumerate(self.tensors)
            ],
        )
        groups = tuple(DeviceGroup(device, 1, f"d{i}") for i, device in enumerate(self.devices))
        level = Level(len(groups), self.devices[0].link)
        machine = Machine(groups, (level,), order="free" if self.free else "fixed")
        return Instance.build(graph, machine, most_used=self.most)

    def stage_cost(self, ops: Sequence[int], device: Device) -> int:
        """Return f_j of a stage in ticks; :data:`NO_PLAN` where it exceeds the memory of its device."""
        inside = set(ops)
        if not inside:
            return 0
        held = sum(self.params[v] for v in ops) + self._peak(sorted(ops), device)
        if device.memory_bytes is not None and held > device.memory_bytes:
            return NO_PLAN
        cost = sum(ceil(Fraction(self.work[v]) / device.speed) for v in ops)
        for t in self.tensors:
            makes, reads = t.maker in inside, inside.intersection(t.readers)
            if (makes and len(reads) < len(t.readers)) or (reads and not makes):
                cost += ceil(Fraction(t.transfer) / device.link.speed) + device.link.latency_ps
        if device.fast_memory_bytes is not None:
            rate = device.link.bandwidth_bytes_per_s * Fraction(device.link.speed)
            cost += ceil(max(0, held - device.fast_memory_bytes) * RATE / rate)
        return cost

    def _peak(self, ops: Sequence[int], device: Device) -> int:
        if device.peak == "reserve":
            return device.activation_reserve_bytes
        return max(sum(t.bytes for t in self.tensors if self._live(t, ops, step)) for step in range(len(ops)))

    @staticmethod
    def _live(t: SmallTensor, ops: Sequence[int], step: int) -> bool:
        steps = [ops.index(v) for v in (t.maker, *t.readers) if v in ops]
        if not steps:
            return False
        leaves = t.maker in ops and not set(t.readers) <= set(ops)
        return min(steps) <= step <= (len(ops) if leaves else max(steps))

    def optimum(self) -> int:
        """Return the least bottleneck; :data:`NO_PLAN` if no plan keeps to the memories."""
        n, k = len(self.work), len(self.devices)
        before = [0] * n
        for t in self.tensors:
            for v in t.readers:
                before[v] |= 1 << t.maker
        downsets = [ops for ops in range(1 << n) if all(before[v] & ~ops == 0 for v in range(n) if ops >> v & 1)]

        @lru_cache(None)
        def cost(ops: int, device: Device) -> int:
            return self.stage_cost([v for v in range(n) if ops >> v & 1], device)

        @lru_cache(None)
        def best(done: int, taken: int, used: int) -> int:
            if done == (1 << n) - 1:
                return 0
            if used == self.most:
                return NO_PLAN
            least = NO_PLAN
            for i in range(k):
                if taken >> i & 1:
                    continue
                after = taken | 1 << i if self.free else (2 << i) - 1
                for ops in downsets:
                    if ops != done and ops & done == done and (own := cost(ops & ~done, self.devices[i])) < least:
                        least = min(least, max(own, best(ops, after, used + 1)))
            return least

        return best(0, 0, 0)


def random_cell(seed: int) -> DeviceCell:
    """Return up to six ops on up to four devices of up to three classes."""
    rng = Random(seed)
    n, k = rng.randint(1, 6), rng.randint(1, 4)
    tensors = []
    for _ in range(rng.randint(0, n + 2)):
        maker = rng.randrange(n)
        if maker < n - 1:
            readers = rng.sample(range(maker + 1, n), rng.randint(1, min(3, n - 1 - maker)))
            tensors.append(
                SmallTensor(maker, tuple(sorted(readers)), rng.choice([0, 1, 5, 20, 60]), rng.choice([0, 10]))
            )
    in_order = rng.random() < 0.3
    classes = [_random_device(rng, in_order) for _ in range(rng.randint(1, 3))]
    return DeviceCell(
        tuple(rng.choice([0, 1, 7, 30, 60]) for _ in range(n)),
        tuple(rng.choice([0, 1, 5, 9]) for _ in range(n)),
        tuple(tensors),
        tuple(rng.choice(classes) for _ in range(k)),
        rng.random() < 0.5,
        rng.randint(1, k) if rng.random() < 0.3 else k,
    )


def _random_device(rng: Random, in_order: bool) -> Device:
    speeds = [Fraction(1), Fraction(2), Fraction(1, 3), Fraction(5, 2)]
    link = Link(RATE, rng.choice([0, 0, 3]), rng.choice([Fraction(1), Fraction(2), Fraction(1, 8)]))
    memory = rng.choice([None, None, rng.randint(5, 25) * (3 if in_order else 1)])
    fast = rng.choice([None, None, None, rng.randint(5, 20)])
    peak, reserve = ("order", 0) if in_order else ("reserve", 3)
    return Device("device", 10**12, 10**11, link, fast, reserve, peak, memory, rng.choice(speeds))
