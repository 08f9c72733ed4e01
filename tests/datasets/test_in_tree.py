"""In-trees combine so many results at a time until one is left."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.datasets.in_tree import in_tree
from mtpp.errors import InputError


@given(st.integers(1, 200), st.integers(2, 9), st.integers(0, 10**6))
def test_shape(leaves: int, fan_in: int, seed: int) -> None:
    """Every op but the last has one reader; an op combines 2 to fan_in results; so many leaves read nothing."""
    graph = in_tree(leaves, fan_in, seed)
    sources, targets = graph.edges
    n = graph.op_count
    assert (sources < targets).all()
    assert sorted(sources.tolist()) == list(range(n - 1))
    combined = Counter(targets.tolist())
    assert n - len(combined) == leaves
    assert all(2 <= count <= fan_in for count in combined.values())


@pytest.mark.parametrize(("fan_in", "depth"), [(2, 6), (3, 3), (7, 2)])
def test_full_trees(fan_in: int, depth: int) -> None:
    """fan_in^depth leaves make the full tree."""
    graph = in_tree(fan_in**depth, fan_in)
    assert graph.op_count == (fan_in ** (depth + 1) - 1) // (fan_in - 1)
    assert set(Counter(graph.edges[1].tolist()).values()) == {fan_in}


def test_seeds_and_names() -> None:
    """A seed fixes the costs; names tell apart what differs."""
    assert in_tree(20, 3, 4).work == in_tree(20, 3, 4).work != in_tree(20, 3, 5).work
    assert len({in_tree(*sizes).name for sizes in ((20, 3, 4), (20, 3, 5), (20, 2, 4), (21, 3, 4))}) == 4


@pytest.mark.parametrize(
    ("arguments", "words"), [((0, 2), "0 leaves"), ((5, 1), "at least 2"), ((10**9, 2), "too large")]
)
def test_what_cannot_be_drawn(arguments: tuple[int, int], words: str) -> None:
    """Impossible numbers are refused."""
    with pytest.raises(InputError, match=words):
        in_tree(*arguments)
