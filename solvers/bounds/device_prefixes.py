"""The prefix bound of devices that differ: work that has to come first, or last, for the memories to suffice.

Let A be the devices before some point of the pipeline, and D the downset of the ops on them. If every stage costs at
most T, the devices of A have room for R_A of a measure y of work, the ticks of one class: each for ⌊T · r⌋, r being the
largest y(v) / work(v) of any op there. A tensor that is made in D and read outside takes at least o of that room from
the stage that makes it, and from one that reads it. With memories M the parameters p of D are at least
need = p(V) − M of the devices after the point. So A can come first only if

    min { y(D) + o(D) : D a downset, p(D) ≥ need } ≤ R_A,

and likewise for what comes last. If every way to put the devices into a pipeline meets a set A that cannot come first,
no partition has a bottleneck of T.

The minimum is a knapsack with precedence: :mod:`mtpp.solvers.bounds.device_knapsacks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.names import CROSSINGS
from mtpp.solvers.bounds.device_knapsacks import FIRST, LAST, Knapsacks, Tree
from mtpp.solvers.unequal.unequal_arrays import Rates

RULE = "device-prefixes"

_MOST_SETS = 2_000
"""Sets of devices that may come first; more are not looked at."""

_MOST_OPS = 8_000
"""Sets of ancestors take a bit for each pair of ops."""

_MOST_CASES = (12, 120)
"""Cases of one knapsack at most, when a set is first looked at and when none is left that was not."""

_SAME = Fraction(1001, 1000)
"""Two classes are one measure if the ticks of ops differ by less than this factor, but for their speeds."""

Devices = tuple[int, ...]
"""The number of devices that come first: in fixed order of all, in free order of each class."""


def device_prefixes_bound(instance: Instance, lower: int, upper: int, ended: Callable[[], bool]) -> LowerBound | None:
    """Return a bound above *lower* ticks, of tier ``exact``; None if none is found.

    Parameters
    ----------
    upper
        The bottleneck of a partition: nothing above it is looked for.

    Notes
    -----
    Some hundred maximum flows at most for each set of devices on the best way.
    Ops count as they were before any merge.
    """
    base = instance if instance.ground is None else instance.ground.instance
    if base.op_count > _MOST_OPS or all(device.memory_bytes is None for device in base.machine.classes):
        return None
    ways = _Ways.of(base)
    if ways is None:
        return None
    return _Search(base, ways).run(lower, upper, ended)


@dataclass(frozen=True)
class _Ways:
    """Sets of devices that may come first, and the memories on both sides.

    Attributes
    ----------
    class_of, counts
        Class of each device, and the number of devices of each class.
    memory
        What a device of each class holds of parameters; None: any.
    """

    free: bool
    class_of: list[int]
    counts: list[int]
    memory: list[int | None]

    @classmethod
    def of(cls, instance: Instance) -> _Ways | None:
        """Return them; None if they are too many."""
        class_of = instance.cost.class_of(instance.k).tolist()
        classes = instance.machine.classes
        counts = [class_of.count(c) for c in range(len(classes))]
        number = 1
        for count in counts:
            number *= count + 1
        if instance.machine.free and number > _MOST_SETS:
            return None
        memory = [
            None
            if device.memory_bytes is None
            else device.memory_bytes - (device.activation_reserve_bytes if device.peak == "reserve" else 0)
            for device in classes
        ]
        return cls(instance.machine.free, class_of, counts, memory)

    @property
    def first(self) -> Devices:
        """No device."""
        return (0,) * len(self.counts) if self.free else (0,)

    @property
    def whole(self) -> Devices:
        """All devices."""
        return tuple(self.counts) if self.free else (len(self.class_of),)

    def all(self) -> Iterator[Devices]:
        """Yield every set, those of fewer devices first on every way."""
        yield from product(*(range(count + 1) for count in self.whole))

    def before(self, devices: Devices) -> Iterator[Devices]:
        """Yield the sets with one device less."""
        for c, count in enumerate(devices):
            if count:
                yield (*devices[:c], count - 1, *devices[c + 1 :])

    def by_class(self, devices: Devices, side: str) -> list[int]:
        """Return how many devices of each class are in a set, or outside it."""
        if not self.free:
            inside = self.class_of[: devices[0]]
            devices = tuple(inside.count(c) for c in range(len(self.counts)))
        return list(devices) if side == FIRST else [all_ - one for all_, one in zip(self.counts, devices, strict=True)]

    def held(self, devices: Devices, side: str) -> int | None:
        """Return what the memories of one side hold; None: anything."""
        total = 0
        for count, size in zip(self.by_class(devices, side), self.memory, strict=True):
            if count and size is None:
                return None
            total += count * (size or 0)
        return total


def _different(rates: Rates) -> list[int]:
    """Return classes whose ticks are not nearly proportional to those of one before."""
    chosen: list[int] = []
    for c in range(len(rates)):
        both = [(rates[c][d], rates[d][c]) for d in chosen]
        if not any(one is not None and other is not None and one * other < _SAME for one, other in both):
            chosen.append(c)
    return chosen


class _Search:
    """Knapsacks of the sets on the best way, until it does not get longer."""

    def __init__(self, instance: Instance, ways: _Ways) -> None:
        self._instance = instance
        self._ways = ways
        self._knapsacks = Knapsacks(instance)
        self._measures = _different(self._knapsacks.rates)
        self._trees: list[Tree] = []

    def run(self, lower: int, upper: int, ended: Callable[[], bool]) -> LowerBound | None:
        """Search."""
        ways = self._ways
        value = lower
        for most in _MOST_CASES:
            done: set[Devices] = set()
            while not ended():
                ticks = {devices: self._least_ticks(devices, upper) for devices in ways.all()}
                value, way = self._best_way(ticks)
                waiting = [devices for devices in way if devices not in done]
                if value >= upper or not waiting:
                    break
                for devices in waiting:
                    self._look_at(devices, upper, most, ended)
                    done.add(devices)
        return self._proven(value) if value > lower else None

    def _look_at(self, devices: Devices, upper: int, most: int, ended: Callable[[], bool]) -> None:
        """Find the least work of both sides with what they need, in so many cases each."""
        for side in (FIRST, LAST):
            need = self._need(devices, side)
            if not 0 < need <= self._knapsacks.params:
                continue
            for measure in self._measures:
                room = self._room(measure, self._ways.by_class(devices, side), upper - 1)
                if room is None or self._knapsacks.spent or ended():
                    continue
                tree = self._knapsacks.solve(measure, side, need, room + 1, most, ended)
                self._trees.append(tree)
                if tree.amount > room:
                    return

    def _need(self, devices: Devices, side: str) -> int:
        """Return the parameters that one side has to hold, for the memories of the other do not."""
        other = self._ways.held(devices, LAST if side == FIRST else FIRST)
        return 0 if other is None else max(0, self._knapsacks.params - other)

    def _least_ticks(self, devices: Devices, upper: int) -> int:
        """Return the least T within which the knapsacks leave a set that may come first, at most *upper*."""
        low = 0
        for side in (FIRST, LAST):
            need, counts = self._need(devices, side), self._ways.by_class(devices, side)
            for tree in self._trees:
                if tree.side == side and tree.need <= need:
                    low = self._least_room(tree, counts, low, upper)
        return low

    def _least_room(self, tree: Tree, counts: list[int], low: int, upper: int) -> int:
        high = upper
        if self._leaves(tree, counts, low):
            return low
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._leaves(tree, counts, middle) else (middle + 1, high)
        return low

    def _leaves(self, tree: Tree, counts: list[int], ticks: int) -> bool:
        """Tell whether devices have room for all that a tree says."""
        room = self._room(tree.measure, counts, ticks)
        return room is None or room >= tree.amount

    def _room(self, measure: int, counts: list[int], ticks: int) -> int | None:
        """Return how much of a measure devices have room for; None: any."""
        total = 0
        for count, rate in zip(counts, self._knapsacks.rates[measure], strict=True):
            if count and rate is None:
                return None
            total += count * int(ticks * (rate or 0))
        return total

    def _best_way(self, ticks: dict[Devices, int]) -> tuple[int, list[Devices]]:
        """Return the least T of any way from no devices to all, and the sets on it."""
        ways = self._ways
        most: dict[Devices, int] = {}
        came: dict[Devices, Devices] = {}
        for devices in ways.all():
            before = list(ways.before(devices))
            most[devices] = ticks[devices]
            if before:
                came[devices] = min(before, key=most.__getitem__)
                most[devices] = max(ticks[devices], most[came[devices]])
        way = [ways.whole]
        while way[-1] in came:
            way.append(came[way[-1]])
        return most[ways.whole], way

    def _proven(self, value: int) -> LowerBound:
        """Return the bound, with one tree for each set that cannot come first within less."""
        used: dict[int, None] = {}
        for devices in self._ways.all():
            for i, tree in enumerate(self._trees):
                fits = tree.need <= self._need(devices, tree.side)
                if fits and not self._leaves(tree, self._ways.by_class(devices, tree.side), value - 1):
                    used.setdefault(i)
                    break
        trees = [self._knapsacks.document(self._trees[i]) for i in sorted(used)]
        instance = self._instance
        terms = {"rule": RULE, "order": instance.machine.order, "cutoff": value, "k": instance.most_used}
        return LowerBound(value, CROSSINGS, Tier.EXACT, {**terms, "knapsacks": trees})
