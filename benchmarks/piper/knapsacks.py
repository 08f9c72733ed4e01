"""Appendix C of Piper's paper replayed: bang per buck against the best configurations of stages.

The instances are stages that planning BERT-32 at 8 GiB, K = N = 512 may come across: layers between two downsets, t, d
and the micro-batches in flight, drawn at random among all there are. Each is solved exactly twice: by the planner's
knapsack and by merging the layers' Pareto fronts, which shares nothing with it. The two have to agree.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.piper.cases import BERT, problem_of
from benchmarks.report import print_report
from mtpp.solvers.planners.equal.equi import kind_of
from mtpp.solvers.planners.piper.arrays import choice_arrays
from mtpp.solvers.planners.piper.bang_per_buck import bang_per_buck
from mtpp.solvers.planners.piper.kernels.saving_classes import UNDECIDED
from mtpp.solvers.planners.piper.kernels.stage_choices import LEAST, NOTHING_FITS, UNBOUNDED
from mtpp.solvers.planners.piper.kernels.stage_choices import least_cost as least_cost_of_kernel
from mtpp.solvers.planners.piper.kernels.stage_options import Demand, StageLayers, gather_members, knapsack_scratch
from mtpp.solvers.planners.piper.layer_downsets import every_downset, layer_bits
from mtpp.training.plan import LayerStage
from mtpp.training.problem import PlanningProblem

DEVICES = MICRO_BATCHES = 512
MEMORY_GIB = 8
WORST = 8
"""So many of the stages in which the heuristic is farthest off are listed."""


@dataclass(frozen=True)
class Instance:
    """A stage whose configurations are to be chosen; *copies* is the number of micro-batches in flight."""

    layers: tuple[int, ...]
    d: int
    t: int
    copies: int


def downsets(problem: PlanningProblem, most: int = 100_000) -> list[frozenset[int]]:
    """Return all sets of layers that hold the successors of their layers.

    Raises
    ------
    SystemExit
        If there are more than *most*.
    """
    sets = every_downset(problem, most)
    if sets is None:
        raise SystemExit(f"more than {most} downsets")
    inside = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little")
    return sorted((frozenset(np.flatnonzero(row).tolist()) for row in inside), key=lambda one: (len(one), sorted(one)))


def drawn(problem: PlanningProblem, count: int, seed: int) -> Iterator[Instance]:
    """Yield instances, all different, drawn evenly from pairs of downsets, t, d and micro-batches in flight."""
    sets = downsets(problem)
    pairs = [(outer, inner) for outer in sets for inner in sets if inner < outer]
    draw = random.Random(seed)
    seen: set[Instance] = set()
    while len(seen) < count:
        outer, inner = draw.choice(pairs)
        t = draw.choice(problem.degrees)
        fitting = [d for d in problem.data_degrees if d * t <= problem.devices]
        d = draw.choice(fitting)
        # The sum of degrees of this and later stages, d to N.
        copies = -(-draw.randint(d, max(d, problem.micro_batches)) // d)
        one = Instance(tuple(sorted(outer - inner)), d, t, copies)
        if one not in seen:
            seen.add(one)
            yield one


def options_of(problem: PlanningProblem, instance: Instance) -> list[list[tuple[int, int]]]:
    """Return for each layer the pairs (cost, memory) of its choices; costs are over one divisor, so they are whole."""
    members = set(instance.layers)
    ends = problem.model.ends
    d = instance.d
    spread = problem.spread(d)
    options = []
    for v in instance.layers:
        own = []
        for choice in problem.choices[problem.degrees.index(instance.t)][v]:
            ticks = choice.compute_ticks
            for e, sync in zip(problem.edges_in[v], choice.sync_in_ticks, strict=True):
                ticks += sync if ends[e][0] not in members else 0
            for e, sync in zip(problem.edges_out[v], choice.sync_out_ticks, strict=True):
                ticks += sync if ends[e][1] not in members else 0
            cost = spread * ticks + (d - 1) * choice.weight_ticks
            own.append((cost, choice.memory_a * instance.copies + choice.memory_b))
        options.append(own)
    return options


def edges_cost(problem: PlanningProblem, instance: Instance) -> int:
    """Return what the stage's edges cost whatever is chosen, over the same divisor."""
    members = set(instance.layers)
    spread = problem.spread(instance.d)
    ends = zip(problem.model.ends, problem.edge_ticks, strict=True)
    return spread * sum(ticks for (u, v), ticks in ends if (u in members) != (v in members))


def least_cost(options: Sequence[Sequence[tuple[int, int]]], memory: int) -> int | None:
    """Return the least cost of one choice per layer within *memory*; None if nothing fits.

    Layers are taken one by one; of all ways to choose for those so far, the ones remain of which no other is cheaper
    and smaller. Exact; how many remain depends on the numbers.
    """
    rest = [0] * (len(options) + 1)
    for i in range(len(options) - 1, -1, -1):
        if not options[i]:
            return None
        rest[i] = rest[i + 1] + min(size for _, size in options[i])
    front = [(0, 0)]
    for i, own in enumerate(options):
        ways = sorted(
            (cost + more, size + extra)
            for cost, size in front
            for more, extra in own
            if size + extra + rest[i + 1] <= memory
        )
        front = []
        for cost, size in ways:
            if not front or size < front[-1][1]:
                front.append((cost, size))
    return front[0][0] if front else None


class PlannersKnapsack:
    """The planner's own exact choice of configurations, a compiled kernel."""

    def __init__(self, problem: PlanningProblem) -> None:
        self._problem = problem
        self._arrays = choice_arrays(problem)
        n = len(problem.model.layers)
        self._scratch = knapsack_scratch(n, sum(len(here) for by_layer in problem.choices for here in by_layer))

    def cost(self, instance: Instance, options: Sequence[Sequence[tuple[int, int]]]) -> int | None:
        """Return the cost of what it chooses; None if it says that nothing fits."""
        if not all(options):
            return None  # stages with such layers never get that far
        problem, scratch, n = self._problem, self._scratch, len(self._problem.model.layers)
        members = layer_bits(instance.layers, n)
        others = layer_bits(sorted(set(range(n)) - set(instance.layers)), n)
        d, j = instance.d, problem.degrees.index(instance.t)
        count = gather_members(len(self._arrays.in_start) - 1, members, others, scratch)
        demand = Demand(j, problem.spread(d), d - 1, instance.copies, problem.memory_bytes, UNBOUNDED, LEAST)
        found = least_cost_of_kernel(StageLayers(count, members, others), demand, self._arrays, scratch)
        if found == UNDECIDED:
            raise SystemExit(f"the planner's knapsack gave up on {instance}")
        if found == NOTHING_FITS:
            return None
        rows = scratch.chosen[:count].tolist()
        firsts = [int(self._arrays.start[j * n + v]) for v in instance.layers]
        return sum(own[row - first][0] for own, row, first in zip(options, rows, firsts, strict=True))


def heuristic_cost(
    problem: PlanningProblem, instance: Instance, options: Sequence[Sequence[tuple[int, int]]]
) -> int | None:
    """Return the cost of what bang per buck chooses; None if it finds nothing that fits."""
    stage = LayerStage(instance.layers, instance.d, instance.t, [0] * len(instance.layers))
    chosen = bang_per_buck(problem, stage, instance.copies)
    if chosen is None:
        return None
    return sum(own[c][0] for own, c in zip(options, chosen, strict=True))


def replay(count: int, seed: int, convention: str) -> None:
    """Print how instances came out, and how far off the heuristic was."""
    problem = problem_of(BERT, DEVICES, MEMORY_GIB, convention=convention, micro_batches=MICRO_BATCHES)
    knapsack = PlannersKnapsack(problem)
    tally = dict.fromkeys(("nothing fits", "the fastest fit", "some have to save memory"), 0)
    worse: list[tuple[Fraction, Instance]] = []
    for instance in drawn(problem, count, seed):
        options = options_of(problem, instance)
        best = least_cost(options, problem.memory_bytes)
        planned = knapsack.cost(instance, options)
        if planned != best:
            raise SystemExit(f"two exact methods come to {best} and {planned}: {instance}")
        found = heuristic_cost(problem, instance, options)
        if (best is None) != (found is None):
            raise SystemExit(f"only one of the methods finds that something fits: {instance}")
        if best is None or found is None:
            tally["nothing fits"] += 1
        elif best == sum(min(cost for cost, _ in own) for own in options):
            tally["the fastest fit"] += 1
        else:
            tally["some have to save memory"] += 1
            if found > best:
                edges = edges_cost(problem, instance)
                worse.append((Fraction(found + edges, best + edges), instance))
            elif found < best:
                raise SystemExit(f"bang per buck is better than what was proven to be best: {instance}")
    rows = [[name, str(number), "–", "–", "–"] for name, number in tally.items()]
    ratios = sorted((ratio for ratio, _ in worse), reverse=True)
    mean = float(sum(ratios, Fraction()) / len(ratios)) - 1 if ratios else 0
    rows[-1][2:] = [str(len(worse)), f"{mean:.3%}", f"{float(ratios[0]) - 1 if ratios else 0:.3%}"]
    title = f"Appendix C: {count} knapsacks of BERT-32, {MEMORY_GIB} GiB, K = N = {DEVICES}, {convention}'s rules"
    print_report(title, ["instances", "number", "not optimal", "slower, mean", "slower, most"], rows)
    worst = sorted(worse, key=lambda entry: -entry[0])[:WORST]
    where = [
        [_described(problem, one), str(one.t), str(one.d), str(one.copies), f"{float(ratio) - 1:.3%}"]
        for ratio, one in worst
    ]
    if where:
        print_report("Where bang per buck is farthest from optimal", ["layers", "t", "d", "in flight", "slower"], where)


def _described(problem: PlanningProblem, instance: Instance) -> str:
    kinds = Counter(kind_of(problem.model.layers[v].name) for v in instance.layers)
    return ", ".join(f"{number} {kind}" for kind, number in kinds.items())
