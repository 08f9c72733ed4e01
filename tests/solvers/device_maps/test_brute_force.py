"""Maps of blocks to devices against all maps, and all cuts on all orders of devices."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations, product

import pytest

from mtpp.solvers.device_maps.anywhere import least_fullest_anywhere
from mtpp.solvers.device_maps.in_order import least_fullest_in_order


def _share(sizes: Sequence[int], placed: Sequence[int], limits: Sequence[int]) -> Fraction:
    loads = [sum(size for size, at in zip(sizes, placed, strict=True) if at == device) for device in range(len(limits))]
    return max(Fraction(load, limit) for load, limit in zip(loads, limits, strict=True))


def _all_in_order(n: int, devices: int) -> Iterator[list[int]]:
    for order in permutations(range(devices)):
        for cuts in combinations_with_replacement(range(n + 1), devices - 1):
            yield [order[i] for i, (a, b) in enumerate(pairwise((0, *cuts, n))) for _ in range(a, b)]


def _case(seed: int) -> tuple[list[int], list[int]]:
    rng = random.Random(seed)
    kinds = rng.choice([[4], [3, 5], [0, 1, 6], range(12)])
    sizes = [rng.choice(list(kinds)) for _ in range(rng.randint(1, 7))]
    tight = -(-sum(sizes) // rng.randint(1, 3)) + 1
    return sizes, [rng.randint(1, tight + 1) for _ in range(rng.randint(1, 4))]


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_both_families_equal_brute_force(seed: int) -> None:
    """The least share of consecutive blocks on devices in any order, and of all maps; None where none keeps limits."""
    for one in range(seed, seed + 20):
        sizes, limits = _case(one)
        everywhere = product(range(len(limits)), repeat=len(sizes))
        families = (
            (least_fullest_in_order, _all_in_order(len(sizes), len(limits))),
            (least_fullest_anywhere, map(list, everywhere)),
        )
        for search, family in families:
            least = min(_share(sizes, placed, limits) for placed in family)
            found = search(sizes, limits)
            if found is None:
                assert least > 1, (one, search)
                continue
            placed, proven = found
            assert proven
            assert _share(sizes, placed, limits) == least, (one, search)
            if search is least_fullest_in_order:
                changes = [a for a, b in pairwise(placed) if a != b]
                assert len({*changes, placed[-1]}) == len(changes) + 1


@pytest.mark.parametrize("seed", range(30))
def test_searches_by_count_and_by_size_decide_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of numbers of blocks and the search that places the largest first."""
    rng = random.Random(seed)
    sizes = [rng.randint(0, 9) for _ in range(rng.randint(1, 11))]
    limits = [rng.randint(1, 2 * sum(sizes) // 3 + 2) for _ in range(rng.randint(1, 4))]
    by_count = least_fullest_anywhere(sizes, limits)
    monkeypatch.setattr("mtpp.solvers.device_maps.anywhere._MOST_COUNTS", 0)
    by_size = least_fullest_anywhere(sizes, limits)
    assert (by_count is None) == (by_size is None)
    if by_count and by_size:
        assert _share(sizes, by_count[0], limits) == _share(sizes, by_size[0], limits)


def test_the_given_order_of_devices_is_kept_where_it_is_as_good() -> None:
    """Device 0 comes first; loads are as even as the fullest device allows."""
    assert least_fullest_in_order([5, 1, 1, 1, 1], [10, 10, 10]) == ([0, 1, 1, 2, 2], True)
    assert least_fullest_in_order([6, 1, 1], [3, 8]) == ([1, 0, 0], True)
