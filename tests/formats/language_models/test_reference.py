"""Models of known figures: parameters, bytes by layer and caches, exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from language_models import cache_figures, runs

from mtpp.formats.language_models.reader import read_language_model
from mtpp.language_models.language_model import LanguageModel

CONFIGURATIONS = (
    "cohere2-7b", "deepseek-v3", "gemma3n-e4b-text", "llama-70b", "mamba2-2.7b", "mistral-7b", "phi3-mini", "qwen3-8b",
    "qwen3-next-80b", "t5-large",
)  # fmt: skip
FOLDERS = (
    "llama-8b", "gemma2-9b", "mixtral-8x7b", "qwen3-30b-a3b", "granite-3b-hybrid", "deepseek-v2-lite", "gpt2-xl",
    "qwen3-8b-fp8",
)  # fmt: skip
GGUFS = {
    "llama-8b-Q4_K_M": "llama-8b", "qwen3-30b-a3b-Q4_K_M": "qwen3-30b-a3b", "gemma2-9b-Q8_0": "gemma2-9b",
    "deepseek-v2-lite-Q4": "deepseek-v2-lite",
}  # fmt: skip
OF_THE_PAGE: dict[str, dict[str, Any]] = {
    "gemma3n-e4b-text": {
        "total": 6_835_235_568, "embedding": 537_395_200, "head": 537_395_200, "tied": True, "other": 2_392_328_448,
        "layers": [[112_484_944, 20], [110_387_536, 15]],
    },
    "t5-large": {
        "total": 737_668_096, "embedding": 32_899_072, "head": 32_899_072, "tied": True, "other": 2_048,
        "layers": [[12_585_472, 1], [12_584_960, 23], [16_780_800, 1], [16_780_288, 23]],
    },
    "deepseek-v2-lite": {
        "total": 15_706_484_224, "embedding": 209_715_200, "head": 209_715_200, "tied": False, "other": 2_048,
        "layers": [[81_007_104, 1], [584_847_872, 26]],
    },
}  # fmt: skip
"""Parameters of the reference's page."""

WITHOUT_FILE: dict[str, dict[str, Any]] = {
    "bloom-7b": {"model_type": "bloom", "hidden_size": 4096, "n_layer": 30, "n_head": 32, "vocab_size": 250880},
    "gpt-bigcode-starcoder": {
        "model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576, "vocab_size": 49152,
        "n_positions": 8192,
    },
}  # fmt: skip
"""Models of the reference that come without a configuration."""


def _reference(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def _parameters(model: LanguageModel) -> dict[str, Any]:
    return {
        "total": model.parameters,
        "embedding": model.embedding.parameters,
        "head": model.head_parameters,
        "tied": model.tied,
        "other": model.other.parameters,
        "layers": runs(layer.parameters for layer in model.layers),
    }


def _bytes(model: LanguageModel) -> dict[str, Any]:
    return {
        "tensor_bytes": model.bytes,
        "embedding_bytes": model.embedding.bytes,
        "head_bytes": model.head.bytes,
        "other_bytes": model.other.bytes,
        "layer_bytes": runs(layer.bytes for layer in model.layers),
        "parameters": model.parameters,
        "tied": model.tied,
    }


def _check_cache(model: LanguageModel, expected: dict[str, Any]) -> None:
    found = cache_figures(model)
    assert found == {key: expected[key] for key in found}
    for context, size in expected["cache_bytes_of_one_sequence"].items():
        caches = [layer.cache for layer in model.layers]
        assert sum(cache.bytes(int(context)) - cache.bytes_of_states for cache in caches) == size


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations_have_the_known_parameters_and_caches(
    shared_data: Path, shared_reference: Path, name: str
) -> None:
    """Layer by layer, and of the whole; bytes are two a parameter."""
    model = read_language_model(shared_data / "llm" / "configs" / f"{name}.json")
    known = {**_reference(shared_reference, "llm.json"), **OF_THE_PAGE}
    expected = known[name]
    assert _parameters(model) == {key: expected[key] for key in _parameters(model)}
    assert model.bytes == 2 * (model.parameters + sum(layer.parameters for layer in model.mtp))
    caches = _reference(shared_reference, "llm_kv.json")["models"]
    if name in caches:
        _check_cache(model, caches[name])


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_have_the_known_bytes(shared_data: Path, shared_reference: Path, name: str) -> None:
    """By layer and by type, fused and quantised forms, buffers and tied heads included."""
    model = read_language_model(shared_data / "llm" / name)
    expected = _reference(shared_reference, "llm_files.json")["folders"][name]
    assert _bytes(model) == {key: expected[key] for key in _bytes(model)}
    assert model.types == expected["bytes_by_dtype"]
    assert runs(len(layer.weights) for layer in model.layers) == expected["layer_tensors"]
    known = {**_reference(shared_reference, "llm.json"), **OF_THE_PAGE}
    if name in known:
        assert _parameters(model) == {key: known[name][key] for key in _parameters(model)}
    _check_cache(model, _reference(shared_reference, "llm_kv.json")["models"][name.removesuffix("-fp8")])


@pytest.mark.parametrize("name", GGUFS)
def test_gguf_files_have_the_known_bytes_and_caches(shared_data: Path, shared_reference: Path, name: str) -> None:
    """Types of blocks, absorbed projections, fused experts; caches by the keys of the file."""
    model = read_language_model(shared_data / "llm" / "gguf" / f"{name}.gguf")
    expected = _reference(shared_reference, "llm_files.json")["gguf"][f"{name}.gguf"]
    assert _bytes(model) == {key: expected[key] for key in _bytes(model)}
    assert model.types == expected["bytes_by_type"]
    _check_cache(model, _reference(shared_reference, "llm_kv.json")["models"][GGUFS[name]])


@pytest.mark.parametrize("name", WITHOUT_FILE)
def test_models_without_file_have_the_known_caches(tmp_path: Path, shared_reference: Path, name: str) -> None:
    """One head of keys where queries share it, one for each elsewhere."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(WITHOUT_FILE[name]))
    _check_cache(read_language_model(path), _reference(shared_reference, "llm_kv.json")["models"][name])


def test_further_tokens_have_a_layer_of_their_own(shared_data: Path) -> None:
    """Of 1,152 bytes a token, beside the 61 that the model is counted by."""
    (layer,) = read_language_model(shared_data / "llm" / "configs" / "deepseek-v3.json").mtp
    assert (layer.part, layer.kind, 2 * layer.cache.per_token) == ("mtp", "mla", 1152)
    assert layer.parameters == 11_507_286_016 + 2 * 7168**2 + 3 * 7168


def test_cross_attention_keeps_the_encoder(shared_data: Path) -> None:
    """4,096 bytes a token of the encoder in each layer of the decoder, once."""
    model = read_language_model(shared_data / "llm" / "configs" / "t5-large.json")
    assert [layer.part for layer in model.layers] == ["encoder"] * 24 + ["decoder"] * 24
    assert sum(2 * layer.cache.per_source_token * 100 for layer in model.layers) == 24 * 4096 * 100
    assert model.layers[-1].cache.bytes(100, source=100) == 2 * 4096 * 100


def test_published_figures_are_met(shared_data: Path) -> None:
    """24 GiB for 262,144 tokens of Qwen3-30B, a third of it in 16 of the 48 layers."""
    layers = read_language_model(shared_data / "llm" / "qwen3-30b-a3b").layers
    assert sum(layer.cache.bytes(262_144) for layer in layers) == 24 * 2**30
    free = 318 * 2**30 // 100
    assert free // sum(layer.cache.bytes(1) for layer in layers[:16]) == 104_202
