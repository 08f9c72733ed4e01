"""The search for a chain of stages within a limit: for each position the devices that suffice for the ops before it.

A *label* of a position says which devices suffice for the ops before it: in free order the number of each class; in
fixed order the number of leading devices, and of those used where that is limited. Labels that another one of the same
position makes needless, being no smaller in any number, are dropped. In free order labels are left out, too, at which
the devices so far and the cheapest chain for the rest cost more than all devices (:mod:`.prices`): no plan goes on
from there. Prices along a chain only rise, so that labels kept do not depend on the order in which they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from math import inf
from typing import TypeAlias

from mtpp.solvers.unequal.chains.prices import Prices
from mtpp.solvers.unequal.chains.stage_choices import NONE, StageChoices

Label: TypeAlias = tuple[int, ...]

Stage: TypeAlias = tuple[int, int, tuple[int, ...]]
"""First op of a stage by its position, position after the last, and its devices.

In free order the number of each class, in fixed order the numbers of the devices themselves.
"""

_BETWEEN_LOOKS = 50
"""Labels made, or made in vain, between two looks at the clock."""


_PART_OF_SLACK = 8
"""Of what devices may cost beyond the cheapest, the part that few sets may."""


class TooManyLabels(Exception):
    """The labels take more memory than the search may, or its time is over."""


@dataclass(frozen=True)
class FoundLabels:
    """Outcome of a search.

    Attributes
    ----------
    stages
        Of a plan within the limit; None: there is none.
    labels
        Of each position.
    """

    stages: list[Stage] | None
    labels: list[list[Label]]

    @property
    def count(self) -> int:
        """Number of all labels."""
        return sum(map(len, self.labels))

    def digest(self) -> str:
        """Return the SHA-256 of all labels, sorted as bytes: position and numbers, in 4 bytes each."""
        rows = sorted(
            b"".join(number.to_bytes(4, "big") for number in (position, *label))
            for position, labels in enumerate(self.labels)
            for label in labels
        )
        return sha256(b"".join(rows)).hexdigest()


@dataclass(frozen=True, eq=False)
class LabelSearch:
    """The devices of a search.

    Attributes
    ----------
    class_of
        Class of each device, in the order of the list.
    most
        Devices that may be used.
    most_labels
        That the search may keep.
    ended
        Tells whether its time is over.
    most_looks
        Labels that it may go on from.
    few_sets
        Sets of devices for a stage that are tried, the cheapest ones; None: all. With few, no plan found says nothing.
    """

    class_of: tuple[int, ...]
    most: int
    most_labels: int
    ended: Callable[[], bool]
    most_looks: float = inf
    few_sets: int | None = None

    def in_any_order(self, choices: StageChoices, prices: Prices) -> FoundLabels:
        """Search with the devices in any order.

        Raises
        ------
        TooManyLabels
            If the labels are more than may be kept, or the time is over.
        """
        counts = tuple(self.class_of.count(c) for c in range(len(prices.by_class)))
        each, rest, budget = prices.each, prices.rest, prices.budget
        slack = budget - rest[0]
        best = choices.cheapest_sets(each)
        sets: dict[int, list[Label]] = {}

        def sets_of(group: int) -> list[Label]:
            """Return the sets of a group that prices may leave in a plan."""
            if group not in sets:
                if self.ended():
                    raise TooManyLabels
                least = best[group][0]
                if self.few_sets is None:
                    sets[group] = choices.sets_within(group, each, least + slack)
                else:
                    found = choices.sets_within(group, each, least + slack // _PART_OF_SLACK)
                    sets[group] = sorted(found, key=lambda one: _price(one, each))[: self.few_sets]
            return sets[group]

        def onward(p: int, label: Label) -> list[tuple[int, Label, Label]]:
            paid = sum(q * used for q, used in zip(each, label, strict=True))
            left = self.most - sum(label)
            found = []
            for size, group in choices.stages[p]:
                if rest[p + size] >= NONE:
                    continue
                for devices in sets_of(group):
                    new = tuple(a + b for a, b in zip(label, devices, strict=True))
                    if sum(devices) > left or any(a > b for a, b in zip(new, counts, strict=True)):
                        continue
                    price = sum(q * used for q, used in zip(each, devices, strict=True))
                    total = paid + price + rest[p + size]
                    if total <= budget:
                        found.append((p + size, new, devices, total))
            found.sort(key=lambda one: -one[3])
            return [one[:3] for one in found]

        first = (0,) * len(counts)
        return self._search(choices.op_count, [] if prices.refute else [first], onward)

    def in_fixed_order(self, choices: StageChoices) -> FoundLabels:
        """Search with the devices in the order of the list, some of them left out.

        Raises
        ------
        TooManyLabels
            As :meth:`in_any_order`.
        """
        limited = self.most < len(self.class_of)
        following: dict[tuple[int, int], list[tuple[int, ...]]] = {}

        def onward(p: int, label: Label) -> list[tuple[int, Label, Label]]:
            found = []
            for size, group in choices.stages[p]:
                key = label[0], group
                if key not in following:
                    following[key] = choices.following(self.class_of, label[0], group, limited=limited)
                for devices in following[key]:
                    used = [number + len(devices) for number in label[1:]]
                    if not used or used[0] <= self.most:
                        found.append((p + size, (devices[-1] + 1, *used), devices))
            return found

        return self._search(choices.op_count, [(0, 0) if limited else (0,)], onward)

    def _search(
        self,
        n: int,
        first: Sequence[Label],
        onward: Callable[[int, Label], list[tuple[int, Label, Label]]],
    ) -> FoundLabels:
        """Search depth first: labels of far positions go on before others, the last that were made first of all."""
        labels: list[set[Label]] = [set() for _ in range(n + 1)]
        labels[0].update(first)
        waiting = [(0, label) for label in first]
        came_from: dict[tuple[int, Label], tuple[int, Label, tuple[int, ...]]] = {}
        made = looked = tried = 0
        while waiting:
            p, label = waiting.pop()
            if label not in labels[p]:  # another one has made it needless since
                continue
            for position, new, devices in onward(p, label):
                tried += 1
                if tried % _BETWEEN_LOOKS == 0 and self.ended():
                    raise TooManyLabels
                front = labels[position]
                if any(_covers(one, new) for one in front):
                    continue
                needless = [one for one in front if _covers(new, one)]
                front.difference_update(needless)
                front.add(new)
                came_from[position, new] = (p, label, devices)
                made += 1
                if position == n:
                    return FoundLabels(_stages(came_from, n, new), [list(front) for front in labels])
                waiting.append((position, new))
            looked += 1
            if made > self.most_labels or looked > self.most_looks:
                raise TooManyLabels
        return FoundLabels(None, [list(front) for front in labels])


def _price(devices: Label, each: Sequence[int]) -> int:
    return sum(q * used for q, used in zip(each, devices, strict=True))


def _covers(one: Label, other: Label) -> bool:
    """Tell whether one label makes another one needless."""
    return all(a <= b for a, b in zip(one, other, strict=True))


def _stages(
    came_from: Mapping[tuple[int, Label], tuple[int, Label, tuple[int, ...]]], end: int, last: Label
) -> list[Stage]:
    """Return the stages that lead to a label of the end."""
    ends, devices = [end], []
    label = last
    while ends[-1] > 0:
        before, label, used = came_from[ends[-1], label]
        ends.append(before)
        devices.append(used)
    bounds = pairwise(reversed(ends))
    return [(begin, end, used) for (begin, end), used in zip(bounds, reversed(devices), strict=True)]
