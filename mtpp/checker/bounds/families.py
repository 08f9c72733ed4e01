"""Sets of ops that can be stages, in families: what follows from some ops that all sets of one hold or lack."""

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
    apart
        Tensors of which no set holds all ops that touch them, bit t standing for tensor t.
    """

    inside: int
    outside: int
    above: int
    below: int
    apart: int = 0


class Families:
    """Families of sets of ops of one graph that can be stages of a partition.

    A family is told by some ops that its sets hold and some that they do not hold. More follows if its sets are stages
    of a partition in which every stage S, of weight w(S), which cuts c(S), has w(S) + c(S) ≤ M and w(S) − c(S) ≥ m.
    First of all, S is convex: it has every op on a path between two of its ops. So

    1. an op on a path between two ops that S holds is in S;
    2. an op that leads through one that is not in S to one that is, or the other way round, is not in S;
    3. a tensor is *apart* if an op that touches it is not in S, or if S would hold an op that it does not hold, or more
       weight than is left, with all ops that touch it and what would come in by the first rule. S cuts each such tensor
       that it touches. What is left is M less the weight of all that is known to be in S, and less the transfers of
       tensors apart that this touches;
    4. an op is not in S if more than what is left would come in with it: weight by the first rule, or its own weight
       and the transfers of tensors apart that it touches and that nothing known to be in S does.

    There are no such sets if some op is in S and not in S, if less than nothing is left, or if all that may be in S
    weighs less than m and the transfers of tensors apart that S touches. Rules are applied until nothing changes.

    Attributes
    ----------
    before, after
        Ops that lead to each op, and that it leads to, itself included.
    touching
        Ops that touch each tensor.

    Notes
    -----
    Sets of ops are integers; a weight of one is added up byte by byte. O(n·edges/64 + 32·n) once. A family takes a sum
    over O(n/8) bytes for each tensor that is not apart, and for each op that is free and joined to the inside, in each
    round of the rules.
    """

    def __init__(
        self,
        paths: Paths,
        weight: Sequence[int],
        tensors: Sequence[tuple[int, int, tuple[int, ...]]],
        most: int,
        least: int,
    ) -> None:
        """Take M and m, and of each tensor its transfer, its producer and its consumers."""
        count = len(weight)
        self._all = (1 << count) - 1
        self._weight = weight
        self._most, self._least = most, least
        self.before, self.after = paths.leading, paths.following
        self._bytes = [_sums(weight[begin : begin + 8]) for begin in range(0, count, 8)]
        self.touching = [sum(1 << op for op in {producer, *consumers}) for _, producer, consumers in tensors]
        self._transfer = [transfer for transfer, _, _ in tensors]
        own: list[list[int]] = [[] for _ in weight]
        for tensor, touching in enumerate(self.touching):
            if touching.bit_count() > 1 and self._transfer[tensor] > 0:
                for op in _listed(touching):
                    own[op].append(tensor)
        self._tensors_of = own
        self._dearest = [weight[op] + sum(self._transfer[tensor] for tensor in own[op]) for op in range(count)]
        self._by_cost = sorted(range(count), key=lambda op: -self._dearest[op])
        self._shared = [tensor for tensor, ops in enumerate(self.touching) if ops.bit_count() > 1]

    def rooted(self, op: int, outside: int) -> Family | None:
        """Return the sets with *op* and none of *outside*; None if there are none."""
        return self._closed(Family(0, outside, self.before[op], self.after[op]))

    def split(self, family: Family, op: int) -> tuple[Family | None, Family | None]:
        """Return the sets of a family that hold *op*, and those that do not; None for either if there are none."""
        _, outside, above, below, apart = family
        return (
            self._closed(Family(0, outside, above | self.before[op], below | self.after[op], apart)),
            self._closed(Family(0, outside | 1 << op, above, below, apart)),
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
        _, outside, above, below, apart = family
        inside = above & below
        weight = self.sum(inside)
        certain = self._certain(inside, apart)
        while True:
            outside = self._spread(outside, above, below)
            spare = self._most - weight - certain
            if spare < 0 or inside & outside:
                return None
            known = Family(inside, outside, above, below, apart)
            apart = self._parted(known, spare)
            certain = self._certain(inside, apart)
            spare = self._most - weight - certain
            if spare < 0:
                return None
            heavy = self._heavy(known._replace(apart=apart), spare)
            if not heavy and (known.apart, known.outside) == (apart, outside):
                break
            outside |= heavy
        if self.sum(self._all & ~outside) < self._least + certain:
            return None
        return Family(inside, outside, above, below, apart)

    def _certain(self, inside: int, apart: int) -> int:
        """Return the transfers of tensors apart that the ops inside touch."""
        return sum(self._transfer[tensor] for tensor in _listed(apart) if self.touching[tensor] & inside)

    def _spread(self, outside: int, above: int, below: int) -> int:
        """Apply the second rule."""
        for reach, around in ((self.before, above), (self.after, below)):
            barred = outside & around
            while barred:
                op = barred.bit_length() - 1
                outside |= reach[op]
                barred &= ~reach[op]
        return outside

    def _parted(self, family: Family, spare: int) -> int:
        """Return the tensors apart by the third rule, if so much is left."""
        inside, outside, above, below, apart = family
        for tensor in self._shared:
            if apart >> tensor & 1:
                continue
            touching = self.touching[tensor]
            if not touching & outside:
                if not touching & ~inside:
                    continue
                upward, downward = above, below
                for op in _listed(touching & ~inside):
                    upward |= self.before[op]
                    downward |= self.after[op]
                drawn = upward & downward & ~inside
                if not drawn & outside and self.sum(drawn) <= spare:
                    continue
            apart |= 1 << tensor
        return apart

    def _heavy(self, family: Family, spare: int) -> int:
        """Return the ops that are out by the fourth rule, if so much is left."""
        inside, outside, above, below, apart = family
        free = self._all & ~inside & ~outside
        heavy = self._too_heavy(free & above, self.after, self.before, above & ~inside, spare)
        heavy |= self._too_heavy(free & below, self.before, self.after, below & ~inside, spare)
        for op in self._by_cost:
            if self._dearest[op] <= spare:
                break
            if (free & ~heavy) >> op & 1:
                cost = self._weight[op] + sum(
                    self._transfer[tensor]
                    for tensor in self._tensors_of[op]
                    if apart >> tensor & 1 and not self.touching[tensor] & inside
                )
                if cost > spare:
                    heavy |= 1 << op
        return heavy & free

    def _too_heavy(self, ops: int, inward: list[int], outward: list[int], way: int, spare: int) -> int:
        """Return which of some ops around the inside are out by the fourth rule."""
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


def _listed(ops: int) -> list[int]:
    """Return the numbers of the bits that are set."""
    return [i for i, bit in enumerate(bin(ops)[:1:-1]) if bit == "1"]


def _sums(weight: Sequence[int]) -> list[int]:
    """Return the weight of each set of up to eight ops."""
    sums = [0]
    for each in (*weight, *[0] * (8 - len(weight))):
        sums += [total + each for total in sums]
    assert len(sums) == _BYTE
    return sums
