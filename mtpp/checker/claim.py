"""A claimed lower bound, and the graph that its proof speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mtpp.checker.graph import TickGraph
from mtpp.checker.merged import MergedGraph
from mtpp.checker.merges import check_merges, replay_merges
from mtpp.checker.pair_links import PairTicks
from mtpp.document_shape import Path, refuse

PLAN_PROOF = ("lower_bound", "proof")
"""Where a plan has the proof of its bound."""

BOTTLENECK, LATENCY = "bottleneck", "latency"
"""Objectives."""

RELAYS = "relays"
"""Rule of proofs of neighbours: devices may stand between stages without ops."""

Verdict = tuple[bool, str]
"""Whether a bound is proven, and that in words, or the first thing about its proof that is false."""


@dataclass(frozen=True)
class BoundClaim:
    """A lower bound as a document states it, and all it may rest on.

    Attributes
    ----------
    value
        In ticks; OPT is claimed to be at least this.
    together
        Groups of op names that the partition must keep in one stage.
    proof
        As it stands in the document: a checker looks at its shape itself.
    path
        Where it stands there.
    by_class
        For a proof on devices that differ: graph and system of each class of devices; None: the devices are equal.
    class_of
        Class of each of those devices, by its position in *by_class*.
    objective, limit
        What is claimed to be at least *value*, the bottleneck or the latency, of all partitions whose other figure is
        at most the limit; None: of all.
    pairs
        Ticks of tensors between devices of two classes; None: transport is direct.
    """

    graph: TickGraph
    system: dict[str, Any]
    k: int
    together: list[list[str]]
    value: int
    proof: dict[str, Any]
    path: Path = PLAN_PROOF
    by_class: Sequence[tuple[TickGraph, dict[str, Any]]] | None = None
    class_of: Sequence[int] = ()
    objective: str = BOTTLENECK
    limit: int | None = None
    pairs: PairTicks | None = None

    @property
    def counts_latency(self) -> bool:
        """Whether the proof is one of devices and latencies."""
        return isinstance(self.proof, dict) and "objective" in self.proof

    def holding_states(self) -> BoundClaim:
        """Return the claim for graphs whose ops hold shares of states, where states count as parameters do."""
        if self.by_class is None:
            return replace(self, graph=self.graph.holding_states([self.system]))
        systems = [system for _, system in self.by_class]
        rows = [(graph.holding_states(systems), system) for graph, system in self.by_class]
        return replace(self, graph=self.graph.holding_states(systems), by_class=rows)

    def on_class(self, c: int) -> BoundClaim:
        """Return the claim as it would be if all devices were of one class."""
        assert self.by_class is not None
        graph, system = self.by_class[c]
        return replace(self, graph=graph, system=system, by_class=None)

    def on_link(self, row: int, c: int = 0) -> BoundClaim:
        """Return the claim with the ticks of tensors over one of the links, and the work of one of the classes."""
        assert self.by_class is not None
        assert self.pairs is not None
        own = self.on_class(c)
        return replace(own, graph=replace(own.graph, transfer=list(self.pairs.rows[row])))

    def merged(self, *, known: bool = False) -> MergedGraph | str:
        """Return the graph with all merged that the proof rests on, or what is wrong with a merge.

        Parameters
        ----------
        known
            Whether the merges are known to hold; else each is looked at.
        """
        merges = self.proof.get("merges", [])
        check_merges(merges, (*self.path, "merges"))
        rules = self.proof.get("rules", ())
        whole = isinstance(rules, list) and "whole" in rules
        classes = together_classes(self.graph, self.together)
        return replay_merges(self.graph, classes, self.system, merges, whole=whole, known=known)

    def merged_by_terms(self) -> MergedGraph | str:
        """Return what :meth:`merged` does where the proof has the claim's value, and its number of stages if any."""
        stages, cutoff = self.proof.get("stages", self.k), self.proof["cutoff"]
        if stages != self.k:
            return f"the proof is for {stages} stages, the claim for {self.k}"
        if cutoff != self.value:
            return f"the proof's cutoff is {cutoff} ticks, the claim's {self.value}"
        return self.merged()

    def name(self, graph: MergedGraph, group: int) -> str:
        """Return what to call a group of ops: by its first one in the file."""
        first = self.graph.op_names[graph.group_of.index(group)]
        return f"op {first!r}" if graph.group_of.count(group) == 1 else f"op {first!r}, with what is merged with it,"

    def key(self, name: str) -> Any:
        """Return the value of a key of the proof, which has to be there."""
        if name not in self.proof:
            refuse("missing key", (*self.path, name))
        return self.proof[name]


def merges_hold(count: int) -> str:
    """Say that *count* merges hold."""
    return "no merges" if count == 0 else "1 merge holds" if count == 1 else f"{count} merges hold"


def together_classes(graph: TickGraph, groups: Iterable[Iterable[str]]) -> list[int]:
    """Give each op a number so that ops with the same number must share a stage when each group shares one.

    Overlapping groups merge, and so do all ops on a cycle of the contracted graph: on a path that leaves a group
    and comes back, stages can neither rise nor fall. Names that no op has are passed over.

    Notes
    -----
    Strongly connected components by two depth-first passes (Sharir 1981), with explicit stacks. O(n + pins).
    """
    number = {name: v for v, name in enumerate(graph.op_names)}
    neighbours: list[list[int]] = [[] for _ in graph.op_names]
    backwards: list[list[int]] = [[] for _ in graph.op_names]
    links = [(u, v) for _, u, v in graph.edges()]
    for group in groups:
        members = [number[name] for name in group if name in number]
        # A cycle through the members makes the group strongly connected, which is what contracting it does.
        links.extend(zip(members, members[1:] + members[:1], strict=True))
    for u, v in links:
        neighbours[u].append(v)
        backwards[v].append(u)

    finished: list[int] = []
    seen = [False] * graph.op_count
    for root in range(graph.op_count):
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(neighbours[root]))]
        while stack:
            u, rest = stack[-1]
            unseen = next((v for v in rest if not seen[v]), None)
            if unseen is None:
                finished.append(u)
                stack.pop()
            else:
                seen[unseen] = True
                stack.append((unseen, iter(neighbours[unseen])))

    classes = [-1] * graph.op_count
    for root in reversed(finished):
        if classes[root] >= 0:
            continue
        classes[root] = root
        reached = [root]
        while reached:
            for u in backwards[reached.pop()]:
                if classes[u] < 0:
                    classes[u] = root
                    reached.append(u)
    return classes
