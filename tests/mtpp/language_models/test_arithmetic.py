"""Work of layers of chosen sizes: pairs of tokens, experts, latents, states, and tokens of an encoder."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from mtpp.language_models.arithmetic import attended, decode, distinct_experts, embedding, head, prefill, read_weights
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part, Weight
from mtpp.language_models.layer_work import Attention, Experts, LayerWork

DENSE = DecoderLayer(
    (Weight("w", (10, 10), 100, 200),),
    cache=LayerCache(per_token=8),
    work=LayerWork(projections=100, attention=Attention(4, 2, 2, 8)),
)
SLIDING = replace(
    DENSE, cache=LayerCache(per_token=8, window=3), work=LayerWork(100, attention=Attention(4, 2, 2, 8, window=3))
)


@pytest.mark.parametrize("window", [None, 1, 3, 100])
@pytest.mark.parametrize(("tokens", "past"), [(1, 0), (7, 0), (5, 2), (1, 9), (4, 50)])
def test_a_token_attends_to_those_before_it_within_the_window(tokens: int, past: int, window: int | None) -> None:
    """One by one."""
    seen = (min(past + token, window or past + token) for token in range(1, tokens + 1))
    assert attended(tokens, past, window) == sum(seen)


def test_experts_are_counted_once_however_many_tokens_choose_them() -> None:
    """Exactly, and in little time for many tokens."""
    assert distinct_experts(6, 2, 1) == 2
    assert distinct_experts(6, 2, 3) == 6 * (1 - Fraction(2, 3) ** 3)
    assert distinct_experts(4, 4, 5) == 4
    many = distinct_experts(7, 3, 2**20)
    assert many <= 7
    assert 7 - many < Fraction(1, 2**1000)


def test_a_step_on_a_prompt_reads_weights_once_and_writes_all_its_tokens() -> None:
    """Two sequences of five tokens; a window bounds what is read of a past."""
    step = prefill(DENSE, 5, sequences=2)
    assert step is not None
    assert (step.projections, step.attention) == (2 * 2 * 5 * 100, 2 * 32 * 15)
    assert (step.weight_bytes, step.read_bytes, step.written_bytes) == (200, 0, 2 * 5 * 8 * 2)
    square = prefill(DENSE, 5, past=2, square=True)
    assert square is not None
    assert square.attention == 32 * 5 * 7
    chunk = prefill(SLIDING, 5, past=9, kv_dtype="fp8")
    assert chunk is not None
    assert (chunk.attention, chunk.read_bytes, chunk.written_bytes) == (32 * 15, 3 * 8, 5 * 8)


def test_a_further_token_reads_the_cache_within_the_window() -> None:
    """And writes itself."""
    step, bounded = decode(DENSE, 3, 10), decode(SLIDING, 3, 10)
    assert step is not None
    assert bounded is not None
    assert (step.flops, step.bytes) == (3 * (200 + 320), 200 + 3 * 160 + 3 * 16)
    assert (bounded.flops, bounded.bytes) == (3 * (200 + 96), 200 + 3 * 48 + 3 * 16)


def test_experts_are_read_by_their_share_as_stored() -> None:
    """Of 300 bytes, 120 are those of six experts, whatever a weight takes."""
    layer = DecoderLayer((Weight("w", (1,), 1, 300),), work=LayerWork(50, experts=Experts(6, 2, 10)), expert_bytes=120)
    step = decode(layer, 1, 10)
    assert step is not None
    assert step.projections == 2 * (50 + 2 * 10)
    assert step.weight_bytes == 180 + 120 * Fraction(2, 6)
    assert read_weights(layer, 3) == 180 + 20 * distinct_experts(6, 2, 3)


def test_a_latent_is_attended_to_as_it_is_or_expanded() -> None:
    """Expansion takes the place of a projection, for all tokens of the cache."""
    attention = Attention(4, 12, 6, cached=20, latent=16)
    assert attention.expansion == 16 * 4 * (8 + 6)
    layer = DecoderLayer(cache=LayerCache(per_token=20), work=LayerWork(5000, attention=attention))
    absorbed, expanded = decode(layer, 2, 9), decode(layer, 2, 9, absorbed=False)
    assert absorbed is not None
    assert expanded is not None
    assert (absorbed.projections, absorbed.attention) == (2 * 2 * 5000, 2 * 2 * 4 * (2 * 16 + 4) * 9)
    assert expanded.projections == 2 * 2 * (5000 - 896)
    assert (expanded.attention, expanded.expansion) == (2 * 2 * 4 * 18 * 9, 2 * 2 * 896 * 9)
    chunk = prefill(layer, 3, past=6)
    assert chunk is not None
    assert (chunk.projections, chunk.expansion) == (2 * 3 * 5000, 2 * 6 * 896)


def test_states_are_read_and_written_once_a_step() -> None:
    """However many tokens it has."""
    layer = DecoderLayer(cache=LayerCache(state=10, convolution=4, columns=2), work=LayerWork(100, recurrence=60))
    for step in (prefill(layer, 7, sequences=2), decode(layer, 2, 1000)):
        assert step is not None
        assert step.read_bytes == step.written_bytes == 2 * 28
    step = prefill(layer, 7)
    assert step is not None
    assert (step.recurrence, step.attention) == (7 * 60, 0)


def test_keys_and_values_of_a_source_are_computed_once() -> None:
    """At the first step; later ones read them, and leave their projections alone."""
    own = Attention(4, 2, 2, 16)
    layer = DecoderLayer(
        (Weight("w", (1,), 500, 1000),),
        cache=LayerCache(per_token=16, per_source_token=16),
        work=LayerWork(400, source=100, attention=own, cross=own),
    )
    first, second, later = (
        prefill(layer, 3, source=5),
        prefill(layer, 3, past=3, source=5),
        decode(layer, 1, 4, source=5),
    )
    assert first is not None
    assert second is not None
    assert later is not None
    assert first.projections == 2 * 3 * 400 + 2 * 5 * 100
    assert first.attention == 32 * (6 + 3 * 5)
    assert (first.read_bytes, first.written_bytes) == (0, 2 * 16 * (3 + 5))
    assert (second.projections, second.read_bytes, second.written_bytes) == (2400, 2 * 16 * (3 + 5), 2 * 16 * 3)
    assert (later.projections, later.attention, later.weight_bytes) == (800, 32 * (4 + 5), 800)
    assert (later.read_bytes, later.written_bytes) == (2 * 16 * (4 + 5), 2 * 16)


def test_an_encoder_works_on_the_source_alone() -> None:
    """Each of its tokens attends to all, and to none later."""
    layer = replace(DENSE, part="encoder", cache=LayerCache())
    step, later = prefill(layer, 3, source=5), decode(layer, 1, 4, source=5)
    assert step is not None
    assert later is not None
    assert (step.projections, step.attention, step.written_bytes) == (2 * 5 * 100, 32 * 25, 0)
    assert (later.flops, later.bytes) == (0, 0)


def test_unknown_layers_have_no_figures() -> None:
    """None, rather than 0."""
    assert prefill(DecoderLayer(), 5) is None
    assert decode(DecoderLayer(), 5, 5) is None


def test_a_tied_head_multiplies_by_the_embedding() -> None:
    """Of the embedding itself rows alone are read."""
    table = Part((Weight("embed", (10, 8), 80, 160),))
    model = LanguageModel("m", "llama", "configuration", (), table, Part(), Part(), tied=True)
    assert (head(model, 3).flops, head(model, 3).bytes) == (2 * 3 * 80, 160)
    assert (embedding(model, 3).flops, embedding(model, 3).bytes) == (0, 48)
    bare = replace(model, embedding=Part())
    assert head(bare, 3).bytes == embedding(bare, 3).bytes == 0
