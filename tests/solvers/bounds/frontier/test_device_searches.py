"""Searches for weights on devices that differ: never above the optimum, always proven, forged proofs never."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from flow_proofs import mutated
from random_devices import RandomCase
from scanned_devices import ScannedDevices, claim_on, scanned
from seeds import sampled

from mtpp.checker.checks import check_bound
from mtpp.checker.claim import BoundClaim
from mtpp.checker.report import Tier
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.inference.relaxation import relax
from mtpp.solvers.bounds.convex_weights.search import ConvexWeightSearch
from mtpp.solvers.bounds.frontier.scan_order import scan_orders
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.position_weights.search import PositionWeightSearch
from mtpp.solvers.reduction.reduction import reduce_instance

SEARCHES = {"convex-weights": ConvexWeightSearch, "position-weights": PositionWeightSearch}

each_search = pytest.mark.parametrize(
    ("method", "free"), [("convex-weights", False), ("convex-weights", True), ("position-weights", False)]
)


def searched(case: ScannedDevices, method: str, known: int) -> Any:
    """Return a search below a bottleneck that has come to its end."""
    search = SEARCHES[method](case.order, BoundLimits(known))
    search.run(BoundLimits(known, deadline=Deadline(60)))
    assert search.ended
    assert search.reached < case.optimum, case.seed
    return search


def hold(method: str, seeds: Sequence[int], *, free: bool, neighbours: bool) -> tuple[int, int]:
    """Search below limits around the optimum; return how many searches there were, and how many proved all."""
    tried = met = 0
    for case in scanned(seeds, free=free, neighbours=neighbours):
        pick = Random(case.seed)
        for known in {case.optimum, case.optimum + 1, case.optimum + pick.randint(2, 9 + case.optimum // 3)}:
            search = searched(case, method, known)
            if search.partition is not None and isinstance(case.case, RandomCase):
                lifted = case.reduced.lift(search.partition)
                reached = case.case.bottleneck(lifted, range(lifted.k))
                assert case.optimum <= reached < known, case.seed
            if search.reached >= 0:
                passes, why = case.verdict(method, search.reached + 1, case.proof(search))
                assert passes, (case.seed, why)
            tried += 1
            met += search.reached + 1 == case.optimum
    return tried, met


@each_search
def test_limits_around_the_optimum(method: str, free: bool) -> None:
    """What is ruled out is below the optimum, for many just below it, and proven."""
    tried, met = hold(method, sampled(range(4000), 100), free=free, neighbours=False)
    assert met > tried / 2


def test_fast_memories_where_memory_is_scarce() -> None:
    """Windows count streamed parameters of devices whose stages pay for bytes."""
    assert hold("position-weights", range(746, 747), free=False, neighbours=False)[0] == 3


@each_search
def test_neighbours(method: str, free: bool) -> None:
    """Stages pay at least once, over the best link of their device, for each tensor that they cut."""
    tried, met = hold(method, sampled(range(1000), 40), free=free, neighbours=True)
    assert met > tried / 3


@each_search
def test_forged_proofs(method: str, free: bool) -> None:
    """One tick above the optimum nothing passes, nor on devices in the other order."""
    tried = 0
    for case in scanned(sampled(range(3000), 100), free=free):
        search = searched(case, method, case.optimum)
        if search.reached < 0:
            continue
        proof, pick = case.proof(search), Random(case.seed)
        other = {**proof, "order": "fixed" if free else "free"}
        assert not passes(case, method, search.reached + 1, other)
        assert not passes(case, method, search.reached + 1, {k: v for k, v in proof.items() if k != "order"})
        for _ in range(8):
            forged = {**mutated(copy.deepcopy(proof), pick), "cutoff": case.optimum + 1}
            if pick.random() < 0.5:
                forged = {**mutated(forged, pick), "cutoff": case.optimum + 1}
            assert not passes(case, method, case.optimum + 1, forged), (case.seed, forged)
            tried += 1
    assert tried > 100


def passes(case: ScannedDevices, method: str, value: int, proof: dict[str, Any]) -> bool:
    """Tell whether a proof, which may be malformed, passes."""
    try:
        return case.verdict(method, value, proof)[0]
    except InputError:
        return False


@each_search
def test_relaxations(method: str, free: bool) -> None:
    """With ops left out, in the ticks of each class of devices, bounds stay below the optimum and are proven."""
    proven = 0
    for case in scanned(sampled(range(3000), 100), free=free):
        pick, original = Random(case.seed), case.original
        left_out = np.array([pick.random() < 0.4 for _ in range(original.op_count)])
        if left_out.all():
            continue
        relaxation = relax(original, left_out)
        reduced = reduce_instance(relaxation.instance)
        search = searched(replace(case, order=pick.choice(scan_orders(reduced.instance))), method, case.optimum)
        if search.reached < 0:
            continue
        whole = {"relaxed": relaxation.record(), "merges": reduced.record(), **search.document()}
        for value in (search.reached + 1, case.optimum + 1):
            claim = claim_on(case.case, original.machine, case.most, method, value, {**whole, "cutoff": value})
            assert isinstance(claim, BoundClaim)
            row, _ = check_bound(claim, method, Tier.EXACT, None, None)
            assert row.passed is (value == search.reached + 1), (case.seed, row.detail)
        proven += 1
    assert proven > 20
