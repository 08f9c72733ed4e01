"""Least share of the fullest device, by decisions whether all blocks fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

Decide = Callable[[Sequence[int]], list[int] | None]
"""Device of each block for bytes that devices may hold, or None if there is no such map."""


class Undecided(Exception):
    """A decision that was given up; nothing is known."""


def loads_of(sizes: Sequence[int], placed: Sequence[int], devices: int) -> list[int]:
    """Bytes on each device."""
    loads = [0] * devices
    for size, device in zip(sizes, placed, strict=True):
        loads[device] += size
    return loads


def fullest_share(sizes: Sequence[int], placed: Sequence[int], limits: Sequence[int]) -> Fraction:
    """Largest share of a limit that a map uses."""
    loads = loads_of(sizes, placed, len(limits))
    return max((Fraction(load, limit) for load, limit in zip(loads, limits, strict=True)), default=Fraction(0))


def least_fullest(decide: Decide, sizes: Sequence[int], limits: Sequence[int]) -> tuple[list[int], bool] | None:
    """Search for a map whose fullest device is as empty as can be.

    Parameters
    ----------
    decide
        Exact for the family of maps that is searched.
    sizes
        Bytes of each block.
    limits
        Bytes of each device, above zero.

    Returns
    -------
    A map and whether it is proven best of its family; None if no map of the family keeps the limits.

    Raises
    ------
    Undecided
        If not even the limits themselves were decided.

    Notes
    -----
    The search halves the interval of shares, and ends with a refutation of everything strictly below the best share.
    """
    best = decide(limits)
    if best is None:
        return None
    share = fullest_share(sizes, best, limits)
    lower = max(Fraction(sum(sizes), sum(limits)), Fraction(max(sizes, default=0), max(limits)))
    try:
        while lower < share:
            better = decide([-(-share.numerator * limit // share.denominator) - 1 for limit in limits])
            if better is None:
                break
            best, share = better, fullest_share(sizes, better, limits)
            middle = (lower + share) / 2
            better = decide([middle.numerator * limit // middle.denominator for limit in limits])
            if better is None:
                lower = middle
            else:
                best, share = better, fullest_share(sizes, better, limits)
    except Undecided:
        return best, False
    return best, True
