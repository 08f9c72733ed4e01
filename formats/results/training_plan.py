"""Plans for training, ``mtpp-training-plan`` version 1: written here, judged by the verifier of training plans.

Times are given twice: as floats in the model's unit, for people and plots, and as fractions of ticks in lowest terms,
``[numerator, denominator]``, for a checker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import StopReason
from mtpp.training.nested_plan import NestedPlan, SuperstageFigures
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import FORMAT, VERSION, NoPlan, TimeBound, TrainingPlan, chosen_of
from mtpp.training.problem import PlanningProblem
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.training.micro_batches import BatchSizes, MicroBatches

AnyTrainingPlan = TrainingPlan | NestedPlan
AnyTrainingProblem = PlanningProblem | NestedProblem


@dataclass(frozen=True)
class TrainingTask:
    """A model as read, without the bytes of its file, and the planning problem that it makes.

    Attributes
    ----------
    planner
        Name of a planner of lines.
    knapsack
        One of :data:`mtpp.names.KNAPSACKS`.
    """

    source: Source
    problem: AnyTrainingProblem
    micro_batches: MicroBatches
    planner: str
    knapsack: str

    @property
    def flat(self) -> PlanningProblem:
        """The problem of the innermost level of devices; all of it where there is one level."""
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
        file = self.task.source.identity
        if self.plan is not None:
            return training_plan_document(
                self.plan,
                file=file,
                knapsack=self.task.knapsack,
                heuristic_differs=self.heuristic_differs,
                elapsed_s=self.elapsed_s,
                sizes=self.task.micro_batches.sizes,
            )
        none = self.no_plan
        assert none is not None
        return no_plan_document(
            self.task.problem, none, file=file, elapsed_s=self.elapsed_s, sizes=self.task.micro_batches.sizes
        )


def training_plan_document(
    plan: AnyTrainingPlan,
    *,
    file: Mapping[str, str],
    knapsack: str,
    heuristic_differs: Sequence[int],
    elapsed_s: float,
    sizes: BatchSizes | None = None,
) -> dict[str, Any]:
    """Return a plan as JSON takes it.

    Parameters
    ----------
    file
        SHA-256 of the model's file, and its path where it has one.
    knapsack
        How configurations were chosen, ``exact`` or ``heuristic``.
    heuristic_differs
        Stages for which bang per buck would have chosen slower configurations, or none at all.
    elapsed_s
        Seconds that planning took, without starting the program and reading the model.
    sizes
        Batch that was asked for; None where the number of micro-batches was given as such.
    """
    problem = plan.problem
    time = plan.time_per_sample
    return {
        **header(FORMAT, VERSION, problem, plan.planner, file),
        **_batch(sizes),
        "feasible": True,
        "time_per_sample": in_units(time, problem),
        "time_per_sample_ticks": fraction(time),
        "throughput_per_s": per_second(time),
        "lower_bound": bound_document(plan.lower),
        "ratio": plan.ratio,
        "optimal": plan.optimal,
        "devices_used": plan.devices_used,
        "degrees_sum": plan.degrees_sum,
        "stages": [stage_document(plan, i) for i in range(len(plan.stages))],
        **_superstages(plan),
        "knapsack": {"method": knapsack, "heuristic_differs": list(heuristic_differs)},
        "notes": list(plan.notes),
        "stopped": str(plan.stopped),
        "elapsed_s": round(elapsed_s, 6),
    }


def no_plan_document(
    problem: AnyTrainingProblem,
    none: NoPlan,
    *,
    file: Mapping[str, str],
    elapsed_s: float,
    sizes: BatchSizes | None = None,
) -> dict[str, Any]:
    """Return what JSON says where there is no plan."""
    return {
        **header(FORMAT, VERSION, problem, none.planner, file),
        **_batch(sizes),
        "feasible": False,
        "proven": none.proven,
        "least_memory_bytes": none.least_memory_bytes,
        "reason": none.reason,
        "stages": [],
        "stopped": str(none.stopped),
        "elapsed_s": round(elapsed_s, 6),
    }


def header(
    form: str, version: int, problem: AnyTrainingProblem, planner: str, file: Mapping[str, str]
) -> dict[str, Any]:
    """Return what every document about planning starts with: its *form*, the model, and the devices."""
    model = problem.model
    return {
        "format": form,
        "version": version,
        "planner": planner,
        "model": {"name": model.name, **file, "layers": len(model.layers), "edges": len(model.edges)},
        "time_unit": model.time_unit,
        "ticks_per_unit": PICOSECONDS[model.time_unit],
        "system": _system(problem),
    }


def _batch(sizes: BatchSizes | None) -> dict[str, Any]:
    return {} if sizes is None else {"batch": asdict(sizes)}


def _system(problem: AnyTrainingProblem) -> dict[str, Any]:
    """Return what a document says of the devices, of the batch, and of the rules."""
    flat = level_one(problem)
    return {
        "devices": problem.devices,
        "memory_bytes": flat.memory_bytes,
        "bandwidth_bytes_per_s": flat.link.bandwidth_bytes_per_s,
        "max_micro_batches": flat.micro_batches,
        "exact_micro_batches": flat.exact_micro_batches,
        "convention": flat.convention,
        "data_parallel": flat.schemes.data_parallel,
        "tensor_parallel": flat.schemes.tensor_parallel,
        "recompute": flat.schemes.recompute,
        "topology": problem.machine.topology() if isinstance(problem, NestedProblem) else None,
    }


def level_one(problem: AnyTrainingProblem) -> PlanningProblem:
    """Return the problem of the innermost level, which is all of it where there is one level."""
    return problem.level_one if isinstance(problem, NestedProblem) else problem


def in_units(ticks: Fraction, problem: AnyTrainingProblem) -> float:
    """Return a time in the model's unit, correctly rounded."""
    return float(ticks / PICOSECONDS[problem.model.time_unit])


def fraction(ticks: Fraction) -> list[int]:
    """Return a time in ticks as numerator and denominator in lowest terms."""
    return [ticks.numerator, ticks.denominator]


def per_second(time: Fraction) -> float | None:
    """Return how many micro-batches a second are done at so many ticks each; None where they take no time."""
    return float(PICOSECONDS["s"] / time) if time else None


def bound_document(bound: TimeBound) -> dict[str, Any]:
    """Return a lower bound as JSON takes it."""
    return {
        "value": fraction(bound.value),
        "method": bound.method,
        "tier": str(bound.tier),
        "proof": dict(bound.proof),
    }


def stage_document(plan: AnyTrainingPlan, index: int) -> dict[str, Any]:
    """Return what JSON says of a stage; times are per sample, in the unit of the model."""
    problem, stage, figures = level_one(plan.problem), plan.stages[index], plan.figures[index]
    ids = [problem.model.layers[layer].id for layer in stage.layers]
    chosen = [choice.configuration.id for choice in chosen_of(problem, stage)]
    copies = plan.replicas[index] if isinstance(plan, NestedPlan) else stage.data_parallel
    return {
        "index": index,
        "layers": ids,
        "data_parallel": stage.data_parallel,
        "tensor_parallel": stage.tensor_parallel,
        **({"replicas": copies} if isinstance(plan, NestedPlan) else {}),
        "devices": copies * stage.tensor_parallel,
        "in_flight": figures.in_flight,
        "memory_bytes": figures.memory_bytes,
        "time": in_units(figures.time, problem),
        "time_ticks": fraction(figures.time),
        "compute": in_units(figures.compute, problem),
        "communication": in_units(figures.edges + figures.gradients, problem),
        "edges": in_units(figures.edges, problem),
        "gradients": in_units(figures.gradients, problem),
        "utilization": _share(figures.time, plan),
        "configurations": {str(layer): choice for layer, choice in zip(ids, chosen, strict=True)},
    }


def _superstages(plan: AnyTrainingPlan) -> dict[str, Any]:
    if not isinstance(plan, NestedPlan):
        return {}
    return {"superstages": [_superstage(plan, one) for one in plan.superstages]}


def _superstage(plan: NestedPlan, figures: SuperstageFigures) -> dict[str, Any]:
    return {
        "level": figures.level,
        "data_parallel": figures.data_parallel,
        "stages": list(range(figures.first, figures.last + 1)),
        "time": in_units(figures.time, plan.problem),
        "time_ticks": fraction(figures.time),
        "edges": in_units(figures.edges, plan.problem),
        "gradients": in_units(figures.gradients, plan.problem),
        "utilization": _share(figures.time, plan),
        "superstages": [_superstage(plan, one) for one in figures.inside],
    }


def _share(time: Fraction, plan: AnyTrainingPlan) -> float:
    return float(time / plan.time_per_sample) if plan.time_per_sample else 1.0
