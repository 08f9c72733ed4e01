"""Families of sets that can be stages: what every set of a family holds, and what none does.

A family is told by some ops that its sets hold and some that they do not hold. More follows if its sets are stages of a
partition in which every stage S has weight w(S) ≤ M and w(S) ≥ m. First of all, S is convex: it has every op on a path
between two of its ops. So

1. an op on a path between two ops that S holds is in S;
2. an op that leads through one that is not in S to one that is, or the other way round, is not in S;
3. an op is not in S if S would weigh more than M with it and with what would come in by the first rule.

There are no such sets if some op is in S and not in S, if what is in S weighs more than M, or if all that may be in S
weighs less than m.

**One pass is enough.** Let ``inside`` be what S holds, with what leads to it or is reached from it called ``above`` and
``below``, itself included each time. By the first rule ``inside`` is all that is in both, and adding what the rule adds
changes neither. Nothing else puts ops inside, and what the third rule leaves out depends on nothing but ``inside``, so
that the second, which follows, has nothing to feed back.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import NamedTuple

from mtpp.checker.paths import Paths

_BYTE = 256


class Family(NamedTuple):
    """Sets of ops, bit u standing for op u.

    Attributes
    ----------
    inside, outside
        Ops that every set holds, and that none does.
    above, below
        Ops that lead to one that is inside, and that one leads to, the ones inside included.
    """

    inside: int
    outside: int
    above: int
    below: int


class Families:
    """Families of sets of ops of one graph that can be stages of a partition.

    Attributes
    ----------
    before, after
        Ops that lead to each op, and that it leads to, itself included.

    Notes
    -----
    Sets of ops are integers; a weight of one is added up byte by byte. O(n·edges/64 + 32·n) once. A family takes as
    many sums over O(n/8) bytes as it has ops that are free and joined to the inside, at worst.
    """

    def __init__(self, paths: Paths, weight: Sequence[int], most: int, least: int) -> None:
        """Let stages weigh no more than *most* and no less than *least*."""
        count = len(weight)
        self._all = (1 << count) - 1
        self._weight = weight
        self._most, self._least = most, least
        self.before, self.after = paths.leading, paths.following
        self._bytes = [_sums(weight[begin : begin + 8]) for begin in range(0, count, 8)]

    def rooted(self, op: int, outside: int) -> Family | None:
        """Return the sets with *op* and none of *outside*; None if there are none."""
        return self._closed(Family(0, outside, self.before[op], self.after[op]))

    def split(self, family: Family, op: int) -> tuple[Family | None, Family | None]:
        """Return the sets of a family that hold *op*, and those that do not; None for either if there are none."""
        inside, outside, above, below = family
        return (
            self._closed(Family(inside, outside, above | self.before[op], below | self.after[op])),
            self._without(family, 1 << op),
        )

    def draws(self, family: Family, op: int, other: int) -> bool:
        """Tell whether any set of a family that holds *op* holds *other*, as it lies on a path to the inside."""
        onward = family.above & self.after[op]
        backward = family.below & self.before[op]
        return bool((onward | backward) >> other & 1)

    def sum(self, ops: int) -> int:
        """Return the weight of a set of ops."""
        return sum(map(getitem, self._bytes, ops.to_bytes(len(self._bytes), "little")))

    def _closed(self, family: Family) -> Family | None:
        _, outside, above, below = family
        inside = above & below
        spare = self._most - self.sum(inside)
        if spare < 0 or inside & outside:
            return None
        free = self._all & ~inside & ~outside
        heavy = self._too_heavy(free & above, self.after, self.before, above & ~inside, spare)
        heavy |= self._too_heavy(free & below, self.before, self.after, below & ~inside, spare)
        aside = free & ~above & ~below
        heavy |= sum(1 << op for op, weight in enumerate(self._weight) if weight > spare and aside >> op & 1)
        return self._without(Family(inside, outside, above, below), heavy)

    def _too_heavy(self, ops: int, inward: list[int], outward: list[int], way: int, spare: int) -> int:
        """Return which of some ops around the inside are out by the third rule."""
        heavy = 0
        while ops:
            op = ops.bit_length() - 1
            if self.sum(inward[op] & way) > spare:
                # What lies beyond would bring more in.
                heavy |= ops & outward[op]
                ops &= ~outward[op]
            else:
                ops &= ~inward[op]
        return heavy

    def _without(self, family: Family, ops: int) -> Family | None:
        """Leave some ops out, and what follows from that by the second rule."""
        inside, outside, above, below = family
        outside |= ops
        for reach, around in ((self.before, above), (self.after, below)):
            barred = outside & around
            while barred:
                op = barred.bit_length() - 1
                outside |= reach[op]
                barred &= ~reach[op]
        if outside & inside or self.sum(self._all & ~outside) < self._least:
            return None
        return Family(inside, outside, above, below)


def _sums(weight: Sequence[int]) -> list[int]:
    """Return the weight of each set of up to eight ops."""
    sums = [0]
    for each in (*weight, *[0] * (8 - len(weight))):
        sums += [total + each for total in sums]
    assert len(sums) == _BYTE
    return sums
