"""Audits of layouts of engines: stages, time, memory, faults, the ratio to the best plan, and the better layout."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.api.language_models.best_plan import best_plan
from mtpp.api.language_models.better_layout import BetterLayout, better_document, better_layout
from mtpp.api.language_models.served_model import AuditOnMachine, ServedModel
from mtpp.api.options.layouts import Auditing
from mtpp.api.output import SavedResult
from mtpp.errors import InputError
from mtpp.host.stop_reason import StopReason
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.api.inputs.model import Model
    from mtpp.api.language_models.given_layout import GivenLayout
    from mtpp.api.observer import Observer
    from mtpp.inference.plan import Plan
    from mtpp.language_models.audit_records import LayoutAudit
    from mtpp.views.terminal import Medium

NOT_COMPARABLE = "the layout does not run the whole model in time that is modelled"
DOES_NOT_FIT = "the layout does not fit into the memory of its devices"


class LayoutEvaluation(SavedResult):
    """Audit of a layout; it shows itself as a table of stages."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    @property
    def engine(self) -> str:
        """Engine whose layout it is."""
        return str(self._document["engine"])

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Stages with device, ranges of layers, times in ticks and sizes in bytes."""
        return copy.deepcopy(self._document["stages"])

    @property
    def bottleneck_s(self) -> float | None:
        """Seconds of the slowest device; None where costs have no unit of time."""
        if self._document["time_unit"] == "1":
            return None
        return float(self._document["bottleneck"] / PICOSECONDS["s"])

    @property
    def ratio(self) -> float | None:
        """Bottleneck over the proven lower bound of all plans; None where it cannot be compared, or does not fit."""
        ratio: float | None = self._document["ratio"]
        return ratio

    @property
    def findings(self) -> list[str]:
        """Faults that the engine takes in silence or with a warning, and memories that are too small."""
        return list(self._document["findings"])

    @property
    def better(self) -> dict[str, Any] | None:
        """The better layout in the same form, or the reason why there is none; None where nobody looked for one."""
        better: dict[str, Any] | None = copy.deepcopy(self._document["better"])
        return better

    @property
    def interrupted(self) -> bool:
        """Whether the search for the best plan was interrupted."""
        best = self._document["best"]
        return best is not None and best["stopped"] == StopReason.INTERRUPTED

    def unmet(self, ratio: Fraction | None) -> str | None:
        """Return the reason for which a ratio is not proven, None where it is, or none is required."""
        document = self._document
        if ratio is None:
            return None
        if not document["fits"]:
            return DOES_NOT_FIT
        if not document["comparable"]:
            return NOT_COMPARABLE
        if self.ratio is None:
            return "no ratio is proven"
        allowed = ratio * int(document["best"]["lower_bound"]["value"])
        return None if document["bottleneck"] <= allowed else f"the proven ratio is {self.ratio:.6g}"

    def _said(self) -> Mapping[str, Any]:
        return self._document

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.layout_evaluation import layout_evaluation_text

        return layout_evaluation_text(self._document, medium)


def evaluation_of(model: Model, engine: str, layout: Any, asked: Auditing, observer: Observer) -> LayoutEvaluation:
    """Audit a layout, and hold it against the best plan."""
    served = ServedModel.of(model)
    given = served.layout(engine, layout, asked.k)
    count = None if model.machine is None else model.machine.count
    used = len(served.places(given))
    if asked.k is not None and used > asked.k:
        raise InputError(f"{asked.k} is less than the {used} devices of the layout", parameter="k")
    stages = asked.k or count or max(used, 1)
    served = served.for_stages(stages)
    found = served.audit(given, asked.k)
    audit = found.audit
    k = asked.k or (None if count else stages)
    best = best_plan(served.model, k, asked.time_limit_s, observer, apart=bool(audit.apart) and audit.comparable)
    document = _document(served, given, found, best) | _first_token(served, given, k, found.degree)
    if not document.get("first_token", {"fits": True})["fits"] and audit.fits:
        document["findings"].append("prompts of this length do not fit beside weights and caches")
    if best is None or not _is_best(audit, best):
        better = better_layout(served, engine, k, best, asked.time_limit_s, observer)
        document["better"] = _better(audit, better, best)
    return LayoutEvaluation(document)


def _first_token(served: ServedModel, given: GivenLayout, k: int | None, degree: int) -> dict[str, Any]:
    """Return the latency of prompts, where a model was read for both phases."""
    from mtpp.api.language_models.both_phases import both_phases, is_of_both_phases
    from mtpp.api.options.search import Partitioning

    if not is_of_both_phases(served.model):
        return {}
    _, prompts = both_phases(served.model, Partitioning.of(k=k))
    found = replace(served, model=prompts).audit(given, k, degree=degree)
    return {
        "first_token": {
            "latency": found.audit.latency,
            "latency_s": found.audit.latency / PICOSECONDS["s"] if found.instance.timed else None,
            "fits": found.audit.fits,
            "memory_bytes": [stage.cost.held_bytes for stage in found.audit.stages],
        }
    }


def _is_best(audit: LayoutAudit, best: Plan) -> bool:
    """Tell whether a layout without faults is as fast as the best plan."""
    return audit.fits and audit.comparable and not audit.findings and audit.bottleneck <= best.bottleneck


def _better(audit: LayoutAudit, better: BetterLayout | str, best: Plan | None) -> dict[str, Any]:
    """Return the better layout as JSON has it, or say that the given one is as good as any in its form."""
    sound = audit.fits and audit.comparable and not audit.findings
    if sound and not isinstance(better, str) and audit.bottleneck <= better.audit.bottleneck:
        return better_document(f"none in this form: {better.engine} cannot express a faster plan", None)
    return better_document(better, None if best is None or not best.lower.is_proof else best.lower.value)


def ratio_of(audit: LayoutAudit, best: Plan | None) -> float | None:
    """Return bottleneck / lower bound; None where the layout fits not, or is not all of the model, or no bound is."""
    if best is None or not audit.comparable or not audit.fits or not best.lower.is_proof or not best.lower.value:
        return None
    return audit.bottleneck / best.lower.value


def _document(served: ServedModel, given: GivenLayout, found: AuditOnMachine, best: Plan | None) -> dict[str, Any]:
    from mtpp.api.language_models.given_layout import keys_of
    from mtpp.formats.results.layouts.evaluation import FORMAT, VERSION, stage_rows

    model, instance, audit = served.model, found.instance, found.audit
    bottleneck = audit.bottleneck
    tokens = model.graph.metadata["serving"]["tokens"]
    timed = bottleneck and instance.timed
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {
            "name": model.graph.name,
            "source": model.source.display,
            "sha256": model.source.sha256,
            "layers": audit.placed.layers,
            "dims": dict(model.dims),
        },
        "system": model.system.to_document(),
        **({} if model.machine is None else {"machine": model.machine_document()}),
        "engine": given.pasted.engine,
        "layout": keys_of(given.pasted.setting),
        "own_rule": given.pasted.own_rule,
        **({} if model.degrees is None else {"tensor_parallel": found.degree}),
        "time_unit": instance.time_unit,
        "ticks_per_unit": instance.ticks_per_unit,
        "stages": stage_rows(audit),
        "slowest": audit.slowest,
        "bottleneck": bottleneck,
        "latency": audit.latency,
        "tokens_per_s": tokens * PICOSECONDS["s"] / bottleneck if timed else None,
        "comparable": audit.comparable,
        "fits": audit.fits,
        "missing_layers": audit.placed.missing,
        "doubled_layers": audit.placed.doubled,
        "streamed_bytes": sum(stage.cost.param_bytes for stage in audit.untimed) if audit.streams else 0,
        "capacity": served.capacity(found),
        "findings": list(audit.findings),
        "consequences": list(audit.consequences),
        "notes": [*audit.notes, *_order_note(served, given)],
        "best": None if best is None else _best(best),
        "no_best": "no plan fits into the memory of the devices" if best is None else None,
        "ratio": ratio_of(audit, best),
        "better": None,
        "assumptions": model.assumptions(),
    }


def _order_note(served: ServedModel, given: GivenLayout) -> list[str]:
    """Say which devices stages stand on, where the machine leaves that open."""
    machine = served.model.machine
    if machine is None or not machine.free or len(machine.classes) == 1 or given.pasted.devices is not None:
        return []
    return ["stages stand on devices in the order of the machine's file, as engines number them; the best plan on any"]


def _best(plan: Plan) -> dict[str, Any]:
    return {
        "bottleneck": plan.bottleneck,
        "optimal": plan.certificate.optimal,
        "stopped": plan.stopped.value,
        "lower_bound": plan.lower.to_document(),
        "assignment": dict(zip(plan.instance.op_names, plan.partition.assignment.tolist(), strict=True)),
    }


def evaluate_layout(
    model: Any,
    engine: str,
    layout: Any = "default",
    *,
    k: int | None = None,
    time_limit_s: float | None = None,
    observer: Observer | None = None,
) -> LayoutEvaluation:
    """Audit a layout of a language model as its engine reads it.

    Keywords that are not listed are fields of :class:`mtpp.api.options.layouts.Auditing`.

    Parameters
    ----------
    model
        A language model of :func:`mtpp.read`, or its folder, ``config.json`` or checkpoint.
    engine
        One of those of :func:`mtpp.read_layout`.
    layout
        The engine's text, a file of it, or its keys and values; ``"default"`` is its own rule, as are ``"auto"`` and
        the like of accelerate and transformers.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    Layers, time and memory of each stage, the ratio to the best plan, and faults in ``findings``.

    Raises
    ------
    InputError
        If the model is none of language, the engine refuses the layout, or there are fewer devices than stages.

    Examples
    --------
    >>> import mtpp
    >>> model = mtpp.read("llama-8b", machine="gpus.toml", context="32k")  # doctest: +SKIP
    >>> mtpp.evaluate_layout(model, "vllm", "9,9,7,7").findings  # doctest: +SKIP
    []
    """
    from mtpp.api.inputs.reading import as_model
    from mtpp.api.observer import listener
    from mtpp.api.parameters import choice
    from mtpp.names import LAYOUT_ENGINES

    choice(engine, "engine", list(LAYOUT_ENGINES))
    asked = Auditing(k=k, time_limit_s=time_limit_s)
    return evaluation_of(as_model(model, observer), engine, layout, asked, listener(observer))
