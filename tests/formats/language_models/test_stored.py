"""Checkpoints against their configurations: parts by name, and all that the two do not say alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import gguf_bytes, write_model, write_safetensors
from language_models import LAYER_PARAMETERS, LLAMA, llama_tensors

from mtpp.errors import InputError
from mtpp.formats.language_models.reader import is_language_model, read_language_model


def test_a_model_that_agrees_has_no_notes(tmp_path: Path) -> None:
    """Bytes, parameters and names of layers are those of the file."""
    model = read_language_model(write_model(tmp_path, LLAMA, llama_tensors()))
    assert [layer.name for layer in model.layers] == ["model.layers.0", "model.layers.1"]
    assert [layer.parameters for layer in model.layers] == [LAYER_PARAMETERS] * 2
    assert (model.embedding.bytes, model.head.bytes, model.other.bytes, model.tied) == (160, 160, 16, False)
    assert model.notes == ()


def test_paths_of_a_model_are_told_from_graphs(tmp_path: Path) -> None:
    """A folder with an ONNX model is one of graphs, whatever lies beside it."""
    folder = write_model(tmp_path, LLAMA, llama_tensors())
    assert is_language_model(folder)
    assert is_language_model(folder / "config.json")
    assert is_language_model(folder / "model.safetensors")
    other = tmp_path / "any.json"
    other.write_text('{"model_type": "llama"}')
    assert is_language_model(other)
    other.write_text('{"ops": [], "tensors": []}')
    assert not is_language_model(other)
    (tmp_path / "model.onnx").touch()
    assert not is_language_model(folder)
    assert not is_language_model(tmp_path / "missing")


def _noted(folder: Path, configuration: dict[str, Any], tensors: Any, text: str) -> Any:
    model = read_language_model(write_model(folder, configuration, tensors))
    assert any(text in note for note in model.notes), model.notes
    return model


def test_a_tied_head_is_stored_once(tmp_path: Path) -> None:
    """Its parameters are the embedding's, its bytes none."""
    tied = {**LLAMA, "tie_word_embeddings": True}
    model = _noted(tmp_path, tied, llama_tensors(head=False), "the head is the embedding, stored once")
    assert (model.tied, model.head_parameters, model.head.bytes) == (True, 80, 0)
    assert model.parameters == 2 * LAYER_PARAMETERS + 80 + 8


def test_heads_that_contradict_the_configuration_are_noted(tmp_path: Path) -> None:
    """A missing one is taken as tied; one that is there has its bytes."""
    model = _noted(tmp_path, LLAMA, llama_tensors(head=False), "no head is in the files")
    assert model.tied
    tied = {**LLAMA, "tie_word_embeddings": True}
    assert _noted(tmp_path, tied, llama_tensors(), "but a head is in the files").head.bytes == 160


def test_buffers_are_bytes_and_no_parameters(tmp_path: Path) -> None:
    """Inverse frequencies, causal masks and corrections of routers."""
    buffers = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (4,)),
        "model.layers.0.mlp.gate.e_score_correction_bias": ("F32", (6,)),
    }
    model = _noted(tmp_path, LLAMA, llama_tensors() | buffers, "40 B of buffers")
    assert model.layers[0].parameters == LAYER_PARAMETERS
    assert model.layers[0].bytes == 2 * LAYER_PARAMETERS + 40


def test_layers_for_further_tokens_are_apart(tmp_path: Path) -> None:
    """Layers beyond the configuration's, or under a name of their own; those of one side alone are noted."""
    more = {"model.layers.2.eh_proj.weight": ("BF16", (8, 16)), "model.layers.2.enorm.weight": ("BF16", (8,))}
    model = _noted(tmp_path, LLAMA, llama_tensors() | more, "the files have 1 MTP layer, the configuration 0")
    assert [(layer.parameters, layer.cache.per_token) for layer in model.mtp] == [(136, 8)]
    assert len(model.layers) == 2
    own = {"mtp.layers.0.mlp.up_proj.weight": ("BF16", (16, 8)), "mtp.fc.weight": ("BF16", (8, 16))}
    model = _noted(tmp_path, LLAMA, llama_tensors() | own, "the files have 1 MTP layer")
    assert [layer.parameters for layer in model.mtp] == [256]
    assert len(model.layers) == 2
    promised = {**LLAMA, "num_nextn_predict_layers": 1}
    assert not _noted(tmp_path, promised, llama_tensors(), "has 1 MTP layer, the files none").mtp


def test_layers_beyond_the_number_are_no_mtp_layers(tmp_path: Path) -> None:
    """Their bytes count; names or an architecture that has MTP layers make them such."""
    cut = {**LLAMA, "num_hidden_layers": 1}
    model = _noted(tmp_path, cut, llama_tensors(4), "the files have 3 layers beyond the 1 of the configuration")
    assert not any("MTP" in note for note in model.notes)
    assert [(layer.part, layer.name) for layer in model.mtp] == [("beyond", f"model.layers.{i}") for i in (1, 2, 3)]
    assert [layer.parameters for layer in (*model.layers, *model.mtp)] == [LAYER_PARAMETERS] * 4
    assert model.parameters == LAYER_PARAMETERS + 168
    assert model.bytes == 2 * (4 * LAYER_PARAMETERS + 168)
    promised = read_language_model(
        write_model(tmp_path, {**cut, "num_nextn_predict_layers": 1}, llama_tensors(2)),
    )
    assert [layer.part for layer in promised.mtp] == ["mtp"]


def test_towers_are_neither_layers_nor_embeddings(tmp_path: Path) -> None:
    """Their layers and embeddings are in ``other``; the text model is found within the configuration."""
    nested = {"model_type": "llava", "vision_config": {"num_hidden_layers": 9}, "text_config": LLAMA}
    towers = {
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": ("BF16", (4, 4)),
        "vision_tower.vision_model.embeddings.patch_embedding.weight": ("BF16", (2, 2)),
        "multi_modal_projector.linear_1.weight": ("BF16", (3, 3)),
    }
    tensors = llama_tensors(prefix="language_model.model.", head=False) | towers
    tensors["language_model.lm_head.weight"] = ("BF16", (10, 8))
    model = read_language_model(write_model(tmp_path, nested, tensors))
    assert [layer.parameters for layer in model.layers] == [LAYER_PARAMETERS] * 2
    assert model.layers[0].name == "language_model.model.layers.0"
    assert model.other.parameters == 8 + 16 + 4 + 9
    assert model.head.parameters == 80


def test_text_models_within_others_may_leave_sizes_out(tmp_path: Path) -> None:
    """Gemma 3 names widths and layers alone; heads and vocabulary are those that it has always had."""
    inner = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
             "sliding_window": 1024}  # fmt: skip
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "gemma3", "text_config": inner, "vision_config": {}})
    )
    model = read_language_model(tmp_path)
    assert model.parameters == 3_880_263_168
    assert any("towers" in note for note in model.notes)
    assert 2 * sum(layer.cache.per_token for layer in model.layers) == 34 * 2 * 4 * 256 * 2


PROJECTION = "model.layers.0.self_attn.q_proj"
PACKED: dict[str, tuple[dict[str, Any], dict[str, tuple[str, tuple[int, ...]]]]] = {
    "gptq": (
        {"quant_method": "gptq", "bits": 4},
        {"qweight": ("I32", (1, 8)), "qzeros": ("I32", (1, 1)), "scales": ("F16", (1, 8)), "g_idx": ("I32", (8,))},
    ),
    "gptq of 8 bits": ({"quant_method": "gptq", "bits": 8}, {"qweight": ("I32", (2, 8)), "scales": ("F16", (1, 8))}),
    "awq": (
        {"quant_method": "awq"},
        {"qweight": ("I32", (8, 1)), "qzeros": ("I32", (1, 1)), "scales": ("F16", (1, 8))},
    ),
    "bitsandbytes of 4 bits": (
        {"quant_method": "bitsandbytes"},
        {
            "weight": ("U8", (32, 1)), "weight.absmax": ("U8", (1,)), "weight.quant_map": ("F32", (16,)),
            "weight.nested_absmax": ("F32", (1,)), "weight.quant_state.bitsandbytes__nf4": ("U8", (90,)),
        },
    ),
    "bitsandbytes of 8 bits": ({"quant_method": "bitsandbytes"}, {"weight": ("I8", (8, 8)), "SCB": ("F32", (8,))}),
    "fp8": ({"quant_method": "fp8"}, {"weight": ("F8_E4M3", (8, 8)), "weight_scale_inv": ("BF16", (1, 1))}),
    "compressed tensors": (
        {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}},
        {"weight_packed": ("I32", (8, 2)), "weight_scale": ("BF16", (8, 1)), "weight_shape": ("I64", (2,))},
    ),
    "nvfp4": (
        {"quant_method": "modelopt"},
        {"weight": ("U8", (8, 4)), "weight_scale": ("F8_E4M3", (8, 1)), "weight_scale_2": ("F32", ())},
    ),
    "mlx": (
        {"bits": 4, "group_size": 8},
        {"weight": ("U32", (8, 1)), "scales": ("BF16", (8, 1)), "biases": ("BF16", (8, 1))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PACKED)
def test_packed_weights_count_unpacked(tmp_path: Path, case: str) -> None:
    """64 parameters of a projection, whatever they are packed in; bytes are as stored."""
    quantised, tensors = PACKED[case]
    all_tensors = llama_tensors()
    del all_tensors[f"{PROJECTION}.weight"]
    all_tensors |= {f"{PROJECTION}.{name}": one for name, one in tensors.items()}
    key = "quantization" if case == "mlx" else "quantization_config"
    model = _noted(tmp_path, {**LLAMA, key: quantised}, all_tensors, "weights are quantised")
    assert model.layers[0].parameters == LAYER_PARAMETERS
    assert not any("by the configuration" in note for note in model.notes), model.notes


def test_blocks_of_mxfp4_are_two_in_a_byte(tmp_path: Path) -> None:
    """Experts of gpt-oss: blocks count, scales do not."""
    configuration = {
        "model_type": "gpt_oss", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 10, "num_local_experts": 2,
        "quantization_config": {"quant_method": "mxfp4"},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    experts = "model.layers.0.mlp.experts"
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {
        weight.name: ("BF16", weight.shape)
        for part in read_language_model(tmp_path).parts
        for weight in part.weights
        if not weight.name.endswith(("gate_up_proj", "down_proj"))
    }
    whole = read_language_model(tmp_path).layers[0].parameters
    for name, rows in (("gate_up_proj", 64), ("down_proj", 32)):
        tensors |= {
            f"{experts}.{name}_blocks": ("U8", (2, rows, 1, 16)),
            f"{experts}.{name}_scales": ("U8", (2, rows, 1)),
        }
    model = _noted(tmp_path, configuration, tensors, "mxfp4")
    assert model.layers[0].parameters == whole


def test_an_unknown_architecture_is_read_by_names(tmp_path: Path) -> None:
    """Bytes by layer; caches by heads and widths, and the extra that would know is named."""
    unknown = {**LLAMA, "model_type": "nobody_knows"}
    model = _noted(tmp_path, unknown, llama_tensors(), "the architecture 'nobody_knows' is unknown")
    assert any("mtpp[hf]" in note for note in model.notes)
    assert [(layer.bytes, layer.cache.per_token) for layer in model.layers] == [(2 * LAYER_PARAMETERS, 8)] * 2
    assert model.embedding.bytes == 160
    bare = {"model_type": "nobody_knows"}
    model = _noted(tmp_path, bare, llama_tensors(), "caches not counted; mtpp[hf] may know it")
    assert [(layer.bytes, layer.kind) for layer in model.layers] == [(2 * LAYER_PARAMETERS, None)] * 2


def test_weights_without_configuration_are_read_by_names(tmp_path: Path) -> None:
    """A file alone: layers, and the word that there is no configuration."""
    model = read_language_model(write_safetensors(tmp_path / "weights.safetensors", llama_tensors()))
    assert len(model.layers) == 2
    assert any("there is no configuration" in note for note in model.notes)


def test_sizes_that_disagree_are_noted(tmp_path: Path) -> None:
    """Parameters of files and configuration, side by side."""
    other = {**LLAMA, "intermediate_size": 32}
    _noted(tmp_path, other, llama_tensors(), "layers: 1,184 parameters in the files, 1,952 by the configuration")
    _noted(tmp_path, {**LLAMA, "vocab_size": 11}, llama_tensors(), "the embedding: 80 parameters in the files, 88")
    _noted(tmp_path, {**LLAMA, "num_hidden_layers": 3}, llama_tensors(), "1 of 3 decoder layers have no weights")


def test_gguf_keys_tell_kinds_of_layers(tmp_path: Path) -> None:
    """Heads by layer, of which none means a recurrence; layers for further tokens are among the blocks."""
    keys = {
        "general.architecture": "granitehybrid", "granitehybrid.block_count": 3, "granitehybrid.embedding_length": 64,
        "granitehybrid.attention.head_count": 4, "granitehybrid.attention.head_count_kv": [0, 2, 0],
        "granitehybrid.feed_forward_length": 32, "granitehybrid.ssm.conv_kernel": 4,
        "granitehybrid.ssm.inner_size": 128, "granitehybrid.ssm.state_size": 16,
        "granitehybrid.ssm.time_step_rank": 8, "granitehybrid.ssm.group_count": 1,
    }  # fmt: skip
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_bytes(keys, {"token_embd.weight": ("F32", (10, 64))}))
    caches = [(layer.kind, layer.cache.per_token, layer.cache.state) for layer in read_language_model(path).layers]
    assert caches == [("mamba2", 0, 128 * 16), ("full", 2 * 2 * 16, 0), ("mamba2", 0, 128 * 16)]
    further = {
        "general.architecture": "glm4moe", "glm4moe.block_count": 3, "glm4moe.nextn_predict_layers": 1,
        "glm4moe.embedding_length": 64, "glm4moe.attention.head_count": 4, "glm4moe.attention.head_count_kv": 2,
        "glm4moe.attention.key_length": 16,
    }  # fmt: skip
    tensors = {f"blk.{i}.attn_q.weight": ("F32", (64, 64)) for i in range(3)}
    path.write_bytes(gguf_bytes(further, tensors))
    model = read_language_model(path)
    assert (len(model.layers), len(model.mtp), model.mtp[0].parameters) == (2, 1, 4096)


def test_windows_of_gguf_files_follow_their_architecture(tmp_path: Path) -> None:
    """Where a file has no pattern: every second, fourth or sixth layer is full."""
    for arch, period in (("gemma2", 2), ("gpt-oss", 2), ("cohere2", 4), ("gemma3", 6)):
        keys = {
            "general.architecture": arch, f"{arch}.block_count": 12, f"{arch}.embedding_length": 64,
            f"{arch}.attention.head_count": 4, f"{arch}.attention.head_count_kv": 2,
            f"{arch}.attention.key_length": 16, f"{arch}.attention.value_length": 16,
            f"{arch}.attention.sliding_window": 99,
        }  # fmt: skip
        path = tmp_path / "x.gguf"
        path.write_bytes(gguf_bytes(keys, {"token_embd.weight": ("F32", (10, 64))}))
        layers = read_language_model(path).layers
        windows = [layer.cache.window for layer in layers]
        assert windows == [None if (i + 1) % period == 0 else 99 for i in range(12)]
        assert {layer.cache.per_token for layer in layers} == {2 * 2 * 16}


def test_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    """With what a model's folder has."""
    with pytest.raises(InputError, match=r"no model is there; a model's folder has config\.json"):
        read_language_model(tmp_path)


def test_files_without_tensors_are_refused(tmp_path: Path) -> None:
    """A header may be whole and hold nothing."""
    with pytest.raises(InputError, match="the header has no tensors"):
        read_language_model(write_model(tmp_path, LLAMA, {}))
