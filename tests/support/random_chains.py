"""Small random chains on devices with times of stages or not, and their optima by brute force from the definitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from math import ceil
from random import Random

from random_devices import undominated

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.weights import Weight
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine

RESERVE = 2


@dataclass(frozen=True)
class ChainDevice:
    """Times of stages, or speed, link speed, latency and fast memory in their place; and a memory limit."""

    times: tuple[int, ...]
    speed: Fraction
    link_speed: Fraction
    latency: int
    fast: int | None
    limit: int | None


@dataclass(frozen=True)
class RandomChain:
    """A chain and devices.

    Attributes
    ----------
    work, params
        Of each op.
    moved
        Of the tensor from each op to the next.
    shared
        Bytes and readers of a weight of several ops; None: there is none.
    devices
        In the order of the list.
    """

    work: tuple[int, ...]
    params: tuple[int, ...]
    moved: tuple[int, ...]
    shared: tuple[int, tuple[int, ...]] | None
    devices: tuple[ChainDevice, ...]

    @property
    def ops(self) -> int:
        """Number of ops."""
        return len(self.work)

    def graph(self) -> CostGraph:
        """Return the graph, whose ops stand backwards in the file."""
        ops = [Op(f"o{v}", w, param_bytes=p) for v, (w, p) in enumerate(zip(self.work, self.params, strict=True))]
        tensors = [
            Tensor(f"t{v}", f"o{v}", (f"o{v + 1}",), bytes=1, transfer=moved) for v, moved in enumerate(self.moved)
        ]
        weights = [] if self.shared is None else [Weight("w", self.shared[0], tuple(f"o{v}" for v in self.shared[1]))]
        return CostGraph.build(name="g", time_unit="ps", ops=ops[::-1], tensors=tensors, weights=weights)

    def machine(self, order: str) -> Machine:
        """Return the devices."""
        devices = [
            Device(
                "d", 10**12, 10**12, Link(10**12, one.latency, one.link_speed), one.fast, RESERVE, "reserve", one.limit,
                one.speed, stage_times_ps=one.times,
            )
            for one in self.devices
        ]  # fmt: skip
        groups = tuple(DeviceGroup(device, 1, f"n{i}") for i, device in enumerate(devices))
        return Machine(groups, (Level(len(devices), devices[0].link),), "m", order)

    def cost(self, begin: int, end: int, device: ChainDevice) -> int | None:
        """Return f_j of the ops between two positions; None: it may not be."""
        held = sum(self.params[begin:end]) + RESERVE
        if self.shared is not None and any(begin <= v < end for v in self.shared[1]):
            held += self.shared[0]
        if device.limit is not None and held > device.limit:
            return None
        if device.times:
            return device.times[end - begin - 1] if end - begin <= len(device.times) else None
        paid = sum(ceil(work / device.speed) for work in self.work[begin:end])
        for v, moved in enumerate(self.moved):
            if (begin <= v < end) != (begin <= v + 1 < end):
                paid += ceil(moved / device.link_speed) + device.latency
        over = 0 if device.fast is None else max(0, held - device.fast)
        return paid + ceil(over / device.link_speed)

    def optimum(self, order: str, most: int) -> int | None:
        """Return the least bottleneck; None: there is no plan."""
        return min((top for top, _ in self.figures(order, most)), default=None)

    def frontier(self, order: str, most: int) -> list[tuple[int, int]]:
        """Return bottleneck and latency of all plans that no other one beats in both, in increasing bottleneck."""
        return undominated(self.figures(order, most))

    def figures(self, order: str, most: int) -> Iterator[tuple[int, int]]:
        """Give bottleneck and latency of every plan."""
        for ends in _cuts(self.ops):
            ranges = list(zip((0, *ends), (*ends, self.ops), strict=True))
            if len(ranges) > min(most, len(self.devices)):
                continue
            chosen = permutations if order == "free" else combinations
            for devices in chosen(self.devices, len(ranges)):
                costs = [self.cost(*where, device) for where, device in zip(ranges, devices, strict=True)]
                known = [cost for cost in costs if cost is not None]
                if len(known) == len(costs):
                    yield max(known), sum(known)

    def replicated_optimum(self, order: str, most: int) -> int | None:
        """Return the least bottleneck where stages may stand on several devices; None: there is no plan."""
        count = len(self.devices)

        @cache
        def shared(begin: int, end: int, chosen: tuple[int, ...]) -> int | None:
            each = [self.cost(begin, end, self.devices[j]) for j in chosen]
            if None in each:
                return None
            ticks = [one for one in each if one is not None]
            return 0 if 0 in ticks else ceil(1 / sum(Fraction(1, one) for one in ticks))

        @cache
        def least(begin: int, used: tuple[int, ...]) -> int | None:
            if begin == self.ops:
                return 0
            best: int | None = None
            left = [j for j in range(count) if j not in used and (order == "free" or not used or j > max(used))]
            for size in range(1, min(len(left), most - len(used)) + 1):
                for chosen in combinations(left, size):
                    for end in range(begin + 1, self.ops + 1):
                        here = shared(begin, end, chosen)
                        if here is None or (best is not None and here >= best):
                            continue
                        after = least(end, tuple(sorted((*used, *chosen))))
                        if after is not None:
                            best = max(here, after) if best is None else min(best, max(here, after))
            return best

        return least(0, ())


def _cuts(ops: int) -> Iterator[Sequence[int]]:
    for count in range(ops):
        yield from combinations(range(1, ops), count)


def random_chain(random: Random) -> RandomChain:
    """Return a chain of up to 7 ops and up to 4 devices of up to 3 classes, at least one with times of stages."""
    ops = random.randint(1, 7)
    params = tuple(random.choice((0, 1, 3)) for _ in range(ops))
    limited = random.random() < 0.5
    classes = [_random_device(random, ops, i == 0 or random.random() < 0.6, limited) for i in range(3)]
    classes = classes[: random.randint(1, 3)]
    devices = [classes[0], *(random.choice(classes) for _ in range(random.randint(0, 3)))]
    random.shuffle(devices)
    readers = tuple(sorted(random.sample(range(ops), min(ops, 2))))
    return RandomChain(
        tuple(random.randint(0, 9) for _ in range(ops)),
        params,
        tuple(random.randint(0, 5) for _ in range(ops - 1)),
        (random.randint(0, 4), readers) if random.random() < 0.4 else None,
        tuple(devices),
    )


def _random_device(random: Random, ops: int, tabled: bool, limited: bool) -> ChainDevice:
    limit = random.randint(RESERVE, 14) if limited and random.random() < 0.7 else None
    if tabled:
        times = tuple(random.choice((0, *range(3, 25))) for _ in range(random.randint(1, ops)))
        return ChainDevice(times, Fraction(1), Fraction(1), 0, None, limit)
    speed, link = Fraction(random.randint(1, 4), random.randint(1, 3)), Fraction(random.randint(1, 3), 2)
    fast = random.randint(RESERVE, 8) if random.random() < 0.3 else None
    return ChainDevice((), speed, link, random.randint(0, 2), fast, limit)
