"""Modules that are to be placed, with the bytes of caches of their layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.language_models.model_modules import (
    configuration_in,
    modules_of_architecture,
    modules_of_gguf,
    modules_of_module,
)
from mtpp.api.parameters import path_text
from mtpp.errors import InputError
from mtpp.language_models.module_blocks import ModuleBlock, blocks_of
from mtpp.language_models.modules import Modules

if TYPE_CHECKING:
    from mtpp.language_models.language_model import LanguageModel


@dataclass(frozen=True)
class PlacedModel:
    """A model whose modules are to be placed.

    Attributes
    ----------
    modules
        As transformers builds them.
    configuration
        Of the model; None of modules that have none.
    path
        Its folder or file, None where there is none.
    source
        Its name in messages.
    """

    modules: Modules
    configuration: Mapping[str, Any] | None
    path: Path | None
    source: str

    @cached_property
    def language_model(self) -> LanguageModel:
        """Layers with weights and caches.

        Raises
        ------
        InputError
            If nothing is known of them.
        """
        from mtpp.api.inputs.language_models import described_language_model, language_model

        if self.path is not None:
            return language_model(self.path)
        if self.configuration is None:
            remedy = "give a model of transformers, or its configuration"
            raise InputError("has no configuration that its layers are known by", parameter="model", remedy=remedy)
        return described_language_model(self.configuration, self.source)

    @cached_property
    def layer_names(self) -> dict[str, str]:
        """Full names of the modules of layers by their names in files: the same, or by number."""
        layers = self.language_model.layers
        decoder = [layer.name for layer in layers if layer.part == "decoder"]
        number = {name: f"{self.modules.layer_prefix}.{i}" for i, name in enumerate(decoder)}
        known = self.modules.by_name
        names = {layer.name: layer.name if layer.name in known else number.get(layer.name, "") for layer in layers}
        if any(name not in known for name in names.values()):
            raise InputError(f"its modules have other layers than {self.source}", parameter="model")
        return names

    @property
    def cache_type(self) -> str:
        """Type of an element of caches: that of most parameters, of single or of half precision."""
        tensors = [t for _, t in self.modules.root.named_tensors() if not t.buffer and t.floating]
        single = sum(t.nbytes for t in tensors if t.element_bytes >= 4)
        return "fp32" if 2 * single > sum(t.nbytes for t in tensors) else "bf16"

    def blocks(self, context: int, sequences: int) -> list[ModuleBlock]:
        """Return what stays on one device, with caches of sequences of *context* tokens; without any at 0 tokens."""
        caches = self._caches(context, sequences) if context else {}
        blocks = blocks_of(self.modules, caches)
        packed = bool((self.configuration or {}).get("quantization_config")) and self.path is not None
        return self._as_stored(blocks) if packed and self.language_model.files else blocks

    def _caches(self, context: int, sequences: int) -> dict[str, int]:
        model = self.language_model
        if not model.caches_known or not any(layer.cache.bytes(1, source=1) for layer in model.layers):
            raise InputError("caches of its layers are not known", parameter="model", remedy="give no ‹context›")
        kind = self.cache_type
        return {
            self.layer_names[layer.name]: sequences * layer.cache.bytes(context, kind, source=context)
            for layer in model.layers
        }

    def _as_stored(self, blocks: list[ModuleBlock]) -> list[ModuleBlock]:
        """Give blocks that are layers their bytes in the files."""
        stored = {self.layer_names[layer.name]: layer.bytes for layer in self.language_model.layers}
        return [
            replace(block, bytes=stored[block.names[0]])
            if len(block.names) == 1 and block.names[0] in stored
            else block
            for block in blocks
        ]


def placed_model(model: Any) -> PlacedModel:
    """Read the modules of a module, a folder, a configuration or its file.

    Raises
    ------
    InputError
        If its modules are not known.
    """
    if isinstance(model, Modules):
        return PlacedModel(model, None, None, "model")
    if hasattr(model, "named_modules") and not isinstance(model, type):
        return PlacedModel(
            modules_of_module(model, with_layers=False),
            _configuration_of(getattr(model, "config", None)),
            None,
            "model",
        )
    values = _configuration_of(model)
    if values is not None:
        return PlacedModel(modules_of_architecture(values, "model"), values, None, "model")
    return _of_path(path_text(model, "model"))


def _configuration_of(value: Any) -> Mapping[str, Any] | None:
    """Return a configuration as a mapping; None of all else."""
    if isinstance(value, Mapping):
        return value
    to_dict = getattr(value, "to_dict", None)
    found = to_dict() if callable(to_dict) and not isinstance(value, type) else None
    return found if isinstance(found, Mapping) else None


def _of_path(path: str) -> PlacedModel:
    from mtpp.formats.language_models.reader import gguf_architecture

    if gguf_architecture(Path(path)) is not None:
        return PlacedModel(modules_of_gguf(path), None, None, path)
    values, source = configuration_in(path)
    return PlacedModel(modules_of_architecture(values, source), values, Path(path), path)
