"""Weights and multipliers as integers, with a flow for each family: what a verifier can check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.families import tree_rows
from mtpp.solvers.bounds.configuration.kernels.stage_families import (
    CUT,
    DOWN,
    FREE,
    IN,
    PIN,
    UP,
    StageNetwork,
    family_flow,
)
from mtpp.solvers.bounds.configuration.weights import WeightSearch
from mtpp.solvers.bounds.tensor_places import tensor_places

_SCALE = 2**40
"""Integer weight of a whole stage, about."""

_LARGEST = 2**61
"""What the gains of all ops must stay below: the kernel's integers wrap silently."""


@dataclass(frozen=True, eq=False)
class StageProof:
    """That no partition into k stages stays within a limit.

    Attributes
    ----------
    limit
        In ticks: OPT is above it.
    weights
        Of each op, integers, shape (n,).
    capacity
        No stage within the limit holds more; k times this is less than the sum of the weights.
    denominator
        Multipliers are multiples of 1 / this, in units of weight per tick.
    trees
        Root op and tree of each family, the leaves with multipliers and a flow, as the proof writes them.
    """

    limit: int
    weights: Int64Array
    capacity: int
    denominator: int
    streamed: bool
    trees: list[list[Any]]

    def document(self, instance: Instance) -> dict[str, Any]:
        """Return the proof as JSON values; see :mod:`mtpp.solvers.bounds.configuration.search`."""
        name = instance.first_members.tolist()
        weights = [[name[op], int(y)] for op, y in enumerate(self.weights.tolist()) if y > 0]
        return {
            "cutoff": self.limit + 1,
            "stages": instance.k,
            "streamed": self.streamed,
            "capacity": self.capacity,
            "denominator": self.denominator,
            "weights": weights,
            "families": self.trees,
        }


def stage_proof(search: WeightSearch) -> StageProof | None:
    """Turn what a search has found into integers and check it; None if it does not prove the search's limit.

    Notes
    -----
    A maximum flow for each family whose gains alone do not show enough.
    """
    sets = search.sets
    instance, k = sets.instance, sets.instance.k
    weights = np.floor(np.maximum(0.0, search.weight) * _SCALE).astype(np.int64)
    capacity = (int(weights.sum()) - 1) // k
    if capacity < 0:
        return None
    listed = sets.listed_roots()
    denominator = 1 << max(1, sets.most).bit_length()
    name = instance.first_members
    places = tensor_places(instance)
    tensor_of_node = _tensors_of_nodes(sets.network)
    written: dict[int, Any] = {}
    residual = np.empty(2 * len(sets.network.kind), dtype=np.int64)
    level = np.empty(len(sets.network.offsets) - 1, dtype=np.int32)
    work = sets.cost.weight.astype(object)
    transfer = instance.transfer.astype(object)
    for f, leaf in enumerate(sets.leaves):
        assert sets.families is not None
        sets.go_on()
        by_budget, by_rest = (int(value * _SCALE * denominator) for value in (leaf.budget, leaf.rest))
        slope = by_budget - by_rest
        gains = weights.astype(object) - (slope * work) // denominator
        capacities = ((by_budget + by_rest) * transfer) // denominator
        if sum(map(abs, gains)) + sum(capacities) >= _LARGEST:
            return None
        gain, cap = gains.astype(np.int64), capacities.astype(np.int64)
        state = sets.families.state[f]
        positive = int(gain[state == IN].sum()) + int(gain[(state == FREE) & (gain > 0)].sum())
        allowed = -(-by_budget * sets.most // denominator) - (by_rest * sets.least // denominator)
        enough = allowed + positive - capacity
        flow: list[Any] = [[], []]
        if enough > 0:
            reached = family_flow(
                sets.network,
                state,
                sets.families.before[f],
                sets.families.after[f],
                gain,
                cap,
                residual,
                level,
                np.int64(2**62),
            )
            if reached < enough:
                return None
            flow = _flow_rows(sets.network, residual, name, places, tensor_of_node)
        written[id(leaf)] = ["leaf", by_budget, by_rest, flow]
    trees = [[int(name[op]), tree_rows(tree, written, name)] for op, tree in listed]
    return StageProof(sets.limit, weights, capacity, denominator, sets.cost.streamed, trees)


def _flow_rows(
    network: StageNetwork, residual: Int64Array, name: Int64Array, places: Int64Array, tensor_of_node: Int64Array
) -> list[Any]:
    """Return the flow that the residual arcs hold: rows of tensors, and arcs between ops."""
    n = len(network.work)
    amounts = residual[network.backward]
    used = np.flatnonzero(amounts > 0)
    tails, heads = network.heads[network.backward], network.heads[network.forward]
    rows: dict[int, dict[int, int]] = {}
    arcs: list[list[int]] = []
    for i in used.tolist():
        kind, item, amount = int(network.kind[i]), int(network.item[i]), int(amounts[i])
        tail, head = int(tails[i]), int(heads[i])
        if kind == PIN:
            op, node, into = (tail, head, True) if tail < n else (head, tail, False)
            row = rows.setdefault(int(tensor_of_node[node - n]), {})
            row[op] = row.get(op, 0) + (amount if into else -amount)
        elif kind == CUT and tail < n:
            row = rows.setdefault(item, {})
            row[tail] = row.get(tail, 0) + amount
            row[head] = row.get(head, 0) - amount
        elif kind in (UP, DOWN):
            arcs.append([int(name[tail]), int(name[head]), amount])
    tensors = []
    for t, row in sorted(rows.items()):
        flat = [number for op, amount in sorted(row.items()) if amount for number in (int(name[op]), amount)]
        if flat:
            tensors.append([int(places[t]), *flat])
    return [tensors, arcs]


def _tensors_of_nodes(network: StageNetwork) -> Int64Array:
    n = len(network.work)
    owner = np.full(len(network.offsets) - 1 - n, -1, dtype=np.int64)
    tails, heads = network.heads[network.backward], network.heads[network.forward]
    for i in np.flatnonzero((network.kind == CUT) & (tails >= n)).tolist():
        owner[tails[i] - n] = owner[heads[i] - n] = network.item[i]
    return owner
