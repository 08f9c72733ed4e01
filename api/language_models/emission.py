"""Plans of language models as the engines that run them take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.names import ENGINES

if TYPE_CHECKING:
    from mtpp.api.options.emitting import Emitting
    from mtpp.formats.io.source import Source
    from mtpp.formats.layouts.request import LayoutRequest
    from mtpp.language_models.language_model import LanguageModel
    from mtpp.language_models.layer_stages import LayerStage, StageDevice
    from mtpp.language_models.modules import Modules

_OF_WEIGHTS = (".safetensors", ".json")


def emit_language_model(path: str, plan: Source, asked: Emitting) -> str:
    """Return a plan of a language model in each of the forms asked for, one after the other.

    Parameters
    ----------
    path
        Of the model.
    plan
        A plan, or the stage of each op in another form that is read.
    asked
        Engines, and the number of stages of each rank.

    Raises
    ------
    InputError
        If the plan is about another model, or an engine cannot express it.
    """
    from mtpp.api.inputs.language_models import language_model

    for form in asked.form:
        if form not in ENGINES:
            remedy = f"use one of {', '.join(ENGINES)}"
            raise InputError(f"{form!r} is no form of plans of language models", parameter="form", remedy=remedy)
    model = language_model(path)
    stages = planned_stages(model, plan)
    forms = dict.fromkeys(asked.form)
    return "".join(engine_text(form, model, path, stages, asked.virtual_stages) for form in forms)


def planned_stages(model: LanguageModel, plan: Source) -> list[LayerStage]:
    """Return the stages of a plan that have ops, with their devices."""
    from mtpp.api.inputs.user_assignment import assignment_document, labels_of_document
    from mtpp.inference.graph import CostGraph, Op
    from mtpp.language_models.layer_stages import layer_stages, ops_of_layers

    document = assignment_document(plan)
    names = ops_of_layers(model)
    names += [name for name in _further(document, model) if name not in names]
    graph = CostGraph.build(name=model.name, time_unit="ps", ops=[Op(name, 0) for name in names], tensors=[])
    labels = labels_of_document(graph, document, plan.display)
    return layer_stages(model, dict(zip(names, labels, strict=True)), _devices(document, plan.display))


def _further(document: Any, model: LanguageModel) -> list[str]:
    """Return the names of layers for further tokens that a plan has."""
    stated = document.get("assignment", document) if isinstance(document, dict) else None
    own = {layer.name for layer in model.mtp}
    return [name for name in stated if name in own or name.startswith("mtp.")] if isinstance(stated, dict) else []


def _devices(document: Any, display: str) -> list[StageDevice]:
    """Return the device of each stage of a plan for a machine, with the degree of the stage; none of other plans."""
    from mtpp.api.inputs.stage_plan import devices_of_plan
    from mtpp.document_shape import anything, array
    from mtpp.formats.io.json_shape import attributed, shaped, whole_number
    from mtpp.language_models.layer_stages import StageDevice

    if not isinstance(document, dict) or "stages" not in document:
        return []
    with attributed(display):
        rows = shaped(array(anything), document["stages"], "stages")
        named = devices_of_plan(document)
        found = []
        for i, row in enumerate(rows):
            degree = shaped(whole_number, row.get("tensor_parallel", 1), "stages", i, "tensor_parallel")
            name, place = named[i] if named else ("", "")
            found.append(StageDevice(row["device"]["index"] if named else None, name, place, degree))
        return found


def engine_text(
    engine: str, model: LanguageModel, path: str, stages: Sequence[LayerStage], virtual_stages: int = 1
) -> str:
    """Return the text that one pastes, below notes of the engine's own doings.

    Parameters
    ----------
    path
        Of the model, as given.
    virtual_stages
        Stages of each rank, for engines that have such.

    Raises
    ------
    InputError
        If the engine cannot express the plan.
    """
    from mtpp.formats.layouts.registry import LAYOUT_FORMATS

    place = LAYOUT_FORMATS[engine].place
    assert place is not None
    request = layout_request(model, path, stages, ranks_of(stages, virtual_stages, engine))
    written = place(stages, request)
    return written.commented


def ranks_of(stages: Sequence[LayerStage], virtual_stages: int, engine: str) -> int:
    """Return the number of ranks with so many stages each.

    Raises
    ------
    InputError
        If they do not divide, or the engine has no virtual stages.
    """
    if virtual_stages == 1:
        return len(stages)
    if engine not in ("megatron", "torchtitan"):
        remedy = "they go with megatron and torchtitan"
        raise InputError(f"{engine} has none", parameter="virtual_stages", remedy=remedy)
    if len(stages) % virtual_stages:
        problem = f"{len(stages)} stages with ops are no multiple of {virtual_stages}"
        raise InputError(problem, parameter="virtual_stages")
    return len(stages) // virtual_stages


def layout_request(model: LanguageModel, path: str, stages: Sequence[LayerStage], ranks: int) -> LayoutRequest:
    """Return what writers of layouts know of a model."""
    from mtpp.formats.layouts.request import LayoutRequest

    return LayoutRequest(
        layers=sum(layer.part != "encoder" for layer in model.layers),
        stages=ranks,
        mtp=sum(stage.mtp for stage in stages),
        tied=model.tied,
        model_type=model.model_type,
        vision=bool(_facts(path).get("vision")),
        modules=lambda: _modules(path),
        described=model,
        path=served_path(path),
    )


def _facts(path: str) -> Mapping[str, Any]:
    from mtpp.api.language_models.read_layout import facts_of_model

    try:
        return facts_of_model(path)
    except InputError:  # weights without a configuration
        return {}


def _modules(path: str) -> Modules:
    from mtpp.api.language_models.read_layout import facts_of_model

    found: Modules = facts_of_model(path)["modules"]()
    return found


def served_path(path: str) -> str:
    """Return the path of a model that an engine's command takes: that of its folder or of a GGUF file.

    Examples
    --------
    >>> served_path("models/llama/config.json"), served_path("llama-70b.json"), served_path("x.gguf")
    ('models/llama', 'MODEL', 'x.gguf')
    """
    place = Path(path)
    if place.is_dir() or place.suffix not in _OF_WEIGHTS:
        return path
    named = place.name == "config.json" or place.name.startswith("model")
    return str(place.parent) if named else "MODEL"
