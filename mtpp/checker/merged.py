"""A graph whose ops are merged one after the other: the paths and tensors that are left, and least costs of stages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mtpp.checker.graph import TICKS_PER_S, TickGraph

WITHOUT_MEMORY = "nothing is streamed without a fast memory"


@dataclass(frozen=True)
class MergedGraph:
    """What is left after merging.

    Attributes
    ----------
    work, param_bytes
        Of each group of ops; groups are numbered by their first op in the file.
    tensors
        Transfer, producer and consumers of each tensor that more than one group touches, by group.
    group_of
        Group of each op of the graph.
    """

    work: list[int]
    param_bytes: list[int]
    tensors: list[tuple[int, int, tuple[int, ...]]]
    group_of: list[int]


class Merging:
    """Groups of ops, each called by one of its members, and the tensors between them.

    Attributes
    ----------
    work, param_bytes, cut
        Sums over a group, and the transfers of its tensors that others touch.
    made, read
        Tensors of a group that others read, and that others make.
    producer, readers
        Groups that touch a tensor.

    Notes
    -----
    Merging all costs O(pins·log pins) altogether: the tensors of the group that has fewer change hands.
    """

    def __init__(self, graph: TickGraph) -> None:
        n = graph.op_count
        self.work = list(graph.work)
        self.param_bytes = list(graph.param_bytes)
        self.transfer = graph.transfer
        self.producer = list(graph.producer)
        self.readers = [set(readers) for readers in graph.consumers]
        self.made: list[set[int]] = [set() for _ in range(n)]
        self.read: list[set[int]] = [set() for _ in range(n)]
        self.cut = [0] * n
        self._parent = list(range(n))
        for t, readers in enumerate(self.readers):
            if readers:
                self.made[self.producer[t]].add(t)
                self.cut[self.producer[t]] += self.transfer[t]
            for v in readers:
                self.read[v].add(t)
                self.cut[v] += self.transfer[t]

    def find(self, op: int) -> int:
        """Return what the group of an op is called."""
        while self._parent[op] != op:
            self._parent[op] = self._parent[self._parent[op]]
            op = self._parent[op]
        return op

    def shared(self, a: int, b: int) -> int:
        """Return by how much two groups cut less together than apart."""
        if len(self.made[a]) + len(self.read[a]) > len(self.made[b]) + len(self.read[b]):
            a, b = b, a
        total = 0
        for t in self.made[a] | self.read[a]:
            if t in self.made[b] or t in self.read[b]:
                total += self.transfer[t] * (2 if len(self.readers[t]) == 1 else 1)
        return total

    def merge(self, a: int, b: int) -> int:
        """Merge two groups and return what they are called together."""
        together = self.cut[a] + self.cut[b] - self.shared(a, b)
        if len(self.made[a]) + len(self.read[a]) > len(self.made[b]) + len(self.read[b]):
            a, b = b, a
        self._parent[a] = b
        self.work[b] += self.work[a]
        self.param_bytes[b] += self.param_bytes[a]
        self.cut[b] = together
        for t in self.made[a]:
            self.producer[t] = b
            self.readers[t].discard(b)
            self.read[b].discard(t)
            if self.readers[t]:
                self.made[b].add(t)
        for t in self.read[a]:
            self.readers[t].discard(a)
            if self.producer[t] != b:
                self.readers[t].add(b)
                self.read[b].add(t)
            elif not self.readers[t]:
                self.made[b].discard(t)
        self.made[a], self.read[a] = set(), set()
        return b

    def before(self, group: int) -> set[int]:
        """Return the groups that a group reads from."""
        return {self.producer[t] for t in self.read[group]}

    def after(self, group: int) -> set[int]:
        """Return the groups that read from a group."""
        return set().union(*(self.readers[t] for t in self.made[group]))

    def leads(self, first: int, last: int) -> bool:
        """Tell whether there is a path between two groups, from both ends, always where there is less to look at."""
        ahead, behind = {first}, {last}
        reached, reaching = {first}, {last}
        while ahead and behind:
            if reached & behind or reaching & ahead:
                return True
            if len(ahead) < len(behind):
                ahead = set().union(*(self.after(group) for group in ahead)) - reached
                reached |= ahead
            else:
                behind = set().union(*(self.before(group) for group in behind)) - reaching
                reaching |= behind
        return False

    def result(self, op_count: int) -> MergedGraph:
        """Return the graph as merged so far."""
        number: dict[int, int] = {}
        group_of = [number.setdefault(self.find(op), len(number)) for op in range(op_count)]
        tensors = [
            (self.transfer[t], number[self.producer[t]], tuple(sorted(number[v] for v in readers)))
            for t, readers in enumerate(self.readers)
            if readers
        ]
        return MergedGraph(
            [self.work[group] for group in number], [self.param_bytes[group] for group in number], tensors, group_of
        )

    def merge_classes(self, classes: Iterable[int]) -> None:
        """Merge the ops that have the same number."""
        first: dict[int, int] = {}
        for op, number in enumerate(classes):
            if number in first:
                self.merge(self.find(first[number]), self.find(op))
            else:
                first[number] = op


def stage_weights(graph: MergedGraph, system: dict[str, Any], *, streamed: bool) -> tuple[list[int], int] | None:
    """Return w(u) of each group of ops and C, such that S costs Σ_{u ∈ S} w(u) − C or more besides what it cuts.

    For any set S that has an op. If nothing is *streamed*, w(u) is the work and C is 0.

    Else parameters that the fast memory does not hold count too; None if there is none. With M bytes of it, of which
    activations take r or more (the reserve, or where they depend on the order of the ops nothing), and β ticks a byte,
    a real number, overflow(S) is at least β·(param_bytes(S) + r − M) rounded up. What is added to the work of u is
    β·param_bytes(u), and C is β·(M − r), both rounded down: ⌈x − y⌉ ≥ ⌊x⌋ − ⌊y⌋, and a sum rounded down is at least the
    sum of what is rounded down.
    """
    if not streamed:
        return graph.work, 0
    fast, bandwidth = system["fast_memory_bytes"], system["bandwidth_bytes_per_s"]
    if fast is None:
        return None
    reserve = system["activation_reserve_bytes"] if system["peak"] == "reserve" else 0
    weight = [work + size * TICKS_PER_S // bandwidth for work, size in zip(graph.work, graph.param_bytes, strict=True)]
    return weight, (fast - reserve) * TICKS_PER_S // bandwidth
