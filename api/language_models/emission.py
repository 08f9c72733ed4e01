"""Plans of language models as the engines that run them take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.names import ENGINES
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.options.emitting import Emitting
    from mtpp.formats.io.source import Source
    from mtpp.formats.layouts.request import LayoutRequest
    from mtpp.language_models.language_model import LanguageModel
    from mtpp.language_models.layer_stages import LayerStage, StageDevice
    from mtpp.language_models.modules import Modules

_OF_WEIGHTS = (".safetensors", ".json")


def emit_language_model(
    path: str, plan: Source, asked: Emitting, observer: Observer, adapters: Sequence[str] = ()
) -> str:
    """Return a plan of a language model in each of the forms asked for, one after the other.

    Parameters
    ----------
    path
        Of the model.
    plan
        A plan, or the stage of each op in another form that is read.
    asked
        Engines, and the number of stages of each rank.
    observer
        Listener to warnings.
    adapters
        Whose weights the plan counts besides the model's.

    Raises
    ------
    InputError
        If the plan is about another model, or an engine cannot express it.
    """
    from mtpp.api.inputs.language_models import language_model

    for form in asked.form:
        if form not in ENGINES:
            remedy = did_you_mean(form, ENGINES, f"use one of {', '.join(ENGINES)}")
            raise InputError(f"{form!r} is no form of plans of language models", parameter="form", remedy=remedy)
    model = language_model(path)
    stages = planned_stages(model, plan)
    if not _is_about(plan, path, adapters):
        observer.warn(f"{plan.display}: the plan was made from other files than {path}, with layers of the same names")
    forms = dict.fromkeys(asked.form)
    return "".join(engine_text(form, model, path, stages, asked.virtual_stages) for form in forms)


def _is_about(plan: Source, path: str, adapters: Sequence[str]) -> bool:
    """Return whether a plan is about a model as it is; of plans that do not say so it may be."""
    from mtpp.api.inputs.model_source import model_sha256
    from mtpp.api.inputs.user_assignment import assignment_document

    document = assignment_document(plan)
    about = document.get("model") if isinstance(document, dict) else None
    stated = about.get("sha256") if isinstance(about, dict) else None
    return stated is None or stated == model_sha256(path, adapters)


def planned_stages(model: LanguageModel, plan: Source) -> list[LayerStage]:
    """Return the stages of a plan that have ops, with their devices."""
    from mtpp.api.inputs.user_assignment import assignment_document, labels_of_document
    from mtpp.inference.graph import CostGraph, Op
    from mtpp.language_models.layer_stages import layer_stages, ops_of_layers

    document = assignment_document(plan)
    names = ops_of_layers(model)
    names += [name for name in _further(document, model) if name not in names]
    graph = CostGraph.build(name=model.name, time_unit="ps", ops=[Op(name, 0) for name in names], tensors=[])
    labels, devices = labels_of_document(graph, document, plan.display), _devices(document, plan.display)
    if devices and max(labels) >= len(devices):
        raise InputError(f"there is no stage {max(labels)}", source=plan.display, where="/stages", remedy="plan anew")
    stages = layer_stages(model, dict(zip(names, labels, strict=True)), devices)
    return stages if devices else [replace(stage, tensor_parallel=_degree(document)) for stage in stages]


def _further(document: Any, model: LanguageModel) -> list[str]:
    """Return the names of layers for further tokens that a plan has."""
    stated = document.get("assignment", document) if isinstance(document, dict) else None
    own = {layer.name for layer in model.mtp}
    return [name for name in stated if name in own or name.startswith("mtp.")] if isinstance(stated, dict) else []


def _degree(document: Any) -> int:
    """Return the degree that a plan for equal devices was made for, among the sizes of its model."""
    from mtpp.language_models.serving_load import GPUS

    model = document.get("model") if isinstance(document, dict) else None
    dims = model.get("dims") if isinstance(model, dict) else None
    degree = dims.get(GPUS, 1) if isinstance(dims, dict) else 1
    return degree if type(degree) is int and degree > 0 else 1


def _devices(document: Any, display: str) -> list[StageDevice]:
    """Return the device of each stage of a plan for a machine, with the degree of the stage; none of other plans."""
    from mtpp.document_shape import array, record, text, whole
    from mtpp.formats.io.json_shape import attributed, shaped
    from mtpp.language_models.layer_stages import StageDevice
    from mtpp.machine.tensor_group import MOST_DEGREE

    if not isinstance(document, dict) or "stages" not in document or "machine" not in document:
        return []
    degree = whole(1, MOST_DEGREE + 1)
    device = record({"name": text}, {"place": text, "tensor_parallel": array(degree)}, closed=False)
    row = record(
        {"device": record({"index": whole()}, closed=False)}, {"tensor_parallel": degree}, closed=False
    )  # fmt: skip
    with attributed(display):
        machine = shaped(record({"devices": array(device)}, closed=False), document["machine"], "machine")
        sizes = (max(on.get("tensor_parallel", ()), default=1) for on in machine["devices"])
        found, firsts = [], list(accumulate(sizes, initial=0))
        for i, stage in enumerate(shaped(array(row), document["stages"], "stages")):
            index = stage["device"]["index"]
            if index >= len(machine["devices"]):
                raise InputError(f"there is no device {index}", where=f"/stages/{i}/device/index", remedy="plan anew")
            on = machine["devices"][index]
            degree_here = stage.get("tensor_parallel", 1)
            found.append(StageDevice(index, on["name"], on.get("place", ""), degree_here, firsts[index]))
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
        layers=len(model.decoder_layers),
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
