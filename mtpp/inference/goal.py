"""Objective of a plan, and the limit on the figure that is not the objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mtpp.names import BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE

if TYPE_CHECKING:
    from mtpp.inference.objective import StageCosts


@dataclass(frozen=True)
class Goal:
    """Least bottleneck or least latency, the other one of the two limited or not.

    Attributes
    ----------
    objective
        One of :data:`~mtpp.names.OBJECTIVES`.
    limit
        Ticks that the other figure may come to: latency where the bottleneck is the objective, else the bottleneck.
        None: any.
    """

    objective: str = BOTTLENECK_OBJECTIVE
    limit: int | None = None

    @property
    def plain(self) -> bool:
        """Whether it is the least bottleneck, whatever the latency."""
        return self == Goal()

    @property
    def of_latency(self) -> bool:
        """Whether the latency is the objective."""
        return self.objective == LATENCY_OBJECTIVE

    @property
    def limited(self) -> str:
        """Key of the limit in documents."""
        return "max_bottleneck" if self.of_latency else "max_latency"

    def value(self, costs: StageCosts) -> int:
        """Return the objective of a partition with these costs, in ticks."""
        return costs.latency if self.of_latency else costs.bottleneck

    def keeps(self, costs: StageCosts) -> bool:
        """Tell whether a partition with these costs keeps to the limit."""
        other = costs.bottleneck if self.of_latency else costs.latency
        return self.limit is None or other <= self.limit

    def within(self, most: int) -> tuple[int, int]:
        """Return the most ticks of a stage, and of all together, where the objective is at most *most*."""
        limit = most if self.limit is None else self.limit
        return (min(limit, most), most) if self.of_latency else (min(most, limit), limit)

    def to_document(self) -> dict[str, Any]:
        """Return what a plan says of it: the objective, and the limit where there is one."""
        return {"objective": self.objective} | ({} if self.limit is None else {self.limited: self.limit})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Goal:
        """Return the goal that a plan or a row of a table states; of older ones the least bottleneck."""
        goal = cls(document.get("objective", BOTTLENECK_OBJECTIVE))
        return replace(goal, limit=document.get(goal.limited))
