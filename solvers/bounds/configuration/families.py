"""All sets of ops that can be a stage within a limit, split into families, each of which is bounded by a minimum cut.

The families are the leaves of trees. The root of the i-th tree holds the sets that have its op, and none of the ops of
the roots before it; a split divides a family into the sets with some op and those without it. A family that can hold no
set, by what :func:`~mtpp.solvers.bounds.configuration.kernels.family_closure.close_family` concludes, has no part in
anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.kernels.family_closure import close_family
from mtpp.solvers.bounds.configuration.kernels.stage_families import Families
from mtpp.solvers.bounds.configuration.kernels.stage_network import CUT, DOWN, IN, OUT, PIN, UP, Int8Array, StageNetwork
from mtpp.solvers.bounds.configuration.stage_weights import StageWeights, strongest_weights
from mtpp.solvers.flows.kernels.max_flow import flow_arcs

Known = tuple[Int8Array, Int8Array, Int8Array, Int8Array]
"""State, before, after and apart of one family, as in :class:`Families`."""


class TimeUp(Exception):
    """The work has to end now; what it was at is of no use."""


@dataclass
class Family:
    """A node of a tree of families: a leaf, or split by an op.

    Attributes
    ----------
    op
        That divides the sets, None for a leaf.
    inside, outside
        The families with and without it.
    depth
        Splits above it.
    budget, rest
        Multipliers of a leaf: weight per tick above the budget, and per tick below the least work.
    """

    op: int | None = None
    inside: Family | None = None
    outside: Family | None = None
    depth: int = 0
    budget: float = 0.0
    rest: float = 0.0

    def split(self, op: int) -> None:
        """Divide a leaf by an op; both parts begin with its multipliers."""
        self.op = op
        self.inside = Family(depth=self.depth + 1, budget=self.budget, rest=self.rest)
        self.outside = Family(depth=self.depth + 1, budget=self.budget, rest=self.rest)


@dataclass(eq=False)
class StageSets:
    """The sets of an instance that can be a stage.

    Attributes
    ----------
    instance, cost
        What is partitioned, and the weights by which its stages cost at least so much, ops numbered as there.
    network
        For the cuts.
    roots
        Op and tree of each family, in the order in which they exclude each other.
    limit
        Of a stage's cost; set by :meth:`within`.
    most, least
        Of ``work(S) + cut(S)``, and of ``work(S) − cut(S)``, for a stage S within the limit.
    leaves
        Families that may hold a set within the limit, and what is known of each.
    ended
        Tells whether the work has to end.
    """

    instance: Instance
    cost: StageWeights
    network: StageNetwork
    roots: list[tuple[int, Family]]
    limit: int = -1
    most: int = 0
    least: int = 0
    leaves: list[Family] = field(default_factory=list)
    families: Families | None = None
    ended: Callable[[], bool] = lambda: False

    @classmethod
    def of(cls, instance: Instance, ended: Callable[[], bool] = lambda: False) -> StageSets:
        """Return the sets of an instance, one family for each op, the most expensive first.

        Notes
        -----
        O(n²) memory, O(n · edges) time.
        """
        cost = strongest_weights(instance)
        reaches = reachability(instance)
        related = reaches.sum(axis=0, dtype=np.int64) + reaches.sum(axis=1, dtype=np.int64)
        order = np.lexsort((-related, -cost.weight))
        roots = [(int(op), Family()) for op in order]
        return cls(instance, cost, stage_network(instance, cost, reaches), roots, ended=ended)

    def go_on(self) -> None:
        """Raise :class:`TimeUp` if the work has to end: with a thousand ops, going once over all families takes long.

        After that the families are to be gathered anew (:meth:`within`) before anything but proofs is used.
        """
        if self.ended():
            raise TimeUp

    def within(self, limit: int) -> None:
        """Find the families of stages that cost at most *limit*."""
        self.leaves, self.families = [], None  # of no use any more, even if the time is up meanwhile
        self.limit = limit
        self.most = limit + self.cost.constant
        self.least = self.cost.total - (self.instance.k - 1) * self.most
        n = self.instance.op_count
        known = np.zeros(n, dtype=np.int8)
        left = self.cost.total
        found: list[tuple[Family, Known]] = []
        for op, tree in self.roots:
            if left < self.least:
                break
            self.go_on()
            state = known.copy()
            state[op] = IN
            found += self._leaves(tree, state)
            known[op] = OUT
            left -= int(self.cost.weight[op])
        self._gather(found)

    def refine(self, ops: dict[int, int]) -> dict[int, tuple[int | None, int | None]]:
        """Split leaves, given by their numbers, each by an op.

        Returns
        -------
        New numbers of each old leaf: twice the same if it was not split, None for a part that holds no set.
        """
        assert self.families is not None
        moved: dict[int, tuple[int | None, int | None]] = {}
        found: list[tuple[Family, Known]] = []
        for f, leaf in enumerate(self.leaves):
            if f not in ops:
                moved[f] = (len(found), len(found))
                found.append((leaf, self.families.known(f)))
                continue
            self.go_on()
            leaf.split(ops[f])
            parts: list[int | None] = []
            for part, value in ((leaf.inside, IN), (leaf.outside, OUT)):
                assert part is not None
                state = self.families.state[f].copy()
                state[ops[f]] = value
                closed = self.closed(state)
                parts.append(None if closed is None else len(found))
                if closed is not None:
                    found.append((part, closed))
            moved[f] = (parts[0], parts[1])
        self._gather(found)
        return moved

    def listed_roots(self) -> list[tuple[int, Family]]:
        """Return the roots without those whose sets, and all that follow, have too little work."""
        left = self.cost.total
        for i, (op, _) in enumerate(self.roots):
            if left < self.least:
                return self.roots[:i]
            left -= int(self.cost.weight[op])
        return self.roots

    def _leaves(self, tree: Family, state: Int8Array) -> list[tuple[Family, Known]]:
        found = []
        stack = [(tree, state)]
        while stack:
            node, known = stack.pop()
            closed = self.closed(known)
            if closed is None:
                continue
            if node.op is None:
                found.append((node, closed))
                continue
            assert node.inside is not None
            assert node.outside is not None
            for part, value, opposite in ((node.outside, OUT, IN), (node.inside, IN, OUT)):
                if closed[0][node.op] == opposite:
                    continue
                inner = closed[0].copy()
                inner[node.op] = value
                stack.append((part, inner))
        return found

    def closed(self, state: Int8Array) -> Known | None:
        """Return what is known of a family with what follows from it, None if it holds no set."""
        state = state.copy()
        before, after = np.empty_like(state), np.empty_like(state)
        apart = np.empty(len(self.network.transfer), dtype=np.int8)
        possible = close_family(self.network, self.most, self.least, state, before, after, apart)
        return (state, before, after, apart) if possible else None

    def _gather(self, found: list[tuple[Family, Known]]) -> None:
        self.leaves = [leaf for leaf, _ in found]
        sizes = (*[self.instance.op_count] * 3, self.instance.tensor_count)
        stacked = [
            np.array([known[i] for _, known in found], dtype=np.int8).reshape(len(found), size)
            for i, size in enumerate(sizes)
        ]
        self.families = Families(*stacked)


def reachability(instance: Instance) -> Int8Array:
    """Return a matrix, int8, shape (n, n): 1 where there is a path from the op of the row to that of the column."""
    n = instance.op_count
    reaches = np.zeros((n, n), dtype=np.int8)
    offsets, successors = instance.successors
    for u in reversed(instance.order.tolist()):
        own = successors[offsets[u] : offsets[u + 1]]
        if len(own):
            reaches[u] = reaches[own].max(axis=0)
            reaches[u, own] = 1
    return reaches


def stage_network(instance: Instance, cost: StageWeights, reaches: Int8Array) -> StageNetwork:
    """Return the network of the cuts that bound families of stages.

    A tensor of two ops is an arc each way. One of more is an arc between two nodes of its own: the first is on the side
    of the set if one of its ops is, and all of its ops are if the second is.
    """
    n, m = instance.op_count, instance.tensor_count
    tails: list[int] = []
    heads: list[int] = []
    kinds: list[int] = []
    items: list[int] = []
    nodes = n
    node = np.full(m, -1, dtype=np.int32)

    def add(tail: int, head: int, kind: int, item: int) -> None:
        tails.append(tail)
        heads.append(head)
        kinds.append(kind)
        items.append(item)

    offsets, pins = instance.pin_offsets.tolist(), instance.pins.tolist()
    for t in range(m):
        touched = pins[offsets[t] : offsets[t + 1]]
        if len(touched) == 2:
            add(touched[0], touched[1], CUT, t)
            add(touched[1], touched[0], CUT, t)
        elif len(touched) > 2:
            node[t] = nodes
            add(nodes, nodes + 1, CUT, t)
            for op in touched:
                add(op, nodes, PIN, t)
                add(nodes + 1, op, PIN, t)
            nodes += 2
    successor_offsets, successors = instance.successors
    edge_tails = np.repeat(np.arange(n, dtype=np.int32), np.diff(successor_offsets))
    for e, (tail, head) in enumerate(zip(edge_tails.tolist(), successors.tolist(), strict=True)):
        add(tail, head, UP, e)
        add(head, tail, DOWN, e)
    return StageNetwork(
        flow_arcs(np.array(tails, dtype=np.int64), np.array(heads, dtype=np.int64), nodes),
        np.array(kinds, dtype=np.int32),
        np.array(items, dtype=np.int32),
        edge_tails,
        successors.astype(np.int32),
        cost.weight,
        instance.transfer.copy(),
        instance.pin_offsets.copy(),
        instance.pins.copy(),
        node,
        reaches,
        np.ascontiguousarray(reaches.T),
    )


def tree_rows(tree: Family, leaf: dict[int, Any], name: Int32Array | Int64Array) -> Any:
    """Return a tree as a proof writes it, given what to write for each leaf that may hold a set, by ``id``."""
    written: list[Any] = []
    stack: list[tuple[Family, bool]] = [(tree, False)]
    while stack:
        node, done = stack.pop()
        if node.op is None:
            written.append(leaf.get(id(node), ["none"]))
        elif done:
            outside = written.pop()
            inside = written.pop()
            written.append(["split", int(name[node.op]), inside, outside])
        else:
            assert node.inside is not None
            assert node.outside is not None
            stack += [(node, True), (node.outside, False), (node.inside, False)]
    return written.pop()
