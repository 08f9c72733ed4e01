"""Ops that are known to be in the first blocks of a partition, and ops that are known not to be.

Sets of groups of ops are integers with a bit per group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mtpp.checker.paths import Paths


def members(bits: int) -> Iterator[int]:
    """Yield the groups of a set, in ascending order."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


class SetWeights:
    """Sums of weights over sets of groups, by the binary digits of the weights: O(n·log(weight)/64) for a sum."""

    def __init__(self, weight: Sequence[int]) -> None:
        self._digits = [0] * max(map(int.bit_length, weight), default=0)
        for group, value in enumerate(weight):
            for digit in members(value):
                self._digits[digit] |= 1 << group

    def of(self, bits: int) -> int:
        """Return the weight of a set."""
        return sum((bits & mask).bit_count() << digit for digit, mask in enumerate(self._digits))


@dataclass(frozen=True)
class KnownPrefixes:
    """Sets of groups for each boundary b = 1 … B − 1 between blocks, in this order.

    Attributes
    ----------
    inside
        Groups that are in the first b blocks.
    outside
        Groups that are in none of them.
    """

    inside: tuple[int, ...]
    outside: tuple[int, ...]

    def with_more(self, inside: Sequence[int], outside: Sequence[int], paths: Paths) -> KnownPrefixes | None:
        """Add what else is known, and what follows from it; None if it contradicts itself.

        What leads to an op that is in the first b blocks is in them too, and all that is in them is in the first b + 1.
        """
        held, left = list(self.inside), list(self.outside)
        below = 0
        for b, more in enumerate(inside):
            for group in members((more | below) & ~held[b]):
                held[b] |= paths.leading[group]
            below = held[b]
        above = 0
        for b in range(len(left) - 1, -1, -1):
            for group in members((outside[b] | above) & ~left[b]):
                left[b] |= paths.following[group]
            above = left[b]
        if any(a & b for a, b in zip(held, left, strict=True)):
            return None
        return KnownPrefixes(tuple(held), tuple(left))
