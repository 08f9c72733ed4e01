"""A planned line of stages for Python: its stages, the time of the slowest one, and what is proven about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mtpp.api.output import SavedResult
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    from mtpp.formats.results.training_plan import AnyTrainingPlan, Planned
    from mtpp.host.stop_reason import StopReason
    from mtpp.views.terminal import Medium


@dataclass(frozen=True)
class TrainingStage:
    """A stage of a plan.

    Attributes
    ----------
    layers
        Names of its layers, from sources to sinks.
    data_parallel, tensor_parallel
        d and t: copies of the stage, and devices that share a layer.
    devices
        Devices that it runs on, in all its copies.
    in_flight
        Micro-batches whose activations are kept.
    memory_bytes, time_s
        Of each of its devices: bytes held, and seconds per sample.
    configurations
        What each layer runs as.
    """

    layers: Sequence[str]
    data_parallel: int
    tensor_parallel: int
    devices: int
    in_flight: int
    memory_bytes: int
    time_s: float
    configurations: Mapping[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class TrainingPlanResult(SavedResult):
    """A plan for training, and what is proven about it; shown as the table that ``mtpp plan`` prints."""

    planned: Planned

    @property
    def plan(self) -> AnyTrainingPlan:
        """The plan with exact times, in ticks of a picosecond."""
        plan = self.planned.plan
        assert plan is not None
        return plan

    @property
    def time_per_sample_s(self) -> float:
        """Seconds that the slowest stage takes for a micro-batch."""
        return _seconds(self.plan.time_per_sample)

    @property
    def lower_bound_s(self) -> float:
        """Seconds that every plan takes at least."""
        return _seconds(self.plan.lower.value)

    @property
    def ratio(self) -> float | None:
        """Time per sample / lower bound; None where nothing is proven."""
        return self.plan.ratio

    @property
    def optimal(self) -> bool:
        """True if no pipeline of stages in a line by these rules is faster: a proof says so."""
        return self.plan.optimal

    @property
    def stopped(self) -> StopReason:
        """Reason that the search ended, such as ``finished``, ``time-limit`` or ``interrupted``."""
        return self.planned.stopped

    @property
    def devices_used(self) -> int:
        """Devices that have something to do."""
        return self.plan.devices_used

    @cached_property
    def stages(self) -> Sequence[TrainingStage]:
        """Stages in pipeline order, from the model's sources to its sinks."""
        return tuple(self._stage(i) for i in range(len(self.plan.stages)))

    def _stage(self, index: int) -> TrainingStage:
        from mtpp.formats.results.training_plan import level_one
        from mtpp.inference.frozen import frozen
        from mtpp.training.nested_plan import NestedPlan
        from mtpp.training.plan import chosen_of

        stage, figures, model = self.plan.stages[index], self.plan.figures[index], self.plan.problem.model
        place: dict[int, int] = {layer: at for at, layer in enumerate(model.order)}
        chosen = chosen_of(level_one(self.plan.problem), stage)
        named = {layer: one.configuration.id for layer, one in zip(stage.layers, chosen, strict=True)}
        ordered = sorted(stage.layers, key=place.__getitem__)
        copies = self.plan.replicas[index] if isinstance(self.plan, NestedPlan) else stage.data_parallel
        return TrainingStage(
            tuple(model.layers[layer].name for layer in ordered),
            stage.data_parallel,
            stage.tensor_parallel,
            copies * stage.tensor_parallel,
            figures.in_flight,
            figures.memory_bytes,
            _seconds(figures.time),
            frozen({model.layers[layer].name: named[layer] for layer in ordered}),
        )

    def _said(self) -> dict[str, Any]:
        return self.planned.document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.training_plan import training_plan_text

        return training_plan_text(self.planned, medium)


def _seconds(ticks: Any) -> float:
    return float(ticks / PICOSECONDS["s"])
