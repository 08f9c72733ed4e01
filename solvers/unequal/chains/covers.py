"""The cheapest multiset of items whose shares come to a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf


@dataclass(frozen=True)
class Item:
    """What may be taken any number of times.

    Attributes
    ----------
    share
        Of the whole, above zero.
    cost
        At least zero.
    """

    share: Fraction
    cost: Fraction


def cheapest_cover(items: Sequence[Item]) -> list[int]:
    """Return how often each item is in a cheapest multiset whose shares come to at least 1.

    Branch and bound on the items that no other one is better than, the cheapest per share first: what is missing costs
    at least its share at the best rate of the items left. Exponential at worst.
    """
    order = _undominated(items)
    best_cost: Fraction | float = inf
    best: list[int] = []
    counts = [0] * len(order)
    shares = [items[i].share for i in order]
    costs = [items[i].cost for i in order]

    def go_on(at: int, missing: Fraction, paid: Fraction) -> None:
        nonlocal best_cost, best
        if missing <= 0:
            if paid < best_cost:
                best_cost, best = paid, counts.copy()
            return
        if at == len(order) or paid + missing * costs[at] / shares[at] >= best_cost:
            return
        most = -(-missing // shares[at])
        for count in range(int(most), -1, -1):
            counts[at] = count
            go_on(at + 1, missing - count * shares[at], paid + count * costs[at])
        counts[at] = 0

    go_on(0, Fraction(1), Fraction(0))
    chosen = [0] * len(items)
    for i, count in zip(order, best, strict=True):
        chosen[i] = count
    return chosen


def _undominated(items: Sequence[Item]) -> list[int]:
    """Return the items that no other one is better than, in cost and share, the cheapest per share first."""
    kept: list[int] = []
    for i in sorted(range(len(items)), key=lambda i: (items[i].cost, -items[i].share)):
        if not kept or items[i].share > items[kept[-1]].share:
            kept.append(i)
    return sorted(kept, key=lambda i: items[i].cost / items[i].share)
