"""Searches with a time limit, which leave a part of it to bounds: optima by brute force, and why they end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum

from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.certify.closing import search_and_close
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.registry import partitioner
from mtpp.solvers.solve import solve

K = 3


def _instance(seed: int) -> Instance:
    return Instance.build(random_graph(seed, 7), Machine.uniform(K, LINK))


def test_bounds_close_what_the_search_leaves_open() -> None:
    """A search that proves nothing and finds little: the bounds find the optimum, and prove it."""
    instance = _instance(5)
    found = search_and_close(partitioner("slice").load(), instance, SearchLimits(1, deadline=Deadline(60.0)), 1)
    optimum = brute_force_optimum(random_graph(5, 7), LINK, K)
    assert found.bottleneck == optimum
    assert found.lower is not None
    assert found.lower.is_proof
    assert (found.lower.value, found.stopped) == (optimum, StopReason.OPTIMAL)


def test_the_first_search_is_that_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears of its budget and of no clock; where that stops it all the same, the time limit did."""
    heard: list[tuple[int, float | None]] = []
    slice_ = partitioner("slice").load()

    def waits(instance: Instance, limits: SearchLimits) -> SearchResult:
        heard.append((limits.evaluations, limits.deadline.limit_s))
        while limits.stop is None:
            pass
        return replace(slice_(instance, limits), stopped=limits.stop)

    monkeypatch.setattr("mtpp.solvers.certify.closing._LEAST_S", 60.0)
    found = search_and_close(waits, _instance(1), SearchLimits(10**6, deadline=Deadline(0.2)), 7)
    assert heard == [(7, None)]
    assert found.stopped == StopReason.TIME_LIMIT


def test_without_a_limit_nothing_is_closed() -> None:
    """Then the result depends on the seed alone."""
    instance, graph = _instance(2), random_graph(2, 7)
    plans = [solve(instance, graph, SearchLimits(200), closing=closing) for closing in (False, True)]
    first, second = ((plan.bottleneck, plan.lower, plan.evaluations, plan.stopped) for plan in plans)
    assert first == second
