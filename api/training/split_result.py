"""Planned split points and schedule for Python: stages, devices, passes, iteration, and what is proven about it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mtpp.api.output import SavedResult

if TYPE_CHECKING:
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.host.stop_reason import StopReason
    from mtpp.training.pfeife.plan import SplitPlan
    from mtpp.training.pfeife.schedule import PassSchedule
    from mtpp.views.terminal import Medium

_SECOND = 10**12


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
class SplitPlanResult(SavedResult):
    """Split points and a schedule, and what is proven about them; shown as the table that ``mtpp plan`` prints."""

    planned: PlannedSplit

    @property
    def plan(self) -> SplitPlan:
        """The plan with exact times, in ticks."""
        plan = self.planned.plan
        assert plan is not None
        return plan

    @property
    def iteration_ticks(self) -> int:
        """Ticks of an iteration: picoseconds, unless the graph is abstract."""
        return self.plan.iteration

    @property
    def iteration_s(self) -> float | None:
        """Seconds of an iteration; None for an abstract graph."""
        return self.plan.iteration / _SECOND if self.plan.problem.line.timed else None

    @property
    def ratio(self) -> float | None:
        """Iteration / lower bound of all splits under this schedule; None where nothing is proven."""
        return self.plan.ratio

    @property
    def family_ratio(self) -> float | None:
        """Iteration / lower bound of splits under schedules asked for, one or looped; None if nothing is proven."""
        return self.plan.family_ratio

    @property
    def optimal(self) -> bool:
        """True if no split under the schedules asked for, one or looped, is faster: a proof says so."""
        return self.plan.optimal

    @property
    def stopped(self) -> StopReason:
        """Reason that the search ended, such as ``finished``, ``optimal`` or ``time-limit``."""
        return self.planned.stopped

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

    def emit(self, form: str, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the plan for the program that trains, into a folder: all of it or nothing.

        Parameters
        ----------
        form
            ``torch-pipelining``: ``plan.json``, ``schedule.csv`` for PyTorch's ``_PipelineScheduleRuntime``, and
            ``stages.json`` with the ops of each stage.
        force
            Whether files that an earlier call wrote there may be replaced.

        Raises
        ------
        InputError
            If the program cannot run such a plan, or the folder cannot be made, or holds something.
        """
        from mtpp.api.training.emit_plan import emit_plan

        emit_plan(self.planned, form, folder, force=force)

    def _said(self) -> dict[str, Any]:
        return self.planned.document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.split_plan import split_plan_text

        return split_plan_text(self.planned, medium)
