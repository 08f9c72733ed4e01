"""A claimed lower bound, and the graph that its proof speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtpp.checker.graph import TickGraph
from mtpp.checker.merged import MergedGraph
from mtpp.checker.merges import check_merges, replay_merges
from mtpp.checker.together import together_classes
from mtpp.document_shape import Path, refuse

PLAN_PROOF = ("lower_bound", "proof")
"""Where a plan has the proof of its bound."""

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
    """

    graph: TickGraph
    system: dict[str, Any]
    k: int
    together: list[list[str]]
    value: int
    proof: dict[str, Any]
    path: Path = PLAN_PROOF

    def merged(self) -> MergedGraph | str:
        """Return the graph with all merged that the proof rests on, or what is wrong with a merge."""
        merges = self.proof.get("merges", [])
        check_merges(merges, (*self.path, "merges"))
        return replay_merges(self.graph, together_classes(self.graph, self.together), self.system, merges)

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
