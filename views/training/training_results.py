"""Results of planning for training, as tables and documents show them: one plan, or a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.formats.results.training_plan import AnyTrainingPlan, AnyTrainingProblem
    from mtpp.host.stop_reason import StopReason
    from mtpp.solvers.planners.limits import NoPlan
    from mtpp.solvers.planners.piper.sweep import SweepCell
    from mtpp.solvers.planners.registry import PlannerEntry
    from mtpp.training.micro_batches import MicroBatches
    from mtpp.training.problem import PlanningProblem


@dataclass(frozen=True)
class TrainingTask:
    """A model as read, without the bytes of its file, and the planning problem that it makes.

    Attributes
    ----------
    knapsack
        One of :data:`mtpp.names.KNAPSACKS`.
    """

    source: Source
    problem: AnyTrainingProblem
    micro_batches: MicroBatches
    planner: PlannerEntry
    knapsack: str

    @property
    def flat(self) -> PlanningProblem:
        """The problem of the innermost level of devices; all of it where there is one level."""
        from mtpp.formats.results.training_plan import level_one

        return level_one(self.problem)


@dataclass(frozen=True)
class Planned:
    """A task with its plan, or the reason that there is none.

    Attributes
    ----------
    elapsed_s
        Seconds of planning.
    heuristic_differs
        Stages that bang per buck would have made slower.
    """

    task: TrainingTask
    elapsed_s: float
    plan: AnyTrainingPlan | None = None
    no_plan: NoPlan | None = None
    heuristic_differs: Sequence[int] = ()

    def sealed(self) -> Planned:
        """Return the same with a copy of the bound's proof that cannot be changed."""
        from mtpp.inference.frozen import frozen

        if self.plan is None:
            return self
        lower = replace(self.plan.lower, proof=frozen(self.plan.lower.proof))
        return replace(self, plan=replace(self.plan, lower=lower))

    @property
    def stopped(self) -> StopReason:
        """Reason that planning ended."""
        result = self.plan or self.no_plan
        assert result is not None
        return result.stopped

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-plan`` document, version 1, of the plan or of there being none."""
        from mtpp.formats.results.training_plan import no_plan_document, training_plan_document

        sha256 = self.task.source.sha256
        if self.plan is not None:
            return training_plan_document(
                self.plan,
                sha256=sha256,
                knapsack=self.task.knapsack,
                heuristic_differs=self.heuristic_differs,
                elapsed_s=self.elapsed_s,
            )
        none = self.no_plan
        assert none is not None
        return no_plan_document(
            self.task.problem,
            planner=none.planner,
            sha256=sha256,
            proven=none.proven,
            least_memory_bytes=none.least_memory_bytes,
            reason=none.reason,
            stopped=none.stopped,
            elapsed_s=self.elapsed_s,
        )


@dataclass(frozen=True)
class Swept:
    """A task with the best times for numbers of devices and sums of degrees.

    Attributes
    ----------
    cells
        By (devices, sum of degrees); those that were not reached are missing.
    stopped
        Why planning ended.
    elapsed_s
        Seconds of planning.
    """

    task: TrainingTask
    devices: Sequence[int]
    sums: Sequence[int]
    cells: Mapping[tuple[int, int], SweepCell]
    stopped: StopReason
    elapsed_s: float

    @property
    def feasible(self) -> bool:
        """Whether there is a plan at all."""
        return any(cell.time is not None for cell in self.cells.values())

    @property
    def open(self) -> int:
        """Number of cells that were not reached: nothing is known of them."""
        return len(self.devices) * len(self.sums) - len(self.cells)

    @property
    def problem(self) -> str | None:
        """Fault of a sweep without any plan; None where there is a plan."""
        if self.feasible:
            return None
        if self.open:
            return "no plan was found before the search ended"
        return "no plan fits on any of these numbers of devices"

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per cell, as JSON and CSV have them."""
        from mtpp.formats.results.training_sweep import sweep_row

        rows = []
        for place in product(self.devices, self.sums):
            cell = self.cells.get(place)
            known = () if cell is None else (cell.time, cell.lower, cell.stages)
            rows.append(sweep_row(self.task.flat, *place, *known))
        return rows

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-sweep`` document, version 1."""
        from mtpp.formats.results.training_sweep import sweep_document

        return sweep_document(
            self.task.flat,
            self.rows(),
            planner=self.task.planner.name,
            sha256=self.task.source.sha256,
            stopped=self.stopped,
            elapsed_s=self.elapsed_s,
        )
