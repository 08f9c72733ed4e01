"""Weights of which no stage can hold more than a capacity, on small graphs: the best ones and any, by enumeration."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from flow_proofs import claim_of
from weight_searches import Searched

from mtpp.array_types import Int64Array
from mtpp.checker.claim import BoundClaim
from mtpp.checker.downset import check_enumerated
from mtpp.checker.merged import MergedGraph
from mtpp.checker.report import Outcome
from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.stage_weights import strongest_weights
from mtpp.solvers.bounds.convex_weights.search import ConvexWeightSearch, StageShare
from mtpp.solvers.bounds.frontier.device_terms import DeviceTerms
from mtpp.solvers.bounds.frontier.kernels.fronts import Slope
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.recheck.downset import recheck_downset


def convex_sets(instance: Instance) -> list[tuple[int, frozenset[int]]]:
    """Return all convex sets of ops with the least that they cost as a stage, by the definitions."""
    n, cost = instance.op_count, strongest_weights(instance)
    tensors = [
        instance.pins[a:b].tolist() for a, b in zip(instance.pin_offsets, instance.pin_offsets[1:], strict=False)
    ]
    after = [{v for pins in tensors if pins[0] == u for v in pins[1:]} for u in range(n)]
    for u in reversed(instance.order.tolist()):
        after[u] |= set().union(*(after[v] for v in after[u]))
    found = []
    for mask in range(1, 1 << n):
        inside = {v for v in range(n) if mask >> v & 1}
        if any(v not in inside and after[v] & inside and any(v in after[u] for u in inside) for v in range(n)):
            continue
        cut = [t for t, pins in enumerate(tensors) if inside & set(pins) and not set(pins) <= inside]
        ticks = sum(int(cost.weight[v]) for v in inside) + sum(int(instance.transfer[t]) for t in cut) - cost.constant
        found.append((ticks, frozenset(inside)))
    return found


def any_shares(case: Searched, limit: int, weights: Int64Array, less: int = 0) -> StageShares:
    """Return weights with the most that a convex set within a limit holds, by enumeration, or *less*."""
    held = [sum(int(weights[v]) for v in ops) for ticks, ops in convex_sets(case.instance) if ticks <= limit]
    capacity = max(1, max(held, default=0) - less)
    costs = DeviceTerms.of(case.instance, limit)
    claim = StageShare(limit, costs, case.order, weights, capacity, Slope(0, 0))
    return StageShares(limit, weights, capacity, claim.terms_of_rule)


def drawn_weights(case: Searched, pick: random.Random) -> Int64Array:
    """Draw weights, many of them 0 or equal, or like the work."""
    n, kind = case.instance.op_count, pick.randint(0, 2)
    if kind == 0:
        return np.array([pick.choice((0, 1, 1, 2)) for _ in range(n)], dtype=np.int64)
    if kind == 1:
        return case.instance.work + pick.randint(0, 3)
    return np.array([pick.randint(0, 50) for _ in range(n)], dtype=np.int64)


def best_shares(case: Searched, limit: int) -> list[StageShares]:
    """Return the best weights for a limit."""
    search = ConvexWeightSearch(case.order, BoundLimits(limit + 1))
    search.improve_at(limit, BoundLimits(limit + 1, deadline=Deadline(5)), 10**9)
    return search.shares


def recheck(claim: BoundClaim, merged: MergedGraph) -> Outcome:
    """Run a search again, as verify does."""
    return recheck_downset(merged, claim.graph, claim.system, claim.k, claim.value, claim.proof)


def checked(
    case: Searched,
    proof: dict[str, Any],
    search: Callable[[BoundClaim, Any], Outcome] | None = recheck,
) -> Outcome:
    """Check a proof by the rule, as read from a document."""
    read = json.loads(json.dumps(proof))
    return check_enumerated(claim_of(case.graph, case.system, case.k, [], read["cutoff"], read), "downset", search)
