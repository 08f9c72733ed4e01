"""The bounds of the exact tier against their checkers: two programs written from one statement."""

from __future__ import annotations

import json

import oracles
import pytest
from flow_proofs import claim_of, grouped, random_problem

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.checker.checks import check_bound
from mtpp.host.deadline import Deadline
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance

EXACT = [name for name, entry in BOUNDS.items() if entry.tier == "exact"]


@pytest.mark.parametrize("name", EXACT)
def test_every_exact_bound_has_a_checker(name: str) -> None:
    """What is said to be checked again from the certificate alone can be."""
    assert name in CHECKERS


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("reduced", [False, True])
def test_proofs_pass(name: str, reduced: bool) -> None:
    """On small graphs with and without memories, groups and merges, each bound is below the optimum and is proven."""
    proven = 0
    for seed in range(60):
        graph, system, k, together = random_problem(seed)
        instance, groups = grouped(graph, system, k, together)
        optimum = oracles.brute_force_optimum(graph, system, k, groups)
        if optimum >= oracles.NEVER:
            continue
        smaller = reduce_instance(instance) if reduced and name != "simple" else ReducedInstance(instance)
        limits = BoundLimits(optimum, deadline=Deadline(2))  # some get better for very long
        lower = BOUNDS[name].load()(smaller.instance, limits).lower
        if lower is None:
            continue
        assert lower.value <= optimum, seed
        proof = dict(lower.proof)
        if smaller.rounds:
            proof["merges"] = smaller.record()
        claim = claim_of(graph, system, k, together, lower.value, json.loads(json.dumps(proof)))
        check, tier = check_bound(claim, lower.method, lower.tier, optimum, None)
        assert check.passed, (seed, check.detail)
        assert tier == "exact"
        proven += 1
    assert proven > 15
