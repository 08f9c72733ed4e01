"""Better layouts in the form of an engine: the best plan that it can express, written as it takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.language_models.audit_records import STREAMING

if TYPE_CHECKING:
    from mtpp.api.language_models.served_model import ServedModel
    from mtpp.api.observer import Observer
    from mtpp.formats.layouts.written import WrittenLayout
    from mtpp.inference.plan import Plan
    from mtpp.language_models.audit_records import LayoutAudit
    from mtpp.language_models.layer_stages import StageDevice

_WRITTEN_AS = {"megatron-flags": "megatron", "megatron-bridge": "megatron"}
"""Engines whose layouts are written in the form of another one."""


@dataclass(frozen=True)
class BetterLayout:
    """A layout that an engine takes.

    Attributes
    ----------
    engine
        Whose form it has.
    audit
        The layout, read back and audited.
    """

    engine: str
    written: WrittenLayout
    audit: LayoutAudit


def better_layout(
    served: ServedModel, engine: str, k: int | None, best: Plan | None, time_limit_s: float | None, observer: Observer
) -> BetterLayout | str:
    """Return the best plan that an engine can express, or the reason why there is none.

    Parameters
    ----------
    k
        Number of stages at most; None: of the machine.
    best
        Best plan of all, which is taken where the engine can express it.
    """
    from mtpp.api.language_models.best_plan import best_plan
    from mtpp.formats.layouts.registry import LAYOUT_FORMATS

    engine = _WRITTEN_AS.get(engine, engine)
    if LAYOUT_FORMATS[engine].place is None:
        return f"{engine} has no layout of all stages to write"
    if best is None:
        return "no plan fits into the memory of the devices"
    try:
        return _written(served, engine, best)
    except InputError:
        plan = best_plan(served.model, k, time_limit_s, observer, layers_only=True)
    if plan is None:
        return "no plan of whole layers fits into the memory of the devices"
    try:
        return _written(served, engine, plan)
    except InputError as error:
        return error.problem


def _written(served: ServedModel, engine: str, plan: Plan) -> BetterLayout:
    """Write a plan for an engine, and read it back.

    Raises
    ------
    InputError
        If the engine cannot express it.
    """
    from mtpp.api.language_models.emission import layout_request
    from mtpp.formats.layouts.registry import LAYOUT_FORMATS
    from mtpp.language_models.layer_stages import layer_stages

    place = LAYOUT_FORMATS[engine].place
    assert place is not None
    stage_of = dict(zip(plan.instance.op_names, plan.partition.assignment.tolist(), strict=True))
    stages = layer_stages(served.described, stage_of, _devices(served, plan))
    path = str(served.model.source.display)
    written = place(stages, layout_request(served.described, path, stages, len(stages)))
    given = served.layout(engine, written.setting, len(stages))
    order = [stage.device for stage in stages if stage.device is not None]
    degree = stages[0].tensor_parallel
    audit = served.audit(given, len(stages), order if order and engine not in STREAMING else None, degree).audit
    return BetterLayout(engine, written, audit)


def _devices(served: ServedModel, plan: Plan) -> Sequence[StageDevice]:
    from mtpp.language_models.layer_stages import StageDevice

    machine = served.model.machine
    if machine is None:
        return ()
    numbers = plan.devices or range(machine.count)
    named = bool(machine.groups[0].name)
    degrees = [1] * machine.count if plan.degrees is None else plan.degrees.of_stage
    return [
        StageDevice(i, machine.names[i] if named else "", machine.places[i], degree, machine.first_gpus[i])
        for i, degree in zip(numbers, degrees, strict=True)
    ]


def better_document(better: BetterLayout | str, lower: int | None) -> dict[str, Any]:
    """Return a better layout as JSON has it."""
    if isinstance(better, str):
        return {"text": None, "reason": better}
    audit = better.audit
    return {
        "engine": better.engine,
        "text": better.written.text,
        "setting": dict(better.written.setting),
        "notes": list(better.written.notes),
        "bottleneck": audit.bottleneck,
        "ratio": audit.bottleneck / lower if lower and audit.comparable and audit.fits else None,
        "ranges": [stage.holder.runs_below(audit.placed.layers) for stage in audit.stages],
    }
