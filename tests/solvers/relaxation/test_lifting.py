"""Left-out ops put back: where they may be, at the least cost, and those that cost in the slow stages."""

from __future__ import annotations

import random

import numpy as np
import oracles
from relaxations import RelaxedProblem, relaxed_problem

from mtpp.inference.graph import CostGraph
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.inference.system import System
from mtpp.solvers.relaxation.lifting import Placement, blamed, put_back


def whole_partition(problem: RelaxedProblem, stages: list[int]) -> Partition:
    """Return a partition of the original, given the stages of the graph's ops."""
    original = problem.relaxation.original
    of_op = stages if original.ground is None else [stages[m] for m in original.first_members.tolist()]
    return Partition.from_stages(original, of_op)


def problem_together(problem: RelaxedProblem, whole: Partition) -> tuple[CostGraph, System, int, list[list[int]]]:
    """Return the problem, the kept ops of each stage in a group."""
    original = problem.relaxation.original
    ops = [[v] for v in range(original.op_count)]
    if original.ground is not None:
        ops = [np.flatnonzero(original.ground.op_of == v).tolist() for v in range(original.op_count)]
    shared: dict[int, list[int]] = {}
    for v in problem.relaxation.kept.tolist():
        shared.setdefault(int(whole.assignment[v]), []).extend(ops[v])
    return problem.graph, problem.system, problem.k, [*problem.groups, *shared.values()]


def test_ops_are_put_back_where_they_may_be() -> None:
    """Between what they read and what reads them, the kept ops staying where they are."""
    for seed in range(200):
        problem = relaxed_problem(seed)
        relaxation = problem.relaxation
        for stages in problem.assignments(random.Random(seed), 5):
            whole = whole_partition(problem, stages)
            stage = put_back(relaxation, relaxation.restrict(whole))
            assert stage[relaxation.kept].tolist() == whole.assignment[relaxation.kept].tolist()
            Partition.from_stages(relaxation.original, stage)  # raises if an edge goes back


def test_placements_are_no_worse_than_any_that_agrees() -> None:
    """Nor better than any that keeps together what shares a stage, both by brute force; none is passed over."""
    placed = 0
    for seed in range(150):
        problem = relaxed_problem(seed)
        relaxation = problem.relaxation
        original, kept = relaxation.original, relaxation.kept.tolist()
        assignments = list(oracles.monotone_assignments(problem.graph, problem.k))
        for stages in problem.assignments(random.Random(seed), 2):
            whole = whole_partition(problem, stages)
            costs = [original.most_ticks]
            for other in assignments:
                if any(len({other[v] for v in group}) > 1 for group in problem.groups):
                    continue
                agreeing = whole_partition(problem, list(other))
                if all(agreeing.assignment[v] == whole.assignment[v] for v in kept):
                    costs.append(oracles.bottleneck(problem.graph, problem.system, list(other), problem.k))
            found = Placement(relaxation, relaxation.restrict(whole)).best(costs[0], 10**6, 2**20, lambda: False)
            if found is None:
                assert min(costs) == costs[0], seed
                continue
            cost = bottleneck(original, found)
            assert oracles.brute_force_optimum(*problem_together(problem, whole)) <= cost <= min(costs), seed
            placed += cost < max(costs[1:])
    assert placed > 20


def test_blame_is_of_left_out_ops_alone() -> None:
    """Each is named once, and none that is there already; some are named as long as any is left out."""
    for seed in range(100):
        problem = relaxed_problem(seed)
        if not problem.said["left_out"]:
            continue
        relaxation = problem.relaxation
        original = relaxation.original
        out = [v for v in range(original.op_count) if v not in set(relaxation.kept.tolist())]
        mask = [v in out for v in range(original.op_count)]
        stage = put_back(relaxation, Partition.from_stages(relaxation.instance, [0] * len(relaxation.kept)))
        ranked = blamed(original, np.array(mask), stage, 0).tolist()
        assert len(set(ranked)) == len(ranked) > 0
        assert set(ranked) <= set(out)
