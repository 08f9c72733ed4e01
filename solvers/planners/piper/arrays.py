"""A planning problem as kernels take it: choices by layer and degree, edges with the least that both their ends pay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.training.problem import PlanningProblem


class ChoiceArrays(NamedTuple):
    """Everything about layers and edges; J degrees, n layers, c choices and e edges in all.

    Attributes
    ----------
    degrees
        Degrees t of tensor parallelism, shape (J,).
    start
        Choices of layer v for degree j are ``start[j · n + v]`` to ``start[j · n + v + 1]``; shape (J · n + 1,).
    compute, weights, memory_a, memory_b
        Ticks and bytes of each choice, shape (c,).
    sync_start, sync
        What a choice pays on top of the least of all choices for its degree, in ticks, when an edge of its layer leads
        to another stage: for the layer's in-edges, then its out-edges; shapes (c + 1,) and any.
    in_start, in_edges, out_start, out_edges
        Edges into and out of each layer, CSR.
    source, target
        Layers at the ends of each edge, shape (e,).
    pays_in, pays_out
        Least that the stages of target and source pay for an edge between stages, sync included; shape (J, e).
    plain
        1 for degrees whose choices differ in time and memory only, not in weights and sync costs; shape (J,).
    """

    degrees: Int64Array
    start: Int64Array
    compute: Int64Array
    weights: Int64Array
    memory_a: Int64Array
    memory_b: Int64Array
    sync_start: Int64Array
    sync: Int64Array
    in_start: Int64Array
    in_edges: Int64Array
    out_start: Int64Array
    out_edges: Int64Array
    source: Int64Array
    target: Int64Array
    pays_in: Int64Array
    pays_out: Int64Array
    plain: Int64Array


def choice_arrays(problem: PlanningProblem) -> ChoiceArrays:
    """Lay out the choices of *problem*. O(choices · edges of their layers)."""
    edges = len(problem.model.edges)
    start, sync_start = [0], [0]
    rows: list[tuple[int, int, int, int]] = []
    sync: list[int] = []
    pays_in = np.zeros((len(problem.degrees), edges), dtype=np.int64)
    pays_out = np.zeros_like(pays_in)
    plain = np.ones(len(problem.degrees), dtype=np.int64)
    for j, by_layer in enumerate(problem.choices):
        for v, choices in enumerate(by_layer):
            least = [
                [min((one.sync_in_ticks[i] for one in choices), default=0) for i in range(len(problem.edges_in[v]))],
                [min((one.sync_out_ticks[i] for one in choices), default=0) for i in range(len(problem.edges_out[v]))],
            ]
            for pays, ends, least_sync in zip(
                (pays_in, pays_out), (problem.edges_in[v], problem.edges_out[v]), least, strict=True
            ):
                for e, ticks in zip(ends, least_sync, strict=True):
                    pays[j, e] = problem.edge_ticks[e] + ticks
            for one in choices:
                rows.append((one.compute_ticks, one.weight_ticks, one.memory_a, one.memory_b))
                above = [
                    ticks - base
                    for all_ticks, bases in zip((one.sync_in_ticks, one.sync_out_ticks), least, strict=True)
                    for ticks, base in zip(all_ticks, bases, strict=True)
                ]
                sync.extend(above)
                sync_start.append(len(sync))
                if any(above) or one.weight_ticks != choices[0].weight_ticks:
                    plain[j] = 0
            start.append(len(rows))
    compute, weights, memory_a, memory_b = _columns(rows, 4)
    source, target = _columns(problem.model.ends, 2)
    in_start, in_edges = _rows(problem.edges_in)
    out_start, out_edges = _rows(problem.edges_out)
    return ChoiceArrays(
        np.array(problem.degrees, dtype=np.int64),
        np.array(start, dtype=np.int64),
        compute,
        weights,
        memory_a,
        memory_b,
        np.array(sync_start, dtype=np.int64),
        np.array(sync, dtype=np.int64),
        in_start,
        in_edges,
        out_start,
        out_edges,
        source,
        target,
        pays_in,
        pays_out,
        plain,
    )


def _columns(rows: Sequence[tuple[int, ...]], count: int) -> list[Int64Array]:
    table = np.array(rows, dtype=np.int64).reshape(len(rows), count)
    return [np.ascontiguousarray(table[:, i]) for i in range(count)]


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Int64Array, Int64Array]:
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=start[1:])
    return start, np.array([e for row in rows for e in row], dtype=np.int64)
