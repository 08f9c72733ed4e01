"""What follows for a family of stages: all that the rules say, by trying all rules, and nothing false, by all sets."""

from __future__ import annotations

import random

import pytest
from configuration_proofs import Problem
from flow_proofs import claim_of, random_problem

from mtpp.checker.bounds.families import Families, Family
from mtpp.checker.merged import MergedGraph
from mtpp.checker.paths import Paths


def some_problem(seed: int, *, cyclic: bool = False) -> tuple[Problem, Families]:
    """Make a small graph and limits under which some sets of its ops are stages and others are not."""
    pick = random.Random(seed)
    graph, system, k, together = random_problem(seed, op_count=pick.randint(2, 7))
    merged = claim_of(graph, system, k, together, 0, {}).merged()
    assert not isinstance(merged, str)
    if cyclic:
        back = (0, len(merged.work) - 1, (0,))
        merged = MergedGraph(merged.work, merged.param_bytes, [*merged.tensors, back], merged.group_of)
    total = sum(merged.work)
    problem = Problem(merged, merged.work, pick.randint(total // 4, total), k)
    return problem, Families(Paths(merged), problem.weight, problem.most, total - problem.rest)


def listed(ops: int) -> frozenset[int]:
    """Return the ops of a set."""
    return frozenset(op for op in range(ops.bit_length()) if ops >> op & 1)


def descents(families: Families, count: int, pick: random.Random) -> list[tuple[Family | None, set[int], set[int]]]:
    """Return a family and some split from it, and what the sets of each were told to hold and not to hold."""
    op, outside = pick.randrange(count), set(pick.sample(range(count), pick.randint(0, count // 2)))
    inside = {op}
    family = families.rooted(op, sum(1 << other for other in outside))
    found = [(family, set(inside), set(outside))]
    while family is not None and len(found) < 5:
        op = pick.randrange(count)
        family_in, family_out = families.split(family, op)
        if pick.random() < 0.5:
            family = family_in
            inside.add(op)
        else:
            family = family_out
            outside.add(op)
        found.append((family, set(inside), set(outside)))
    return found


def test_all_rules_are_applied() -> None:
    """One pass comes to what the rules come to in any order."""
    empty = 0
    for seed in range(300):
        problem, families = some_problem(seed)
        for family, inside, outside in descents(families, len(problem.weight), random.Random(seed)):
            closed = problem.closed((frozenset(inside), frozenset(outside)))
            assert (family is None) is (closed is None), seed
            empty += family is None
            if family is not None:
                assert (listed(family.inside), listed(family.outside)) == closed, seed
    assert 50 < empty < 1000


@pytest.mark.parametrize("cyclic", [False, True])
def test_no_stage_is_lost(cyclic: bool) -> None:
    """Each set that can be a stage and has what it was told to have is still in the family, cycles or not."""
    kept = 0
    for seed in range(300):
        problem, families = some_problem(seed, cyclic=cyclic)
        stages = list(problem.stages())
        for family, inside, outside in descents(families, len(problem.weight), random.Random(seed)):
            for stage in stages:
                if stage >= inside and not stage & outside:
                    assert family is not None, seed
                    assert stage >= listed(family.inside), seed
                    assert not stage & listed(family.outside), seed
                    kept += 1
    assert kept > 150


def test_drawn_ops_come_along() -> None:
    """Each convex set of a family that has an op has what it draws."""
    drawn = 0
    for seed in range(300):
        problem, families = some_problem(seed)
        stages = list(problem.stages())
        count = len(problem.weight)
        for family, inside, outside in descents(families, count, random.Random(seed)):
            if family is None:
                continue
            held = [stage for stage in stages if stage >= inside and not stage & outside]
            for op in range(count):
                for other in range(count):
                    if op != other and families.draws(family, op, other):
                        assert all(other in stage for stage in held if op in stage), seed
                        drawn += 1
    assert drawn > 200


def test_weights_of_sets_are_summed_exactly() -> None:
    """Sets of more than a byte of ops weigh what their ops do."""
    pick = random.Random(1)
    weight = [pick.randrange(2**70) for _ in range(45)]
    graph = MergedGraph(weight, [0] * 45, [], list(range(45)))
    families = Families(Paths(graph), weight, sum(weight), 0)
    for _ in range(50):
        ops = pick.getrandbits(45)
        assert families.sum(ops) == sum(weight[op] for op in listed(ops))
