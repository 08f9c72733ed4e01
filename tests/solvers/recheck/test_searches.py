"""What one search over downsets proves, the other one finds again: two programs written from one statement."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from graph_strategies import random_graph
from plan_documents import embedded_document

from mtpp.checker.claim import BoundClaim
from mtpp.checker.graph import embedded_in_ticks
from mtpp.errors import Infeasible
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.recheck import downset as recheck
from mtpp.solvers.recheck.downset import recheck_downset
from mtpp.solvers.solve import solve


def random_system(graph: CostGraph, pick: random.Random) -> Device:
    """Return a system with or without memories that parts of a graph fill."""
    system = Device("s", 1, 1, Link(10**12 // pick.choice([1, 3, 7])))
    if pick.random() < 0.4:
        return system
    params = sum(int(size) for size in graph.param_bytes)
    return replace(
        system,
        peak=pick.choice(["reserve", "order"]),
        activation_reserve_bytes=pick.choice([0, 20]),
        fast_memory_bytes=pick.randint(20, 20 + params) if pick.random() < 0.7 else None,
        memory_bytes=pick.randint(50 + params // 3, 150 + params) if pick.random() < 0.5 else None,
    )


def proven(seed: int) -> tuple[bool, str] | None:
    """Solve a random problem of up to 14 ops and run the search behind its bound again; None if there is none."""
    pick = random.Random(seed)
    graph = random_graph(
        seed, pick.randint(5, 14), time_unit="ps", largest_cost=20, consumers_per_tensor=pick.choice([1, 1.5])
    )
    system, k = random_system(graph, pick), pick.randint(2, 5)
    together = [pick.sample(list(graph.op_names), 2)] if pick.random() < 0.2 else []
    limits = SearchLimits(200, seed=seed)
    try:
        plan = solve(
            Instance.build(graph, Machine.uniform(k, system)), graph, limits, algorithm="downset", together=together
        )
    except Infeasible:
        return None
    bound: dict[str, Any] = plan.certificate.lower.to_document()
    if bound["tier"] != "enumerated":
        return None
    ticks = embedded_in_ticks(embedded_document(graph, system, k))
    given: dict[str, Any] = system.to_document()
    merged = BoundClaim(ticks, given, k, together, bound["value"], bound["proof"]).merged()
    assert not isinstance(merged, str), (seed, merged)
    return recheck_downset(merged, ticks, given, k, bound["value"], bound["proof"])


@pytest.mark.parametrize("way", ["plain", "kernel"])
def test_every_proof_passes(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With memories and groups, on graphs with merges, at every limit that the search ended with."""
    if way == "kernel":
        monkeypatch.setattr(recheck, "SMALL", 0)
    checked = 0
    for seed in range(80):
        outcome = proven(seed)
        if outcome is not None:
            assert outcome[0], (seed, outcome[1])
            checked += 1
    assert checked > 30
