"""Series-parallel decomposition: a graph as a tree of series and parallel compositions, with cores where it is neither.

A two-terminal graph is series-parallel if repeated reductions leave one edge: a *series* reduction replaces the two
edges of an op with one input and one output by one edge, a *parallel* reduction replaces two edges between the same two
ops by one (Valdes, Tarjan and Lawler 1982). Each reduction is a node of the tree. Where none applies and more than one
edge is left, the smallest pieces between two ops that contain the rest become cores, each then replaced by an edge as
well, and the reductions go on around it; see :mod:`mtpp.solvers.series_parallel.irreducible`. Any order of reductions
gives the same tree, up to the order of the branches of a parallel node.

Most neural networks are series-parallel (GraphPipe, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

import numpy as np

from mtpp.inference.graph import CostGraph, Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.series_parallel.compositions import CORE, EDGE, PARALLEL, SERIES, Parts
from mtpp.solvers.series_parallel.irreducible import Remainder

MOST_OPS = 1_000_000
"""Above it the decomposition would take longer than a command that only looks should."""


class Layout(NamedTuple):
    """All ops, and where those inside each node begin and how many they are."""

    ops: list[int]
    begins: list[int]
    sizes: list[int]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The tree. Nodes are numbered so that children come before parents; the root is the last.

    Attributes
    ----------
    op_count
        Number of ops. Two virtual ops stand before and behind all others: :attr:`source` feeds the ops without
        inputs, and the ops without outputs feed :attr:`sink`.
    edge_count, leaf_count
        Number of edges given, and with those of the virtual ops. Leaf e is edge e; the virtual ones come after.
    kind
        :data:`EDGE`, :data:`SERIES`, :data:`PARALLEL` or :data:`CORE` of each node.
    tail, head
        The terminals of each node: the ops that it lies between.
    child_offsets, children
        CSR. Those of a series node in their order, each from the head of the one before; those of a parallel node
        have its own terminals; those of a core are the edges of an irreducible graph between its terminals, by tail in
        topological order.
    """

    op_count: int
    edge_count: int
    leaf_count: int
    kind: Int32Array
    tail: Int32Array
    head: Int32Array
    child_offsets: Int64Array
    children: Int32Array

    @property
    def source(self) -> int:
        """The virtual op before all others."""
        return self.op_count

    @property
    def sink(self) -> int:
        """The virtual op behind all others."""
        return self.op_count + 1

    @property
    def root(self) -> int:
        """The node that is the whole graph."""
        return len(self.kind) - 1

    def children_of(self, node: int) -> Int32Array:
        """Return the children of *node*, none for a leaf."""
        return self.children[self.child_offsets[node] : self.child_offsets[node + 1]]

    def child_lists(self) -> list[list[int]]:
        """Return the children of every node as plain lists."""
        offsets, children = self.child_offsets.tolist(), self.children.tolist()
        return [children[begin:end] for begin, end in pairwise(offsets)]

    @cached_property
    def joints(self) -> list[list[int]]:
        """The ops between the children of each node: of a series in its order, of a core in topological order."""
        tails, heads = self.tail.tolist(), self.head.tolist()
        found: list[list[int]] = []
        for node, (kind, children) in enumerate(zip(self.kind.tolist(), self.child_lists(), strict=True)):
            if kind == SERIES:
                found.append([heads[child] for child in children[:-1]])
            elif kind == CORE:
                found.append([v for v in dict.fromkeys(tails[child] for child in children) if v != tails[node]])
            else:
                found.append([])
        return found

    @cached_property
    def layout(self) -> Layout:
        """The ops in an order in which those inside each node lie together."""
        children_of, joints, kinds = self.child_lists(), self.joints, self.kind.tolist()
        sizes: list[int] = []
        for node, children in enumerate(children_of):
            sizes.append(len(joints[node]) + sum(sizes[child] for child in children))
        begins, ops = [0] * len(sizes), [0] * self.op_count
        for node in range(self.root, -1, -1):
            place = begins[node]
            between = joints[node] if kinds[node] == SERIES else []
            for child, joint in zip_longest(children_of[node], between):
                begins[child] = place
                place += sizes[child]
                if joint is not None:
                    ops[place] = joint
                    place += 1
            if not between:
                ops[place : place + len(joints[node])] = joints[node]
        return Layout(ops, begins, sizes)

    def inside(self, node: int) -> list[int]:
        """Return the ops inside *node*, its terminals left out; those of a series in its order."""
        begin = self.layout.begins[node]
        return self.layout.ops[begin : begin + self.layout.sizes[node]]

    def cores(self) -> list[int]:
        """Return the nodes that are cores."""
        return np.flatnonzero(self.kind == CORE).tolist()


def decompose(graph: CostGraph | Instance) -> Decomposition:
    """Decompose a graph, or that of an instance.

    Returns
    -------
    The tree; it has no core exactly if the graph, between the virtual source and sink, is series-parallel.

    Notes
    -----
    O(n + m) expected time and memory, apart from sorting, for series-parallel graphs: a worklist of ops with one input
    and one output, and a hash table of the edges between two ops. Cores take O(d·m·log n) more, d being how deep they
    lie in each other.
    """
    op_count, edges = graph.op_count, graph.edges
    tails, heads = _with_virtual_ops(op_count, edges)
    reduction = _Reduction(op_count, tails, heads)
    reduction.run()
    root = reduction.only_part()
    if root is None:
        root = Remainder(reduction.parts, reduction.living_parts(), op_count, op_count + 1).reduce()
    return _flattened(reduction.parts, root, op_count, len(edges[0]), len(tails), graph.order)


def expand(tree: Decomposition) -> tuple[Int32Array, Int32Array]:
    """Put the graph together again from the compositions.

    Returns
    -------
    Producer and consumer of each edge that was given, found from the root down: no leaf's own terminals are read.

    Notes
    -----
    O(n + m).
    """
    kinds, children_of = tree.kind.tolist(), tree.child_lists()
    own_tail, own_head = tree.tail.tolist(), tree.head.tolist()
    tails, heads = [-1] * tree.leaf_count, [-1] * tree.leaf_count
    stack = [(tree.root, tree.source, tree.sink)]
    while stack:
        node, tail, head = stack.pop()
        kind, children = kinds[node], children_of[node]
        if kind == EDGE:
            tails[node], heads[node] = tail, head
        elif kind == PARALLEL:
            stack.extend((child, tail, head) for child in children)
        elif kind == SERIES:
            joints = [tail, *(own_head[child] for child in children[:-1]), head]
            stack.extend(zip(children, joints, joints[1:], strict=False))
        else:
            stack.extend((child, own_tail[child], own_head[child]) for child in children)
    count = tree.edge_count
    return np.array(tails[:count], dtype=np.int32), np.array(heads[:count], dtype=np.int32)


def _with_virtual_ops(op_count: int, edges: tuple[Int32Array, Int32Array]) -> tuple[Int64Array, Int64Array]:
    tails, heads = edges
    begins = np.flatnonzero(np.bincount(heads, minlength=op_count) == 0)
    ends = np.flatnonzero(np.bincount(tails, minlength=op_count) == 0)
    source, sink = np.full(len(begins), op_count), np.full(len(ends), op_count + 1)
    return np.concatenate([tails, source, ends], dtype=np.int64), np.concatenate([heads, begins, sink], dtype=np.int64)


class _Reduction:
    """Series and parallel reductions until none applies.

    Edges are parts: leaves at first, then what they were reduced to. An op keeps the number of its parts on either
    side and their exclusive or, which is the part itself where there is only one.
    """

    def __init__(self, op_count: int, tails: Int64Array, heads: Int64Array) -> None:
        self.parts = parts = Parts(tails.tolist(), heads.tolist())
        self._op_count = op_count
        size = self._size = op_count + 2
        keys, first = np.unique(tails * size + heads, return_index=True)
        self._between = between = dict(zip(keys.tolist(), first.tolist(), strict=True))
        self._in_count = np.bincount(heads[first], minlength=size).tolist()
        self._out_count = np.bincount(tails[first], minlength=size).tolist()
        self._in_parts, self._out_parts = (_folded(ends[first], first, size) for ends in (heads, tails))
        repeated = np.ones(len(tails), dtype=bool)
        repeated[first] = False
        for e in np.flatnonzero(repeated).tolist():
            u, v = parts.tail[e], parts.head[e]
            known = between[u * size + v]
            both = between[u * size + v] = parts.add(PARALLEL, u, v, known, e)
            self._out_parts[u] ^= known ^ both
            self._in_parts[v] ^= known ^ both

    def run(self) -> None:
        """Reduce; each op that a reduction leaves with one part on either side is next."""
        between, size = self._between, self._size
        kind, tail, head = self.parts.kind, self.parts.tail, self.parts.head
        first, second = self.parts.first, self.parts.second
        in_count, out_count, in_parts, out_parts = self._in_count, self._out_count, self._in_parts, self._out_parts
        worklist = [v for v in range(self._op_count - 1, -1, -1) if in_count[v] == 1 == out_count[v]]
        made = len(kind)
        while worklist:
            v = worklist.pop()
            before, after = in_parts[v], out_parts[v]
            u, w = tail[before], head[after]
            in_count[v] = out_count[v] = 0
            kind.append(SERIES)
            tail.append(u)
            head.append(w)
            first.append(before)
            second.append(after)
            key = u * size + w
            known = between.get(key)
            if known is None:
                between[key] = made
                out_parts[u] ^= before ^ made
                in_parts[w] ^= after ^ made
                made += 1
                continue
            kind.append(PARALLEL)
            tail.append(u)
            head.append(w)
            first.append(known)
            second.append(made)
            both = between[key] = made + 1
            made += 2
            out_parts[u] ^= before ^ known ^ both
            in_parts[w] ^= after ^ known ^ both
            out_count[u] -= 1
            in_count[w] -= 1
            if in_count[u] == 1 == out_count[u]:
                worklist.append(u)
            if in_count[w] == 1 == out_count[w]:
                worklist.append(w)

    def only_part(self) -> int | None:
        """Return the part that is the whole graph, or None if several are left."""
        source, sink = self._op_count, self._op_count + 1
        if self._out_count[source] == 1 == self._in_count[sink] and self._out_parts[source] == self._in_parts[sink]:
            return self._out_parts[source]
        return None

    def living_parts(self) -> Iterator[int]:
        """Give the parts between ops that are left."""
        source = self._op_count
        for key, part in self._between.items():
            u, v = divmod(key, self._size)
            if (u == source or self._in_count[u]) and (v == source + 1 or self._out_count[v]):
                yield part


def _folded(ends: Int64Array, edges: Int64Array, size: int) -> list[int]:
    """Return the exclusive or of the edges at each op."""
    total = np.zeros(size, dtype=np.int64)
    np.bitwise_xor.at(total, ends, edges)
    folded: list[int] = total.tolist()
    return folded


def _flattened(
    parts: Parts, root: int, op_count: int, edge_count: int, leaf_count: int, order: Int32Array
) -> Decomposition:
    """Return the tree with nested compositions of one kind as one node.

    A part of its parent's kind is absorbed by the node that the parent is or is absorbed by. Any topological order of
    the ops puts what is composed in series in its order.
    """
    kind, tail, head, first, second = (np.array(column, dtype=np.int32) for column in parts.columns())
    above = np.full(len(kind), -1, dtype=np.int32)
    composed = np.flatnonzero((kind == SERIES) | (kind == PARALLEL))
    above[first[composed]] = above[second[composed]] = composed
    for core, children in parts.core_children.items():
        above[children] = core
    above[root] = -1
    absorbed = (above >= 0) & (kind[above] == kind) & (kind != CORE)
    node = np.where(absorbed, above, np.arange(len(kind), dtype=np.int32))
    while not np.array_equal(node, further := node[node]):
        node = further
    kept = np.flatnonzero(~absorbed)
    number = np.full(len(kind), -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    inner = kept[kept != root]
    parent = number[node[above[inner]]]
    rank = np.full(op_count + 2, -1, dtype=np.int32)
    rank[order] = np.arange(op_count, dtype=np.int32)
    by_parent = np.lexsort((rank[tail[inner]], parent))
    offsets = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum(np.bincount(parent, minlength=len(kept)), out=offsets[1:])
    columns = (kind[kept], tail[kept], head[kept], offsets, number[inner][by_parent])
    return Decomposition(op_count, edge_count, leaf_count, *columns)


def structure(graph: CostGraph) -> dict[str, Any] | None:
    """Return the decomposition in figures, None for a graph of more than :data:`MOST_OPS` ops.

    ``blocks`` are parts side by side of which at least one holds ops, ``depth`` says how many of them lie in each
    other, ``widest`` how many branches the widest one has, shortcuts included. ``cores`` are the parts that are neither
    series nor parallel, the largest first, with the op before and the one behind each, null where that is all inputs or
    all outputs.
    """
    if graph.op_count > MOST_OPS:
        return None
    tree = decompose(graph)
    sizes: list[int] = []
    depths: list[int] = []
    widths: list[int] = []
    for kind, children, joints in zip(tree.kind.tolist(), tree.child_lists(), tree.joints, strict=True):
        sizes.append(len(joints) + sum(sizes[child] for child in children))
        is_block = kind == PARALLEL and sizes[-1] > 0
        depths.append(is_block + max((depths[child] for child in children), default=0))
        if is_block:
            widths.append(len(children))
    names = [*graph.op_names, None, None]
    cores = [
        {"ops": sizes[node], "after": names[tree.tail[node]], "before": names[tree.head[node]]}
        for node in range(len(sizes))
        if tree.kind[node] == CORE
    ]
    return {
        "series_parallel": not cores,
        "blocks": len(widths),
        "depth": depths[-1],
        "widest": max(widths, default=0),
        "cores": sorted(cores, key=lambda core: -core["ops"]),
    }
