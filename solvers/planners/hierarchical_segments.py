"""The sets of layers that stages and superstages can be, with what they cost at every level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.graph import Int32Array, Int64Array
from mtpp.hierarchical_problem import HierarchicalProblem
from mtpp.solvers.kernels.stage_options import KnapsackScratch, knapsack_scratch
from mtpp.solvers.kernels.stage_staircases import staircases
from mtpp.solvers.planners.layer_downsets import Sets
from mtpp.solvers.planners.piper_arrays import ChoiceArrays, choice_arrays

PAIRS_AT_ONCE = 2_000
"""Pairs of downsets whose staircases are worked out between two looks at the clock."""


class Nested(NamedTuple):
    """Downsets, the smallest first, and the pairs of which one holds the other.

    Attributes
    ----------
    sets
        Bits of the layers, shape (D, words); the first is empty, the last holds all layers.
    pair_of
        Number of the pair (outer, inner), -1 where *outer* does not hold *inner* or is the same; int32, shape (D, D).
    outer, inner
        The downsets of each pair, int64, shape (P,).
    """

    sets: Sets
    pair_of: Int32Array
    outer: Int64Array
    inner: Int64Array


class StageKinds(NamedTuple):
    """Degrees that a stage of level 1 may have, I kinds in all, the degree of tensor parallelism ascending.

    Attributes
    ----------
    degree
        Position of t among the problem's degrees.
    data, uses
        d, and the d · t devices.
    spread
        Costs are in units of 1 / (d · spread) ticks: d by the paper's convention, N by the program's.
    """

    degree: Int64Array
    data: Int64Array
    uses: Int64Array
    spread: Int64Array


class Staircases(NamedTuple):
    """What stages take at least, see :mod:`mtpp.solvers.kernels.stage_staircases`; *starts* is over pairs × kinds."""

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


def crossing_sums(problem: HierarchicalProblem, nested: Nested) -> list[tuple[Int64Array, Int64Array]]:
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


def stage_kinds(problem: HierarchicalProblem) -> StageKinds:
    """Return all pairs of degrees that fit on the devices inside one device of level 2."""
    level_one = problem.level_one
    rows = [
        (j, d, d * t, d if level_one.convention == "paper" else level_one.micro_batches)
        for j, t in enumerate(level_one.degrees)
        for d in problem.data_degrees[0]
        if d * t <= level_one.devices
    ]
    columns = np.array(rows, dtype=np.int64).T
    return StageKinds(*(np.ascontiguousarray(column) for column in columns))


class StageCosts:
    """Staircases of all pairs of downsets for one problem, worked out piece by piece.

    Parameters
    ----------
    memory_bytes
        M, in place of the problem's.
    """

    def __init__(self, problem: HierarchicalProblem, nested: Nested, kinds: StageKinds) -> None:
        self._nested = nested
        self._kinds = kinds
        self._most = problem.most_in_flight
        self._memory = problem.level_one.memory_bytes
        self.arrays: ChoiceArrays = choice_arrays(problem.level_one)
        self.scratch: KnapsackScratch = knapsack_scratch(len(problem.model.layers), len(self.arrays.compute))
        self._parts: list[tuple[Int64Array, Int64Array, Int64Array, int]] = []
        self._done = 0

    @property
    def finished(self) -> bool:
        """Whether all are known."""
        return self._done == len(self._nested.outer)

    def advance(self) -> None:
        """Work out the next :data:`PAIRS_AT_ONCE`."""
        last = min(self._done + PAIRS_AT_ONCE, len(self._nested.outer))
        self._parts.append(
            staircases(
                self._done,
                last,
                self._nested.outer,
                self._nested.inner,
                self._nested.sets,
                self.arrays,
                self._kinds.degree,
                self._kinds.data,
                self._kinds.spread,
                self._most,
                self._memory,
                self.scratch,
            )
        )
        self._done = last

    def result(self) -> Staircases:
        """Return them all, once they are known."""
        starts = [np.zeros(1, dtype=np.int64)]
        offset = 0
        for part_starts, in_flight, _, _ in self._parts:
            starts.append(part_starts[1:] + offset)
            offset += len(in_flight)
        return Staircases(
            np.concatenate(starts),
            np.concatenate([part[1] for part in self._parts]),
            np.concatenate([part[2] for part in self._parts]),
            sum(part[3] for part in self._parts),
        )


def members(sets: Sets, outer: int, inner: int, layers: int) -> NDArray[np.int64]:
    """Return the layers of *outer* without *inner*, ascending."""
    bits = np.unpackbits((sets[outer] & ~sets[inner]).view(np.uint8), bitorder="little")
    return np.nonzero(bits[:layers])[0].astype(np.int64)
