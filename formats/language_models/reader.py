"""Language models from folders, configurations and checkpoints: bytes from headers, structure from configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.checkpoints.folder import (
    Checkpoint,
    checkpoint_in,
    is_checkpoint,
    read_checkpoint,
    read_json_object,
)
from mtpp.formats.checkpoints.gguf import MAGIC, read_gguf
from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.described import Counted, described_model, nobody
from mtpp.formats.language_models.gguf_keys import architecture_of
from mtpp.formats.language_models.stored import stored_model
from mtpp.language_models.language_model import LanguageModel

CONFIGURATION = "config.json"

_MOST_CONFIGURATION_BYTES = 16 * 2**20
_TEXT_KEYS = ("text_config", "llm_config", "language_config", "thinker_config", "decoder_config")
_USUAL_KEYS = frozenset(
    (
        *_TEXT_KEYS, "model_type", "architectures", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "vocab_size", "n_layer", "n_layers", "n_embd", "n_head", "num_layers", "num_heads", "d_model", "d_ff", "dim",
        "torch_dtype", "dtype", "transformers_version", "intermediate_size",
    )
)  # fmt: skip
_OWN_KEYS = ("torch_dtype", "dtype", "quantization_config", "quantization", "tie_word_embeddings")
_LLAMA = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
_NESTED_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "llama": _LLAMA | {"intermediate_size": 11008, "vocab_size": 32000},
    "mistral": _LLAMA | {"intermediate_size": 14336, "vocab_size": 32000, "num_key_value_heads": 8},
    "gemma3_text": {"num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262208},
}
"""Keys that configurations of text models within others leave out (Llava, Gemma 3), by ``model_type``."""


@dataclass(frozen=True)
class Sources:
    """Files that describe a model.

    Attributes
    ----------
    values
        Keys of the configuration of the text model; empty where there is none.
    has_towers
        Whether the model has towers beside it.
    """

    name: str
    configuration: Path | None
    values: Mapping[str, Any]
    checkpoint: Checkpoint | None
    has_towers: bool = False

    @property
    def model_type(self) -> str:
        """The ``model_type`` of the text model."""
        return str(self.values.get("model_type", ""))[:80]


def is_language_model(path: Path) -> bool:
    """Return whether a path is that of a model's folder, configuration or checkpoint; a folder with ONNX is not."""
    try:
        if path.is_dir():
            names = [entry.name for entry in path.iterdir()]
            if any(name.endswith((".onnx", ".pt2")) or name == "onnx" for name in names):
                return False
            configured = CONFIGURATION in names and not _is_of_something_else(path / CONFIGURATION)
            return configured or any(is_checkpoint(path / name) for name in names)
    except OSError:
        return False
    named = path.name == CONFIGURATION and not _is_of_something_else(path)
    return is_checkpoint(path) or named or _has_model_type(path) or _is_gguf(path)


def read_language_model(path: str | Path, counted: Counted = nobody) -> LanguageModel:
    """Read a model from a folder, a configuration, a safetensors file or its index, or a GGUF file.

    Parameters
    ----------
    path
        Files may end after their headers. Nothing of a folder is executed.
    counted
        Counts architectures that the table does not have.

    Raises
    ------
    InputError
        If headers or configuration are broken or incomplete.

    Notes
    -----
    O(tensors) time and memory; no weight is read.
    """
    return model_of(find_sources(Path(path)), counted)


def find_sources(path: Path) -> Sources:
    """Read configuration and headers of a path."""
    try:
        folder = path.is_dir()
        if folder:
            place = checkpoint_in(path)
            configuration = path / CONFIGURATION
        else:
            place = path if is_checkpoint(path) or _is_gguf(path) else None
            configuration = path.parent / CONFIGURATION if place else path
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=str(path)) from None
    checkpoint = None if place is None else read_checkpoint(place)
    if checkpoint is not None and checkpoint.kind == "gguf":
        return Sources(path.resolve().name, None, {}, checkpoint)
    if not configuration.is_file():
        if checkpoint is None:
            remedy = "a model's folder has config.json, *.safetensors or *.gguf"
            raise InputError("no model is there" if folder else "no such file", source=str(path), remedy=remedy)
        return Sources(path.resolve().name, None, {}, checkpoint)
    values = read_json_object(configuration, _MOST_CONFIGURATION_BYTES)
    text, towers = text_configuration(values)
    return Sources(_name_of(path), configuration, text, checkpoint, towers)


def configuration_at(path: Path) -> Path:
    """Return the path of the configuration in a folder, beside weights, or the path itself."""
    if path.is_dir():
        return path / CONFIGURATION
    return path.with_name(CONFIGURATION) if is_checkpoint(path) else path


def gguf_architecture(path: Path) -> str | None:
    """Return the architecture of a GGUF file, or of a folder with such and without a configuration; None of others."""
    try:
        folder = path.is_dir()
        if folder and (path / CONFIGURATION).exists():
            return None
        file = checkpoint_in(path) if folder else path
    except (OSError, ValueError):  # a null byte
        return None
    if file is None or not _is_gguf(file):
        return None
    return architecture_of(read_gguf(file).keys)


def model_of(sources: Sources, counted: Counted = nobody) -> LanguageModel:
    """Put a model together from its sources."""
    name, values, configuration = sources.name, sources.values, sources.configuration
    if sources.checkpoint is None:
        source = str(configuration)
        return described_model(name, sources.model_type, values, source, sources.has_towers, counted)
    return stored_model(name, sources.model_type, values, configuration, sources.checkpoint, counted)


def text_configuration(values: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the configuration of the text model within one, and whether there are towers beside it."""
    found = dict(values)
    towers = any(key in values for key in ("vision_config", "audio_config", "visual", "vision_tower"))
    for _ in range(len(_TEXT_KEYS)):
        key = next((key for key in _TEXT_KEYS if isinstance(found.get(key), dict)), None)
        if key is None:
            break
        inner, outer = dict(found[key]), found
        for name in _OWN_KEYS:
            if name in outer and name not in inner:
                inner[name] = outer[name]
        outer_type = str(outer.get("model_type", ""))
        if "model_type" not in inner:
            inner["model_type"] = f"{outer_type}_text" if f"{outer_type}_text" in ARCHITECTURES else outer_type
        found = dict(_NESTED_DEFAULTS.get(str(inner["model_type"]), {})) | inner
    return found, towers


def _name_of(path: Path) -> str:
    whole = path.resolve()
    if path.is_dir():
        return whole.name
    return whole.parent.name if whole.name == CONFIGURATION or whole.name.startswith("model") else whole.stem


def _is_of_something_else(path: Path) -> bool:
    """Return whether a ``config.json`` has keys, and none that a model's has."""
    try:
        found = read_json_object(path, _MOST_CONFIGURATION_BYTES) if path.is_file() else {}
    except (OSError, InputError):  # said where it is read
        return False
    return bool(found) and found.keys().isdisjoint(_USUAL_KEYS)


def _has_model_type(path: Path) -> bool:
    """Return whether a JSON file is a configuration."""
    if path.suffix != ".json":
        return False
    try:
        if not path.is_file() or path.stat().st_size > _MOST_CONFIGURATION_BYTES:
            return False
        text = path.read_bytes()
        if b'"model_type"' not in text:
            return False
        return "model_type" in read_json_object(path, _MOST_CONFIGURATION_BYTES)
    except (OSError, InputError):
        return False


def _is_gguf(path: Path) -> bool:
    try:
        if not path.is_file():  # a pipe may never come to an end
            return False
        with path.open("rb") as file:
            return file.read(4) == MAGIC
    except (OSError, ValueError):  # a null byte
        return False
