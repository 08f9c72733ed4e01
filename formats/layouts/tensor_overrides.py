"""Weights that ``--override-tensor`` of llama.cpp puts elsewhere: patterns matched with names of tensors in GGUF.

Of checkpoints with other names the usual ones are translated; experts that are stored one by one have the name of the
tensor that holds them all in GGUF.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mtpp.language_models.language_model import LanguageModel, Part

_TRANSLATED = (
    (r"(?:mlp|feed_forward|block_sparse_moe)\.experts\.(?:\d+\.)?(?:gate_proj|w1)\b", "ffn_gate_exps"),
    (r"(?:mlp|feed_forward|block_sparse_moe)\.experts\.(?:\d+\.)?(?:up_proj|w3)\b", "ffn_up_exps"),
    (r"(?:mlp|feed_forward|block_sparse_moe)\.experts\.(?:\d+\.)?(?:down_proj|w2)\b", "ffn_down_exps"),
    (r"(?:mlp|feed_forward)\.experts\.gate_up_proj(?:_bias)?\b", "ffn_gate_up_exps"),
    (r"block_sparse_moe\.input_linear\b", "ffn_gate_up_exps"),
    (r"block_sparse_moe\.output_linear\b", "ffn_down_exps"),
    (r"(?:mlp\.)?shared_experts?\.(gate|up|down)_proj\b", r"ffn_\1_shexp"),
    (r"(?:mlp|block_sparse_moe)\.(?:gate|router(?:\.layer)?)\b", "ffn_gate_inp"),
    (r"mlp\.(gate|up|down)_proj\b", r"ffn_\1"),
    (r"self_attn\.([qkv])_proj\b", r"attn_\1"),
    (r"self_attn\.([qk])_norm\b", r"attn_\1_norm"),
    (r"self_attn\.o_proj\b", "attn_output"),
    (r"(?:self_attn|attn|attention)\.(?:qkv_proj|c_attn)\b", "attn_qkv"),
    (r"input_layernorm\b", "attn_norm"),
    (r"post_attention_layernorm\b", "ffn_norm"),
    (r"self_attn\.kv_a_proj_with_mqa\b", "attn_kv_a_mqa"),
    (r"self_attn\.(q_a|q_b|kv_b)_proj\b", r"attn_\1"),
    (r"self_attn\.(q_a|kv_a)_layernorm\b", r"attn_\1_norm"),
    (r"(?:mamba|mixer)\.in_proj\b", "ssm_in"),
    (r"(?:mamba|mixer)\.out_proj\b", "ssm_out"),
)
_BUFFER = re.compile(r"[A-Za-z]+([0-9]+)", re.ASCII)


def gguf_name(name: str, path: str, block: int) -> str:
    """Name of a layer's tensor in GGUF.

    Parameters
    ----------
    path
        Of the layer's module, which begins the name.
    block
        Number of the layer.

    Examples
    --------
    >>> gguf_name("model.layers.3.mlp.experts.7.up_proj.weight", "model.layers.3", 3)
    'blk.3.ffn_up_exps.weight'
    """
    own = name.removeprefix(f"{path}.")
    for pattern, translated in _TRANSLATED:
        own, found = re.subn(pattern, translated, own, count=1)
        if found:
            break
    return f"blk.{block}.{own}"


def moved_bytes(model: LanguageModel, overrides: Iterable[Sequence[str]]) -> dict[str, dict[str, int]]:
    """Bytes that patterns put into other buffers, by the name of the op and of the buffer, a GPU by its number.

    Parameters
    ----------
    overrides
        Pairs of pattern and buffer; the first pattern that is found in a name decides.
    """
    patterns = [(re.compile(pattern), _place(buffer)) for pattern, buffer in overrides]
    found: dict[str, dict[str, int]] = {}
    blocks = model.decoder_layers
    for block, layer in enumerate([*blocks, *model.mtp]):
        names = {weight.name: gguf_name(weight.name, layer.name, block) for weight in layer.weights}
        _add(found, layer.name, layer, names, patterns)
    _add(found, "head", model.head, {weight.name: "output.weight" for weight in model.head.weights}, patterns)
    return found


def _add(
    found: dict[str, dict[str, int]],
    op: str,
    part: Part,
    names: Mapping[str, str],
    patterns: Sequence[tuple[re.Pattern[str], str]],
) -> None:
    for weight in part.weights:
        buffer = next((place for pattern, place in patterns if pattern.search(names[weight.name])), None)
        if buffer is not None:
            held = found.setdefault(op, {})
            held[buffer] = held.get(buffer, 0) + weight.bytes


def _place(buffer: str) -> str:
    match = _BUFFER.fullmatch(buffer)
    return match[1] if match else buffer
