"""Decoders of chromosomes of node priorities: the order that each stands for, cut and rated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE, best_segmentation, fewest_stages
from mtpp.solvers.orders.kernels.topological import kahn_order

if TYPE_CHECKING:
    from mtpp.solvers.arrays import OrderArrays, SlicingArrays


@kernel
def cut_fitness(
    chromosomes: NDArray[np.float64],
    stage_count: int,
    floor: int,
    ceiling: int,
    cutoff: int,
    ordering: OrderArrays,
    slicing: SlicingArrays,
    fitness: Int64Array,
) -> None:
    """Rate each row by the bottleneck of its order, cut optimally (Archer et al. 2024, Algorithm 2).

    Parameters
    ----------
    chromosomes
        Node priorities, float64, shape (p, n).
    floor
        Ticks that no bottleneck is below.
    ceiling
        Ticks that no stage reaches.
    cutoff
        Bottlenecks of this many ticks or more need not be told apart.
    fitness
        Receives the bottlenecks in ticks, int64, shape (p,); :data:`~mtpp.solvers.orders.kernels.slicing.INFEASIBLE`
        for those that reach the cutoff.

    Notes
    -----
    O(n·log n + n·w + pins) per row that reaches the cutoff, O(n·w·k) more for one that does not.
    """
    parent = np.empty(chromosomes.shape[1] + 1, dtype=np.int32)
    for i in range(len(chromosomes)):
        order = kahn_order(ordering, chromosomes[i])
        # Without a cutoff one is found first, by growing a guess from the floor until few enough stages do.
        reached = cutoff if cutoff <= ceiling else min(floor + 1, ceiling)
        gap = max(1, floor // 64)
        needed = fewest_stages(order, reached, stage_count, slicing, parent)
        while needed > stage_count and reached < min(cutoff, ceiling):
            reached = min(reached + gap, ceiling)
            gap *= 2
            needed = fewest_stages(order, reached, stage_count, slicing, parent)
        fitness[i] = best_segmentation(order, stage_count, reached, slicing) if needed <= stage_count else INFEASIBLE


@kernel
def arrangement_fitness(
    chromosomes: NDArray[np.float64],
    cutoff: float,
    ordering: OrderArrays,
    tails: Int32Array,
    heads: Int32Array,
    weights: NDArray[np.float64],
    fitness: NDArray[np.float64],
) -> None:
    """Rate each row by the linear arrangement of its order: h(π) = Σ w(u, v)·|π⁻¹(u) − π⁻¹(v)| (ICML 2024, C.1).

    Parameters
    ----------
    chromosomes
        Node priorities, float64, shape (p, n).
    cutoff
        Values of this or more need not be told apart: sums stop there.
    tails, heads, weights
        Edges u → v, int32, and their weights, float64.
    fitness
        Receives h, float64, shape (p,); infinity for rows that reach the cutoff.

    Notes
    -----
    O(n·log n + edges) per row.
    """
    position = np.empty(chromosomes.shape[1], dtype=np.int64)
    for i in range(len(chromosomes)):
        order = kahn_order(ordering, chromosomes[i])
        for place in range(len(order)):
            position[order[place]] = place
        total = 0.0
        for e in range(len(tails)):
            total += weights[e] * (position[heads[e]] - position[tails[e]])
            if total >= cutoff:
                total = np.inf
                break
        fitness[i] = total
