"""Regions between two ops that may join the stage of one: merged by :mod:`mtpp.solvers.reduction.reduction`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import pairwise

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance

SOURCE, SINK = 0, 1

UNCUT = 2**62
"""Capacity of what must not be cut: more than all else together."""

LARGEST = 48
"""Ops of a region, the leader aside."""

MOST_BESIDE = 8
"""Ops outside a region that it has edges with on its leader's side."""

_STEPS = 300
"""Edges that a search for those may follow from the leader."""


class SmallNetwork:
    """A network with capacities; nodes are numbers."""

    def __init__(self) -> None:
        self._arcs: list[list[int]] = [[], []]
        self._head: list[int] = []
        self._residual: list[int] = []

    def add_node(self) -> int:
        """Add a node beside source and sink and return its number."""
        self._arcs.append([])
        return len(self._arcs) - 1

    def add_arc(self, tail: int, head: int, capacity: int) -> None:
        """Add an arc."""
        self._arcs[tail].append(len(self._head))
        self._head.append(head)
        self._residual.append(capacity)
        self._arcs[head].append(len(self._head))
        self._head.append(tail)
        self._residual.append(0)

    def add_hyperedge(self, ends: list[int], capacity: int) -> None:
        """Add what is cut once if the source's side has some of its ends, but not all (Lawler 1973)."""
        touched, left = self.add_node(), self.add_node()
        self.add_arc(touched, left, capacity)
        for end in ends:
            self.add_arc(end, touched, UNCUT)
            self.add_arc(left, end, UNCUT)

    def minimum_cut(self) -> int:
        """Return the least capacity of arcs that separate the sink from the source; once.

        Notes
        -----
        Shortest augmenting paths (Edmonds and Karp 1972), O(nodes·arcs²).
        """
        total = 0
        while (path := self._path()) is not None:
            flow = min(self._residual[arc] for arc in path)
            for arc in path:
                self._residual[arc] -= flow
                self._residual[arc ^ 1] += flow
            total += flow
        return total

    def _path(self) -> list[int] | None:
        """Return the arcs of a shortest path along which more can flow."""
        entered = [-1] * len(self._arcs)
        queue = [SOURCE]
        for node in queue:
            for arc in self._arcs[node]:
                head = self._head[arc]
                if head != SOURCE and entered[head] < 0 and self._residual[arc] > 0:
                    entered[head] = arc
                    queue.append(head)
                    if head == SINK:
                        return self._back(entered)
        return None

    def _back(self, entered: list[int]) -> list[int]:
        path = [entered[SINK]]
        while (tail := self._head[path[-1] ^ 1]) != SOURCE:
            path.append(entered[tail])
        return path


class RegionFinder:
    """The graph of an instance, seen so that regions lie *ahead* of their leaders.

    Parameters
    ----------
    charge
        What a stage pays at most for an op that joins it, without transfers; −1 if the op must not move.
    position
        Place of each op in a topological order.
    upwards
        Whether regions move up to their first op; else down to their last, and *ahead* is against the edges.
    ended
        Tells whether the search has to end now, with the regions found so far.
    """

    def __init__(
        self,
        instance: Instance,
        charge: Int64Array,
        position: Int32Array,
        *,
        upwards: bool,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        n = instance.op_count
        self._ended = ended
        self._upwards = upwards
        self._work: list[int] = instance.work.tolist()
        self._charge: list[int] = charge.tolist()
        self._transfer: list[int] = instance.transfer.tolist()
        offsets, pins = instance.pin_offsets.tolist(), instance.pins.tolist()
        self._pins = [pins[begin:end] for begin, end in pairwise(offsets)]
        self._tensors: list[list[int]] = [[] for _ in range(n)]
        for t, ops in enumerate(self._pins):
            if len(ops) > 1:
                for op in ops:
                    self._tensors[op].append(t)
        self._cut = [sum(self._transfer[t] for t in tensors) for tensors in self._tensors]
        tails, heads = instance.edges if upwards else instance.edges[::-1]
        self._behind: list[dict[int, None]] = [{} for _ in range(n)]
        for u, v in zip(tails.tolist(), heads.tolist(), strict=True):
            self._behind[v][u] = None
        self._position: list[int] = (position if upwards else -position).tolist()

    def find(self) -> Iterator[list[int]]:
        """Yield regions that share no op, each as a list of its ops that begins with the leader."""
        taken: set[int] = set()
        for last in range(len(self._work)):
            if last not in taken and self._may_be_last(last):
                if self._ended():
                    return
                region = self._region(last, taken)
                if region:
                    taken.update(region)
                    yield region

    def _may_be_last(self, op: int) -> bool:
        """Tell whether joining all that is behind it could save as much as the op costs."""
        if self._charge[op] < 0 or not self._behind[op]:
            return False
        gain = -self._charge[op]
        for t in self._tensors[op]:
            gain += self._transfer[t] if (self._pins[t][0] != op) == self._upwards else -self._transfer[t]
        return gain >= 0

    def _region(self, last: int, taken: set[int]) -> list[int]:
        """Return the smallest region that ends with an op; empty if there is none.

        Ops behind the last one are taken in, the nearest first. The next one may be a leader whenever all of them lie
        ahead of it, and all else that they have edges with behind them lies behind it.
        """
        inside: list[int] = []
        first: list[int] = []
        pins: dict[int, int] = {}
        cost = 0
        seen = {last}
        frontier = [(0, last)]
        while frontier and len(inside) <= LARGEST:
            leader = frontier[0][1]
            if leader in taken:
                break
            more = self._cut_by_joining(leader, pins)
            if inside and cost + more <= self._cut[leader] and all(leader in self._behind[op] for op in first):
                beside = {op for _, op in frontier[1:]}
                if self._all_behind(leader, beside) and self._may_move([leader, *inside], beside, cost + more):
                    return [leader, *inside]
            heappop(frontier)
            if self._charge[leader] < 0 or not self._behind[leader]:
                break
            first = [op for op in first if leader not in self._behind[op]]
            first.append(leader)
            inside.append(leader)
            cost += self._charge[leader] + more
            for t in self._tensors[leader]:
                pins[t] = pins.get(t, 0) + 1
            for op in self._behind[leader]:
                if op not in seen:
                    seen.add(op)
                    heappush(frontier, (-self._position[op], op))
        return []

    def _cut_by_joining(self, op: int, pins: dict[int, int]) -> int:
        """Return by how much more a set cuts if an op joins it; *pins* says how many of each tensor it has."""
        more = 0
        for t in self._tensors[op]:
            if t not in pins:
                more += self._transfer[t]
            elif pins[t] + 1 == len(self._pins[t]):
                more -= self._transfer[t]
        return more

    def _all_behind(self, leader: int, wanted: set[int]) -> bool:
        """Tell whether all these ops lie behind the leader; False if that takes too long."""
        left = wanted - self._behind[leader].keys()
        if not left or len(left) > MOST_BESIDE:
            return not left
        queue, seen, steps = [leader], {leader}, 0
        for here in queue:
            steps += len(self._behind[here])
            if steps > _STEPS:
                break
            for op in self._behind[here]:
                if op not in seen:
                    seen.add(op)
                    queue.append(op)
            left -= seen
            if not left:
                return True
        return False

    def _may_move(self, ops: list[int], beside: set[int], cost: int) -> bool:
        """Tell whether no stage gets more expensive when all ops move to the stage of the first.

        Parameters
        ----------
        beside
            What the others have edges with behind them, outside the region.
        cost
            Of all ops together, without the first one's work.
        """
        region = set(ops)
        tensors: dict[int, list[int]] = {}
        for op in ops:
            for t in self._tensors[op]:
                if self._transfer[t]:
                    tensors.setdefault(t, []).append(op)
        whole = {t for t, inside in tensors.items() if len(inside) == len(self._pins[t])}
        return self._cheapest_to_join(ops, tensors, whole) >= cost and self._never_missed(ops, tensors, region, beside)

    def _cheapest_to_join(self, ops: list[int], tensors: dict[int, list[int]], whole: set[int]) -> int:
        """Return the least that a part of the region with the leader costs, without the leader's work.

        A part is what a stage may hold of the region: with an op all that lies between it and the leader.
        """
        network = SmallNetwork()
        node = {op: network.add_node() for op in ops[1:]}
        node[ops[0]] = SOURCE
        for op in ops[1:]:
            network.add_arc(node[op], SINK, self._charge[op])
            for other in self._behind[op]:
                if node.get(other, SOURCE) != SOURCE:
                    network.add_arc(node[op], node[other], UNCUT)
        for t, inside in tensors.items():
            if t in whole:
                network.add_hyperedge([node[op] for op in inside], self._transfer[t])
                continue
            touched = network.add_node()
            network.add_arc(touched, SINK, self._transfer[t])
            for op in inside:
                network.add_arc(node[op], touched, UNCUT)
        return network.minimum_cut()

    def _never_missed(self, ops: list[int], tensors: dict[int, list[int]], region: set[int], beside: set[int]) -> bool:
        """Tell whether w(B) + c(B ∪ Q) ≥ c(Q) for all sets B of ops ahead of the leader.

        Q is all that a stage without the leader might hold beside them: everything outside but what lies behind them.
        """
        network = SmallNetwork()
        node = {op: network.add_node() for op in ops[1:]}
        for op in ops[1:]:
            network.add_arc(node[op], SINK, self._work[op])
        saved = 0
        for t, inside in tensors.items():
            ends = [node[op] for op in inside if op != ops[0]]
            outside = [op for op in self._pins[t] if op not in region]
            with_q = any(op not in beside for op in outside)
            with_others = len(ends) < len(inside) or any(op in beside for op in outside)
            if with_q and with_others:
                continue
            if with_q:  # not cut by Q and all of B together
                saved += self._transfer[t]
                touched = network.add_node()
                network.add_arc(SOURCE, touched, self._transfer[t])
                for end in ends:
                    network.add_arc(touched, end, UNCUT)
            elif with_others:
                touched = network.add_node()
                network.add_arc(touched, SINK, self._transfer[t])
                for end in ends:
                    network.add_arc(end, touched, UNCUT)
            else:
                network.add_hyperedge(ends, self._transfer[t])
        return network.minimum_cut() >= saved
