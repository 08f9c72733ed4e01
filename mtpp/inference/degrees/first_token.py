"""Prefill of the stages of a plan for decoding: the time to the first token of its prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.inference.degrees.stage_degrees import DegreeGraph, StageDegrees
from mtpp.inference.objective import StageCosts
from mtpp.inference.partition import Partition


@dataclass(frozen=True, eq=False)
class FirstToken:
    """Stages of a plan, working on prompts.

    Attributes
    ----------
    degrees
        As of the plan, with the sizes and times of a prefill.
    limit
        Ticks that all stages together may take; None: any.
    dims
        Sizes that the model was read for.
    graphs
        Of each degree, to embed.
    """

    degrees: StageDegrees
    limit: int | None
    dims: Mapping[str, int]
    graphs: Mapping[int, DegreeGraph]

    def costs(self, partition: Partition) -> StageCosts:
        """Return the costs of the stages."""
        return self.degrees.costs(partition)

    def to_document(self, partition: Partition, graphs: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the JSON object of a plan's ``first_token``, times in ticks and sizes in bytes.

        Parameters
        ----------
        graphs
            Those of each degree as values for JSON, to embed.
        """
        costs = self.costs(partition)
        return {
            "latency": costs.latency,
            **({} if self.limit is None else {"max_latency": self.limit}),
            "dims": dict(self.dims),
            "stages": [
                {"cost": cost, "peak_bytes": peak}
                for cost, peak in zip(costs.cost.tolist(), costs.peak_bytes.tolist(), strict=True)
            ],
            **({} if graphs is None else {"graphs": dict(graphs)}),
        }
