"""Models that transformers builds from a configuration on the meta device, without weights."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.language_models.module_trees import type_as_built

if TYPE_CHECKING:
    import torch

_OTHER = ("model_type", "auto_map", "architectures", "quantization_config", "dtype", "torch_dtype")
"""Keys that are no parameters of a configuration, or are given otherwise."""


def meta_model(values: Mapping[str, Any], source: str) -> torch.nn.Module | None:
    """Build a model without weights; None where transformers is absent or does not know the architecture.

    Parameters
    ----------
    values
        Keys of a configuration. No code but that of transformers is run.
    source
        Name of the file in messages.

    Raises
    ------
    InputError
        If transformers refuses the configuration.
    """
    try:
        import torch
        from transformers import CONFIG_MAPPING
    except ImportError:
        return None
    model_type = str(values.get("model_type", ""))
    if model_type not in CONFIG_MAPPING:
        return None
    given = {key: _plain(value) for key, value in values.items() if key not in _OTHER}
    try:
        configuration = CONFIG_MAPPING[model_type](**given)
        with torch.device("meta"):
            model: torch.nn.Module = _class_for(configuration).from_config(
                configuration, dtype=getattr(torch, type_as_built(values)), trust_remote_code=False
            )
    except Exception as error:  # any of transformers
        raise InputError(f"transformers refuses it: {str(error)[:200]}", source=source) from None
    return model


def _class_for(configuration: Any) -> Any:
    """Class that builds the model: a causal one, of an encoder and a decoder, with towers, or without a head."""
    import transformers

    first = transformers.AutoModelForCausalLM
    others = ("AutoModelForSeq2SeqLM", "AutoModelForImageTextToText", "AutoModel")
    classes = [first, *(getattr(transformers, name) for name in others if hasattr(transformers, name))]
    known = (one for one in classes if type(configuration) in getattr(one, "_model_mapping", ()))
    return next(known, first)


def _plain(value: Any) -> Any:
    """Exact decimals as floats, throughout."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
