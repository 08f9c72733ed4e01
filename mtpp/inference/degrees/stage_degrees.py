"""Degrees of the stages of a plan, each with the sizes and times that a GPU has at that degree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import StageCosts, stage_costs
from mtpp.inference.partition import Partition
from mtpp.units import Exact


@dataclass(frozen=True, eq=False)
class DegreeGraph:
    """Share of a model that one of so many GPUs has.

    Attributes
    ----------
    graph
        Ops and tensors of the model, with the bytes of the share.
    times
        For each class of devices the times of its ops, None for classes that do not run at the degree.
    """

    graph: CostGraph
    times: Sequence[Sequence[Exact] | None]


@dataclass(frozen=True, eq=False)
class StageDegrees:
    """Degrees of the stages of a plan.

    Attributes
    ----------
    of_stage
        Degree of each stage, empty ones included.
    instances
        Instance of each degree, on devices in the order of the stages.
    considered
        Degrees that a stage could have had, ascending.
    none_empty
        Whether as many devices as may be used had to have a stage.
    one_degree
        Whether all stages had to have the same degree.
    """

    of_stage: tuple[int, ...]
    instances: Mapping[int, Instance]
    considered: tuple[int, ...]
    none_empty: bool = False
    one_degree: bool = False

    def costs(self, partition: Partition) -> StageCosts:
        """Return the costs of the stages, each at its own degree; O(n + pins) for each degree."""
        found = {degree: stage_costs(self.instances[degree], partition) for degree in sorted(set(self.of_stage))}
        columns = {
            one.name: np.array(
                [getattr(found[degree], one.name)[s] for s, degree in enumerate(self.of_stage)], dtype=np.int64
            )
            for one in fields(StageCosts)
        }
        return StageCosts(**columns)

    def on(self, devices: Sequence[int]) -> StageDegrees:
        """Return the same degrees of stages on devices in another order, by their numbers."""
        return replace(self, instances={degree: one.on(devices) for degree, one in self.instances.items()})

    def to_document(self) -> dict[str, Any]:
        """Return what a plan says of them beside its stages."""
        flags = {"none_empty": self.none_empty, "one_degree": self.one_degree}
        return {"degrees": list(self.considered), **{name: True for name, said in flags.items() if said}}
