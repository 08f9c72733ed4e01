"""The table of architectures: one row each; figures follow from the shapes of tensors."""

from __future__ import annotations

from mtpp.formats.language_models import encoder_decoder, gemma3n
from mtpp.formats.language_models.architecture import Architecture
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.feed_forward import (
    after_dense_layers,
    by_period,
    by_sparse_step,
    chosen,
    experts,
    gated,
    plain,
    shared_gate,
)
from mtpp.formats.language_models.mixers import (
    attention,
    both,
    delta_attention,
    gated_delta,
    latent_attention,
    lightning_attention,
    mamba,
    mamba2,
    short_convolution,
)
from mtpp.formats.language_models.patterns import (
    after_full_layers,
    alternating,
    by_indices,
    by_letters,
    every,
    everywhere,
    without_rotation,
)
from mtpp.formats.language_models.patterns import by_period as attention_by_period
from mtpp.formats.language_models.special_blocks import (
    experts_of_nemotron,
    granite_shared,
    kinds_of_kimi,
    lone,
    moe_of_llama4,
    norms_of_falcon,
    norms_of_stablelm,
    of_delta_attention,
    plain_of_nemotron,
    positions,
    width_of_lfm2,
)
from mtpp.formats.language_models.tensors import norms_of, nothing, together

_ROUTED = together(experts(), gated("mlp.shared_experts", "moe_intermediate_size", times="n_shared_experts"))
_SHARED = together(
    experts(), gated("mlp.shared_expert", "shared_expert_intermediate_size"), shared_gate()
)  # fmt: skip
_SPARSE_STEP = {"decoder_sparse_step": 1}
_GATED_DELTA = {
    "head_dim": 256, "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
}  # fmt: skip
_MAMBA2 = {
    "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2,
    "mamba_conv_bias": True,
}  # fmt: skip
_MAMBA_KEYS = {
    "mamba_d_state": "state_size", "mamba_d_conv": "conv_kernel", "mamba_expand": "expand",
    "mamba_conv_bias": "use_conv_bias", "mamba_proj_bias": "use_bias",
}  # fmt: skip
_MAMBA2_KEYS = _MAMBA_KEYS | {
    "mamba_n_heads": "num_heads", "mamba_d_head": "head_dim", "mamba_n_groups": "n_groups",
}  # fmt: skip
_FOUR_NORMS = norms_of(
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
)
_AFTER_NORMS = norms_of("post_attention_layernorm", "post_feedforward_layernorm")
_GPT_NORMS = norms_of("ln_1", "ln_2", bias=True)
_BLOCK_SPARSE = experts("block_sparse_moe", "intermediate_size", router="router", optional=True)


_ROWS = (
    Architecture(
        "llama", {"full": attention(bias="attention_bias")}, gated(bias="mlp_bias"),
        gguf=("llama", "granite"), also=("granite", "code_llama", "llava", "deepseek_llm", "internlm3", "yi", "aquila"),
    ),
    Architecture(
        "smollm3", {"full": attention(bias="attention_bias")}, gated(bias="mlp_bias"), gguf=("smollm3",), tied=True,
    ),
    Architecture(
        "mistral", {"full": attention()}, gated(), pattern=everywhere("sliding"), gguf=("mistral3",),
        also=("pixtral", "ministral"),
    ),
    Architecture(
        "ministral3", {"full": attention()}, gated(), pattern=everywhere("sliding"), defaults={"head_dim": 128},
    ),
    Architecture(
        "mixtral", {"full": attention()}, experts(size="intermediate_size"), pattern=everywhere("sliding"),
        defaults={"num_experts": 8, "num_experts_per_tok": 2},
    ),
    Architecture(
        "qwen2", {"full": attention(bias=True, output_bias=False)}, gated(), pattern=after_full_layers, gguf=("qwen2",),
        also=("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), defaults={"max_window_layers": 28},
    ),
    Architecture(
        "qwen2_moe", {"full": attention(bias="qkv_bias", output_bias=False)},
        chosen(by_sparse_step, _SHARED, gated()), pattern=after_full_layers, gguf=("qwen2moe",),
        defaults=_SPARSE_STEP
        | {"qkv_bias": True, "max_window_layers": 28, "num_experts": 60, "num_experts_per_tok": 4},
    ),
    Architecture(
        "qwen3", {"full": attention(bias="attention_bias", norms="head")}, gated(), pattern=after_full_layers,
        gguf=("qwen3",), also=("qwen3_vl_text",), defaults={"head_dim": 128, "max_window_layers": 28},
    ),
    Architecture(
        "qwen3_moe", {"full": attention(bias="attention_bias", norms="head")},
        chosen(by_sparse_step, experts(), gated()), pattern=everywhere(), gguf=("qwen3moe",),
        also=("qwen3_vl_moe_text",), defaults=_SPARSE_STEP | {"num_experts": 128, "num_experts_per_tok": 8},
    ),
    Architecture(
        "qwen3_next",
        {"full": attention(bias="attention_bias", norms="head", gated=True), "gated_delta": gated_delta()},
        chosen(by_sparse_step, _SHARED, gated()),
        pattern=every("full_attention_interval", 4, else_="recurrent"), gguf=("qwen3next",),
        defaults=_SPARSE_STEP | _GATED_DELTA | {"num_experts": 512, "num_experts_per_tok": 10},
    ),
    Architecture(
        "qwen3_5_text",
        {"full": attention(bias="attention_bias", norms="head", gated=True), "gated_delta": gated_delta(split=True)},
        gated(), pattern=every("full_attention_interval", 4, else_="recurrent"), gguf=("qwen35",), also=("qwen3_5",),
        defaults=_GATED_DELTA,
    ),
    Architecture(
        "qwen3_5_moe_text",
        {"full": attention(bias="attention_bias", norms="head", gated=True), "gated_delta": gated_delta(split=True)},
        _SHARED, pattern=every("full_attention_interval", 4, else_="recurrent"), gguf=("qwen35moe",),
        also=("qwen3_5_moe",), defaults=_GATED_DELTA | {"num_experts_per_tok": 8},
    ),
    Architecture(
        "olmoe", {"full": attention(bias="attention_bias", norms="whole")}, experts(size="intermediate_size"),
        gguf=("olmoe",), defaults={"num_experts": 64, "num_experts_per_tok": 8},
    ),
    Architecture(
        "olmo", {"full": attention(bias="attention_bias")}, gated(), nothing, rest=nothing, gguf=("olmo",),
    ),
    Architecture(
        "olmo2", {"full": attention(bias="attention_bias", norms="whole")}, gated(), _AFTER_NORMS, gguf=("olmo2",),
    ),
    Architecture(
        "olmo3", {"full": attention(bias="attention_bias", norms="whole")}, gated(), _AFTER_NORMS, gguf=("olmo3",),
        pattern=every("sliding_window_pattern", 4), defaults={"sliding_window": 4096},
    ),
    Architecture(
        "phi", {"full": attention(bias=True, names=("q_proj", "k_proj", "v_proj", "dense"))},
        plain(names=("fc1", "fc2")), norms_of("input_layernorm", bias=True), gguf=("phi2",), head_bias=True,
        rest=norms_of("final_layernorm", bias=True),
    ),
    Architecture(
        "phi3", {"full": attention(fused="qkv_proj")}, gated(fused="gate_up_proj"), pattern=everywhere("sliding"),
        gguf=("phi3",),
    ),
    Architecture(
        "glm", {"full": attention(bias="attention_bias", output_bias=False)}, gated(fused="gate_up_proj"),
        gguf=("chatglm",), defaults={"head_dim": 128, "attention_bias": True},
    ),
    Architecture(
        "glm4", {"full": attention(bias="attention_bias", output_bias=False)}, gated(fused="gate_up_proj"),
        norms_of("input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"),
        gguf=("glm4",), also=("glm4v_text",), defaults={"head_dim": 128, "attention_bias": True},
    ),
    Architecture(
        "glm4_moe",
        {"full": attention(bias="attention_bias", output_bias=False, norms="head", norms_if="use_qk_norm")},
        chosen(after_dense_layers, _ROUTED, gated()), gguf=("glm4moe",),
        defaults={"first_k_dense_replace": 1, "n_shared_experts": 1, "num_experts_per_tok": 8},
    ),
    Architecture(
        "deepseek_v2", {"mla": latent_attention()},
        chosen(
            after_dense_layers,
            together(
                experts(),
                gated("mlp.shared_experts", "moe_intermediate_size", times="n_shared_experts", bias="mlp_bias"),
            ),
            gated(bias="mlp_bias"),
        ),
        defaults={"first_k_dense_replace": 0, "n_shared_experts": 2},
    ),
    Architecture(
        "deepseek_v3", {"mla": latent_attention()}, chosen(after_dense_layers, _ROUTED, gated()), gguf=("deepseek2",),
        also=("kimi_k2",), defaults={"first_k_dense_replace": 3, "n_shared_experts": 1, "num_experts_per_tok": 8},
    ),
    Architecture(
        "glm4_moe_lite", {"mla": latent_attention()}, chosen(after_dense_layers, _ROUTED, gated()),
        defaults={"first_k_dense_replace": 1, "n_shared_experts": 1, "num_experts_per_tok": 4},
    ),
    Architecture(
        "deepseek_v32", {"mla": latent_attention(indexer=True)}, chosen(after_dense_layers, _ROUTED, gated()),
        gguf=("deepseek32",),
        defaults={
            "first_k_dense_replace": 3, "n_shared_experts": 1, "num_experts_per_tok": 8,
            "index_n_heads": 64, "index_head_dim": 128,
        },
    ),
    Architecture(
        "glm_moe_dsa", {"mla": latent_attention(indexer=True)}, chosen(after_dense_layers, _ROUTED, gated()),
        gguf=("glm-dsa",),
        defaults={
            "first_k_dense_replace": 3, "n_shared_experts": 1, "num_experts_per_tok": 8,
            "index_n_heads": 32, "index_head_dim": 128,
        },
    ),
    Architecture(
        "kimi_linear", {"mla": latent_attention(), "delta": delta_attention()},
        chosen(after_dense_layers, _ROUTED, gated()), gguf=("kimi-linear",),
        defaults={"first_k_dense_replace": 1, "n_shared_experts": 1}, derived={
            "linear_num_heads": of_delta_attention("num_heads", 32),
            "linear_head_dim": of_delta_attention("head_dim", 128),
            "linear_conv_kernel_dim": of_delta_attention("short_conv_kernel_size", 4),
            "layer_types": kinds_of_kimi,
        },
    ),
    Architecture(
        "gemma", {"full": attention(bias="attention_bias")}, gated(), gguf=("gemma",), tied=True,
        defaults={"head_dim": 256},
    ),
    Architecture(
        "gemma2", {"full": attention(bias="attention_bias")}, gated(), _FOUR_NORMS, gguf=("gemma2",), tied=True,
        pattern=every("sliding_window_pattern", 2), defaults={"head_dim": 256, "sliding_window": 4096},
    ),
    Architecture(
        "gemma3_text", {"full": attention(bias="attention_bias", norms="head")}, gated(), _FOUR_NORMS,
        gguf=("gemma3",), also=("gemma3",), tied=True, pattern=every("sliding_window_pattern", 6),
        defaults={"head_dim": 256, "sliding_window": 4096},
    ),
    gemma3n.ROW,
    Architecture(
        "gpt_oss", {"full": attention(bias="attention_bias", sinks=True)},
        experts(size="intermediate_size", router="router", router_bias=True, bias=True, input_major=True),
        gguf=("gpt-oss",), pattern=every("sliding_window_pattern", 2),
        defaults={
            "head_dim": 64, "sliding_window": 128, "num_experts": 128, "num_experts_per_tok": 4,
            "attention_bias": True,
        },
    ),
    Architecture(
        "cohere", {"full": attention(bias="attention_bias", norms="heads", norms_if="use_qk_norm")}, gated(),
        norms_of("input_layernorm"), gguf=("command-r",), tied=True,
    ),
    Architecture(
        "cohere2", {"full": attention(bias="attention_bias")}, gated(), norms_of("input_layernorm"), gguf=("cohere2",),
        tied=True, pattern=every("sliding_window_pattern", 4), defaults={"sliding_window": 4096},
    ),
    Architecture(
        "starcoder2", {"full": attention(bias="use_bias")}, plain(bias="use_bias"),
        norms_of("input_layernorm", "post_attention_layernorm", bias=True), pattern=everywhere("sliding"),
        gguf=("starcoder2",), rest=norms_of("norm", bias=True), tied=True, defaults={"use_bias": True},
    ),
    Architecture(
        "gpt2", {"full": attention("attn", bias=True, fused="c_attn", names=("", "", "", "c_proj"))},
        plain(transposed=True), _GPT_NORMS, gguf=("gpt2",), root="transformer", stack="h", embedding="wte", tied=True,
        rest=together(positions("wpe"), norms_of("ln_f", bias=True)), defaults={"max_position_embeddings": 1024},
    ),
    Architecture(
        "gpt_bigcode", {"full": attention("attn", bias=True, fused="c_attn", names=("", "", "", "c_proj"))},
        plain(), _GPT_NORMS, gguf=("starcoder",), root="transformer", stack="h", embedding="wte", tied=True,
        rest=together(positions("wpe"), norms_of("ln_f", bias=True)),
        defaults={"max_position_embeddings": 1024, "multi_query": True},
        derived={"num_key_value_heads": lambda c: 1 if c.flag("multi_query") else c.heads},
    ),
    Architecture(
        "gpt_neox", {
            "full": attention("attention", bias="attention_bias", fused="query_key_value", names=("", "", "", "dense"))
        },
        plain(names=("dense_h_to_4h", "dense_4h_to_h")),
        norms_of("input_layernorm", "post_attention_layernorm", bias=True), gguf=("gptneox",), root="gpt_neox",
        embedding="embed_in", rest=norms_of("final_layer_norm", bias=True), defaults={"attention_bias": True},
    ),
    Architecture(
        "gptj", {"full": attention("attn", names=("q_proj", "k_proj", "v_proj", "out_proj"))},
        plain(names=("fc_in", "fc_out")), norms_of("ln_1", bias=True), gguf=("gptj",), root="transformer", stack="h",
        embedding="wte", head_bias=True, rest=norms_of("ln_f", bias=True),
    ),
    Architecture(
        "opt", {"full": attention(bias="enable_bias", names=("q_proj", "k_proj", "v_proj", "out_proj"))},
        plain("", names=("fc1", "fc2"), bias="enable_bias"),
        norms_of("self_attn_layer_norm", "final_layer_norm", bias=True), root="model.decoder", tied=True,
        rest=together(positions("embed_positions", more=2), norms_of("final_layer_norm", bias=True)),
        defaults={"enable_bias": True, "max_position_embeddings": 2048},
    ),
    Architecture(
        "bloom", {
            "full": attention("self_attention", bias=True, fused="query_key_value", names=("", "", "", "dense"))
        },
        plain(names=("dense_h_to_4h", "dense_4h_to_h")),
        norms_of("input_layernorm", "post_attention_layernorm", bias=True), gguf=("bloom",), root="transformer",
        stack="h", embedding="word_embeddings", tied=True,
        rest=together(norms_of("word_embeddings_layernorm", bias=True), norms_of("ln_f", bias=True)),
    ),
    Architecture(
        "falcon", {
            "full": attention("self_attention", bias="bias", fused="query_key_value", names=("", "", "", "dense"))
        },
        plain(names=("dense_h_to_4h", "dense_4h_to_h"), bias="bias"), norms_of_falcon, gguf=("falcon",),
        root="transformer", stack="h", embedding="word_embeddings", rest=norms_of("ln_f", bias=True), tied=True,
        defaults={"multi_query": True, "parallel_attn": True},
        derived={"num_key_value_heads": lambda c: _kv_heads_of_falcon(c)},
    ),
    Architecture(
        "stablelm", {
            "full": attention(
                bias="use_qkv_bias", output_bias=False, norms="heads", norms_if="qk_layernorm",
                norm_names=("q_layernorm", "k_layernorm"),
            )
        },
        gated(), norms_of_stablelm, gguf=("stablelm",), rest=norms_of("norm", bias=True),
    ),
    Architecture(
        "exaone4", {"full": attention(norms="head")}, gated(), _AFTER_NORMS, gguf=("exaone4",),
        pattern=every("sliding_window_pattern", 4), defaults={"sliding_window": 4096},
    ),
    Architecture(
        "ernie4_5", {"full": attention(bias="use_bias")}, gated(bias="use_bias"), gguf=("ernie4_5",), tied=True,
        defaults={"head_dim": 128},
    ),
    Architecture(
        "seed_oss", {"full": attention(bias="attention_bias", output_bias="attention_out_bias")},
        gated(bias="mlp_bias"),
        gguf=("seed_oss",), defaults={"head_dim": 128, "attention_bias": True},
    ),
    Architecture(
        "arcee", {"full": attention(bias="attention_bias")}, plain(names=("up_proj", "down_proj"), bias="mlp_bias"),
        gguf=("arcee",),
    ),
    Architecture(
        "minimax", {"full": attention(), "lightning": lightning_attention()}, experts(size="intermediate_size"),
        pattern=alternating, also=("minimax_text_01", "minimax_m1"), defaults={"num_experts_per_tok": 2},
    ),
    Architecture(
        "minimax_m2", {"full": attention(norms="whole")}, experts(size="intermediate_size"), gguf=("minimax-m2",),
        defaults={"head_dim": 128, "num_experts_per_tok": 8},
    ),
    Architecture(
        "llama4_text", {"full": attention(bias="attention_bias")},
        chosen(
            moe_of_llama4,
            together(
                experts("feed_forward", "intermediate_size", router="router", input_major=True),
                gated("feed_forward.shared_expert"),
            ),
            gated("feed_forward", "intermediate_size_mlp"),
        ),
        pattern=without_rotation, gguf=("llama4",), also=("llama4",),
        defaults={
            "head_dim": 128, "attention_chunk_size": 8192, "interleave_moe_layer_step": 1, "num_experts": 16,
            "num_experts_per_tok": 1,
        },
    ),
    Architecture("granitemoe", {"full": attention(bias="attention_bias")}, _BLOCK_SPARSE, gguf=("granitemoe",),
        defaults={"num_experts_per_tok": 2}),
    Architecture(
        "granitemoeshared", {"full": attention(bias="attention_bias")}, together(_BLOCK_SPARSE, granite_shared),
    ),
    Architecture(
        "granitemoehybrid", {"full": attention(bias="attention_bias"), "mamba2": mamba2()},
        together(_BLOCK_SPARSE, granite_shared), pattern=everywhere("recurrent"), gguf=("granitehybrid",),
        defaults=_MAMBA2 | {"shared_intermediate_size": 1024, "num_experts": 8},
    ),
    Architecture(
        "jamba", {"full": attention(), "mamba": mamba(norms=True)},
        chosen(by_period, experts("feed_forward", "intermediate_size", router="router"), gated("feed_forward")),
        norms_of("input_layernorm", "pre_ff_layernorm"), pattern=attention_by_period, gguf=("jamba",),
        rest=norms_of("final_layernorm"),
        defaults={
            "num_experts": 16, "num_experts_per_tok": 2, "expert_layer_period": 2, "expert_layer_offset": 1,
            "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
            "mamba_conv_bias": True,
        },
    ),
    Architecture(
        "bamba", {"full": attention(bias="attention_bias"), "mamba2": mamba2()},
        gated("feed_forward", bias="mlp_bias"),
        norms_of("input_layernorm", "pre_ff_layernorm"), pattern=by_indices, rest=norms_of("final_layernorm"),
        defaults=_MAMBA2,
    ),
    Architecture(
        "falcon_h1", {
            "hybrid": both(
                attention(bias="attention_bias"), mamba2(norms_if="mamba_rms_norm", output_bias="projectors_bias")
            )
        },
        gated("feed_forward", bias="mlp_bias"), norms_of("input_layernorm", "pre_ff_layernorm"),
        pattern=everywhere("hybrid"), gguf=("falcon-h1",), rest=norms_of("final_layernorm"),
        defaults=_MAMBA2 | {"mamba_d_ssm": 1024},
        derived={"mamba_d_ssm": lambda c: _width_of_falcon_h1(c)},
    ),
    Architecture(
        "nemotron_h", {
            "full": attention("mixer", bias="attention_bias"), "mamba2": mamba2("mixer"),
            "mlp": lone(plain_of_nemotron("mixer", "intermediate_size")), "moe": lone(experts_of_nemotron),
        },
        nothing, norms_of("norm"), pattern=by_letters, gguf=("nemotron_h", "nemotron_h_moe"), embedding="embeddings",
        rest=norms_of("norm_f"),
        keys={
            "mamba_n_heads": "mamba_num_heads", "mamba_d_head": "mamba_head_dim", "mamba_n_groups": "n_groups",
            "mamba_d_state": "ssm_state_size", "mamba_d_conv": "conv_kernel", "mamba_conv_bias": "use_conv_bias",
            "mamba_proj_bias": "use_bias",
        },
        defaults={
            "head_dim": 128, "num_experts_per_tok": 2, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 8,
            "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_conv_bias": True,
        },
        derived={
            "mamba_d_ssm": lambda c: c.size("mamba_n_heads") * c.size("mamba_d_head"),
            "num_hidden_layers": lambda c: c.get("num_hidden_layers") or len(c.get("layer_types", ())) or None,
        },
    ),
    Architecture(
        "mamba", {"mamba": mamba("mixer")}, nothing, norms_of("norm"), pattern=everywhere("mamba"), gguf=("mamba",),
        root="backbone", embedding="embeddings", rest=norms_of("norm_f"), tied=True,
        keys=_MAMBA_KEYS | {"mamba_dt_rank": "time_step_rank"},
        defaults={"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": True},
    ),
    Architecture(
        "falcon_mamba", {"mamba": mamba("mixer")}, nothing, norms_of("norm"), pattern=everywhere("mamba"),
        root="backbone", embedding="embeddings", rest=norms_of("norm_f"), tied=True,
        keys=_MAMBA_KEYS | {"mamba_dt_rank": "time_step_rank", "mamba_d_ssm": "intermediate_size"},
        defaults={"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": True},
    ),
    Architecture(
        "mamba2", {"mamba2": mamba2("mixer")}, nothing, norms_of("norm"), pattern=everywhere("mamba2"),
        gguf=("mamba2",), root="backbone", embedding="embeddings", rest=norms_of("norm_f"), keys=_MAMBA2_KEYS,
        defaults={
            "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 8, "mamba_d_state": 128, "mamba_d_conv": 4,
            "mamba_expand": 2, "mamba_conv_bias": True,
        },
    ),
    Architecture(
        "lfm2", {
            "full": attention(
                names=("q_proj", "k_proj", "v_proj", "out_proj"), norms="head",
                norm_names=("q_layernorm", "k_layernorm"),
            ),
            "convolution": short_convolution(),
        },
        gated("feed_forward", names=("w1", "w3", "w2")), norms_of("operator_norm", "ffn_norm"), gguf=("lfm2",),
        rest=norms_of("embedding_norm"), tied=True,
        defaults={
            "conv_L_cache": 3, "block_auto_adjust_ff_dim": True, "block_multiple_of": 256,
        },
        derived={"intermediate_size": width_of_lfm2},
    ),
    *encoder_decoder.ROWS,
)  # fmt: skip


def _kv_heads_of_falcon(c: Configuration) -> int:
    if c.flag("new_decoder_architecture"):
        return c.kv_heads()
    return 1 if c.flag("multi_query") else c.heads


def _width_of_falcon_h1(c: Configuration) -> int:
    null = c.values.get("mamba_d_ssm", 0) is None
    return c.size("mamba_expand") * c.hidden if null else c.size("mamba_d_ssm")


ARCHITECTURES = {name: row for row in _ROWS for name in (row.name, *row.also)}
"""Rows by ``model_type``."""

GGUF_ARCHITECTURES = {name: row for row in _ROWS for name in row.gguf}
"""Rows by the name of GGUF files."""
