"""Proofs that no partition into k stages stays within a limit: weights, families, and what bounds each family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.division import Trees
from mtpp.solvers.bounds.configuration.families import Known, StageSets, tree_rows
from mtpp.solvers.bounds.configuration.kernels.division import LEAF, NONE
from mtpp.solvers.bounds.configuration.kernels.leaf_sums import equal_shares, flow_moves
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_families import family_flow
from mtpp.solvers.bounds.configuration.kernels.stage_network import FREE, IN, OUT, Int8Array
from mtpp.solvers.bounds.configuration.weights import WeightSearch
from mtpp.solvers.bounds.tensor_places import tensor_places

_SCALE = 2**32
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
    streamed
        Whether parameters count that a fast memory does not hold.
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
        """Return the proof as JSON values; see ``docs/formats.md``."""
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


def stage_proof(search: WeightSearch, trees: Trees | None = None) -> StageProof | None:
    """Turn what a search has found into integers and check it; None if it does not prove the search's limit.

    Parameters
    ----------
    trees
        Of families that are divided further, by their numbers.

    Notes
    -----
    A maximum flow for each leaf where equal shares of the tensors apart do not show enough.
    """
    sets = search.sets
    weights = np.floor(np.maximum(0.0, search.weight) * _SCALE).astype(np.int64)
    capacity = (int(weights.sum()) - 1) // sets.instance.k
    if capacity < 0:
        return None
    leaves = _LeafWriter(sets, weights, capacity)
    written: dict[int, Any] = {}
    assert sets.families is not None
    for f, leaf in enumerate(sets.leaves):
        if trees is not None and f in trees:
            rows = leaves.tree(sets.families.state[f], trees[f])
        else:
            rows = leaves.leaf(sets.families.known(f), leaf.budget, leaf.rest)
        if rows is None:
            return None
        written[id(leaf)] = rows
    name = sets.instance.first_members
    shown = [[int(name[op]), tree_rows(tree, written, name)] for op, tree in sets.listed_roots()]
    return StageProof(sets.limit, weights, capacity, leaves.denominator, sets.cost.streamed, shown)


class _LeafWriter:
    """Writes what shows that the sets of a family hold no more than the capacity."""

    def __init__(self, sets: StageSets, weights: Int64Array, capacity: int) -> None:
        self._sets = sets
        self._weights = weights
        self._capacity = capacity
        self.denominator = 1 << max(1, sets.most).bit_length()
        self._name = sets.instance.first_members
        self._places = tensor_places(sets.instance)
        self._residual = np.empty(2 * len(sets.network.kind), dtype=np.int64)
        self._level = np.empty(len(sets.network.arcs.offsets) - 1, dtype=np.int32)
        self._last: dict[tuple[float, float], tuple[int, int, Int64Array, Int64Array] | None] = {}

    def tree(self, state: Int8Array, tree: tuple[Int32Array, FloatArray, FloatArray]) -> list[Any] | None:
        """Write a tree in preorder whose root has a state; None if a leaf does not show enough."""
        written: list[Any] = [None]
        waiting: list[tuple[Int8Array, list[Any], int]] = [(state, written, 0)]
        for op, budget, rest in zip(*(column.tolist() for column in tree), strict=True):
            self._sets.go_on()
            own, parent, place = waiting.pop()
            known = self._sets.closed(own)
            if (op == NONE) is not (known is None):
                return None
            if known is None:
                parent[place] = ["none"]
                continue
            if op == LEAF:
                rows = self.leaf(known, budget, rest)
                if rows is None:
                    return None
                parent[place] = rows
                continue
            parent[place] = row = ["split", int(self._name[op]), None, None]
            for value, part in ((OUT, 3), (IN, 2)):
                inner = known[0].copy()
                inner[op] = value
                waiting.append((inner, row, part))
        return list(written[0])

    def leaf(self, known: Known, budget: float, rest: float) -> list[Any] | None:
        """Write a leaf, None if it does not show enough."""
        sets, scaled = self._sets, self._scaled(budget, rest)
        if scaled is None:
            return None
        by_budget, by_rest, gain, cap = scaled
        state, before, after, apart = known
        allowed = -(-by_budget * sets.most // self.denominator) - (by_rest * sets.least // self.denominator)
        if allowed + equal_shares(sets.network, state, apart, gain, cap) <= self._capacity:
            return ["shares", by_budget, by_rest, [], []]
        positive = int(gain[state == IN].sum()) + int(gain[(state == FREE) & (gain > 0)].sum())
        enough = allowed + positive - self._capacity
        reached = family_flow(
            sets.network, state, before, after, apart, gain, cap, self._residual, self._level, np.int64(2**62)
        )
        if reached < enough:
            return None
        return ["shares", by_budget, by_rest, *self._flow_rows(state, apart)]

    def _scaled(self, budget: float, rest: float) -> tuple[int, int, Int64Array, Int64Array] | None:
        """Return multipliers, gains and capacities as integers, None if their sums are too large for the kernel."""
        if (budget, rest) not in self._last:
            by_budget, by_rest = (int(value * _SCALE * self.denominator) for value in (budget, rest))
            slope, both = by_budget - by_rest, by_budget + by_rest
            network = self._sets.network
            costs = both * (int(network.work.sum()) + int(network.transfer.sum())) // self.denominator
            if costs + int(self._weights.sum()) >= _LARGEST:
                self._last = {(budget, rest): None}
            else:
                gains = self._weights.astype(object) - (slope * network.work.astype(object)) // self.denominator
                caps = (both * network.transfer.astype(object)) // self.denominator
                self._last = {(budget, rest): (by_budget, by_rest, gains.astype(np.int64), caps.astype(np.int64))}
        return self._last[budget, rest]

    def _flow_rows(self, state: Int8Array, apart: Int8Array) -> list[Any]:
        """Return the flow that the residual arcs hold: rows of tensors, and arcs between ops."""
        moves = np.empty((len(self._sets.network.kind), 3), dtype=np.int64)
        flowing, drawn = flow_moves(self._sets.network, self._residual, state, apart, moves)
        into = moves[:flowing][np.lexsort((moves[:flowing, 1], moves[:flowing, 0]))]
        tensors: list[list[int]] = []
        last = -1
        for t, op, amount in zip(
            into[:, 0].tolist(), self._name[into[:, 1]].tolist(), into[:, 2].tolist(), strict=True
        ):
            if t != last:
                tensors.append([int(self._places[t])])
                last = t
            tensors[-1] += [op, amount]
        arcs = moves[flowing : flowing + drawn]
        names = self._name[arcs[:, :2]]
        return [tensors, np.column_stack([names, arcs[:, 2]]).tolist()]
