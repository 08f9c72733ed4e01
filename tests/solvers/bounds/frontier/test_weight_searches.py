"""Searches for weights, equal for all stages and by stage: never above the optimum, always proven."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import weight_searches as searches
from flow_proofs import claim_of
from graph_strategies import LINK
from seeds import sampled

from benchmarks.wide_graphs import known_cells
from mtpp.checker.checks import check_bound
from mtpp.checker.report import Tier
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.convex_weights.master import Master
from mtpp.solvers.bounds.convex_weights.search import ConvexWeightSearch
from mtpp.solvers.bounds.frontier.narrow_search import on_narrow_order
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.position_weights.search import PositionWeightSearch
from mtpp.solvers.bounds.registry import bound_entry
from mtpp.solvers.reduction.reduction import reduce_instance

MT5 = "hf__iryneko571_mt5-base-translation-ja_zh"

SEARCHES = {"convex-weights": ConvexWeightSearch, "position-weights": PositionWeightSearch}

each_search = pytest.mark.parametrize("method", SEARCHES)


@each_search
def test_limits_around_the_optimum(method: str) -> None:
    """What is ruled out is below the optimum, and just below it for many."""
    tried, met = searches.hold_around_optimum(method, SEARCHES[method], range(50))
    assert met > tried / 3


def test_all_limits_below_the_optimum_are_ruled_out() -> None:
    """Without memories, and a better partition is found where there is one."""
    for case in searches.searched(range(60)):
        if case.system.memory_bytes is None and case.system.fast_memory_bytes is None:
            for known in (case.optimum, case.optimum + 1 + case.optimum // 4):
                search = PositionWeightSearch(case.order, BoundLimits(known))
                search.run(BoundLimits(known, deadline=Deadline(10)))
                case.hold("position-weights", search, known)
                assert search.reached + 1 == case.optimum
                assert (search.partition is not None) == (known > case.optimum)


def test_limits_given_up_and_passed_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is told of a bound above a limit that it gave up goes on above it, as a new one does."""
    went_on = 0
    for case in searches.searched(range(60)):
        limits, resumed = BoundLimits(case.optimum), ConvexWeightSearch(case.order, BoundLimits(case.optimum))
        with monkeypatch.context() as impatient:
            impatient.setattr("mtpp.solvers.bounds.convex_weights.master._WINDOW", 1)
            impatient.setattr(Master, "_look_back", lambda master: setattr(master, "slow", True))
            resumed.run(limits)
        assert resumed.ended
        passed = replace(limits, lower=(resumed.reached + 1 + case.optimum) // 2 + 1)
        fresh = ConvexWeightSearch(case.order, passed)
        for search in (resumed, fresh):
            search.run(passed)
            case.hold("convex-weights", search, case.optimum)
        assert max(resumed.reached, passed.lower) == pytest.approx(max(fresh.reached, passed.lower), rel=1e-4)
        went_on += fresh.reached >= passed.lower
    assert went_on > 3


@pytest.mark.parametrize("seed", [147, 249])
def test_limits_that_no_labelling_of_a_stage_keeps_to(seed: int) -> None:
    """With such a stage, proofs by stage pass whatever the others are worth at that limit."""
    searches.hold_around_optimum("position-weights", PositionWeightSearch, range(seed, seed + 1))


@each_search
def test_runs_with_little_time(method: str) -> None:
    """Limits never fall from run to run, and the last one comes to an end."""
    assert searches.hold_when_resumed(method, SEARCHES[method], range(30)) > 10


@each_search
def test_interruptions(method: str) -> None:
    """Whenever the search is stopped, what it has proven holds."""
    assert searches.hold_when_stopped(method, SEARCHES[method], range(40)) > 15


@each_search
def test_little_memory(method: str) -> None:
    """Without room for the states there is no search, without room for the fronts no false limit."""
    refused, passed = searches.hold_in_little_memory(method, SEARCHES[method], range(30))
    assert refused > 20
    assert passed > 20


@each_search
def test_edge_cases(method: str) -> None:
    """Single ops, no costs, no tensors, more stages than ops, a limit of 0."""
    searches.hold_on_edge_cases(method, SEARCHES[method])


@each_search
def test_too_many_live_tensors(method: str) -> None:
    """With thirty tensors live at once there is no bound of the graph itself, and no false one of a smaller graph."""
    graph = searches.wide_graph(30, 2, 1)
    instance = Instance.build(graph, Machine.uniform(3, LINK))
    result = bound_entry(method).load()(instance, BoundLimits(10**6, deadline=Deadline(1)))
    assert result.lower is None or result.lower.proof["relaxed"]
    assert not result.solved


@each_search
def test_wide_graph(method: str) -> None:
    """Chains of ops side by side, which meet three times: what is proven passes."""
    graph = searches.wide_graph(5, 6, 3)
    instance = Instance.build(graph, Machine.uniform(4, LINK))
    work = int(instance.work.sum())
    lower = bound_entry(method).load()(instance, BoundLimits(work, deadline=Deadline(1))).lower
    assert lower is not None
    claim = claim_of(graph, LINK, 4, [], lower.value, lower.proof)
    assert check_bound(claim, method, Tier.EXACT, work, None)[0].passed


@each_search
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_graphs(method: str, part: int) -> None:
    """The same on more graphs."""
    seeds = sampled(range(1000 + 250 * part, 1250 + 250 * part), 80)
    searches.hold_around_optimum(method, SEARCHES[method], seeds)
    searches.hold_when_resumed(method, SEARCHES[method], seeds)
    searches.hold_when_stopped(method, SEARCHES[method], seeds)
    searches.hold_in_little_memory(method, SEARCHES[method], seeds)


@each_search
@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 8, 32])
def test_proofs_of_a_model(method: str, checkout: Path, k: int) -> None:
    """What is proven of a model in seconds is proven by its document."""
    graph = read_graph(read_source(str(checkout / "datasets" / "samples" / "resnet50.onnx")))
    instance = Instance.build(graph, Machine.uniform(k, LINK))
    lower = bound_entry(method).load()(instance, BoundLimits(int(instance.work.sum()), deadline=Deadline(4))).lower
    assert lower is not None
    claim = claim_of(graph, LINK, k, [], lower.value, lower.proof)
    assert check_bound(claim, method, Tier.EXACT, int(instance.work.sum()), None)[0].passed
    assert lower.value >= int(instance.work.sum()) // k


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k"), [("hf__xlnet-base-cased", 8), ("torchvision__swin_v2_s", 8), (MT5, 16)])
def test_equal_weights_reach_the_optimum_of_models(shared_data: Path, name: str, k: int) -> None:
    """Every limit below the bottleneck of the best partition known is ruled out."""
    graph = read_graph(read_source(str(shared_data / "graphnet" / f"{name}.json.gz")))
    instance = reduce_instance(Instance.build(graph, Machine.uniform(k, load_device()))).instance
    known = known_cells()[name][str(k)]["upper"]
    limits = BoundLimits(known, lower=9 * known // 10)
    search = on_narrow_order(ConvexWeightSearch)(instance, limits)
    assert search is not None
    search.run(limits)
    assert search.reached + 1 == known
