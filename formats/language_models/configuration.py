"""Sizes of a model by one name each, whatever its configuration calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.errors import InputError

MOST_LAYERS = 10_000

_LARGEST = 2**40

ALIASES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv"),
    "head_dim": ("kv_channels",),
    "intermediate_size": ("n_inner", "d_ff", "ffn_dim", "ffn_hidden_size"),
    "max_position_embeddings": ("n_positions", "n_ctx", "max_seq_len"),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("moe_top_k", "num_experts_per_token", "moe_k"),
    "n_shared_experts": ("num_shared_experts", "moe_num_shared_experts"),
    "num_nextn_predict_layers": ("mtp_num_hidden_layers", "num_mtp_modules"),
    "layer_types": ("layers_block_type", "layers_types"),
    "sliding_window_pattern": ("_sliding_window_pattern", "layer_switch"),
}
"""Other names of keys, as older configurations have them."""

PURPOSES: Mapping[str, str] = {
    "hidden_size": "the width of embeddings and projections",
    "num_hidden_layers": "the number of layers",
    "num_attention_heads": "projections of queries and the cache",
    "intermediate_size": "the width of the feed-forward network",
    "vocab_size": "the embedding and the head",
    "kv_lora_rank": "the latent cache",
    "qk_rope_head_dim": "the latent cache",
    "qk_nope_head_dim": "projections of queries and keys",
    "v_head_dim": "projections of values",
    "num_experts": "the number of experts",
    "moe_intermediate_size": "the width of an expert",
}
"""Keys without a default, and the use of each."""


class Configuration:
    """Keys of a configuration by canonical names, with aliases and defaults of its architecture.

    Parameters
    ----------
    values
        Keys as the file has them.
    keys
        Names of the file for canonical ones, where the architecture has its own; looked up before the aliases.
    defaults
        Values of keys that a file may leave out.
    source
        File that errors name.
    """

    def __init__(
        self, values: Mapping[str, Any], source: str, keys: Mapping[str, str], defaults: Mapping[str, Any]
    ) -> None:
        self.values, self.source = values, source
        self._keys, self._defaults = keys, defaults
        self.assumed: dict[str, Any] = {}
        """Defaults that were taken for sizes."""

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key; null counts as absent."""
        for name in self._names(key):
            if self.values.get(name) is not None:
                return self.values[name]
        found = self._defaults.get(key)
        return default if found is None else found

    def size(self, key: str, layer: int | None = None, least: int = 1, most: int = _LARGEST) -> int:
        """Return a whole number, of a layer where there is a list of them.

        Raises
        ------
        InputError
            If it is absent and has no default, or is no whole number in range.
        """
        value = self.get(key)
        if value is None:
            purpose = PURPOSES.get(key, "the shapes of weights")
            raise InputError("is absent", source=self.source, where=self._named(key), remedy=f"it gives {purpose}")
        if isinstance(value, list) and layer is not None:
            if layer >= len(value):
                raise InputError(f"has no value for layer {layer}", source=self.source, where=self._named(key))
            value = value[layer]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            shown = str(value)[:40]
            raise InputError(f"{shown} is no size", source=self.source, where=self._named(key), remedy="correct it")
        if all(self.values.get(name) is None for name in self._names(key)):
            self.assumed[key] = value
        return value

    def whole(self, key: str, layer: int | None = None) -> int:
        """Return a whole number that may be 0, which it is where it is absent."""
        return self.size(key, layer, least=0) if key in self else 0

    def flag(self, key: str | bool) -> bool:
        """Return whether a flag is set; a fixed one is itself."""
        return bool(self.get(key, False)) if isinstance(key, str) else key

    def sizes(self, key: str) -> list[int]:
        """Return a list of numbers of layers; empty where it is absent."""
        value = self.get(key, [])
        if not isinstance(value, list) or not all(type(one) is int for one in value):
            raise InputError("is no list of whole numbers", source=self.source, where=self._named(key))
        return value

    def texts(self, key: str, count: int) -> list[str] | None:
        """Return a list of words, one a layer; None where it is absent."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise InputError("is no list of words", source=self.source, where=self._named(key))
        if len(value) < count:
            raise InputError(
                f"has {len(value)} of {count} layers", source=self.source, where=self._named(key), remedy="correct it"
            )
        return value[:count]

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self.size("num_hidden_layers", most=MOST_LAYERS)

    @property
    def hidden(self) -> int:
        """Width of a token."""
        return self.size("hidden_size")

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return self.size("num_attention_heads")

    def head_dim(self, layer: int | None = None) -> int:
        """Return the width of a head: h / q where it is absent."""
        if "head_dim" in self:
            return self.size("head_dim", layer)
        width = self.hidden // self.heads
        if not width:
            raise InputError(f"{self.heads:,} heads in a width of {self.hidden:,}", source=self.source)
        return width

    def kv_heads(self, layer: int | None = None) -> int:
        """Return the number of heads of keys and values: as many as of queries where it is absent."""
        return self.size("num_key_value_heads", layer, least=0) if "num_key_value_heads" in self else self.heads

    def _named(self, key: str) -> str:
        return self._keys.get(key, key)

    def _names(self, key: str) -> Sequence[str]:
        own = (self._keys[key],) if key in self._keys else ()
        return (*own, key, *ALIASES.get(key, ()))
