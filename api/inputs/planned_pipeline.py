"""Stage graphs of training plans: of stages in a line for micro-batches of a given size, and of plans of version 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.training.model import Configuration, LayerId, TrainingModel
    from mtpp.training.stage_costs import PipelineCosts, ScheduledStage
    from mtpp.training.stage_graph import StageGraph


def planned_pipeline(
    plan: Mapping[str, Any], model: TrainingModel, batch_size: int, micro_batch_size: int
) -> StageGraph:
    """Return the pipeline of a training plan of version 1, as :func:`scheduled_pipeline` takes it.

    Notes
    -----
    Each stage waits for the one before; tensors go straight to the stages that read them.
    """
    costs, stages = scheduled_pipeline(plan, model, batch_size, micro_batch_size)
    return costs.stage_graph(stages, [costs.stage_name(stage) for stage in stages], line=True)


def scheduled_pipeline(
    plan: Mapping[str, Any], model: TrainingModel, batch_size: int, micro_batch_size: int
) -> tuple[PipelineCosts, list[ScheduledStage]]:
    """Return the costs of a training plan of version 1, and its stages.

    Parameters
    ----------
    plan
        The document, whose shape has been checked.
    batch_size
        Samples of an iteration.
    micro_batch_size
        Samples that a device takes at once: d replicas make micro-batches of d times as many.
    """
    from mtpp.machine.link import Link
    from mtpp.training.stage_costs import PipelineCosts
    from mtpp.training.stage_graph import MOST_PASSES

    if not plan["feasible"]:
        raise InputError("says that there is no plan", where="/feasible", remedy="plan with more memory")
    if plan["system"]["topology"] is not None:
        problem = "a plan for several levels of devices cannot be simulated"
        raise InputError(problem, where="/system/topology", remedy="plan for one level")
    stages = [_stage(row, f"/stages/{s}", model, micro_batch_size) for s, row in enumerate(plan["stages"])]
    check_layers(stages, model)
    for s, stage in enumerate(stages):
        if batch_size % stage.micro_batch:
            problem = f"micro-batches of {stage.micro_batch:,} samples (stage {s}) do not divide {batch_size:,} samples"
            raise InputError(problem, parameter="batch_size", remedy="give a multiple of all of them")
    if 2 * sum(batch_size // stage.micro_batch for stage in stages) > MOST_PASSES:
        problem = f"all stages together have more than {MOST_PASSES:,} passes"
        raise InputError(problem, parameter="batch_size", remedy="use larger micro-batches")
    costs = PipelineCosts(
        model,
        batch_size,
        Link(plan["system"]["bandwidth_bytes_per_s"]),
        micro_batch_size if model.micro_batch_size is None else model.micro_batch_size,
    )
    return costs, stages


def _stage(row: Mapping[str, Any], where: str, model: TrainingModel, samples: int) -> ScheduledStage:
    from mtpp.training.stage_costs import ScheduledStage

    d = row["data_parallel"]
    return ScheduledStage(stage_configurations(row, model, where), d, d * samples, row["in_flight"])


def stage_configurations(row: Mapping[str, Any], model: TrainingModel, where: str) -> dict[int, Configuration]:
    """Return what each layer of a stage runs as, by its position in the model; *where* is the stage's place."""
    chosen: dict[int, Configuration] = {}
    for i, layer in enumerate(row["layers"]):
        place = f"{where}/layers/{i}"
        if layer not in model.index_of:
            raise InputError(f"the model has no layer {layer!r}", where=place)
        number = model.index_of[layer]
        if number in chosen:
            raise InputError(f"layer {layer!r} is there twice", where=place)
        chosen[number] = _configuration(row, layer, model, where)
    return chosen


def _configuration(row: Mapping[str, Any], layer: LayerId, model: TrainingModel, where: str) -> Configuration:
    t, name = row["tensor_parallel"], row["configurations"].get(str(layer))
    choices = model.layers[model.index_of[layer]].configurations.get(t, ())
    for one in choices:
        if one.id == name:
            return one
    problem = f"layer {layer!r} has no configuration {name!r} for t = {t}"
    raise InputError(problem, where=f"{where}/configurations", remedy="give the model that the plan is for")


def check_layers(stages: Sequence[ScheduledStage], model: TrainingModel) -> None:
    """Check that each layer is in one stage.

    Raises
    ------
    InputError
        If one is in several, or in none.
    """
    placed: dict[int, int] = {}
    for s, stage in enumerate(stages):
        for layer in stage.configurations:
            if placed.setdefault(layer, s) != s:
                problem = f"layer {model.layers[layer].name!r} is in stage {placed[layer]} as well"
                raise InputError(problem, where=f"/stages/{s}/layers")
    for layer, one in enumerate(model.layers):
        if layer not in placed:
            problem = f"layer {one.name!r} of the model is in no stage"
            raise InputError(problem, where="/stages", remedy="give the model that the plan is for")


def planned_graph(plan: Mapping[str, Any], model: TrainingModel) -> StageGraph:
    """Return the pipeline of a training plan of version 2, as :func:`scheduled_graph` takes it."""
    costs, stages = scheduled_graph(plan, model)
    names = [costs.stage_name(stage) for stage in stages]
    return costs.stage_graph(stages, names, line=plan["system"]["sequential"])


def scheduled_graph(plan: Mapping[str, Any], model: TrainingModel) -> tuple[PipelineCosts, list[ScheduledStage]]:
    """Return the costs of a training plan of version 2, and its stages.

    Parameters
    ----------
    plan
        The document, whose shape has been checked.
    """
    from mtpp.machine.link import Link
    from mtpp.training.stage_costs import PipelineCosts, ScheduledStage
    from mtpp.training.stage_graph import MOST_PASSES

    if not plan["feasible"]:
        raise InputError("says that there is no plan", where="/feasible", remedy="plan with more memory")
    system, batch = plan["system"], plan["mini_batch"]
    stages = []
    for s, row in enumerate(plan["stages"]):
        place, d, b = f"/stages/{s}", row["data_parallel"], row["micro_batch"]
        if batch % b or b % d:
            problem = f"micro-batches of {b:,} samples do not divide {batch:,}, or {d:,} replicas do not divide them"
            raise InputError(problem, where=f"{place}/micro_batch")
        chosen = stage_configurations(row, model, place)
        for layer, one in chosen.items():
            if one.micro_batches and b // d not in one.micro_batches:
                name = model.layers[layer].name
                problem = f"layer {name!r} has no costs of {b // d:,} samples on a device"
                raise InputError(problem, where=place, remedy="give the model that the plan is for")
        stages.append(ScheduledStage(chosen, d, b, row["in_flight"], row["forwards_backwards"]))
    check_layers(stages, model)
    if 2 * sum(batch // stage.micro_batch for stage in stages) > MOST_PASSES:
        raise InputError(f"all stages together have more than {MOST_PASSES:,} passes", where="/stages")
    link = Link(system["bandwidth_bytes_per_s"], system["latency_ticks"])
    return PipelineCosts(model, batch, link, plan["rules"]["times_of"]), stages
