"""Two partitions of one model side by side, ``mtpp-stage-comparison`` version 1, and how they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.inference.plan import Plan

FORMAT = "mtpp-stage-comparison"
VERSION = 1

PARTS = ("work", "input", "output", "overflow")
"""Parts of the cost of a stage."""


@dataclass(frozen=True, eq=False)
class StageComparison:
    """A partition and the one that it is held against, of the same model on the same system.

    Attributes
    ----------
    given_name, other_name
        What messages call them.
    """

    given: Plan
    other: Plan
    given_name: str
    other_name: str

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the search for the other one, which is its best so far."""
        return self.other.stopped == StopReason.INTERRUPTED

    @property
    def slowest(self) -> tuple[int, int]:
        """The slowest stage of each, the first of several."""
        return int(self.given.costs.cost.argmax()), int(self.other.costs.cost.argmax())

    @property
    def difference(self) -> dict[str, int]:
        """Ticks by which the slowest stage given exceeds the slowest one of the other, part by part."""
        one, two = (
            plan.stage_rows()[stage] for plan, stage in zip((self.given, self.other), self.slowest, strict=True)
        )
        return {part: one[part] - two[part] for part in (*PARTS, "cost")}

    @property
    def elsewhere(self) -> list[dict[str, int]]:
        """Where the other puts the ops of the slowest stage given: stage, ops and their work in ticks."""
        ops = np.flatnonzero(self.given.partition.assignment == self.slowest[0])
        stages = self.other.partition.assignment[ops]
        work = self.given.instance.work[ops]
        return [
            {"stage": int(b), "ops": int((stages == b).sum()), "work": int(work[stages == b].sum())}
            for b in np.unique(stages)
        ]

    def to_document(self) -> dict[str, Any]:
        """Return the ``mtpp-stage-comparison`` document; times are in ticks."""
        instance = self.given.instance
        rows = zip(*self.padded(), strict=True)
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": {"name": self.given.graph.name, "ops": instance.op_count, "tensors": instance.tensor_count},
            "system": instance.device.to_document(),
            "time_unit": self.given.graph.time_unit,
            "ticks_per_unit": instance.ticks_per_unit,
            "given": _summary(self.given, self.given_name, self.slowest[0]),
            "against": _summary(self.other, self.other_name, self.slowest[1]),
            "stages": [{"index": b, "given": one, "against": two} for b, (one, two) in enumerate(rows)],
            "difference": self.difference,
            "elsewhere": self.elsewhere,
        }

    def padded(self) -> list[list[dict[str, Any] | None]]:
        """Return the rows of both, None where only the other has that many stages."""
        both = [self.given.stage_rows(), self.other.stage_rows()]
        count = max(map(len, both))
        return [[*rows, *[None] * (count - len(rows))] for rows in both]


def _summary(plan: Plan, name: str, slowest: int) -> dict[str, Any]:
    certificate = plan.certificate
    return {
        "name": name,
        "algorithm": plan.algorithm,
        "k": plan.partition.k,
        "bottleneck": certificate.upper,
        "stage": slowest,
        "lower_bound": {
            "value": plan.lower.value,
            "method": plan.lower.method,
            "tier": plan.lower.tier,
        },
        "ratio": certificate.ratio,
        "optimal": certificate.optimal,
    }
