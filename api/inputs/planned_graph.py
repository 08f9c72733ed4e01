"""Stage graph of a training plan of version 2, with the sizes of micro-batches and the orders that it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.planned_pipeline import check_layers, stage_configurations
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.training.model import TrainingModel
    from mtpp.training.stage_costs import PipelineCosts, ScheduledStage
    from mtpp.training.stage_graph import StageGraph


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
    from mtpp.training.pass_order import MOST_PASSES
    from mtpp.training.stage_costs import PipelineCosts, ScheduledStage

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
    rate, times_of = system["bandwidth_bytes_per_s"], plan["rules"]["times_of"]
    return PipelineCosts(model, batch, rate, times_of, system["latency_ticks"]), stages
