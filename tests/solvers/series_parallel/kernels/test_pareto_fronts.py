"""Fronts against plain Python: what dominates, sums of fronts, and the stages of a core."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import oracles
import pytest
from graph_strategies import random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.series_parallel.components import Components
from mtpp.solvers.series_parallel.core_items import make_core
from mtpp.solvers.series_parallel.decomposition import decompose
from mtpp.solvers.series_parallel.kernels.pareto_fronts import (
    HEAD_USED,
    TAIL_USED,
    Devices,
    Terms,
    condense,
    nondominated,
    side_by_side,
    thinned,
)
from mtpp.solvers.stage_cost.cost_arrays import MemoryArrays

NO_MEMORY = MemoryArrays(0, np.array([[2**62 - 1, 2**62 - 1, 0, 1, 1, 1]]))
CHARGES = (3, 3, 5, 5)
FLAGS = (0, 1, 3, 4, 12, 5, 15, TAIL_USED, TAIL_USED | 3, HEAD_USED, TAIL_USED | HEAD_USED)

WEIGHTS = np.array([CHARGES])
GUARD = 1 << 4


def equal(count: int) -> Devices:
    """Return so many equal devices, fewer than 16."""
    return Devices(np.array([[1, 0, 0, GUARD - 1, 1 << 20]]), count | GUARD, GUARD, ordered=True, equal=True)


Row = tuple[int, int, int, int, int, int]


def paid(point: Row, more: int) -> Row:
    """Return what a point costs when others add flags to its own, whatever is used counted as stages."""
    flags = point[3] | more
    used = bool(flags & TAIL_USED) + bool(flags & HEAD_USED)
    sides = [sum(charge for j, charge in enumerate(CHARGES) if j % 2 == side and flags >> j & 1) for side in (0, 1)]
    return (point[0] + used, point[1] + sides[0], point[2] + sides[1], 0, point[4], point[5])


def dominates(x: Row, y: Row) -> bool:
    """Return whether x costs no more than y in any respect, whatever flags others add."""
    added = [a | b for a, b in product(range(16), (0, TAIL_USED, HEAD_USED, TAIL_USED | HEAD_USED))]
    return all(all(a <= b for a, b in zip(paid(x, more), paid(y, more), strict=True)) for more in added)


points = st.lists(
    st.tuples(*[st.integers(0, 2)], *[st.integers(0, 8)] * 2, st.sampled_from(FLAGS), *[st.integers(0, 2)] * 2),
    max_size=25,
)


@settings(max_examples=150)
@given(points, st.booleans())
def test_what_is_kept(rows: list[Row], limited: bool) -> None:
    """Every point that is left out is dominated by one that is kept; none that is kept by another, uses aside."""
    if not limited:
        rows = [(*row[:4], 0, 0) for row in rows]
    array = np.array(rows, dtype=np.int64).reshape(-1, 6)
    kept = nondominated(array, len(rows), WEIGHTS, limited, GUARD).tolist()
    assert len(set(kept)) == len(kept)
    for y in set(range(len(rows))) - set(kept):
        assert any(dominates(rows[x], rows[y]) for x in kept)
    for x, y in product(kept, kept):
        # A stage that is used is a closed one more, which is not weighed against closed ones.
        if x != y and not (rows[x][3] & ~rows[y][3]) & (TAIL_USED | HEAD_USED):
            assert not dominates(rows[x], rows[y])


@settings(max_examples=100)
@given(points, points, st.integers(5, 40), st.integers(1, 5))
@pytest.mark.slow
def test_sums_of_fronts(left: list[Row], right: list[Row], cutoff: int, stages: int) -> None:
    """Each sum of two points that is below the cutoff is dominated by one that is kept, and each kept one is a sum."""
    left, right = ([(*row[:4], 0, 0) for row in rows] for rows in (left, right))
    terms = Terms(cutoff, equal(stages), 30, NO_MEMORY, 1000)
    ends = np.array([[0, 1, 1], [0, 2, 2]])
    fronts = [np.array(rows, dtype=np.int64).reshape(-1, 6) for rows in (left, right)]
    rest = np.zeros(6, dtype=np.int64)
    found, pairs, lossy = side_by_side(*fronts, rest, 4, 6, WEIGHTS, ends, terms)
    assert not lossy
    rows = [tuple(row) for row in found.tolist()]

    def total(i: int, j: int) -> Row:
        x, y = left[i], right[j]
        return (x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] | y[3], 0, 0)

    assert rows == [total(i, j) for i, j in pairs.tolist()]
    for i, j in product(range(len(left)), range(len(right))):
        point = total(i, j)
        _, tail, head, *_ = paid(point, 0)
        if 1 + tail < cutoff and 2 + head < cutoff and 10 + tail + head <= (stages - point[0]) * (cutoff - 1):
            assert any(dominates(row, point) for row in rows)


def test_thinning_keeps_both_ends() -> None:
    """Points spread evenly over the front are left, and it is told that some are missing."""
    assert thinned(np.arange(10, 110), 4).tolist() == [10, 43, 76, 109]
    points = np.array([[0, i, 10 - i, 0, 0, 0] for i in range(10)], dtype=np.int64)
    pairs = np.array([[i, i] for i in range(10)], dtype=np.int64)
    count, lossy = condense(points, pairs, 10, 4, WEIGHTS, Terms(9, equal(9), 9, NO_MEMORY, 4))
    assert (count, lossy) == (4, True)
    assert points[:4, 1].tolist() == pairs[:4, 0].tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.slow
def test_stages_of_a_core(seed: int) -> None:
    """Every pair of downsets of a core is a stage of the cost that the definition gives, none is missing."""
    draw = random.Random(seed)
    graph = random_graph(seed, 8, consumers_per_tensor=draw.choice((0.8, 1.5)))
    instance = Instance.build(graph, Machine.uniform(3, load_device()))
    components = Components(instance, decompose(instance))
    cutoff = draw.choice((60, 10**6))
    terms = components.groups.terms(cutoff, 1000)
    for node in components.tree.cores():
        core = make_core(components, components.distinct[components.component_of[node]], 1000, terms)
        ops = components.ops_of(node)
        inside = [
            {ops[place] for item, group in enumerate(core.groups) if mask >> item & 1 for place in group}
            for mask in core.masks
        ]
        found = {}
        for larger in range(len(core.masks)):
            for s in range(core.states.stage_offsets[larger], core.states.stage_offsets[larger + 1]):
                smaller, cost, group = core.states.stages[s].tolist()
                assert group == 0
                found[smaller, larger] = cost
        expected = {}
        for a, b in product(range(len(inside)), repeat=2):
            if inside[a] < inside[b]:
                cost = oracles.stage_cost(graph, load_device(), inside[b] - inside[a])
                if cost < cutoff:
                    expected[a, b] = cost
        assert found == expected
        before = oracles.predecessors(graph)
        subsets = [{v for v, bit in zip(ops, bits, strict=True) if bit} for bits in product((0, 1), repeat=len(ops))]
        closed = [own for own in subsets if all(before[v] & set(ops) <= own for v in own)]
        assert sorted(map(sorted, inside)) == sorted(map(sorted, closed))
