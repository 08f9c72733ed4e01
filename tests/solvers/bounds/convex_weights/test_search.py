"""The search for weights of which no stage holds more than its share: never above the optimum, always proven."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import weight_searches as searches
from flow_proofs import claim_of
from graph_strategies import LINK

from mtpp.checker.checks import check_bound
from mtpp.checker.report import Tier
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.convex_weights.bound import bound
from mtpp.solvers.bounds.convex_weights.search import ConvexWeightSearch
from mtpp.solvers.bounds.limits import BoundLimits

METHOD = "convex-weights"
hold_around_optimum = partial(searches.hold_around_optimum, METHOD, ConvexWeightSearch)
hold_when_resumed = partial(searches.hold_when_resumed, METHOD, ConvexWeightSearch)
hold_when_stopped = partial(searches.hold_when_stopped, METHOD, ConvexWeightSearch)
hold_in_little_memory = partial(searches.hold_in_little_memory, METHOD, ConvexWeightSearch)


def test_limits_around_the_optimum() -> None:
    """What is ruled out is below the optimum, and just below it for many."""
    tried, met = hold_around_optimum(range(50))
    assert met > tried / 3


def test_runs_with_little_time() -> None:
    """Limits never fall from run to run, and the last one comes to an end."""
    assert hold_when_resumed(range(30)) > 10


def test_interruptions() -> None:
    """Whenever the search is stopped, what it has proven holds."""
    assert hold_when_stopped(range(40)) > 15


def test_little_memory() -> None:
    """Without room for the states there is no search, without room for the fronts no false limit."""
    refused, passed = hold_in_little_memory(range(30))
    assert refused > 20
    assert passed > 20


def test_edge_cases() -> None:
    """Single ops, no costs, no tensors, more stages than ops, a limit of 0."""
    searches.hold_on_edge_cases(METHOD, ConvexWeightSearch)


def test_too_many_live_tensors() -> None:
    """With thirty tensors live at once there is no bound of the graph itself, and no false one of a smaller graph."""
    graph = searches.wide_graph(30, 2, 1)
    instance = Instance.build(graph, Machine.uniform(3, LINK))
    result = bound(instance, BoundLimits(10**6, deadline=Deadline(1)))
    assert result.lower is None or result.lower.proof["relaxed"]
    assert not result.solved


def test_wide_graph() -> None:
    """Chains of ops side by side, which meet three times: what is proven passes."""
    graph = searches.wide_graph(5, 6, 3)
    instance = Instance.build(graph, Machine.uniform(4, LINK))
    work = int(instance.work.sum())
    lower = bound(instance, BoundLimits(work, deadline=Deadline(1))).lower
    assert lower is not None
    claim = claim_of(graph, LINK, 4, [], lower.value, lower.proof)
    assert check_bound(claim, METHOD, Tier.EXACT, work, None)[0].passed


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_graphs(part: int) -> None:
    """The same on more graphs."""
    seeds = range(1000 + 250 * part, 1250 + 250 * part)
    hold_around_optimum(seeds)
    hold_when_resumed(seeds)
    hold_when_stopped(seeds)
    hold_in_little_memory(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 8, 32])
def test_proofs_of_a_model(checkout: Path, k: int) -> None:
    """What is proven of a model in seconds is proven by its document."""
    graph = read_graph(read_source(str(checkout / "datasets" / "samples" / "resnet50.onnx")))
    instance = Instance.build(graph, Machine.uniform(k, LINK))
    lower = bound(instance, BoundLimits(int(instance.work.sum()), deadline=Deadline(4))).lower
    assert lower is not None
    claim = claim_of(graph, LINK, k, [], lower.value, lower.proof)
    assert check_bound(claim, METHOD, Tier.EXACT, int(instance.work.sum()), None)[0].passed
    assert lower.value >= int(instance.work.sum()) // k
