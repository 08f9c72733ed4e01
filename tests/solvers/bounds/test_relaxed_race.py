"""Bounds searched on relaxations of a graph: proofs that say what was left out."""

from __future__ import annotations

import json
import random
from itertools import count
from typing import Any

import numpy as np
import oracles
import pytest
from flow_proofs import claim_of, grouped, random_problem
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum

from mtpp.checker.checks import check_bound
from mtpp.checker.report import Tier
from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import relax
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds import relaxed_race
from mtpp.solvers.bounds.configuration import bound as configuration
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import bound_entry
from mtpp.solvers.bounds.relaxed_race import Course, Race
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.relaxation import candidates


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("method", ["configuration", "convex-weights", "position-weights"])
def test_bounds_of_relaxed_graphs_pass(method: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On small graphs with memories and groups, where any op may be left out; none is above the optimum.

    The partition that is known is of the graph itself: no relaxation takes it for one of its own.
    """
    monkeypatch.setattr(candidates, "_LEVELS", ((1.0, 0.0), (0.5, 0.0), (0.2, 0.0)))
    monkeypatch.setattr(candidates, "_MOST_WORK", 1.0)
    monkeypatch.setattr(configuration, "_FEWEST", 0)
    monkeypatch.setattr(relaxed_race, "_APART", 1.0)
    monkeypatch.setattr(relaxed_race, "_LEAST_TURN_S", 0.0)
    advance = Race._advance

    def advance_relaxed(self: Race, one: Any, deadline: Deadline) -> None:
        if one.relaxation is not None:
            advance(self, one, deadline)

    monkeypatch.setattr(Race, "_advance", advance_relaxed)
    bound = bound_entry(method).load()
    passed = 0
    for seed in range(part, 120, 4):
        graph, system, k, together = random_problem(seed, op_count=random.Random(seed).randint(4, 7))
        instance, groups = grouped(graph, system, k, together)
        optimum = brute_force_optimum(graph, system, k, groups)
        if optimum >= oracles.NEVER:
            continue
        reduced = reduce_instance(instance)
        start = Partition.from_stages(reduced.instance, [0] * reduced.instance.op_count)
        limits = BoundLimits(optimum, start, reduced=reduced, deadline=Deadline(0.6), jobs=1 + seed % 2)
        lower = bound(reduced.instance, limits).lower
        if lower is None:
            continue
        assert lower.value <= optimum, seed
        claim = claim_of(graph, system, k, together, lower.value, json.loads(json.dumps(lower.proof)))
        check = check_bound(claim, lower.method, Tier.EXACT, optimum, None)[0]
        assert check.passed, (seed, check.detail)
        assert claim.proof["relaxed"]["left_out"]
        passed += 1
    assert passed > 3


class _Timed:
    """A search that rules out one limit at once, or none, and goes on until it is told to end."""

    solved = False
    partition, shares = None, ()

    def __init__(self, reached: int, *, ended: bool = False) -> None:
        self.reached, self.ended = reached, ended
        self.parts: list[float] = []

    def run(self, limits: BoundLimits) -> None:
        """Note which part of its time it had."""
        whole_s = limits.deadline.remaining_s()
        while not limits.ended():
            pass
        self.parts.append((whole_s - limits.deadline.remaining_s()) / whole_s)

    def put_off(self) -> None:
        """Keep nothing."""

    def document(self) -> dict[str, Any]:
        """Prove nothing."""
        return {}


@pytest.mark.parametrize(
    ("of_graph", "of_relaxation", "ended", "short"),
    [(50, -1, False, True), (50, 60, False, False), (50, -1, True, False), (-1, -1, False, False)],
)
def test_a_relaxation_has_less_time_where_the_graph_itself_leads(
    of_graph: int, of_relaxation: int, monkeypatch: pytest.MonkeyPatch, *, ended: bool, short: bool
) -> None:
    """A quarter of its turn; all of it where it leads, nothing is proven, or the graph has come to its end."""
    instance = Instance.build(random_graph(1, 8), Machine.uniform(3, LINK))
    relaxed = _Timed(of_relaxation)
    searches = iter([_Timed(of_graph, ended=ended), relaxed])
    course = Course("convex-weights", Tier.EXACT, lambda *_: next(searches), 99, fewest=0, handy=99, alone=0.5)
    ticks = count()

    def limits() -> BoundLimits:
        return BoundLimits(100, lower=10, deadline=Deadline(1000.0, clock=lambda: float(next(ticks))))

    race = Race(instance, course, limits())
    other = relaxed_race._Contender(ReducedInstance(instance), relax(instance, np.zeros(8, dtype=np.bool_)))
    monkeypatch.setattr(race, "_made", lambda: [other])
    for _ in range(2):  # the first time the graph itself has all of the time if it comes to something
        race.run(limits())
    part = relaxed.parts[0]
    assert 0.2 < part < 0.45 if short else part > 0.95
