"""A planned stage graph for Python: its stages, iteration, and what is proven about it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mtpp.api.output import SavedResult

if TYPE_CHECKING:
    from mtpp.formats.results.graph_plan import PlannedGraph
    from mtpp.host.stop_reason import StopReason
    from mtpp.training.graph_plan import GraphPlan
    from mtpp.views.terminal import Medium

_SECOND = 10**12


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
class GraphPlanResult(SavedResult):
    """A plan whose stages form a graph, and what is proven about it; shown as the table that ``mtpp plan`` prints."""

    planned: PlannedGraph

    @property
    def plan(self) -> GraphPlan:
        """The plan with exact times, in ticks of a picosecond."""
        plan = self.planned.plan
        assert plan is not None
        return plan

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
    def ratio(self) -> float | None:
        """Iteration / lower bound; None where nothing is proven."""
        return self.plan.ratio

    @property
    def optimal(self) -> bool:
        """True if no stage graph by these rules, of whole backward passes, is faster: a proof says so."""
        return self.plan.optimal

    @property
    def stopped(self) -> StopReason:
        """Reason that the search ended, such as ``finished``, ``optimal`` or ``time-limit``."""
        return self.planned.stopped

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

    def emit(self, form: str, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the plan for the program that trains, into a folder: all of it or nothing.

        Parameters
        ----------
        form
            ``torch-pipelining``: ``plan.json``, ``schedule.csv`` for PyTorch's ``_PipelineScheduleRuntime``, a row for
            each stage in the order of a line, and ``stages.json`` with the ids of the layers of each stage.
        force
            Whether files that an earlier call wrote there may be replaced.

        Raises
        ------
        InputError
            If the program cannot run such a plan, as one whose stages may have replicas, or the folder cannot be made,
            or holds something.
        """
        from mtpp.api.training.emit_plan import emit_plan

        emit_plan(self.planned, form, folder, force=force)

    def _said(self) -> dict[str, Any]:
        return self.planned.document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.graph_plan import graph_plan_text

        return graph_plan_text(self.planned, medium)
