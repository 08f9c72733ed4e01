"""Shares of the GPUs of a stage: against formulas by hand, against engines' plans, and never less than the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mtpp.errors import InputError
from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.described import described_model
from mtpp.formats.language_models.reader import read_language_model
from mtpp.language_models.arithmetic import decode, embedding, head, prefill
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part, Weight
from mtpp.language_models.tensor_degrees import Undividable, possible_degrees, refusal
from mtpp.language_models.tensor_division import RULES, Division, rule_of
from mtpp.language_models.tensor_parallel import all_reduces, divided, sent_in_layer, unknown_matrices
from tests.support import tensor_shares
from tests.support.language_models import LLAMA, T5
from tests.support.tensor_shares import Share

POWERS = (1, 2, 4, 8, 16, 32, 64)

MODELS: dict[str, tuple[dict[str, Any], list[tuple[int, Callable[..., Share]]], int]] = {
    "llama": (tensor_shares.LLAMA_8B, [(0, tensor_shares.llama)], 32),
    "mixtral": (tensor_shares.MIXTRAL, [(0, tensor_shares.mixtral)], 32),
    "qwen3-30b": (tensor_shares.QWEN3_30B, [(0, tensor_shares.qwen3_30b)], 32),
    "deepseek": (
        tensor_shares.DEEPSEEK_V3,
        [(0, partial(tensor_shares.deepseek, dense=True)), (3, partial(tensor_shares.deepseek, dense=False))],
        128,
    ),
    "mamba2": (tensor_shares.MAMBA2, [(0, tensor_shares.mamba2)], 16),
    "qwen3-next": (
        tensor_shares.QWEN3_NEXT,
        [(0, partial(tensor_shares.qwen3_next, full=False)), (3, partial(tensor_shares.qwen3_next, full=True))],
        16,
    ),
}
"""Configuration, formulas by the number of a layer, and the largest power of two that divides the model."""


def model_of(values: dict[str, Any]) -> LanguageModel:
    """Return the model of a configuration."""
    return described_model("model", values["model_type"], values, "config.json", has_towers=False)


@pytest.mark.parametrize("name", MODELS)
def test_shares_are_those_of_the_formulas(name: str) -> None:
    """Bytes, arithmetic, cache and states of one GPU, at every power of two that divides the model."""
    values, layers, most = MODELS[name]
    model = model_of(values)
    for t in (t for t in POWERS if t <= most):
        share = divided(model, t)
        for number, formula in layers:
            layer, b, c = share.layers[number], 3, 1000
            due, step = formula(t, b, c), decode(layer, b, c)
            assert step is not None
            assert (layer.parameters, layer.bytes) == (due.parameters, 2 * due.parameters), t
            assert step.flops == due.flops, t
            assert (layer.cache.per_token, layer.cache.state, layer.cache.convolution) == due[2:], t
        rows = -(-values["vocab_size"] // t)
        assert share.embedding.parameters == rows * values["hidden_size"]
        assert head(share, 5).flops == 2 * 5 * rows * values["hidden_size"]
        assert embedding(share, 7) == embedding(model, 7)
    assert [t for t in POWERS if refusal(model, t) is None] == [t for t in POWERS if t <= most]


@pytest.mark.parametrize("name", MODELS)
def test_prefill_is_divided_as_heads_are(name: str) -> None:
    """FLOPs of projections as at decode, of attention 1/t; fewer bytes are written where the cache is divided."""
    values, layers, _ = MODELS[name]
    model = model_of(values)
    for t in (2, 8):
        for number, _ in layers:
            whole, share = prefill(model.layers[number], 64), prefill(divided(model, t).layers[number], 64)
            assert whole is not None
            assert share is not None
            assert share.attention * t == whole.attention
            assert share.recurrence * t == whole.recurrence
            assert whole.written_bytes <= share.written_bytes * t


@pytest.mark.parametrize(
    ("name", "counts"),
    [("llama", {2}), ("mixtral", {2}), ("deepseek", {2}), ("mamba2", {1}), ("qwen3-next", {2})],
)
def test_each_block_ends_with_one_sum(name: str, counts: set[int]) -> None:
    """Attention or recurrence, then the network; a layer of Mamba-2 is one block."""
    model = model_of(MODELS[name][0])
    assert {all_reduces(layer) for layer in model.layers} == counts
    layer = model.layers[0]
    for t in POWERS:
        assert sent_in_layer(layer, 8192, t) == max(counts) * Fraction(2 * (t - 1) * 8192, t)


def test_decoders_of_encoders_have_three_blocks() -> None:
    """Attention to the encoder is one of its own; its projections and caches are divided as all others."""
    model = model_of(T5)
    assert [all_reduces(layer) for layer in model.layers] == [2, 2, 2, 3, 3, 3]
    for whole, share in zip(model.layers, divided(model, 2).layers, strict=True):
        assert whole.work is not None
        assert share.work is not None
        assert (share.work.projections * 2, share.work.source * 2) == (whole.work.projections, whole.work.source)
        assert share.cache.per_source_token * 2 == whole.cache.per_source_token


@pytest.mark.parametrize(
    ("changes", "degree", "reason"),
    [
        ({}, 3, "3 GPUs do not divide the 4 attention heads of model.layers.0; engines refuse that"),
        ({"num_key_value_heads": 3, "num_attention_heads": 6, "hidden_size": 12}, 2,
         "2 GPUs do not divide the 3 heads of keys and values"),
        ({"num_key_value_heads": 4, "num_attention_heads": 12, "hidden_size": 12}, 6,
         "6 GPUs do not divide the 4 heads of keys and values of model.layers.0 and are no multiple of them"),
        ({"intermediate_size": 18}, 4, "4 GPUs do not divide the 18 columns of a feed-forward network"),
    ],
)  # fmt: skip
def test_other_degrees_are_refused(changes: dict[str, Any], degree: int, reason: str) -> None:
    """In one line with the reason, and with the degrees that would do."""
    model = model_of({**LLAMA, **changes})
    with pytest.raises(Undividable) as caught:
        divided(model, degree)
    assert caught.value.problem.startswith(reason)
    assert caught.value.parameter == "tensor_parallel"
    assert str(caught.value.remedy).startswith("use one of 1")
    assert isinstance(caught.value, InputError)


def test_groups_are_divided_or_one() -> None:
    """Of Mamba-2: 2 groups on 4 GPUs are refused, one is copied, 4 are divided."""
    for groups, due in ((1, None), (4, None), (2, "4 GPUs do not divide the 2 groups of a state space")):
        values = {**tensor_shares.MAMBA2, "num_hidden_layers": 1, "n_groups": groups}
        reason = refusal(model_of(values), 4)
        assert (reason or "").startswith(due or "")
        assert (reason is None) == (due is None)
    whole, share = (divided(model_of({**tensor_shares.MAMBA2, "n_groups": 4}), t).layers[0] for t in (1, 4))
    assert share.cache.bytes_of_states * 4 == whole.cache.bytes_of_states


def test_layers_of_unknown_sizes_are_not_divided() -> None:
    """Names of weights alone do not tell heads; such layers for further tokens are whole on each GPU."""
    model = model_of(LLAMA)
    unknown = replace(model, layers=tuple(replace(layer, work=None) for layer in model.layers))
    assert refusal(unknown, 2) == "the sizes of model.layers.0 are not known, and it is not divided over 2 GPUs"
    assert possible_degrees(unknown, [1, 2, 4]) == [1]
    further = replace(model.layers[0], work=None, part="mtp")
    assert divided(replace(model, mtp=(further,)), 2).mtp == (further,)


def layer_of(weights: list[Weight], like: DecoderLayer) -> DecoderLayer:
    """Return a layer with other weights."""
    return replace(like, weights=tuple(weights))


@pytest.mark.parametrize(
    ("name", "shape", "bits", "due"),
    [
        ("self_attn.q_proj.weight_scale_inv", (32, 32), 0, Fraction(1, 4)),  # blocks of 128 × 128
        ("self_attn.k_proj.weight_scale_inv", (2, 32), 0, Fraction(1, 2)),  # two heads, on four GPUs
        ("mlp.down_proj.weight_scale_inv", (32, 112), 0, Fraction(1, 4)),
        ("mlp.down_proj.weight_scale", (4096, 1), 0, 1),  # of outputs, where inputs are divided
        ("mlp.down_proj.weight_scale", (4096,), 0, 1),
        ("mlp.up_proj.weight_scale", (14336, 1), 0, Fraction(1, 4)),
        ("mlp.up_proj.input_scale", (), 0, 1),
        ("mlp.up_proj.weight_scale", (1,), 0, 1),
        ("mlp.up_proj.qweight", (512, 14336), 8, Fraction(1, 4)),  # GPTQ
        ("mlp.up_proj.g_idx", (4096,), 0, 1),
        ("mlp.down_proj.g_idx", (14336,), 0, Fraction(1, 4)),
        ("mlp.down_proj.scales", (112, 4096), 0, Fraction(1, 4)),
        ("mlp.down_proj.weight.absmax", (917504,), 0, Fraction(1, 4)),  # bitsandbytes
        ("mlp.down_proj.weight.quant_map", (16,), 0, 1),
        ("mlp.down_proj.bias", (4096,), 1, 1),
        ("mlp.up_proj.bias", (14336,), 1, Fraction(1, 4)),
        ("self_attn.k_proj.bias", (256,), 1, Fraction(1, 2)),
        ("mlp.experts.gate_up_proj_blocks", (8, 28672, 128, 16), 2, Fraction(1, 4)),  # MXFP4
        ("mlp.experts.down_proj_scales", (8, 4096, 448), 0, Fraction(1, 4)),
        ("mlp.experts.down_proj_bias", (8, 4096), 1, 1),
        ("mlp.experts.gate_up_proj_bias", (8, 28672), 1, Fraction(1, 4)),
        ("mlp.up_proj.lora_A.weight", (16, 4096), 1, 1),
        ("mlp.up_proj.lora_B.weight", (14336, 16), 1, Fraction(1, 4)),
        ("mlp.down_proj.lora_A.weight", (16, 14336), 1, Fraction(1, 4)),
        ("mlp.down_proj.lora_B.weight", (4096, 16), 1, 1),
        ("self_attn.rotary_emb.inv_freq", (64,), 0, 1),
        ("mlp.gate.e_score_correction_bias", (256,), 0, 1),
        ("input_layernorm.weight", (4096,), 1, 1),
        ("something.new.weight", (4096, 4096), 1, 1),
    ],
)  # fmt: skip
def test_tensors_beside_weights_go_with_them(name: str, shape: tuple[int, ...], bits: int, due: Fraction) -> None:
    """Scales, packed weights, biases and adapters: by the side that is divided; bytes are rounded up."""
    model = model_of({**tensor_shares.LLAMA_8B, "num_key_value_heads": 2, "num_hidden_layers": 1})
    count = 1
    for size in shape:
        count *= size
    weight = Weight(f"model.layers.0.{name}", shape, bits * count, 2 * count)
    layer = layer_of([*model.layers[0].weights, weight], model.layers[0])
    share = divided(replace(model, layers=(layer,)), 4).layers[0].weights[-1]
    assert (share.name, share.bytes) == (
        weight.name,
        -(-2 * count * Fraction(due).numerator // Fraction(due).denominator),
    )
    assert share.parameters == bits * count * due


def test_blocks_of_scales_are_not_cut() -> None:
    """Experts of a width of 768 have 6 blocks of 128 columns, which 4 GPUs would cut, as vLLM says."""
    model = model_of({**LLAMA, "num_attention_heads": 8, "hidden_size": 16, "intermediate_size": 24})
    scale = Weight("model.layers.0.mlp.down_proj.weight_scale_inv", (2, 6), 0, 24)
    scaled = replace(model, layers=(layer_of([*model.layers[0].weights, scale], model.layers[0]), *model.layers[1:]))
    assert refusal(model, 4) is None
    assert refusal(scaled, 2) is None
    assert str(refusal(scaled, 4)).startswith("4 GPUs do not divide the 6 blocks of scales of model.layers.0")


def folders(shared_data: Path) -> Iterator[Path]:
    """Yield all models without weights."""
    root = shared_data / "llm"
    yield from (path for path in sorted(root.iterdir()) if (path / "config.json").exists())
    yield from sorted((root / "configs").glob("*.json"))
    yield from sorted((root / "gguf").glob("*.gguf"))


def test_shares_are_never_less_than_the_whole(shared_data: Path) -> None:
    """All models of the data: of each tensor, of caches and of arithmetic; nothing is more than whole."""
    for path in folders(shared_data):
        model = read_language_model(path)
        assert unknown_matrices(model) == []
        for t in possible_degrees(model)[1:3]:
            share = divided(model, t)
            pairs = [(model.embedding, share.embedding), (model.head, share.head), (model.other, share.other)]
            pairs += list(zip((*model.layers, *model.mtp), (*share.layers, *share.mtp), strict=True))
            for whole, own in pairs:
                for one, part in zip(whole.weights, own.weights, strict=True):
                    assert one.name == part.name
                    assert part.bytes <= one.bytes <= part.bytes * t, one
                    assert part.parameters <= one.parameters <= part.parameters * t, one
                assert_no_less(whole, own, t)


def assert_no_less(whole: Part, own: Part, t: int) -> None:
    """Hold a layer against its share."""
    if isinstance(whole, DecoderLayer) and isinstance(own, DecoderLayer):
        for context in (1, 10_000):
            assert own.cache.bytes(context) <= whole.cache.bytes(context) <= t * own.cache.bytes(context)
        one, part = decode(whole, 2, 300), decode(own, 2, 300)
        assert one is not None
        assert part is not None
        assert part.flops <= one.flops <= t * part.flops
        assert part.bytes <= one.bytes <= t * part.bytes


def test_names_agree_with_transformers() -> None:
    """Projections by outputs and by inputs are those of its own plans, for architectures of the table."""
    transformers = pytest.importorskip("transformers", minversion="5")
    mapping = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    seen = 0
    for name in ARCHITECTURES:
        plan = getattr(mapping[name], "base_model_tp_plan", None) if name in mapping else None
        for path, way in (plan or {}).items():
            _, layers, module = path.partition(".*.")
            rows = "rowwise" in way
            if not layers or not (rows or "colwise" in way):
                continue
            # Llama 4 has inputs before outputs; the delta rule's output is computed from whole tensors there
            if (name == "llama4_text" and "experts" in module) or module == "linear_attn.out_proj":
                continue
            division = rule_of(f"{module}.weight").division
            due = {Division.ROWS} if rows else {Division.COLUMNS, Division.KEYS, Division.FUSED}
            assert division in due, (name, path, way)
            seen += 1
    assert seen > 200


def test_all_names_of_the_table_are_those_of_some_architecture() -> None:
    """No name leads to a rule of an outer module."""
    for name, rule in RULES.items():
        assert rule_of(f"{name}.weight") is rule


ANY: dict[str, Any] = {
    "hidden_size": 256, "intermediate_size": 512, "intermediate_size_mlp": 512, "moe_intermediate_size": 128,
    "shared_expert_intermediate_size": 128, "shared_intermediate_size": 128, "moe_shared_expert_intermediate_size": 128,
    "num_hidden_layers": 8, "num_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32,
    "vocab_size": 1000, "num_experts": 4, "num_experts_per_tok": 2, "sliding_window": 64, "first_k_dense_replace": 1,
    "q_lora_rank": 96, "kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32,
    "index_n_heads": 4, "index_head_dim": 16, "mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_ssm": 512,
    "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_num_heads": 8, "mamba_head_dim": 64, "num_heads": 8,
    "state_size": 16, "ssm_state_size": 16, "n_groups": 1, "time_step_rank": 16, "linear_num_value_heads": 8,
    "linear_num_key_heads": 4, "linear_attn_config": {"num_heads": 8, "head_dim": 32}, "d_kv": 32,
    "hybrid_override_pattern": "M*-EM*-E", "num_nextn_predict_layers": 1, "num_kv_shared_layers": 2,
}  # fmt: skip
"""Keys of all architectures."""


def test_every_architecture_is_divided() -> None:
    """No matrix of the table of architectures is unknown here, and most of the work is divided."""
    for name in ARCHITECTURES:
        model = model_of(ANY | {"model_type": name})
        assert unknown_matrices(model) == [], name
        share = divided(model, 4)
        for whole, own in zip((*model.layers, *model.mtp), (*share.layers, *share.mtp), strict=True):
            assert whole.work is not None
            assert all_reduces(whole) in (1, 2, 3), name
            assert_no_less(whole, own, 4)
            one, part = prefill(whole, 50, source=7), prefill(own, 50, source=7)
            assert one is not None
            assert part is not None
            if whole.part != "mtp":  # the projection of two hidden states is whole
                assert part.flops * 4 <= 2 * one.flops, name
