"""Downsets of a model's layers: what is left to the stages behind any point of a pipeline (paper, definition 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int64Array
from mtpp.solvers.planners.layer_options import least_by_layer
from mtpp.solvers.planners.piper.arrays import ChoiceArrays
from mtpp.training.problem import PlanningProblem

LayerBits = NDArray[np.uint64]
"""Bits of the layers of one set, shape (⌈n / 64⌉,)."""

Sets = NDArray[np.uint64]
"""Bits of the layers of each downset, shape (D, ⌈n / 64⌉)."""

_WORD = 64


class LayerDownsets(NamedTuple):
    """A family of downsets (closed under successors) with sums over their layers and edges; D of them, J degrees.

    Sorted by number of layers, then by *lightest*; the first is empty, the last is everything. What a stage *outer*
    without *inner* takes at least are differences of these sums.

    Attributes
    ----------
    sets
        Bits of the layers, uint64, shape (D, ⌈n / 64⌉).
    sizes
        Numbers of layers, shape (D,).
    missing
        Layers without a choice for degree j, shape (J, D).
    compute, weights
        Σ over layers of the least of their choices for degree j, shape (J, D).
    entering, leaving
        Σ of ``pays_in`` and ``pays_out`` over the edges that lead into the downset, shape (J, D).
    least_leaving
        Σ of the least of ``pays_out`` over all degrees, over the same edges: their sources may be in different stages,
        each with its own degree; shape (D,).
    least_memory, fastest_memory
        Σ over layers of the least bytes of a choice, and of the bytes of the fastest choice, with y micro-batches in
        flight; shape (J, Y + 1, D).
    crossing_start, crossing
        Edges that lead into each downset, CSR.
    degree_work, device_work, lightest
        Σ over layers of the least compute, of the least t · compute, and of the least bytes with one micro-batch in
        flight, over all degrees; shape (D,).
    """

    sets: Sets
    sizes: Int64Array
    missing: Int64Array
    compute: Int64Array
    weights: Int64Array
    entering: Int64Array
    leaving: Int64Array
    least_leaving: Int64Array
    least_memory: Int64Array
    fastest_memory: Int64Array
    crossing_start: Int64Array
    crossing: Int64Array
    degree_work: Int64Array
    device_work: Int64Array
    lightest: Int64Array


def layer_bits(layers: Iterable[int], count: int) -> LayerBits:
    """Return a set of layers as ⌈count / 64⌉ words."""
    bits = np.zeros(-(-count // _WORD), dtype=np.uint64)
    for v in layers:
        bits[v // _WORD] |= np.uint64(1) << np.uint64(v % _WORD)
    return bits


def every_downset(problem: PlanningProblem, most: int) -> Sets | None:
    """Return all downsets of the model's layers, or None if there are more than *most*.

    O(D · n / 64) time per layer: layers are decided from the sinks on, and each may join the downsets that hold all of
    its successors, which makes every downset exactly once.
    """
    n = len(problem.model.layers)
    sets = layer_bits((), n)[None, :]
    for v in reversed(problem.model.order):
        needed = layer_bits((problem.model.ends[e][1] for e in problem.edges_out[v]), n)
        joined = sets[((sets & needed) == needed).all(axis=1)] | layer_bits([v], n)
        if len(sets) + len(joined) > most:
            return None
        sets = np.concatenate([sets, joined])
    return sets


def prefixes(problem: PlanningProblem, orders: Iterable[Sequence[int]]) -> Sets:
    """Return the downsets that cutting topological orders leaves behind the cuts, each once."""
    n = len(problem.model.layers)
    rows = []
    for order in orders:
        bits = layer_bits((), n)
        rows.append(bits.copy())
        for v in reversed(order):
            bits |= layer_bits([v], n)
            rows.append(bits.copy())
    return np.unique(np.array(rows, dtype=np.uint64), axis=0)


def layer_downsets(problem: PlanningProblem, arrays: ChoiceArrays, sets: Sets, most_in_flight: int) -> LayerDownsets:
    """Sort a family of downsets, which has to hold the empty and the full one, and sum up what belongs to each.

    *most_in_flight* is Y. O(D · n · J · Y), as products of matrices.
    """
    n = len(problem.model.layers)
    inside = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little")[:, :n]
    sizes = inside.sum(axis=1, dtype=np.int64)
    least = _least_of_layers(problem, most_in_flight)
    by_size = np.lexsort((_products(least.lightest[None, :], inside)[0], sizes))
    sets, inside, sizes = np.ascontiguousarray(sets[by_size]), inside[by_size], sizes[by_size]
    crosses = (inside[:, arrays.target] == 1) & (inside[:, arrays.source] == 0)
    starts = np.zeros(len(sets) + 1, dtype=np.int64)
    np.cumsum(crosses.sum(axis=1), out=starts[1:])
    shape = (len(problem.degrees), most_in_flight + 1, len(sets))

    def sums(values: Int64Array) -> Int64Array:
        """Sum up rows of values of layers over the layers of each downset."""
        return _products(values, inside)

    return LayerDownsets(
        sets,
        sizes,
        sums(least.missing),
        sums(least.compute),
        sums(least.weights),
        _products(arrays.pays_in, crosses),
        _products(arrays.pays_out, crosses),
        _products(arrays.pays_out.min(axis=0, keepdims=True), crosses)[0],
        sums(least.memory).reshape(shape),
        sums(least.fastest_memory).reshape(shape),
        starts,
        np.nonzero(crosses)[1].astype(np.int64),
        sums(least.degree_work[None, :])[0],
        sums(least.device_work[None, :])[0],
        sums(least.lightest[None, :])[0],
    )


class _LeastOfLayers(NamedTuple):
    """For each layer, the least of its choices; rows are degrees, or degrees and micro-batches in flight."""

    missing: Int64Array
    compute: Int64Array
    weights: Int64Array
    memory: Int64Array
    fastest_memory: Int64Array
    degree_work: Int64Array
    device_work: Int64Array
    lightest: Int64Array


def _least_of_layers(problem: PlanningProblem, most_in_flight: int) -> _LeastOfLayers:
    n, degrees = len(problem.model.layers), len(problem.degrees)
    missing, compute, weights = (np.zeros((degrees, n), dtype=np.int64) for _ in range(3))
    memory, fastest_memory = (np.zeros((degrees, most_in_flight + 1, n), dtype=np.int64) for _ in range(2))
    in_flight = np.arange(most_in_flight + 1, dtype=np.int64)
    for j, by_layer in enumerate(problem.choices):
        for v, choices in enumerate(by_layer):
            if not choices:
                missing[j, v] = 1
                continue
            compute[j, v] = min(one.compute_ticks for one in choices)
            weights[j, v] = min(one.weight_ticks for one in choices)
            bytes_of = [one.memory_a * in_flight + one.memory_b for one in choices]
            memory[j, :, v] = np.min(bytes_of, axis=0)
            fastest = [b for one, b in zip(choices, bytes_of, strict=True) if one.compute_ticks == compute[j, v]]
            fastest_memory[j, :, v] = np.min(fastest, axis=0)
    return _LeastOfLayers(
        missing,
        compute,
        weights,
        memory.reshape(-1, n),
        fastest_memory.reshape(-1, n),
        *(
            np.array(least_by_layer(problem, attrgetter(name)), dtype=np.int64)
            for name in ("compute", "device_compute", "least_memory")
        ),
    )


_EXACT = 2**53


def _products(values: Int64Array, members: NDArray[np.generic]) -> Int64Array:
    """Return values · membersᵀ in integers, by way of floats where every sum is exact in them."""
    if int(values.sum(axis=1).max(initial=0)) < _EXACT:
        product = values.astype(np.float64) @ members.T.astype(np.float64)
        return np.ascontiguousarray(product.astype(np.int64))
    return np.ascontiguousarray(values @ members.T.astype(np.int64))
