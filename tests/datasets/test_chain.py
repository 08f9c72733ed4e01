"""Chains have their path, as many skips as asked for, and the recipe's costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.datasets.chain import chain
from mtpp.datasets.sizes import MEMORY_FRACTION_DEVIATION, TENSOR_MEAN
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph


def edges(graph: CostGraph) -> set[tuple[int, int]]:
    """Return the pairs of ops that a tensor joins."""
    sources, targets = graph.edges
    return set(zip(sources.tolist(), targets.tolist(), strict=True))


@given(st.integers(1, 40), st.integers(0, 10**6), st.one_of(st.none(), st.integers(2, 50)), st.floats(0, 1))
def test_path_and_skips(n: int, seed: int, longest: int | None, share: float) -> None:
    """Any chain has its n - 1 links and the number of skips asked for, all different and none too long."""
    farthest = n - 1 if longest is None else min(longest, n - 1)
    possible = sum(n - distance for distance in range(2, farthest + 1))
    skips = int(share * possible)
    graph = chain(n, seed, skips=skips, longest_skip=longest)
    path = {(v, v + 1) for v in range(n - 1)}
    assert graph.op_count == n
    assert len(graph.consumers) == len(edges(graph)) == n - 1 + skips
    assert path <= edges(graph)
    assert all(2 <= v - u <= farthest for u, v in edges(graph) - path)


def test_all_skips_there_are() -> None:
    """With every pair joined, the graph is complete."""
    assert edges(chain(6, 3, skips=10)) == {(u, v) for v in range(6) for u in range(v)}


def test_seeds_and_names() -> None:
    """A seed fixes costs and skips; names tell apart what differs."""
    one, same, other = (chain(30, seed, skips=5) for seed in (1, 1, 2))
    assert (one.name, one.work, one.transfer, edges(one)) == (same.name, same.work, same.transfer, edges(same))
    assert one.name != other.name
    assert one.work != other.work
    assert edges(one) != edges(other)
    names = {chain(30, 1, skips=s, longest_skip=longest).name for s in (5, 6) for longest in (None, 7, 8)}
    assert len(names) == 6


def test_costs_follow_the_recipe() -> None:
    """The cost of an op is that of the tensors it touches, more or less a tenth of all tensors."""
    graph = chain(2000, 0)
    sizes = [int(size or 0) for size in graph.transfer]
    assert graph.time_unit == "1"
    assert sum(sizes) / len(sizes) == pytest.approx(TENSOR_MEAN, abs=1)
    touched = [sizes[v - 1] + sizes[v] for v in range(1, 1999)]
    over = [int(w) - t for w, t in zip(graph.work[1:1999], touched, strict=True) if w > t]
    deviation = MEMORY_FRACTION_DEVIATION * TENSOR_MEAN * 2000
    assert (sum(x * x for x in over) / len(over)) ** 0.5 == pytest.approx(deviation, rel=0.08)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, "0 ops"),
        ({"n": 5, "skips": -1}, "-1 skips"),
        ({"n": 5, "skips": 7}, "6 pairs"),
        ({"n": 5, "skips": 4, "longest_skip": 2}, "3 pairs"),
        ({"n": 5, "longest_skip": 1}, "at least 2"),
        ({"n": 10**9}, "too large"),
    ],
)
def test_what_cannot_be_drawn(arguments: dict[str, int], words: str) -> None:
    """Impossible numbers are refused with what there is."""
    with pytest.raises(InputError, match=words):
        chain(**arguments)
