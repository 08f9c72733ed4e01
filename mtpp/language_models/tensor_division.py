"""Division of each weight of a layer over the GPUs of a stage, by the name of its module.

The one table of it, with the names of checkpoints and of GGUF files. Column-parallel projections (queries, keys,
values, first matrices of networks) are divided by outputs, row-parallel ones (the last of a block) by inputs; a sum
over the GPUs follows. All else, unknown names included, is copied to each GPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from mtpp.language_models.language_model import DecoderLayer, Weight


class Division(Enum):
    """Way of a weight over the GPUs."""

    COPIED = "whole on each GPU"
    COLUMNS = "outputs divided"
    ROWS = "inputs divided"
    KEYS = "outputs divided by heads of keys and values, which are copied where they are fewer than GPUs"
    FUSED = "queries, keys and values in one, each divided as it is alone"
    GROUPED = "channels of a recurrence divided, those of groups copied where there is one group"
    VOCABULARY = "rows divided"


class Block(Enum):
    """Part of a layer that ends with a sum over the GPUs."""

    ATTENTION = "attention"
    CROSS = "attention to the encoder"
    RECURRENCE = "recurrence"
    NETWORK = "feed-forward network"


@dataclass(frozen=True)
class Rule:
    """Division of the weights of a module.

    Attributes
    ----------
    block
        Block that the module is of.
    multiplied
        Whether it is a projection, which every token is multiplied by.
    """

    division: Division
    block: Block | None = None
    multiplied: bool = True


_TABLE = (
    # attention
    (Division.COLUMNS, Block.ATTENTION, True, "q_proj q_b_proj kv_b_proj k_b_proj v_b_proj SelfAttention.q"),
    (Division.COLUMNS, Block.ATTENTION, True, "attn_q attn_q_b attn_kv_b attn_k_b attn_v_b attn_gate"),
    (Division.COLUMNS, Block.ATTENTION, True, "wq"),
    (Division.KEYS, Block.ATTENTION, True, "wk wv"),
    (Division.FUSED, Block.ATTENTION, True, "wqkv Wqkv W_pack"),
    (Division.ROWS, Block.ATTENTION, True, "attention.wo"),
    (Division.COLUMNS, Block.ATTENTION, False, "relative_attention_bias attn_rel_b sinks attn_sinks"),
    (Division.KEYS, Block.ATTENTION, True, "k_proj v_proj SelfAttention.k SelfAttention.v attn_k attn_v"),
    (Division.FUSED, Block.ATTENTION, True, "qkv_proj c_attn query_key_value attn_qkv"),
    (Division.ROWS, Block.ATTENTION, True, "o_proj attn.c_proj attn.out_proj self_attn.out_proj dense"),
    (Division.ROWS, Block.ATTENTION, True, "SelfAttention.o attn_output attn_o"),
    (Division.COPIED, Block.ATTENTION, True, "q_a_proj kv_a_proj_with_mqa indexer attn_q_a attn_kv_a_mqa"),
    (Division.COLUMNS, Block.CROSS, True, "EncDecAttention.q cross_attn_q"),
    (Division.KEYS, Block.CROSS, True, "EncDecAttention.k EncDecAttention.v cross_attn_k cross_attn_v"),
    (Division.ROWS, Block.CROSS, True, "EncDecAttention.o cross_attn_o"),
    # state spaces, linear attention, convolutions over tokens
    (Division.GROUPED, Block.RECURRENCE, True, "in_proj ssm_in"),
    (Division.GROUPED, Block.RECURRENCE, False, "conv1d ssm_conv1d"),
    (Division.COLUMNS, Block.RECURRENCE, True, "dt_proj ssm_dt in_proj_qkvz in_proj_qkv in_proj_z in_proj_ba"),
    (Division.COLUMNS, Block.RECURRENCE, True, "in_proj_a in_proj_b b_proj f_b_proj g_b_proj output_gate"),
    (Division.COLUMNS, Block.RECURRENCE, True, "ssm_ba ssm_alpha ssm_beta ssm_f_b ssm_g_b"),
    (Division.COLUMNS, Block.RECURRENCE, False, "q_conv1d k_conv1d v_conv1d conv.conv shortconv.conv"),
    (Division.COLUMNS, Block.RECURRENCE, False, "ssm_conv1d_q ssm_conv1d_k ssm_conv1d_v"),
    (Division.COLUMNS, Block.RECURRENCE, False, "A_log D dt_bias ssm_a ssm_d"),
    (Division.COPIED, Block.RECURRENCE, True, "f_a_proj g_a_proj ssm_f_a ssm_g_a"),
    (Division.ROWS, Block.RECURRENCE, True, "out_proj ssm_out"),
    (Division.ROWS, None, True, "x_proj ssm_x"),
    # feed-forward networks, and experts, each of which is divided
    (Division.COLUMNS, Block.NETWORK, True, "gate_proj up_proj gate_up_proj w1 w3 input_linear fc1 fc_in"),
    (Division.COLUMNS, Block.NETWORK, True, "dense_h_to_4h mlp.c_fc wi wi_0 wi_1 ffn_gate ffn_up ffn_gate_up"),
    (Division.COLUMNS, Block.NETWORK, True, "ffn_gate_exps ffn_up_exps ffn_gate_up_exps ffn_gate_shexp ffn_up_shexp"),
    (Division.ROWS, Block.NETWORK, True, "down_proj w2 output_linear fc2 fc_out dense_4h_to_h mlp.c_proj wo"),
    (Division.COLUMNS, Block.NETWORK, True, "v1"),
    (Division.ROWS, Block.NETWORK, True, "ffn_down ffn_down_exps ffn_down_shexp"),
    (Division.COPIED, Block.NETWORK, True, "gate router shared_expert_gate ffn_gate_inp ffn_gate_inp_shexp"),
    # embeddings and heads of layers for further tokens, and embeddings of each layer
    (Division.VOCABULARY, None, False, "embed_tokens shared_head.head nextn.embed_tokens nextn.shared_head_head"),
    (Division.VOCABULARY, None, False, "embed_tokens_per_layer per_layer_token_embd"),
    # small projections
    (Division.COPIED, None, True, "eh_proj fc altup laurel per_layer_input_gate per_layer_projection"),
    (Division.COPIED, None, True, "per_layer_model_projection altup_projections altup_unembed_projections"),
)

RULES: Mapping[str, Rule] = {
    name: Rule(division, block, multiplied) for division, block, multiplied, names in _TABLE for name in names.split()
}
"""Rules by the name of a module, or by two names where one alone is of several kinds; the innermost name decides."""

COPIED = Rule(Division.COPIED)

_OF_ROWS = ("bias", "lora_B", "weight_shape", "quant_map", "nested_quant_map")
"""Tensors of a row-parallel projection that every GPU has: they are of its outputs."""

_OF_COLUMNS = ("g_idx", "weight_g_idx", "lora_A", "weight_shape", "quant_map", "nested_quant_map")
"""Tensors of a column-parallel projection that every GPU has: they are of its inputs."""

_INSIDE = ("_bias", "_blocks", "_scales", "_weight_scale", "_scale_inv", "_scale", "_input_scale")


@lru_cache(maxsize=2**14)
def rule_of(name: str) -> Rule:
    """Return the rule of a weight, by its name within its layer."""
    modules = [_plain(module) for module in name.split(".")]
    for i in range(len(modules) - 1, -1, -1):
        rule = RULES.get(f"{modules[i - 1]}.{modules[i]}") if i else None
        rule = rule or RULES.get(modules[i])
        if rule is not None:
            return COPIED if _of_other_side(name, rule) else rule
    return COPIED


@lru_cache(maxsize=2**14)
def is_known(name: str) -> bool:
    """Say whether the table has the module of a weight."""
    modules = [_plain(module) for module in name.split(".")]
    pairs = (f"{one}.{other}" for one, other in pairwise(modules))
    return not RULES.keys().isdisjoint((*modules, *pairs))


def within(layer: DecoderLayer, weight: Weight) -> str:
    """Return the name of a weight within its layer."""
    return weight.name[len(layer.name) + 1 :] if weight.name.startswith(layer.name) else weight.name


@lru_cache(maxsize=2**14)
def summed_block(name: str) -> str:
    """Return the block whose output is summed over the GPUs behind a weight; empty where none is."""
    rule = rule_of(name)
    return rule.block.value if rule.division is Division.ROWS and rule.block is not None else ""


_EXPERTS = re.compile(r"(?:^|\.)experts(?:\.|$)|_exps?\.")


def holds_experts(name: str, shape: tuple[int, ...], count: int) -> bool:
    """Say whether a tensor is of one of several experts that tokens choose, or of them all; shared ones are none."""
    return _EXPERTS.search(name) is not None or (len(shape) == 3 and shape[0] == count)


def _plain(module: str) -> str:
    """Return the name of a module without that of a tensor: ``down_proj`` of ``down_proj_bias``."""
    for end in _INSIDE:
        if module.endswith(end) and module.removesuffix(end) in RULES:
            return module.removesuffix(end)
    return module


def _of_other_side(name: str, rule: Rule) -> bool:
    """Tell whether a tensor beside a divided weight is of the side that is not divided."""
    if rule.division is Division.ROWS:
        return any(part in _OF_ROWS for part in name.split(".")[-2:]) or name.endswith("_bias")
    return any(part in _OF_COLUMNS for part in name.split(".")[-2:])
