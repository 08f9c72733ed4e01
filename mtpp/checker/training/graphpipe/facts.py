"""Setting of a plan by ``graphpipe`` in rows without a verdict, except where the user or the model say what is due.

Part of the independent verifier (:mod:`mtpp.checker.plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.facts import counted, memory
from mtpp.checker.report import Check, fact
from mtpp.checker.training.facts import bandwidth_row
from mtpp.checker.training.graphpipe.costs import GraphModel
from mtpp.checker.training.graphpipe.setting import Setting


def setting_rows(
    plan: dict[str, Any], model: GraphModel, setting: Setting, due: Mapping[str, Any], said_by: str
) -> list[Check]:
    """Return the rows on what a model is trained on; *due* may hold the bandwidth that the user says it has."""
    latency = f"{setting.latency_ticks} ticks of each transfer"
    return [
        fact("devices at hand", f"{setting.devices}, {memory(setting.memory_bytes)} each"),
        bandwidth_row(plan["system"], (), due, said_by),
        fact("latency", latency),
        fact("mini-batch", f"{counted(setting.mini_batch, 'sample')}, in micro-batches of {_sizes(setting)}"),
        _samples_row(model, setting),
        fact("plans that count", _kinds(setting)),
    ]


def _sizes(setting: Setting) -> str:
    text = ", ".join(map(str, setting.sizes))
    if len(setting.sizes) == 1:
        return text
    return f"{text}, which may differ by stage" if setting.per_stage else f"{text}, the same in all stages"


def _samples_row(model: GraphModel, setting: Setting) -> Check:
    name, stated = "samples of times", setting.times_of
    if model.times_of is None:
        return fact(name, f"{stated}, which the model does not say")
    if model.times_of != stated:
        return Check(name, False, f"the plan says {stated}, the model's times are of {model.times_of}")
    return Check(name, True, f"{stated}")


def _kinds(setting: Setting) -> str:
    shape = "one line of stages" if setting.sequential else "stage graphs"
    orders = ", ".join(f"{k}F{k}B" for k in setting.intervals)
    fewest = ", the fewest micro-batches in flight" if setting.least else ""
    kinds = {"data parallelism": setting.data_parallel, "recomputation": setting.recompute}
    left_out = [kind for kind, allowed in kinds.items() if not allowed]
    return f"{shape} in {orders} order{fewest}" + (f"; not with {', '.join(left_out)}" if left_out else "")
