"""What the tables of Piper's claims are made of: exact knapsacks, downsets, printed digits; nothing without data."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from training_models import random_problem

from benchmarks.piper import __main__ as claims
from benchmarks.piper import knapsacks
from mtpp.training.plan import LayerStage, stage_figures


@pytest.mark.parametrize("seed", range(30))
def test_least_cost_of_choices(seed: int) -> None:
    """Merging Pareto fronts gives what trying all choices gives."""
    draw = random.Random(seed)
    options = [
        [(draw.randrange(20), draw.randrange(20)) for _ in range(draw.randint(1, 3))] for _ in range(draw.randint(1, 6))
    ]
    memory = draw.randrange(60)
    costs = [sum(cost for cost, _ in one) for one in product(*options) if sum(size for _, size in one) <= memory]
    assert knapsacks.least_cost(options, memory) == min(costs, default=None)


@pytest.mark.parametrize("seed", range(10))
def test_downsets(seed: int) -> None:
    """All sets that hold the successors of their layers are found, and instances lie between two of them."""
    problem = random_problem(seed, 6)
    layers = range(len(problem.model.layers))
    subsets = map(frozenset, chain.from_iterable(combinations(layers, size) for size in range(len(layers) + 1)))
    closed = {one for one in subsets if all(v in one for u, v in problem.model.ends if u in one)}
    found = knapsacks.downsets(problem)
    assert set(found) == closed
    assert len(found) == len(closed)
    for instance in knapsacks.drawn(problem, 3, seed):
        members = frozenset(instance.layers)
        assert any(outer - inner == members for outer in closed for inner in closed if inner < outer)
        assert instance.d * instance.t <= problem.devices


def test_costs_of_instances_are_those_of_stages() -> None:
    """Costs of choices and edges over one divisor are the stage's time."""
    for seed in range(20):
        problem = random_problem(seed, 4)
        for instance in knapsacks.drawn(problem, 2, seed):
            options = knapsacks.options_of(problem, instance)
            if not all(options):
                continue
            spread = instance.d if problem.convention == "paper" else problem.micro_batches
            for chosen in product(*(range(len(own)) for own in options)):
                stage = LayerStage(instance.layers, instance.d, instance.t, chosen)
                (figures,) = stage_figures(problem, [stage])
                cost = sum(own[c][0] for own, c in zip(options, chosen, strict=True))
                cost += knapsacks.edges_cost(problem, instance)
                assert figures.time == Fraction(cost, instance.d * spread)


@pytest.mark.parametrize(
    ("number", "half"), [("263.354", Fraction(1, 2000)), ("7.32", Fraction(1, 200)), ("7E-4", Fraction(1, 20000))]
)
def test_half_a_unit_of_the_last_digit(number: str, half: Fraction) -> None:
    """Printed numbers are known up to that."""
    assert claims.half_a_digit(Decimal(number)) == half


def test_nothing_to_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the models the script says so, and that is all."""
    monkeypatch.setattr(claims, "missing", lambda: [Path("absent.json")])
    claims.main([])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "skipped: there is no absent.json\n"


def test_two_exact_methods_agree() -> None:
    """The planner's knapsack and the merging of Pareto fronts come to the same; bang per buck is never better."""
    searched = 0
    for seed in range(60):
        problem = random_problem(seed, 7)
        knapsack = knapsacks.PlannersKnapsack(problem)
        for instance in knapsacks.drawn(problem, 5, seed):
            options = knapsacks.options_of(problem, instance)
            best = knapsacks.least_cost(options, problem.memory_bytes)
            assert knapsack.cost(instance, options) == best
            if best is not None:
                searched += best > sum(min(cost for cost, _ in own) for own in options)
                found = knapsacks.heuristic_cost(problem, instance, options)
                assert found is None or found >= best
    assert searched > 10
