"""Families of sets that can be stages against all sets of small graphs."""

from __future__ import annotations

import numpy as np
import pytest
from stage_sets import drawn_limit, stages_within

from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.kernels.stage_families import Fill, SetCache, fill_families
from mtpp.solvers.bounds.configuration.kernels.stage_network import IN, OUT

PLACES, SCALE, TOLERANCE = 40, 2.0**36, 1e-4


@pytest.mark.parametrize("seed", range(40))
def test_families_hold_every_stage_once(seed: int) -> None:
    """Also after splits, and when limits go up and down again."""
    instance, limit = drawn_limit(seed)
    sets = StageSets.of(instance)
    random = np.random.default_rng(seed)
    for now in (limit, limit + 5, limit):
        sets.within(now)
        for _ in range(3):
            assert sets.families is not None
            state = sets.families.state
            for stage in stages_within(instance, now):
                mask = np.array([v in stage for v in range(instance.op_count)])
                fits = np.where(mask, state != OUT, state != IN).all(axis=1)
                assert fits.sum() == 1
            free = [(f, np.flatnonzero(row == 0)) for f, row in enumerate(state)]
            sets.refine({f: int(random.choice(ops)) for f, ops in free if len(ops) and random.random() < 0.5})


@pytest.mark.parametrize("seed", range(40))
def test_no_stage_holds_more_than_its_family(seed: int) -> None:
    """The value is no less than the weight of any stage in the family, and no more than the multipliers allow."""
    instance, limit = drawn_limit(seed)
    sets = StageSets.of(instance)
    sets.within(limit)
    assert sets.families is not None
    count, n = sets.families.state.shape
    random = np.random.default_rng(seed)
    weight = random.uniform(0, 1, n)
    fill = Fill(np.zeros(count), np.ones(count), np.zeros(count), np.zeros((count, n)))
    whole = np.zeros((count, PLACES), dtype=np.int64)
    cache = SetCache(np.zeros((count, PLACES, n), dtype=np.int8), whole, whole.copy(), np.zeros(count, dtype=np.int64))
    which = np.arange(count, dtype=np.int32)
    most, least = float(max(1, sets.most)), float(sets.least)
    fill_families(sets.network, sets.families, which, weight, most, least, SCALE, TOLERANCE, 0.0, cache, fill)
    for stage in stages_within(instance, limit):
        mask = np.array([v in stage for v in range(n)])
        fits = np.where(mask, sets.families.state != OUT, sets.families.state != IN).all(axis=1)
        assert weight[mask].sum() <= fill.value[fits][0] + 1e-6
    mixed = fill.mixture @ weight
    assert np.all(mixed <= np.maximum(fill.value, 0.0) + 1e-6)  # nothing is mixed where no set keeps to the limit
