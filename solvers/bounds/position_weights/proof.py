"""Proofs by position weights: steps of weights, each with what the stages are worth at most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mtpp.array_types import Int64Array
from mtpp.solvers.bounds.frontier.kernels.fronts import Slope
from mtpp.solvers.bounds.frontier.scan_search import ScanProof


class Step(NamedTuple):
    """Weights, and what the stages are worth at most by them.

    Attributes
    ----------
    weight
        a[j − 1, v] for stages from 1 on, int64, shape (k, n).
    floors
        Worth that entries of each stage's scan have to come to, for labels to be kept.
    slopes
        Prices of ticks that keep the fronts of a re-check short.
    """

    weight: Int64Array
    floors: list[int]
    slopes: list[Slope]

    def document(self, name: Int64Array) -> dict[str, Any]:
        """Return it as JSON values, ops by the numbers that proofs call them by."""
        rows = self.weight.T.tolist()
        return {
            "weights": [[int(name[v]), row] for v, row in enumerate(rows) if any(row)],
            "slopes": [[slope.price, slope.shift] for slope in self.slopes],
            "floors": self.floors,
        }


class Split(NamedTuple):
    """Two cases: an op is in one of the first stages up to *stage*, or in one of those behind."""

    op: int
    stage: int
    early: Case
    late: Case


@dataclass(eq=False)
class Case:
    """Steps that narrow the windows of a case, one after the other, and the cases that it is split into then."""

    steps: list[Step] = field(default_factory=list)
    split: Split | None = None

    def document(self, name: Int64Array) -> dict[str, Any]:
        """Return it as JSON values; each split is a level of recursion."""
        branch = None
        if self.split is not None:
            op, stage, *cases = self.split
            branch = [int(name[op]), stage, *(case.document(name) for case in cases)]
        return {"steps": [step.document(name) for step in self.steps], "branch": branch}


@dataclass(frozen=True, eq=False)
class PositionProof(ScanProof):
    """That no partition into k stages stays within a limit: a tree of cases, each with steps that leave none."""

    tree: Case

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        return {**self.terms(), "tree": self.tree.document(self.order.instance.first_members)}
