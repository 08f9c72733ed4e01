"""Bytes that flow between the stages of a training plan, by the model that it was verified with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.training.model import TrainingModel
    from mtpp.views.report.training.stage_flows import StageFlow


def line_flows(plan: Mapping[str, Any], model: TrainingModel, samples: int) -> list[StageFlow]:
    """Return the flows of stages in a line, each of which waits for the one before, for micro-batches of a replica.

    Parameters
    ----------
    plan
        Of version 1, whose layers are those of the model.
    samples
        That a device takes at once.
    """
    stages = plan["stages"]
    return _model_flows(stages, model, [samples] * len(stages), model.micro_batch_size or samples, line=True)


def graph_flows(plan: Mapping[str, Any], model: TrainingModel) -> list[StageFlow]:
    """Return the flows of a plan by ``graphpipe``, for micro-batches of the stages that send them."""
    from dataclasses import replace

    stages, system = plan["stages"], plan["system"]
    sizes = [row["micro_batch"] for row in stages]
    found = _model_flows(stages, model, sizes, plan["rules"]["times_of"], line=system["sequential"])
    stated = {(one["source"], one["target"]): one for one in plan["transfers"]}
    timed = []
    for one in found:
        known = stated.get((one.source, one.target), {})
        ticks = [known.get(key) for key in ("forward_ticks", "backward_ticks")]
        timed.append(replace(one, forward_ticks=ticks[0], backward_ticks=ticks[1]))
    return timed


def _model_flows(
    stages: Sequence[Mapping[str, Any]],
    model: TrainingModel,
    samples: Sequence[int],
    times_of: int,
    *,
    line: bool,
) -> list[StageFlow]:
    """Return what layers hand to layers of other stages, with what it takes to hand it to all devices of a stage.

    Parameters
    ----------
    samples
        Of a micro-batch of each stage.
    times_of
        Samples that the model's bytes are of.
    line
        Whether each stage waits for the one before, though nothing may pass between them.
    """
    from mtpp.units import ceil_ratio
    from mtpp.views.report.training.stage_flows import StageFlow

    place = {layer: s for s, row in enumerate(stages) for layer in row["layers"]}
    chosen = {}
    for row in stages:
        for layer in row["layers"]:
            choices = model.layers[model.index_of[layer]].configurations.get(row["tensor_parallel"], ())
            named = row["configurations"].get(str(layer))
            chosen[layer] = next((one for one in choices if one.id == named), None)
    moved: dict[tuple[int, int], list[int]] = {}
    for edge in model.edges:
        a, b = place[edge.source], place[edge.target]
        if a == b:
            continue
        sums = moved.setdefault((a, b), [0, 0])
        sender, reader = chosen[edge.source], chosen[edge.target]
        forward = edge.communication_bytes + (reader.forward_sync_bytes.get(edge.source, 0) if reader else 0)
        backward = edge.communication_bytes + (sender.backward_sync_bytes.get(edge.target, 0) if sender else 0)
        sums[0] += ceil_ratio(forward * samples[a], times_of)
        sums[1] += ceil_ratio(backward * samples[b], times_of)
    if line:
        for s in range(len(stages) - 1):
            moved.setdefault((s, s + 1), [0, 0])
    return [StageFlow(a, b, sent, back, samples=samples[a]) for (a, b), (sent, back) in sorted(moved.items())]


def split_flows(plan: dict[str, Any], supplied: str | SuppliedModel, request: VerifyRequest) -> list[StageFlow]:
    """Return the flows of a plan by ``pfeife``: from neighbour to neighbour, or straight to readers."""
    from mtpp.api.verification.training_document import model_of_training_plan
    from mtpp.checker.training.pfeife.plan import handed_bytes
    from mtpp.views.report.training.stage_flows import StageFlow

    model, _, _ = model_of_training_plan(plan, supplied, request)
    sizes = handed_bytes(plan, model)
    ticks: dict[tuple[int, int], int | None] = {}
    for s, row in enumerate(plan["stages"]):
        if plan["system"]["transport"] == "direct":
            ticks |= {(s, target): moved for target, moved in row.get("handovers", ())}
        elif s + 1 < len(plan["stages"]):
            ticks[s, s + 1] = row["handover_ticks"]
    return [StageFlow(*pair, sizes.get(pair), sizes.get(pair), moved, moved) for pair, moved in sorted(ticks.items())]
