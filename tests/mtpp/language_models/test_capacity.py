"""Capacity of given stages: each by itself, all by the first that is full."""

from __future__ import annotations

import pytest

from mtpp.language_models.cache import LayerCache
from mtpp.language_models.capacity import StageRoom, StagesCapacity, capacity_of_stages, settled_context

FULL = LayerCache(per_token=1024)
WINDOW = LayerCache(per_token=1024, window=512)
STATE = LayerCache(state=1000, convolution=24, columns=4)
GIB = 2**30


def test_the_stage_with_the_least_room_for_its_own_layers_decides() -> None:
    """A published figure: 16 of 48 layers with 3.18 GiB hold 104,202 tokens, not a third of that."""
    free = [650 * GIB // 100, 318 * GIB // 100]
    found = capacity_of_stages([StageRoom([FULL] * 32, free[0]), StageRoom([FULL] * 16, free[1])])
    assert found == StagesCapacity("context", 104202, (106496, 104202))
    assert found.deciding == 1
    # where the engine divides the least room by the bytes of all layers
    assert capacity_of_stages([StageRoom([FULL] * 48, free[1])]).value == 34734
    # 6.36 GiB on the other stage would decide
    assert capacity_of_stages([StageRoom([FULL] * 32, 636 * GIB // 100)]).value == 104202
    assert capacity_of_stages([StageRoom([FULL] * 48, 24 * GIB)]).value == 262144


@pytest.mark.parametrize("kv_dtype", ["bf16", "fp8", "q4_0"])
@pytest.mark.parametrize("sequences", [1, 3])
def test_the_next_token_or_sequence_does_not_fit(sequences: int, kv_dtype: str) -> None:
    """Whatever the layers keep."""
    caches = [FULL, WINDOW, STATE, LayerCache(per_token=6, per_source_token=3)]
    for free in (10**5, 10**7, 12345678, 2**31):
        stage = StageRoom(caches, free)
        context = capacity_of_stages([stage], sequences=sequences, kv_dtype=kv_dtype).value
        assert context is not None
        assert sequences * stage.bytes(context, kv_dtype) <= free or context == 0
        assert sequences * stage.bytes(context + 1, kv_dtype) > free
        most = capacity_of_stages([stage], objective="sequences", context=700, kv_dtype=kv_dtype).value
        assert most is not None
        assert most * stage.bytes(700, kv_dtype) <= free < (most + 1) * stage.bytes(700, kv_dtype)


def test_caches_that_stop_growing_have_no_largest_context() -> None:
    """Where they fit once windows are full; no limit and no layers hold anything."""
    assert capacity_of_stages([StageRoom([WINDOW, STATE], 2**21)]).value is None
    assert capacity_of_stages([StageRoom([WINDOW, STATE], 2**20)]).value == 511
    assert capacity_of_stages([StageRoom([STATE], 2**10)]).value == 0
    assert capacity_of_stages([StageRoom([FULL])]) == StagesCapacity("context", None, (None,))
    assert capacity_of_stages([StageRoom([], 0)]).deciding is None
    assert capacity_of_stages([StageRoom([], -1), StageRoom([FULL], 2**30)]).value == 0
    both = capacity_of_stages([StageRoom([], 0), StageRoom([FULL], 2**30)], objective="sequences", context=2**10)
    assert both == StagesCapacity("sequences", 512, (None, 512))


def test_no_layer_that_grows_fits_at_a_settled_context() -> None:
    """And windows are full at it."""
    for free in (-1, 0, 10**6, 2**36):
        for kv_dtype in ("bf16", "q4_0"):
            at = settled_context([FULL, WINDOW], free, kv_dtype)
            assert at >= 512
            assert FULL.bytes(at, kv_dtype) > free
    assert settled_context([WINDOW, STATE], 2**40) == 512
    assert settled_context([STATE], 2**40) == 1
