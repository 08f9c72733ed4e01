"""Least ticks and bytes of chains of downsets: as an oracle in plain Python finds them, however they are looked for."""

from __future__ import annotations

import random
from collections.abc import Set
from dataclasses import replace
from typing import Any

import pytest
from downset_chain_oracle import NEVER, least_chain
from graph_plan_oracles import random_graph_case
from nested_models import graph_problem

from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.machine.machine import Machine
from mtpp.solvers.planners.graphpipe import chain_search
from mtpp.solvers.planners.graphpipe.branches import equal_branches
from mtpp.solvers.planners.graphpipe.chain_search import ChainSearch
from mtpp.solvers.planners.graphpipe.kernels.chain_arrays import NONE, UNKNOWN
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.planners.graphpipe.least_memory import memory_bound
from mtpp.training.graph_problem import GraphProblem, GraphRules

FAR = 10**14


def _problem(seed: int, most_layers: int, configurations: int = 1) -> GraphProblem:
    document, asked = random_graph_case(seed, most_layers=most_layers, configurations=configurations)
    return graph_problem(document, {**asked, "least": False})


def _least(
    problem: GraphProblem, left_out: Set[int] = frozenset(), most: int = FAR, *, apart: bool = False
) -> int | None:
    """Return the least ticks of a chain over all sizes, None if there is none; *apart*: no branch is like another."""
    costs = LeastCosts(problem)
    groups = equal_branches(problem.model, costs.kinds, left_out)
    if apart:
        groups = [[branch] for group in groups for branch in group]
    found = [
        ChainSearch(costs, groups, options, problem.devices, most, problem.memory_bytes).least(
            most, problem.memory_bytes, 10**7
        )[0]
        for options in costs.options
    ]
    assert UNKNOWN not in found
    return min((ticks for ticks in found if ticks != NONE), default=None)


def _agrees(problem: GraphProblem, left_out: Set[int] = frozenset()) -> None:
    """Check against the oracle; synchronisation is rounded down by layer, less than a tick each."""
    expected, found = least_chain(problem, left_out), _least(problem, left_out)
    if expected == NEVER:
        assert found is None
    else:
        assert found is not None
        assert expected - len(problem.model.layers) < found <= expected
        assert _least(problem, left_out, found) == found
        assert _least(problem, left_out, found - 1) is None


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_as_the_oracle(first: int) -> None:
    """Random models of up to six layers with one or two configurations, with layers left out at random."""
    for seed in range(first, first + (60 if first == 0 else 600)):
        problem = _problem(seed, 6 if seed % 2 else 5, 1 + seed % 3 // 2)
        _agrees(problem)
        draw = random.Random(seed)
        count = len(problem.model.layers)
        _agrees(problem, {v for v in range(count) if draw.random() < 0.3} - {draw.randrange(count)})


@pytest.mark.parametrize(
    ("family", "sizes", "batch"),
    [
        ("mmt", {"branches": 3, "layers": 2}, 8),
        ("dlrm", {"dense": 2, "sparse": 2, "layers": 2, "top": 1}, 64),
        ("candle-uno", {"branches": 3, "layers": 1, "top": 1}, 256),
    ],
)
def test_equal_branches_as_the_oracle(family: str, sizes: dict[str, Any], batch: int) -> None:
    """Branches that are alike, with plenty of memory and little of it, by stage and in a line."""
    model = multi_branch_model(
        family, micro_batch_sizes=(2, 4) if family == "mmt" else (batch // 4, batch // 2), **sizes
    )
    for memory in (16 * 2**30, 2**29, 2**28):
        for rules in (GraphRules(), GraphRules(per_stage=True), GraphRules(sequential=True)):
            problem = GraphProblem.build(
                model,
                machine=Machine.of_devices(3, memory_bytes=memory, bandwidth_bytes_per_s=12_500_000_000),
                mini_batch=batch,
                rules=rules,
            )
            _agrees(problem)
            assert _least(problem, apart=True) == _least(problem)


def test_codes_of_several_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Downsets are the same however many words their codes take."""
    problems = [_problem(seed, 9) for seed in range(40)]
    problems.append(
        GraphProblem.build(
            multi_branch_model("dlrm", dense=3, sparse=3, layers=2, micro_batch_sizes=(16, 32)),
            machine=Machine.of_devices(4, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=12_500_000_000),
            mini_batch=128,
        )
    )
    expected = [_least(problem) for problem in problems]
    for bits in (3, 7):
        monkeypatch.setattr(chain_search, "_WORD_BITS", bits)
        assert [_least(problem) for problem in problems] == expected


def test_layers_left_out_never_raise_it() -> None:
    """A chain of more layers is one of fewer."""
    for seed in range(80):
        problem = _problem(seed, 8)
        order, before = list(problem.model.order), _least(problem)
        random.Random(seed).shuffle(order)
        for count in range(1, len(order)):
            found = _least(problem, set(order[:count]))
            assert before is None or (found is not None and found <= before)
            before = found


def test_lines_take_longer() -> None:
    """Never less than other stage graphs, and more on many."""
    more = 0
    for seed in range(80):
        problem = _problem(seed, 6)
        line, any_graph = (
            _least(replace(problem, rules=replace(problem.rules, sequential=one))) for one in (True, False)
        )
        assert line is None or (any_graph is not None and any_graph <= line)
        more += line != any_graph
    assert more > 10


def test_memory_as_the_oracle() -> None:
    """The least bytes of any chain, or what the largest layer takes."""
    for seed in range(120):
        problem = _problem(seed, 5, 1 + seed % 2)
        found = memory_bound(problem)
        assert found.value == max(least_chain(problem, timed=False), LeastCosts(problem).layer_bytes())
