"""Configurations alone: needed keys, kinds of layers, types of states."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from language_models import LAYER_PARAMETERS, LLAMA

from mtpp.errors import InputError
from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.reader import read_language_model
from mtpp.language_models.language_model import LanguageModel


def _read(folder: Path, values: Any) -> LanguageModel:
    path = folder / "config.json"
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return read_language_model(path)


def _refusal(folder: Path, values: Any) -> str:
    with pytest.raises(InputError) as caught:
        _read(folder, values)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "purpose"),
    [
        ("hidden_size", "the width of embeddings and projections"),
        ("num_hidden_layers", "the number of layers"),
        ("num_attention_heads", "projections of queries and the cache"),
        ("intermediate_size", "the width of the feed-forward network"),
        ("vocab_size", "the embedding and the head"),
    ],
)
def test_a_key_that_is_needed_is_named_with_its_use(tmp_path: Path, key: str, purpose: str) -> None:
    """And so is a value that is no size."""
    without = {name: value for name, value in LLAMA.items() if name != key}
    assert f"{key}: is absent; it gives {purpose}" in _refusal(tmp_path, without)
    for value in (0, -1, 1.5, "8", [8], {}, True, 2**60):
        assert f"{key}: " in _refusal(tmp_path, {**LLAMA, key: value})


@pytest.mark.parametrize("key", ["kv_lora_rank", "qk_rope_head_dim", "v_head_dim", "n_routed_experts"])
def test_keys_of_latent_attention_are_needed(tmp_path: Path, shared_data: Path, key: str) -> None:
    """No rank and no number of experts is guessed."""
    values = json.loads((shared_data / "llm" / "configs" / "deepseek-v3.json").read_text())
    del values[key]
    assert "is absent" in _refusal(tmp_path, values)


def test_layers_that_share_caches_are_fewer_than_all(tmp_path: Path, shared_data: Path) -> None:
    """The first one has none to read."""
    values = json.loads((shared_data / "llm" / "configs" / "gemma3n-e4b-text.json").read_text())
    values |= {"num_hidden_layers": 12, "layer_types": values["layer_types"][:12]}
    assert "num_kv_shared_layers: 15 layers read caches of others, and there are 12" in _refusal(tmp_path, values)


def test_unknown_architectures_name_the_extra(tmp_path: Path) -> None:
    """One line with the ``model_type``, what was taken, and what would know."""
    said = _refusal(tmp_path, {**LLAMA, "model_type": "nobody_knows"})
    assert "model_type: the architecture 'nobody_knows' is unknown, and nothing is taken" in said
    assert "mtpp[hf]" in said
    assert "model_type: is absent" in _refusal(tmp_path, {"hidden_size": 8})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON"),
        ("[]", "is no JSON object"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"model_type": "llama"', "is no JSON"),
        (json.dumps({**LLAMA, "num_hidden_layers": 10**9}), "num_hidden_layers: 1000000000 is no size"),
        (json.dumps({**LLAMA, "num_attention_heads": 99}), "99 heads in a width of 8"),
        (json.dumps({**LLAMA, "layer_types": ["full_attention"]}), "layer_types: has 1 of 2 layers"),
        (json.dumps({**LLAMA, "layer_types": ["odd", "odd"]}), "layer_types: the kind 'odd' is unknown"),
        (json.dumps({**LLAMA, "layer_types": [1, 2]}), "layer_types: is no list of words"),
    ],
)
def test_broken_configurations_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """In one line, with the key at fault."""
    assert said in _refusal(tmp_path, text)


def test_names_of_keys_may_be_older(tmp_path: Path) -> None:
    """``n_embd`` is ``hidden_size``; a type is ``dtype`` or ``torch_dtype``, else two bytes, and that is said."""
    renamed = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    model = _read(tmp_path, {renamed.get(key, key): value for key, value in LLAMA.items()})
    assert [layer.parameters for layer in model.layers] == [LAYER_PARAMETERS] * 2
    for keys, size in (({"dtype": "float32"}, 4), ({"torch_dtype": "torch.float16"}, 2), ({}, 2)):
        bare = {key: value for key, value in LLAMA.items() if key != "torch_dtype"}
        model = _read(tmp_path, {**bare, **keys})
        assert model.bytes == size * model.parameters
        assert ("names no type" in model.notes[0]) is (not keys)


WINDOWED: dict[str, tuple[dict[str, Any], str]] = {
    "qwen2 without windows": ({"model_type": "qwen2", "sliding_window": 9, "use_sliding_window": False}, "ffffffff"),
    "qwen2 with windows": (
        {"model_type": "qwen2", "sliding_window": 9, "use_sliding_window": True, "max_window_layers": 3}, "fffsssss",
    ),
    "mistral": ({"model_type": "mistral", "sliding_window": 9}, "ssssssss"),
    "mistral of later releases": ({"model_type": "mistral", "sliding_window": None}, "ffffffff"),
    "gemma2": ({"model_type": "gemma2", "sliding_window": 9}, "sfsfsfsf"),
    "gemma3": ({"model_type": "gemma3_text", "sliding_window": 9}, "sssssfss"),
    "gemma3 of another pattern": (
        {"model_type": "gemma3_text", "sliding_window": 9, "sliding_window_pattern": 3}, "ssfssfss",
    ),
    "cohere2": ({"model_type": "cohere2", "sliding_window": 9}, "sssfsssf"),
    "gpt_oss": ({"model_type": "gpt_oss", "sliding_window": 9, "num_local_experts": 2}, "sfsfsfsf"),
    "starcoder2": ({"model_type": "starcoder2", "sliding_window": 9}, "ssssssss"),
    "listed": (
        {"model_type": "gemma2", "sliding_window": 9, "layer_types": ["full_attention"] * 7 + ["sliding_attention"]},
        "fffffffs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WINDOWED)
def test_windows_are_listed_or_implied(tmp_path: Path, case: str) -> None:
    """Layer by layer, by ``layer_types`` or by the architecture."""
    own, expected = WINDOWED[case]
    layers = _read(tmp_path, {**LLAMA, **own, "num_hidden_layers": 8, "head_dim": 2}).layers
    assert "".join((layer.kind or "?")[0] for layer in layers) == expected
    assert [layer.cache.window for layer in layers] == [9 if letter == "s" else None for letter in expected]
    assert {layer.cache.per_token for layer in layers} == {2 * 2 * 2}


def test_hybrids_have_states_and_caches_where_they_belong(tmp_path: Path) -> None:
    """Jamba attends in layer 4 of 8; Falcon-H1 does both in each; experts alternate with dense networks."""
    jamba = _read(tmp_path, {**LLAMA, "model_type": "jamba", "num_hidden_layers": 16, "num_experts": 4})
    assert [i for i, layer in enumerate(jamba.layers) if layer.kind == "full"] == [4, 12]
    assert jamba.layers[0].cache.state == 2 * 8 * 16
    assert jamba.layers[0].cache.convolution == 2 * 8 * 4
    assert jamba.layers[1].parameters > jamba.layers[0].parameters
    falcon = {
        **LLAMA, "model_type": "falcon_h1", "mamba_n_heads": 4, "mamba_d_ssm": 16, "mamba_d_state": 8,
        "mamba_d_head": 4,
    }  # fmt: skip
    cache = _read(tmp_path, falcon).layers[0].cache
    assert (cache.per_token, cache.state, cache.convolution) == (8, 4 * 4 * 8, (16 + 2 * 8) * 4)


@pytest.mark.parametrize(("name", "size"), [("float32", 4), ("bfloat16", 2), ("torch.float32", 4)])
def test_states_have_the_type_that_is_named_for_them(tmp_path: Path, name: str, size: int) -> None:
    """Convolutions keep the model's; an unknown type is refused."""
    values = {**LLAMA, "model_type": "jamba", "mamba_ssm_dtype": name}
    cache = _read(tmp_path, values).layers[0].cache
    assert cache.bytes_of_states == 256 * size + 64 * 2
    assert "mamba_ssm_dtype" in _refusal(tmp_path, {**values, "mamba_ssm_dtype": "int3"})


def test_first_layers_may_be_dense(tmp_path: Path) -> None:
    """And single ones, by a list or by a step."""
    values = {**LLAMA, "model_type": "qwen3_moe", "num_hidden_layers": 6, "moe_intermediate_size": 4, "num_experts": 3,
              "head_dim": 2, "decoder_sparse_step": 2, "mlp_only_layers": [3]}  # fmt: skip
    counts = [layer.parameters for layer in _read(tmp_path, values).layers]
    dense, sparse = 3 * 8 * 16, 3 * 8 + 3 * 3 * 8 * 4
    assert [count - counts[0] for count in counts] == [0, sparse - dense, 0, 0, 0, sparse - dense]


def test_defaults_that_are_taken_are_said(tmp_path: Path) -> None:
    """A size that the configuration leaves out is a note."""
    values = {key: value for key, value in LLAMA.items() if key != "intermediate_size"}
    model = _read(tmp_path, {**values, "model_type": "mamba2", "num_heads": 4, "head_dim": 4, "state_size": 3})
    assert any("mamba_d_conv 4" in note and "mamba_expand 2" in note for note in model.notes)


def test_every_row_has_a_name_of_its_own() -> None:
    """No ``model_type`` stands in two rows, and every row reads its own."""
    rows = {id(row): row for row in ARCHITECTURES.values()}.values()
    names = Counter(name for row in rows for name in (row.name, *row.also))
    assert set(names.values()) == {1}
    assert set(names) == set(ARCHITECTURES)


def test_heads_and_experts_have_to_agree(tmp_path: Path) -> None:
    """Queries share heads of keys and values evenly; a token has no more experts than there are."""
    said = _refusal(tmp_path, {**LLAMA, "num_attention_heads": 4, "num_key_value_heads": 3})
    assert "num_key_value_heads: 3 heads of keys and values do not divide 4 of queries" in said
    sparse = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 5}
    assert "num_experts_per_tok: a token has 5 of 4 experts" in _refusal(tmp_path, sparse)
