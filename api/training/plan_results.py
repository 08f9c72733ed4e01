"""Planned training for Python: stages in a line, in a graph or with a schedule, and what is proven about them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mtpp.api.output import SavedResult

if TYPE_CHECKING:
    from mtpp.formats.results.graph_plan import PlannedGraph
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.formats.results.training_plan import AnyTrainingPlan, Planned
    from mtpp.host.stop_reason import StopReason
    from mtpp.training.graph_plan import GraphPlan
    from mtpp.training.pfeife.plan import SplitPlan
    from mtpp.training.pfeife.schedule import PassSchedule
    from mtpp.views.terminal import Medium

P = TypeVar("P", bound="AnyTrainingPlan | GraphPlan | SplitPlan")

_SECOND = 10**12


@dataclass(frozen=True, eq=False, repr=False)
class PlanResult(SavedResult, Generic[P]):
    """A plan for training, and what is proven about it; shown as the table that ``mtpp plan`` prints."""

    planned: Any

    @property
    def plan(self) -> P:
        """The plan with exact times, in ticks: picoseconds, unless a graph is abstract."""
        plan: P | None = self.planned.plan
        assert plan is not None
        return plan

    @property
    def ratio(self) -> float | None:
        """What is made least / lower bound; None where nothing is proven."""
        return self.plan.ratio

    @property
    def optimal(self) -> bool:
        """True if no plan of the same kind, by the same rules, is faster: a proof says so."""
        return self.plan.optimal

    @property
    def stopped(self) -> StopReason:
        """Reason that the search ended, such as ``finished``, ``optimal``, ``time-limit`` or ``interrupted``."""
        stopped: StopReason = self.planned.stopped
        return stopped

    def _said(self) -> dict[str, Any]:
        document: dict[str, Any] = self.planned.document()
        return document


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
    memory_bytes
        Bytes held on each of its devices.
    time_s
        Seconds per sample on each of its devices.
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
class TrainingPlanResult(PlanResult["AnyTrainingPlan"]):
    """A plan of stages in a line, and what is proven about its time per sample; shown as ``mtpp plan`` prints it."""

    planned: Planned

    @property
    def time_per_sample_s(self) -> float:
        """Seconds that the slowest stage takes for a micro-batch."""
        return float(self.plan.time_per_sample / _SECOND)

    @property
    def lower_bound_s(self) -> float:
        """Seconds that every plan takes at least."""
        return float(self.plan.lower.value / _SECOND)

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
            float(figures.time / _SECOND),
            frozen({model.layers[layer].name: named[layer] for layer in ordered}),
        )

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.training_plan import training_plan_text

        return training_plan_text(self.planned, medium)


@dataclass(frozen=True, eq=False, repr=False)
class EmittedPlanResult(PlanResult[P]):
    """A plan that PyTorch's pipelining runs."""

    def emit(
        self, form: str, folder: str | os.PathLike[str], *, force: bool = False, imports: Iterable[str] = ()
    ) -> None:
        """Write the plan for the program that trains, into a folder: all of it or nothing.

        Parameters
        ----------
        form
            ``torch-pipelining``: ``plan.json``, ``schedule.csv`` for PyTorch's ``_PipelineScheduleRuntime``, a row for
            each device or each stage in the order of a line, and ``stages.json`` with the ops or the ids of the layers
            of each stage.
        force
            Whether files that an earlier call wrote there may be replaced.
        imports
            Python modules that register operators of the model; ``stages.json`` names them, nothing imports them.

        Raises
        ------
        InputError
            If the program cannot run such a plan, as one whose stages may have replicas, or the folder cannot be made,
            or holds something.
        """
        from mtpp.api.training.emit_plan import emit_plan

        emit_plan(self.planned, form, folder, force=force, imports=imports)


@dataclass(frozen=True)
class GraphPlanStage:
    """A stage of a stage graph.

    Attributes
    ----------
    layers
        Names of its layers, from sources to sinks.
    after
        Stages whose micro-batches it waits for.
    data_parallel
        d: replicas, on a device each.
    micro_batch, forwards_backwards, in_flight
        Samples b of a micro-batch, k of its kFkB order, and micro-batches in flight.
    memory_bytes
        On each of its devices.
    forward_s, backward_s, synchronisation_s
        Seconds of a pass of one micro-batch, and of synchronising gradients.
    configurations
        What each layer runs as.
    """

    layers: Sequence[str]
    after: Sequence[int]
    data_parallel: int
    micro_batch: int
    forwards_backwards: int
    in_flight: int
    memory_bytes: int
    forward_s: float
    backward_s: float
    synchronisation_s: float
    configurations: Mapping[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class GraphPlanResult(EmittedPlanResult["GraphPlan"]):
    """A plan whose stages form a graph, and what is proven about it; shown as the table that ``mtpp plan`` prints.

    It is optimal if no stage graph with whole backward passes is faster.
    """

    planned: PlannedGraph

    @property
    def iteration_s(self) -> float:
        """Seconds of an iteration, simulated: all passes of a mini-batch, and the synchronisation of gradients."""
        return self.plan.iteration / _SECOND

    @property
    def samples_per_s(self) -> float | None:
        """Samples a second; None where an iteration takes no time."""
        return self.plan.problem.mini_batch * _SECOND / self.plan.iteration if self.plan.iteration else None

    @property
    def lower_bound_s(self) -> float:
        """Seconds that the iteration of every plan takes at least."""
        return self.plan.lower.value / _SECOND

    @property
    def devices_used(self) -> int:
        """Devices that have something to do."""
        return self.plan.devices_used

    @property
    def depth(self) -> int:
        """Stages on the longest path."""
        return self.plan.graph.depth

    @cached_property
    def stages(self) -> Sequence[GraphPlanStage]:
        """Stages in a topological order, which is that of the line where they form one."""
        return tuple(self._stage(index) for index in range(len(self.plan.stages)))

    def _stage(self, index: int) -> GraphPlanStage:
        from mtpp.inference.frozen import frozen

        plan, model = self.plan, self.plan.problem.model
        stage, times = plan.stages[index], plan.graph.stages[index]
        ordered = [layer for layer in model.order if layer in stage.configurations]
        return GraphPlanStage(
            tuple(model.layers[layer].name for layer in ordered),
            tuple(one.source for one in plan.graph.transfers if one.target == index),
            stage.data_parallel,
            stage.micro_batch,
            stage.interval,
            stage.in_flight,
            plan.memory_bytes[index],
            times.forward_ticks / _SECOND,
            times.backward_ticks / _SECOND,
            times.synchronisation_ticks / _SECOND,
            frozen({model.layers[layer].name: stage.configurations[layer].id for layer in ordered}),
        )

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.graph_plan import graph_plan_text

        return graph_plan_text(self.planned, medium)


@dataclass(frozen=True)
class SplitPlanStage:
    """A stage: a run of the ops.

    Attributes
    ----------
    layers
        Names of its ops, or ids of its layers, in their order.
    device
        That it runs on.
    forward_ticks, backward_ticks, handover_ticks
        Of one micro-batch; what it hands to the next stage, and that hands back as gradients. Ticks are picoseconds
        unless the graph is abstract.
    """

    layers: Sequence[str | int]
    device: int
    forward_ticks: int
    backward_ticks: int
    handover_ticks: int


@dataclass(frozen=True)
class PlannedDevice:
    """A device in one iteration.

    Attributes
    ----------
    busy
        Part of the iteration that it computes, from 0 to 1.
    in_flight
        Micro-batches of all its stages whose activations it keeps at a time, at most.
    peak_bytes
        None where the graph does not give all sizes.
    """

    busy: float
    in_flight: int
    peak_bytes: int | None


@dataclass(frozen=True, eq=False, repr=False)
class SplitPlanResult(EmittedPlanResult["SplitPlan"]):
    """Split points and a schedule, and what is proven about them; shown as the table that ``mtpp plan`` prints.

    The ratio is to a bound of all splits under this schedule. It is optimal if no split under the schedules asked for,
    one or looped, is faster.
    """

    planned: PlannedSplit

    @property
    def iteration_ticks(self) -> int:
        """Ticks of an iteration: picoseconds, unless the graph is abstract."""
        return self.plan.iteration

    @property
    def iteration_s(self) -> float | None:
        """Seconds of an iteration; None for an abstract graph."""
        return self.plan.iteration / _SECOND if self.plan.problem.line.timed else None

    @property
    def family_ratio(self) -> float | None:
        """Iteration / lower bound of splits under schedules asked for, one or looped; None if nothing is proven."""
        return self.plan.family_ratio

    @property
    def schedule(self) -> PassSchedule:
        """Passes of each device in their order."""
        return self.plan.schedule

    @cached_property
    def stages(self) -> Sequence[SplitPlanStage]:
        """Stages along the order of ops."""
        devices = self.plan.problem.devices
        return tuple(
            SplitPlanStage(tuple(self.plan.layers(s)), s % devices, *ticks)
            for s, ticks in enumerate(self.plan.stage_ticks)
        )

    @cached_property
    def assignment(self) -> Mapping[str, int]:
        """Stage of each op by name, or of each layer by its id as text; :func:`mtpp.evaluate` takes it for graphs."""
        return {str(name): s for s in range(self.plan.stages) for name in self.plan.layers(s)}

    @cached_property
    def devices(self) -> Sequence[PlannedDevice]:
        """What each device does and holds."""
        plan = self.plan
        known = plan.problem.line.sizes_known
        return tuple(
            PlannedDevice(busy / plan.iteration if plan.iteration else 1.0, flying, peak if known else None)
            for busy, flying, peak in zip(plan.busy_ticks, plan.schedule.in_flight, plan.peak_bytes, strict=True)
        )

    @cached_property
    def gains(self) -> Mapping[str, float]:
        """Iteration of each baseline / iteration; ``even`` is that of even stages under this schedule."""
        if not self.plan.iteration:
            return {}
        return {one.name: one.iteration / self.plan.iteration for one in self.plan.baselines}

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.split_plan import split_plan_text

        return split_plan_text(self.planned, medium)
