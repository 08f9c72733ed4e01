"""Validity of the stages of a training plan: sections 3.1 and 3.6 of Tarnawski et al. (2021).

Every layer is in one stage; no edge goes to an earlier one, so that each stage is contiguous and the order of stages is
one in which they can run; degrees are allowed and add up to no more than there is; every layer runs in a way that is
there for its stage's t.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.report import Check, fact
from mtpp.checker.training.bounds import usable_options
from mtpp.checker.training.levels import check_superstages
from mtpp.checker.training.model import LayerId, LayerOption, TickModel
from mtpp.checker.training.plan_rows import CONFIGURATIONS, configurations_row, edges_row, layers_row, stages_of_layers
from mtpp.checker.training.stages import PipelineStage


def pipeline_checks(plan: dict[str, Any], model: TickModel) -> list[Check]:
    """Check the stages of a plan, all but what they take."""
    layers = layers_row(plan["stages"], model.ids)
    levels = [] if plan["system"]["topology"] is None else [check_superstages(plan)]
    return [
        layers,
        *levels,
        edges_row(model.edges, model.ids, stages_of_layers(plan["stages"], model.ids))
        if layers.passed
        else Check("edges", None, "the layers are wrong"),
        _check_degrees(plan),
        _check_devices(plan),
        _check_options(plan, model) if layers.passed else Check(CONFIGURATIONS, None, "the layers are wrong"),
        _check_knapsack(plan),
    ]


def pipeline_of(plan: dict[str, Any], model: TickModel) -> list[PipelineStage]:
    """Return the stages of a plan that passed :func:`pipeline_checks`."""
    place = {name: i for i, name in enumerate(model.ids)}
    return [
        PipelineStage(
            {place[layer]: _chosen(stage, model, place, layer) for layer in stage["layers"]}, stage["data_parallel"]
        )
        for stage in plan["stages"]
    ]


def _chosen(stage: dict[str, Any], model: TickModel, place: Mapping[LayerId, int], layer: LayerId) -> LayerOption:
    options = model.options[place[layer]][stage["tensor_parallel"]]
    return next(option for option in options if option.name == stage["configurations"][str(layer)])


def _check_degrees(plan: dict[str, Any]) -> Check:
    name, system = "degrees", plan["system"]
    most = system["max_micro_batches"]
    degrees = [_copies(stage) for stage in plan["stages"]]
    for i, stage in enumerate(plan["stages"]):
        d, t = stage["data_parallel"], stage["tensor_parallel"]
        if d > 1 and not system["data_parallel"]:
            return Check(name, False, f"stage {i}: a data-parallel degree of {d}, without data parallelism")
        if t > 1 and not system["tensor_parallel"]:
            return Check(name, False, f"stage {i}: a tensor-parallel degree of {t}, without tensor parallelism")
        if system["convention"] == "program" and most % d:
            return Check(name, False, f"stage {i}: a data-parallel degree of {d} does not divide {most}")
    total = sum(degrees)
    if plan["degrees_sum"] != total:
        return Check(
            name, False, f"the plan says that data-parallel degrees come to {plan['degrees_sum']}, it is {total}"
        )
    if total > most:
        return Check(name, False, f"data-parallel degrees come to {total}, at most {most} micro-batches are allowed")
    if system["exact_micro_batches"] and total != most:
        return Check(name, False, f"data-parallel degrees come to {total}, not exactly {most}")
    return Check(name, True, f"data-parallel ones come to {total} of {most}")


def _copies(stage: dict[str, Any]) -> int:
    """Return how often a stage is there: its degree of data parallelism, times those around it."""
    return int(stage.get("replicas", stage["data_parallel"]))


def _check_devices(plan: dict[str, Any]) -> Check:
    name, most = "devices", plan["system"]["devices"]
    for i, stage in enumerate(plan["stages"]):
        due = _copies(stage) * stage["tensor_parallel"]
        if stage["devices"] != due:
            return Check(name, False, f"stage {i}: the plan says {stage['devices']} devices, it is {due}")
    total = sum(stage["devices"] for stage in plan["stages"])
    if plan["devices_used"] != total:
        return Check(name, False, f"the plan says {plan['devices_used']} devices, it is {total}")
    if total > most:
        return Check(name, False, f"stages take {total} devices, there are {most}")
    return Check(name, True, f"{total} of {most}")


def _check_options(plan: dict[str, Any], model: TickModel) -> Check:
    return configurations_row(
        plan["stages"],
        model.ids,
        lambda layer, t: {option.name for option in model.options[layer].get(t, ())},
        lambda layer, t: {option.name for option in usable_options(model, plan["system"], layer, t)},
        "for a tensor-parallel degree of {}",
    )


def _check_knapsack(plan: dict[str, Any]) -> Check:
    stated = plan["knapsack"]["heuristic_differs"]
    if stated != sorted(set(stated)) or any(i >= len(plan["stages"]) for i in stated):
        return Check("knapsack", False, f"it differs in {stated}, which are not stages in ascending order")
    return fact("knapsack", "recorded: what the heuristic would choose")
