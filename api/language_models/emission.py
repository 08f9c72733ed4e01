"""Plans of language models as the engines that run them take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.formats.layouts.request import LayoutRequest
    from mtpp.language_models.language_model import LanguageModel
    from mtpp.language_models.layer_stages import LayerStage
    from mtpp.language_models.modules import Modules

_OF_WEIGHTS = (".safetensors", ".json")


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
