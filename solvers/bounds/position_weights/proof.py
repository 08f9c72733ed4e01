"""Proofs by position weights: steps of weights, each with what the stages are worth at most."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class PositionProof(ScanProof):
    """That no partition into k stages stays within a limit: steps, the last of which leaves none."""

    steps: list[Step]

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        name = self.order.instance.first_members
        return {**self.terms(), "tree": {"steps": [step.document(name) for step in self.steps], "branch": None}}
