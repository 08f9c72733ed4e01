"""The smallest pieces of a graph that are neither series nor parallel, one replaced by an edge after the other.

A *piece* between ops x and y is a set of ops that only x feeds from outside and that feed only y outside; so x
dominates its ops (lies on every path to them from the source) and y post-dominates them. The smallest piece that holds
op v is found from below: begin with the closest dominator of v and its closest post-dominator, gather what hangs
together with v between them, and where that leads to an op which the one does not dominate, or the other not
post-dominate, go up to the closest one that does. Every piece with v among its ops contains what is gathered, so the
first one that is closed is the smallest. Pieces within a piece have terminals that lie deeper in the two trees of
dominators, so going from the deepest pair upwards collapses each piece after all those within it.

The pieces are the rigid components of the SPQR tree, which triconnectivity finds in linear time (Gutwenger and Mutzel
2001; Vanhatalo, Völzer and Koehler 2009 for process graphs); dominators are far simpler and as fast where pieces do not
lie deep in each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from mtpp.solvers.series_parallel.compositions import PARALLEL, SERIES, Parts


class _Dominators:
    """A tree of dominators, with jumps for common ancestors in O(log n)."""

    def __init__(self, root: int) -> None:
        self.depth = {root: 0}
        self.up = {root: root}
        self._jump = {root: root}

    def add(self, v: int, above: Iterable[int]) -> None:
        """Put *v* under the closest common dominator of the ops *above* it, all of which are in the tree."""
        ops = iter(above)
        parent = next(ops)
        for op in ops:
            parent = self.common(parent, op)
        self.up[v] = parent
        self.depth[v] = self.depth[parent] + 1
        jump = self._jump[parent]
        even = self.depth[parent] - self.depth[jump] == self.depth[jump] - self.depth[self._jump[jump]]
        self._jump[v] = self._jump[jump] if even else parent

    def common(self, u: int, v: int) -> int:
        """Return the closest op that dominates both or is one of them."""
        depth, up, jump = self.depth, self.up, self._jump
        if depth[u] < depth[v]:
            u, v = v, u
        while depth[u] > depth[v]:
            u = jump[u] if depth[jump[u]] >= depth[v] else up[u]
        while u != v:
            u, v = (jump[u], jump[v]) if jump[u] != jump[v] else (up[u], up[v])
        return u


class Remainder:
    """What series and parallel reductions leave of a graph, reduced to one part by means of cores.

    Parameters
    ----------
    parts
        All parts made so far; new ones are added to it.
    living
        Those that are left: no two between the same ops.
    source, sink
        Every op lies on a path from the one to the other.
    """

    def __init__(self, parts: Parts, living: Iterable[int], source: int, sink: int) -> None:
        self._parts = parts
        self._source, self._sink = source, sink
        self._out: dict[int, dict[int, int]] = {source: {}, sink: {}}
        self._in: dict[int, dict[int, int]] = {source: {}, sink: {}}
        for part in living:
            u, v = parts.tail[part], parts.head[part]
            for op in (u, v):
                self._out.setdefault(op, {})
                self._in.setdefault(op, {})
            self._out[u][v] = self._in[v][u] = part
        order = self._topological_order()
        self._rank = {v: i for i, v in enumerate(order)}
        self._before, self._behind = _Dominators(source), _Dominators(sink)
        for v in order[1:]:
            self._before.add(v, self._in[v])
        for v in reversed(order[:-1]):
            self._behind.add(v, self._out[v])

    def reduce(self) -> int:
        """Return the part that is the whole graph.

        Notes
        -----
        O(d·m·log n) time for m parts, d being how deep pieces lie in each other.
        """
        pair = {v: (self._before.up[v], self._behind.up[v]) for v in self._rank if v not in (self._source, self._sink)}
        queue = [(self._height(*terminals), self._rank[v], v) for v, terminals in pair.items()]
        heapify(queue)
        while queue:
            _, rank, v = heappop(queue)
            if v not in pair or v not in self._out:
                continue
            x, y = self._living(*pair[v])
            ops, above, behind = self._gathered(v, x, y)
            if (above, behind) == (x, y):
                self._collapse(ops, x, y)
                continue
            # All that was gathered between the same terminals belongs to the same smallest piece.
            for op in ops:
                if op != v and op in pair and self._living(*pair[op]) == (x, y):
                    del pair[op]
            pair[v] = above, behind
            heappush(queue, (self._height(above, behind), rank, v))
        return self._out[self._source][self._sink]

    def _topological_order(self) -> list[int]:
        waiting = {v: len(parts) for v, parts in self._in.items()}
        order = [self._source]
        for u in order:
            for v in self._out[u]:
                waiting[v] -= 1
                if not waiting[v]:
                    order.append(v)
        return order

    def _height(self, x: int, y: int) -> int:
        return -self._before.depth[x] - self._behind.depth[y]

    def _living(self, x: int, y: int) -> tuple[int, int]:
        """Return the closest terminals above that are still there."""
        while x not in self._out:
            x = self._before.up[x]
        while y not in self._out:
            y = self._behind.up[y]
        return x, y

    def _gathered(self, v: int, x: int, y: int) -> tuple[list[int], int, int]:
        """Return the ops connected to *v* strictly between *x* and *y*, and the terminals their neighbours require.

        An op that is fed by one under x is y, or has y behind it; so only what else feeds it can be outside. The same
        backwards.
        """
        ops, seen = [v], {v, x, y}
        above, behind = x, y
        for op in ops:
            for nxt in self._out[op]:
                if nxt not in seen:
                    seen.add(nxt)
                    if self._before.common(x, nxt) == x:
                        ops.append(nxt)
                    else:
                        above = self._before.common(above, nxt)
            for nxt in self._in[op]:
                if nxt not in seen:
                    seen.add(nxt)
                    if self._behind.common(y, nxt) == y:
                        ops.append(nxt)
                    else:
                        behind = self._behind.common(behind, nxt)
        return ops, *self._living(above, behind)

    def _collapse(self, ops: list[int], x: int, y: int) -> None:
        """Replace a piece by one part, then reduce what this makes series or parallel."""
        ops.sort(key=self._rank.__getitem__)
        inside = set(ops)
        children = [part for v, part in self._out[x].items() if v in inside]
        children += [part for v in ops for part in self._out[v].values()]
        for v in ops:
            self._out[x].pop(v, None)
            self._in[y].pop(v, None)
            del self._out[v], self._in[v]
        self._join(x, y, self._parts.add_core(x, y, children))
        worklist = [x, y]
        while worklist:
            v = worklist.pop()
            if v in (self._source, self._sink) or v not in self._out or not len(self._in[v]) == 1 == len(self._out[v]):
                continue
            ((u, before),) = self._in.pop(v).items()
            ((w, after),) = self._out.pop(v).items()
            del self._out[u][v], self._in[w][v]
            self._join(u, w, self._parts.add(SERIES, u, w, before, after))
            worklist += [u, w]

    def _join(self, u: int, w: int, part: int) -> None:
        known = self._out[u].get(w)
        if known is not None:
            part = self._parts.add(PARALLEL, u, w, known, part)
        self._out[u][w] = self._in[w][u] = part
