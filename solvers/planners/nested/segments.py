"""The sets of layers that stages and superstages can be, with what they cost at every level."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.solvers.planners.piper.arrays import ChoiceArrays
from mtpp.solvers.planners.piper.kernels.cost_steps import Nested, StageKinds, cost_steps
from mtpp.solvers.planners.piper.kernels.stage_options import knapsack_scratch
from mtpp.solvers.planners.piper.layer_downsets import Sets
from mtpp.solvers.threads import Threads
from mtpp.training.nested_problem import NestedProblem

PAIRS_AT_ONCE = 500
"""Pairs of downsets whose cost steps one thread works out between two looks at the clock."""


class CostSteps(NamedTuple):
    """Least costs of stages as steps, see :mod:`mtpp.solvers.planners.piper.kernels.cost_steps`.

    *starts* is over pairs × kinds.
    """

    starts: Int64Array
    in_flight: Int64Array
    cost: Int64Array
    undecided: int


def nested_downsets(sets: Sets) -> Nested:
    """Sort a family of downsets by size and find all pairs. O(D² · n / 64)."""
    sizes = np.unpackbits(sets.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
    sets = np.ascontiguousarray(sets[np.argsort(sizes, kind="stable")])
    pair_of = np.full((len(sets), len(sets)), -1, dtype=np.int32)
    outer, inner = [], []
    count = 0
    for i in range(1, len(sets)):
        within = np.nonzero(((sets[:i] & ~sets[i]) == 0).all(axis=1))[0]
        pair_of[i, within] = np.arange(count, count + len(within))
        count += len(within)
        outer.append(np.full(len(within), i, dtype=np.int64))
        inner.append(within.astype(np.int64))
    return Nested(sets, pair_of, np.concatenate(outer), np.concatenate(inner))


def crossing_sums(problem: NestedProblem, nested: Nested) -> list[tuple[Int64Array, Int64Array]]:
    """Return for each level ≥ 2 the ticks of all edges that cross each pair's layers, and of the layers' weights.

    Two int64 arrays of shape (P,). O(D² · edges) as a product of matrices.
    """
    n = len(problem.model.layers)
    inside = np.unpackbits(nested.sets.view(np.uint8), axis=1, bitorder="little")[:, :n].astype(np.int64)
    ends = np.array(problem.model.ends, dtype=np.int64).reshape(-1, 2)
    above = 1 - inside[:, ends[:, 0]]
    below = inside[:, ends[:, 1]]
    sums = []
    for level in problem.outer:
        edge_ticks = np.array(level.edge_ticks, dtype=np.int64)
        weights = inside @ np.array(level.weight_ticks, dtype=np.int64)
        through = (above * edge_ticks) @ below.T
        cut = np.diagonal(through)
        edges = cut[nested.outer] + cut[nested.inner] - 2 * through[nested.outer, nested.inner]
        sums.append((edges, weights[nested.outer] - weights[nested.inner]))
    return sums


def stage_kinds(problem: NestedProblem) -> StageKinds:
    """Return all pairs of degrees that fit on the devices inside one device of level 2."""
    level_one = problem.level_one
    rows = [
        (j, d, d * t, level_one.spread(d))
        for j, t in enumerate(level_one.degrees)
        for d in problem.data_degrees[0]
        if d * t <= level_one.devices
    ]
    columns = np.array(rows, dtype=np.int64).T
    return StageKinds(*(np.ascontiguousarray(column) for column in columns))


class OutOfTime(Exception):
    """The search has to end."""


def all_cost_steps(
    problem: NestedProblem,
    nested: Nested,
    kinds: StageKinds,
    arrays: ChoiceArrays,
    threads: Threads,
    stop: Callable[[], bool],
) -> CostSteps:
    """Work out the cost steps of all pairs of downsets."""
    layers, choices = len(problem.model.layers), len(arrays.compute)
    count = len(nested.outer)

    def part(first: int) -> tuple[Int64Array, Int64Array, Int64Array, int]:
        if stop():
            raise OutOfTime
        return cost_steps(
            first,
            min(first + PAIRS_AT_ONCE, count),
            nested,
            arrays,
            kinds,
            problem.most_in_flight,
            problem.level_one.memory_bytes,
            knapsack_scratch(layers, choices),
        )

    parts = threads.map(part, range(0, count, PAIRS_AT_ONCE))
    starts = [np.zeros(1, dtype=np.int64)]
    offset = 0
    for part_starts, in_flight, _, _ in parts:
        starts.append(part_starts[1:] + offset)
        offset += len(in_flight)
    return CostSteps(
        np.concatenate(starts),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
        sum(part[3] for part in parts),
    )
