"""Rules that allow fewer plans: what a search looks at besides, so that more freedom never gives a slower plan.

Rules are taken apart into kinds of plans: one size of micro-batches or two of them, one or two kFkB orders, stages in
one line or not, any or the fewest micro-batches in flight, with replicas and recomputation or without. Which kinds
there are does not depend on what is asked for, and each is searched by itself in the same way; a result is the best of
all kinds that the rules allow. So rules that allow more kinds have a result that is no slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.planners.graphpipe.stage_size import StageSize
from mtpp.training.graph_problem import IN_FLIGHT, GraphProblem, GraphRules

ANY, LEAST = IN_FLIGHT


def kinds_of_plans(problem: GraphProblem) -> list[GraphProblem]:
    """Return the kinds by size, replicas and recomputation; those that may have the shortest iterations come first."""
    rules, found = problem.rules, []
    singles = [(size,) for size in problem.sizes]
    for sizes in [*singles, *(combinations(problem.sizes, 2) if rules.per_stage else ())]:
        for data_parallel, recompute in _schemes(problem, sizes):
            own = replace(rules, data_parallel=data_parallel, recompute=recompute, per_stage=len(sizes) > 1)
            kind = problem.narrowed(own, sizes)
            if not kind.lacking(sizes):
                found.append(kind)
    return sorted(found, key=_estimate)


def _estimate(kind: GraphProblem) -> float:
    """Return about the ticks of an iteration: of a line of equal stages, or of the slowest layer in a stage by itself.

    A good plan that is found first rules out kinds whose bound is above it, before they are searched.
    """
    costs, layers = LeastCosts(kind), kind.ways.examples
    slowest = max(min(costs.load(layer, one) for one in costs.every) for layer in layers)
    return max(slowest, min(_line_of_equal_stages(kind, costs, one) for one in costs.every))


def _line_of_equal_stages(kind: GraphProblem, costs: LeastCosts, size: StageSize) -> float:
    """Return about the ticks of an iteration of a line of equal stages of a size, on all devices."""
    stages = min(max(1, kind.devices // size.data_parallel), len(kind.model.layers))
    pair = kind.ways.total(lambda layer: costs.passes(layer, size).both)
    gradients = kind.ways.total(lambda layer: costs.synchronisation(layer, size))
    slowest = max(costs.load(layer, size) for layer in kind.ways.examples)
    return max(slowest, ((costs.batches(size) + stages - 1) * pair + gradients) / stages)


def _schemes(problem: GraphProblem, sizes: Sequence[int]) -> list[tuple[bool, bool]]:
    """Return whether there are replicas and recomputation, for each kind of plans with such micro-batches that differ.

    Those asked for come first.
    """
    rules = problem.rules
    replicas = rules.data_parallel and any(d > 1 for size in sizes for d in problem.degrees(size))
    recomputes = rules.recompute and all(any(not one.recomputes for one in here) for here in problem.choices)
    recomputes = recomputes and any(one.recomputes for here in problem.choices for one in here)
    without = (rules.data_parallel, False) if replicas else (rules.data_parallel,)
    return list(product(without, (rules.recompute, False) if recomputes else (rules.recompute,)))


def forms(rules: GraphRules) -> Iterator[GraphRules]:
    """Go through orders of passes and forms of pipelines, those asked for first, of one or two kFkB orders.

    A line with the fewest micro-batches in flight may have more of them than the same stages as a graph, so that it
    counts as a plan of other forms only where any number may be in flight.
    """
    intervals = sorted(set(rules.intervals))
    ks = [*combinations(intervals, 2), *((k,) for k in intervals)]
    lines = [(rules.sequential, rules.in_flight)]
    if rules.in_flight == ANY:
        lines = list(dict.fromkeys(product((rules.sequential, True), IN_FLIGHT)))
    for (line, in_flight), chosen in product(lines, ks):
        yield replace(rules, sequential=line, in_flight=in_flight, intervals=chosen)
