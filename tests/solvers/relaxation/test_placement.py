"""The best places of left-out ops against brute force."""

from __future__ import annotations

import random

import numpy as np
import oracles
from flow_proofs import RelaxedProblem, relaxed_problem

from mtpp.inference.graph import CostGraph
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.solvers.relaxation.placement import Placement


def problem_together(problem: RelaxedProblem, whole: Partition) -> tuple[CostGraph, Device, int, list[list[int]]]:
    """Return the problem, the kept ops of each stage in a group."""
    original = problem.relaxation.original
    ops = [[v] for v in range(original.op_count)]
    if original.ground is not None:
        ops = [np.flatnonzero(original.ground.op_of == v).tolist() for v in range(original.op_count)]
    shared: dict[int, list[int]] = {}
    for v in problem.relaxation.kept.tolist():
        shared.setdefault(int(whole.assignment[v]), []).extend(ops[v])
    return problem.graph, problem.system, problem.k, [*problem.groups, *shared.values()]


def test_placements_are_no_worse_than_any_that_agrees() -> None:
    """Nor better than any that keeps together what shares a stage, both by brute force; none is passed over."""
    placed = 0
    for seed in range(150):
        problem = relaxed_problem(seed)
        relaxation = problem.relaxation
        original, kept = relaxation.original, relaxation.kept.tolist()
        assignments = list(oracles.monotone_assignments(problem.graph, problem.k))
        for stages in problem.assignments(random.Random(seed), 2):
            whole = problem.whole_partition(stages)
            costs = [original.most_ticks]
            for other in assignments:
                if any(len({other[v] for v in group}) > 1 for group in problem.groups):
                    continue
                agreeing = problem.whole_partition(list(other))
                if all(agreeing.assignment[v] == whole.assignment[v] for v in kept):
                    costs.append(oracles.bottleneck(problem.graph, problem.system, list(other), problem.k))
            found = Placement(relaxation, problem.restricted(whole), lambda: False).best(costs[0], 10**6, 2**20)
            if found is None:
                assert min(costs) == costs[0], seed
                continue
            cost = bottleneck(original, found)
            assert oracles.brute_force_optimum(*problem_together(problem, whole)) <= cost <= min(costs), seed
            placed += cost < max(costs[1:])
    assert placed > 20
