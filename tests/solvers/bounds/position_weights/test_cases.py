"""Cases of a limit on small graphs with their optima: where weights say nothing, splits alone decide."""

from __future__ import annotations

import json

import numpy as np
import pytest
import weight_searches as searches
from flow_proofs import claim_of

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.solvers.bounds.frontier.device_terms import DeviceTerms
from mtpp.solvers.bounds.frontier.scan import Room
from mtpp.solvers.bounds.position_weights.bundle import Bundle
from mtpp.solvers.bounds.position_weights.cases import Cases
from mtpp.solvers.bounds.position_weights.proof import PositionProof
from mtpp.solvers.bounds.position_weights.sweeps import Sweeps
from mtpp.solvers.bounds.position_weights.windows import Precedence, Windows


@pytest.mark.parametrize(("seeds", "least"), [(100, 2), pytest.param(400, 5, marks=pytest.mark.slow)])
def test_a_limit_is_ruled_out_exactly_below_the_optimum(seeds: int, least: int) -> None:
    """From weights of 0, with a proof that passes; at the optimum and above a case without a choice is left."""
    ruled_out = met = 0
    for case in searches.searched(range(seeds)):
        if case.system.memory_bytes is not None or case.system.fast_memory_bytes is not None:
            continue
        order, instance, k = case.order, case.instance, case.k
        for limit in {case.optimum - 1, case.optimum, case.optimum + case.optimum // 5}:
            if limit < 0:
                continue
            terms = DeviceTerms.of(instance, limit + 1)
            steps, costs = [terms.steps(order)[c] for c in terms.class_of], terms.of_devices

            def sweeps_of(
                windows: Windows, weight: np.ndarray, units: int, mixtures: Bundle | None = None, limit: int = limit
            ) -> Sweeps:
                return Sweeps(order, steps, costs, windows, limit, weight, units, Room(), mixtures)  # noqa: B023

            windows = Windows.within(Precedence.of(instance, terms.measures), terms.rooms(limit))
            sweeps = sweeps_of(windows, np.zeros((k, instance.op_count), dtype=np.int64), 100)
            found = sweeps.sweep(limit - 1, lambda: False)
            while found is not None and found.limit < limit and not sweeps.exhausted:
                found = sweeps.sweep(limit - 1, lambda: False)
            if found is not None and found.limit >= limit:  # the windows are empty, or a stage has no labelling
                assert limit < case.optimum
                continue
            cases = Cases.of(order.order, sweeps_of, sweeps)
            while not (cases.over or cases.met):
                assert not cases.stuck
                cases.advance(limit, lambda: False)
            assert cases.over == (limit < case.optimum), case.seed
            met += cases.met
            if cases.over:
                ruled_out += 1
                proof = json.loads(json.dumps(PositionProof(limit, terms, order, cases.root).document()))
                assert proof["tree"]["branch"] is not None
                if case.reduced.rounds:
                    proof["merges"] = case.reduced.record()
                claim = claim_of(case.graph, case.system, k, [], limit + 1, proof)
                passes, why = CHECKERS["position-weights"](claim)
                assert passes, (case.seed, why)
    assert ruled_out >= least
    assert met > seeds / 4
