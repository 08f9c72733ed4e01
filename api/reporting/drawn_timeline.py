"""Timelines as pages draw them: with the critical path of every pipeline, and the memory of each row if it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.training.model import TrainingModel
    from mtpp.training.pfeife.schedule_run import ScheduleRun
    from mtpp.training.simulation import Simulation
    from mtpp.training.timeline import RowMemory, Timeline


def drawn_timeline(record: Simulation | ScheduleRun, memory: Sequence[RowMemory] | None = None) -> Timeline:
    """Return all passes of a simulated iteration with its critical path, and with the memory of its rows if given."""
    from mtpp.training.simulation import Simulation

    timeline = record.timeline
    if isinstance(record, Simulation):
        timeline = replace(timeline, critical=record.critical)
    return replace(timeline, memory=memory or ())


def stage_memory(
    plan: Mapping[str, Any], model: TrainingModel, batch_size: int = 0, micro_batch_size: int = 0
) -> Sequence[RowMemory]:
    """Return what each device of the stages of a training plan holds, as the costs of the model say.

    Parameters
    ----------
    plan
        Of ``piper`` or ``graphpipe``; a document that has been simulated.
    batch_size, micro_batch_size
        Of a plan of version 1, as it was simulated.
    """
    from mtpp.api.inputs.planned_pipeline import scheduled_graph, scheduled_pipeline
    from mtpp.checker.training.versions import is_version_2
    from mtpp.training.timeline import RowMemory

    if is_version_2(plan):
        costs, stages = scheduled_graph(plan, model)
    else:
        costs, stages = scheduled_pipeline(plan, model, batch_size, micro_batch_size)
    return [
        RowMemory(
            sum(one.memory_b for one in stage.configurations.values()),
            [sum(costs.passes(one, stage.samples).memory_bytes for one in stage.configurations.values())],
            plan["system"]["memory_bytes"],
        )
        for stage in stages
    ]


def device_memory(
    plan: dict[str, Any], supplied: str | SuppliedModel, request: VerifyRequest
) -> Sequence[RowMemory] | None:
    """Return what each device of a plan by ``pfeife`` holds, as the verifier derives it; None where it cannot."""
    from mtpp.api.verification.training_document import model_of_training_plan
    from mtpp.checker.training.pfeife.document import each_device
    from mtpp.checker.training.pfeife.plan import held_bytes
    from mtpp.training.timeline import RowMemory

    model, _, _ = model_of_training_plan(plan, supplied, request)
    held = held_bytes(plan, model)
    if held is None:
        return None
    limits = each_device(plan["system"]["memory_bytes"], len(held))
    return [RowMemory(fixed, kept, limit) for (fixed, kept), limit in zip(held, limits, strict=True)]
