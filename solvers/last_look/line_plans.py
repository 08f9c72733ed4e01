"""Last look at plans of stages in a line, on one level of devices or several: what the time per sample is made of."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.errors import InconsistentResult
from mtpp.solvers.last_look.layers import look_at_equal, look_at_layers, look_at_least_memory, look_at_memory
from mtpp.solvers.last_look.line_sums import LineSums, line_sums, nested_sums
from mtpp.training.nested_plan import NestedPlan, Superstage, all_superstages
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import LayerStage, NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem

_TAKES = "takes {} ticks for a sample"


def look_at_line_plan(problem: PlanningProblem, found: TrainingPlan | NoPlan) -> None:
    """Hold a plan to the devices, micro-batches, memory and schemes of its problem; its times follow from its stages.

    Notes
    -----
    O(layers + edges).
    """
    if isinstance(found, NoPlan):
        look_at_least_memory(None, found.least_memory_bytes, problem.memory_bytes)
        return
    look_at_layers(problem.model, [stage.layers for stage in found.stages], ordered=True)
    _look_at_stages(problem, found.stages)
    _look_at_sums(problem, found.devices_used, problem.devices, found.degrees_sum)
    _look_at_figures(found, line_sums(problem, found.stages), problem.memory_bytes)


def look_at_nested_plan(problem: NestedProblem, found: NestedPlan | NoPlan) -> None:
    """Do the same for several levels of devices."""
    level_one = problem.level_one
    if isinstance(found, NoPlan):
        look_at_least_memory(None, found.least_memory_bytes, level_one.memory_bytes)
        return
    look_at_layers(problem.model, [stage.layers for stage in found.stages], ordered=True)
    _look_at_stages(level_one, found.stages)
    _look_at_level(problem, found.pipeline, len(problem.outer))
    _look_at_sums(level_one, found.devices_used, problem.devices, found.degrees_sum)
    sums = nested_sums(problem, found.pipeline)
    _look_at_figures(found, sums, level_one.memory_bytes)
    look_at_equal([one.time for one in all_superstages(found.superstages)], sums.superstages, "superstage", _TAKES)


def _look_at_figures(found: TrainingPlan | NestedPlan, sums: LineSums, limit: int) -> None:
    """Check memory and times of stages against what their layers sum up to."""
    memory = [one.memory_bytes for one in found.figures]
    look_at_equal(memory, sums.memory_bytes, "stage", "needs {} bytes")
    look_at_memory(memory, [limit] * len(found.stages), "stage")
    look_at_equal([one.time for one in found.figures], sums.stages, "stage", _TAKES)
    if found.time_per_sample != sums.time or sums.time < 0:
        said = f"the plan takes {found.time_per_sample} ticks for a sample"
        raise InconsistentResult(f"{said}, and its slowest stage, summed up from its layers, {sums.time}")


def _look_at_stages(problem: PlanningProblem, stages: Sequence[LayerStage]) -> None:
    for s, stage in enumerate(stages):
        if stage.data_parallel not in problem.data_degrees:
            raise InconsistentResult(f"stage {s} of the plan has {stage.data_parallel} replicas, which is not allowed")
        by_layer = problem.choices[problem.degrees.index(stage.tensor_parallel)]
        if len(stage.chosen) != len(stage.layers) or not all(
            0 <= c < len(by_layer[layer]) for layer, c in zip(stage.layers, stage.chosen, strict=False)
        ):
            raise InconsistentResult(f"a layer in stage {s} of the plan runs as a configuration that it has not")


def _look_at_sums(problem: PlanningProblem, used: int, devices: int, degrees: int) -> None:
    most = problem.micro_batches
    if used > devices:
        raise InconsistentResult(f"the plan uses {used} devices, and there are {devices}")
    if degrees > most or (problem.exact_micro_batches and degrees != most):
        raise InconsistentResult(f"degrees of data parallelism of the plan sum up to {degrees}, and N is {most}")


def _look_at_level(problem: NestedProblem, parts: Sequence[Superstage] | Sequence[LayerStage], above: int) -> None:
    """Check that a split uses no more devices of its level than there are, and those inside."""
    devices = problem.device_tree.levels[above].devices
    used = sum(part.data_parallel * (1 if isinstance(part, Superstage) else part.tensor_parallel) for part in parts)
    if used > devices:
        raise InconsistentResult(f"a split of the plan uses {used} devices of level {above + 1}, which has {devices}")
    for part in parts:
        if isinstance(part, Superstage):
            if part.data_parallel not in problem.data_degrees[above]:
                raise InconsistentResult(f"a superstage of the plan runs on {part.data_parallel} devices, not allowed")
            _look_at_level(problem, part.inside, above - 1)
