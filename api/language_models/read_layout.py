"""Layouts of engines, read as the engines read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.language_models.model_modules import (
    configuration_in,
    modules_of_architecture,
    modules_of_gguf,
    modules_of_module,
)
from mtpp.errors import InputError

if TYPE_CHECKING:
    import torch

    from mtpp.language_models.layout import Layout
    from mtpp.language_models.modules import Modules

_MOST_LAYERS = 100_000


def read_layout(
    engine: str,
    layout: Mapping[str, Any] | str,
    *,
    layers: int,
    stages: int | None = None,
    heads: int | None = None,
    mtp: int = 0,
    tied: bool = False,
    model: str | os.PathLike[str] | Modules | torch.nn.Module | None = None,
) -> Layout:
    """Read which layers a layout puts where.

    Parameters
    ----------
    engine
        ``vllm``, ``sglang``, ``tensorrt-llm``, ``megatron``, ``megatron-flags``, ``megatron-bridge``, ``torchtitan``,
        ``deepspeed``, ``accelerate``, ``transformers`` (its rule since release 5), ``llama.cpp``, ``exo``,
        ``petals``.
    layout
        The engine's own keys and values, or its text where it has one; ``{}`` or ``"default"``: the engine's own rule.
    layers
        Number of decoder layers.
    stages
        Number of stages; of devices for llama.cpp, of ranks for Megatron and torchtitan. By default as many as the
        layout has.
    heads
        Number of attention heads.
    mtp
        Number of layers that predict further tokens.
    tied
        The head shares the weights of the embedding.
    model
        Folder or ``config.json`` where bytes or names of modules decide: for accelerate, transformers and DeepSpeed. Of
        other architectures a ``torch.nn.Module``, on the meta device for example. Of a GGUF file, which has no modules,
        only the architecture is read.

    Returns
    -------
    The layout; faults that the engine takes in silence or with a warning are its ``findings``.

    Raises
    ------
    InputError
        If the engine refuses the layout, with the class of its error and its words.

    Examples
    --------
    >>> import mtpp
    >>> layout = mtpp.read_layout("vllm", "10,12,10", layers=32, stages=3)
    >>> layout.ranges
    [[0, 10], [10, 22], [22, 32]]
    >>> mtpp.read_layout("vllm", "-1,33", layers=32, stages=2).findings
    ['stage 0 has -1 layers, a negative number']
    >>> mtpp.read_layout("megatron", "Et*7|t*9|t*9|t*7L", layers=32, stages=4).head_on
    [3]
    """
    from mtpp.api.parameters import choice, flag, whole
    from mtpp.formats.layouts.registry import LAYOUT_FORMATS
    from mtpp.formats.layouts.request import LayoutRequest

    choice(engine, "engine", list(LAYOUT_FORMATS))
    if not isinstance(layout, Mapping | str):
        raise InputError(f"is {type(layout).__name__}, neither a map nor a text", parameter="layout")
    request = LayoutRequest(
        layers=whole(layers, "layers", most=_MOST_LAYERS),
        stages=None if stages is None else whole(stages, "stages", most=_MOST_LAYERS),
        heads=None if heads is None else whole(heads, "heads", most=_MOST_LAYERS),
        mtp=whole(mtp, "mtp", least=0, most=_MOST_LAYERS),
        tied=flag(tied, "tied"),
        **facts_of_model(model),
    )
    return LAYOUT_FORMATS[engine].read({} if layout == "default" else layout, request)


def facts_of_model(model: Any) -> dict[str, Any]:
    """Return facts of a model, keywords of :class:`LayoutRequest`; its modules come once they are asked for."""
    from mtpp.api.parameters import path_text
    from mtpp.formats.language_models.reader import gguf_architecture
    from mtpp.language_models.modules import Modules

    if model is None:
        return {}
    if isinstance(model, Modules):
        return {"modules": lambda: model}
    if hasattr(model, "named_modules"):
        return {"modules": lambda: modules_of_module(model)}
    path = path_text(model, "model")
    architecture = gguf_architecture(Path(path))
    if architecture is not None:
        return {"model_type": architecture, "modules": lambda: modules_of_gguf(path)}
    configuration, source = configuration_in(path)

    def modules() -> Modules:
        return modules_of_architecture(configuration, source)

    kind, vision = str(configuration.get("model_type", "")), "vision_config" in configuration
    return {"model_type": kind, "vision": vision, "modules": modules}
