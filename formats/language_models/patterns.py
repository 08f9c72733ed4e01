"""Kinds of layers: listed by a configuration, or implied by its architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mtpp.formats.language_models.configuration import Configuration

Pattern = Callable[[Configuration, int], str]
"""Kind of a layer, by configuration and number."""

LISTED: Mapping[str, str] = {
    "full_attention": "full", "attention": "full", "indexed_attention": "full", "deepseek_sparse_attention": "full",
    "sliding_attention": "sliding", "chunked_attention": "chunked", "linear_attention": "recurrent",
    "mamba": "recurrent", "conv": "recurrent", "hybrid": "hybrid", "moe": "moe", "mlp": "mlp",
}  # fmt: skip
"""Kinds by their words in ``layer_types``; ``recurrent`` is the kind of recurrence that the architecture has."""

WINDOWS: Mapping[str, str] = {"sliding": "sliding_window", "chunked": "attention_chunk_size"}
"""Keys of windows by kind."""


def everywhere(kind: str = "full") -> Pattern:
    """Return one kind for all layers."""
    return lambda c, layer: kind


def every(key: str, default: int, *, else_: str = "sliding") -> Pattern:
    """Return full attention in every n-th layer, another kind in between."""

    def pattern(c: Configuration, layer: int) -> str:
        period = c.size(key) if key in c else default
        return else_ if (layer + 1) % period else "full"

    return pattern


def after_full_layers(c: Configuration, layer: int) -> str:
    """Return a window behind the first ``max_window_layers`` layers, where windows are used at all."""
    return "sliding" if c.flag("use_sliding_window") and layer >= c.whole("max_window_layers") else "full"


def by_period(c: Configuration, layer: int) -> str:
    """Return full attention at an offset within each period, a recurrence elsewhere (Jamba)."""
    return "full" if layer % c.size("attn_layer_period") == c.whole("attn_layer_offset") else "recurrent"


def by_indices(c: Configuration, layer: int) -> str:
    """Return full attention in listed layers, a recurrence elsewhere (Bamba)."""
    return "full" if layer in c.sizes("attn_layer_indices") else "recurrent"


def alternating(c: Configuration, layer: int) -> str:
    """Return full attention and a recurrence by turns, or as ``attn_type_list`` says (MiniMax)."""
    listed = c.sizes("attn_type_list")
    full = listed[layer] == 1 if layer < len(listed) else layer % 2 == 0
    return "full" if full else "recurrent"


def without_rotation(c: Configuration, layer: int) -> str:
    """Return full attention in layers without rotary positions, chunks elsewhere (Llama 4)."""
    listed = c.sizes("no_rope_layers")
    chunked = bool(listed[layer]) if layer < len(listed) else (layer + 1) % 4 != 0
    return "chunked" if chunked else "full"


def by_letters(c: Configuration, layer: int) -> str:
    """Return the kind that a letter of ``hybrid_override_pattern`` stands for (Nemotron-H)."""
    kinds = {"M": "recurrent", "*": "full", "-": "mlp", "E": "moe"}
    letters = str(c.get("hybrid_override_pattern", ""))
    return kinds.get(letters[layer : layer + 1], "full")
