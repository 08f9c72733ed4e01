"""Modules of models: of a module itself, of a configuration by the table of architectures or by transformers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.language_models.modules import Modules

_MOST_BYTES = 2**24
"""Of a config.json."""


def modules_of_module(model: Any, *, with_layers: bool = True) -> Modules:
    """Return the modules of a ``torch.nn.Module``, which may have to have a list of decoder layers."""
    from mtpp.runtime.pytorch.module_tree import modules_of

    return modules_of(model, with_layers=with_layers)


def modules_of_architecture(configuration: Mapping[str, Any], source: str) -> Modules:
    """Return modules by the table of architectures; of others as transformers builds them, where that is installed."""
    from mtpp.formats.language_models.module_trees import is_known, modules_of_configuration

    if not is_known(configuration):
        from mtpp.runtime.pytorch.meta_model import meta_model

        model = meta_model(configuration, source)
        if model is not None:
            return modules_of_module(model)
    return modules_of_configuration(configuration, source)


def configuration_in(path: str) -> tuple[dict[str, Any], str]:
    """Read the configuration in a folder, beside weights, or in a file; with its name in messages."""
    from mtpp.formats.checkpoints.folder import read_json_object
    from mtpp.formats.language_models.reader import configuration_at

    place = configuration_at(Path(path))
    if place != Path(path) and not place.exists():
        raise InputError("has no config.json", source=path, remedy="names and classes of modules come from it")
    return read_json_object(place, _MOST_BYTES), str(place)


def modules_of_gguf(path: str) -> Modules:
    """Raise InputError: a GGUF file has none."""
    raise InputError(
        "a GGUF file has no names and classes of modules",
        source=path,
        remedy="give the folder or the config.json that it was made from",
    )
