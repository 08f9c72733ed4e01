"""Cuts of topological orders, the best ones for a goal: exhaustive searches on chains of consecutive ops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.inference.contraction import Contraction
from mtpp.inference.goal import Goal
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.orders.device_slicing import cut_places, runs_between
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.unequal.latency import latency_problem

_MOST_CUTS = 192
"""Places at which an order is cut at most: where little crosses, then near the cuts found."""

_STEPS = 2_000_000
"""Of the search of one chain at most."""


def cut_order(
    instance: Instance, goal: Goal, order: Int32Array, cutoff: int, limits: SearchLimits
) -> tuple[PlacedPartition, int] | None:
    """Cut one topological order on the devices of an instance.

    Parameters
    ----------
    cutoff
        Only partitions whose objective is strictly below this many ticks are of interest.

    Returns
    -------
    A cut and its objective; the best, where the order has few ops and the search comes to its end. None if none was
    found.
    """
    n = instance.op_count
    if n <= _MOST_CUTS:
        return _cut_at(np.arange(1, n, dtype=np.int64), instance, goal, order, cutoff, limits)
    places = cut_places(instance, order, _MOST_CUTS)
    found = _cut_at(places, instance, goal, order, cutoff, limits)
    if found is None:
        return None
    position = np.flatnonzero(np.diff(found[0].assignment[order])) + 1
    reach = _MOST_CUTS // 4 // max(1, len(position))
    near = (position[:, np.newaxis] + np.arange(-reach, reach)).ravel()
    places = np.union1d(places[::2], np.union1d(near[(near > 0) & (near < n)], position))
    return _cut_at(places, instance, goal, order, found[1], limits) or found


def _cut_at(
    places: Int64Array, instance: Instance, goal: Goal, order: Int32Array, cutoff: int, limits: SearchLimits
) -> tuple[PlacedPartition, int] | None:
    """Cut an order at some of the places."""
    runs = runs_between(instance, order, places)
    chain = _as_chain(runs)
    problem = latency_problem(chain, goal)
    quiet = SearchLimits(
        evaluations=1,
        deadline=limits.deadline,
        interrupted=limits.interrupted,
        memory_bytes=limits.memory_bytes,
        lower_bound=limits.lower_bound,
    )
    prover = Prover(ReducedInstance(chain), quiet, problem)
    value = prover.close(min(cutoff, problem.most_ticks + 1), _STEPS)
    if prover.found is None:
        return None
    assert isinstance(prover.found, PlacedPartition)
    return prover.found.over(instance, prover.found.assignment[runs.group_of]), value


def _as_chain(runs: Contraction) -> Instance:
    """Return the instance of runs of ops, each of which waits for the one before."""
    inner = runs.instance
    links = inner.op_count - 1
    if links < 1:
        return inner
    cost = inner.cost
    nothing, boundary = np.zeros(links, dtype=np.int64), cost.boundary
    transfer = _with_zeros(cost.transfer, links)
    if boundary is not None:
        boundary = boundary.of_tensors(_with_zeros(boundary.ticks, links))
    pairs = np.stack([np.arange(links), np.arange(1, links + 1)], axis=1).ravel().astype(np.int32)
    ends = inner.pin_offsets[-1] + 2 * np.arange(1, links + 1, dtype=np.int64)
    return replace(
        inner,
        cost=replace(cost, transfer=transfer, boundary=boundary),
        tensor_bytes=np.concatenate([inner.tensor_bytes, nothing]),
        pin_offsets=np.concatenate([inner.pin_offsets, ends]),
        pins=np.concatenate([inner.pins, pairs]),
    )


def _with_zeros(rows: Int64Array, count: int) -> Int64Array:
    return np.concatenate([rows, np.zeros((len(rows), count), dtype=np.int64)], axis=1)
