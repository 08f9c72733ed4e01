"""Bytes of caches and states."""

from __future__ import annotations

import pytest

from mtpp.language_models.cache import LayerCache, cache_bytes
from mtpp.names import CACHE_TYPES


@pytest.mark.parametrize(
    ("name", "size"),
    [("fp32", 256), ("bf16", 128), ("fp16", 128), ("fp8", 64), ("int8", 64), ("int4", 32), ("q8_0", 68), ("q4_0", 36)],
)
def test_types_have_their_bytes(name: str, size: int) -> None:
    """Of 64 elements; blocks have a scale for each 32."""
    assert cache_bytes(64, name) == size


def test_all_types_that_are_named_are_known() -> None:
    """What a command takes has a size."""
    assert all(cache_bytes(32, name) > 0 for name in CACHE_TYPES)


def test_a_window_bounds_tokens_and_states_do_not_grow() -> None:
    """min(tokens, window) of the cache; states once."""
    cache = LayerCache(per_token=8, window=10, state=6, convolution=4, state_bytes=4)
    assert cache.bytes(5) == 80 + 24 + 8
    assert cache.bytes(1000) == cache.bytes(10) == 160 + 32
    assert LayerCache(per_token=8, per_source_token=8).bytes(5, "fp8", source=3) == 40 + 24
