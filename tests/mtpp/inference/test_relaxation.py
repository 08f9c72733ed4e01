"""Relaxations against brute force and against the verifier's own: no stage of any partition may cost more."""

from __future__ import annotations

import random

import numpy as np
import oracles
import pytest
from flow_proofs import RelaxedProblem, relaxed_problem

from mtpp.checker.stages import stage_figures
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import relax

PARTS = 3


def _tensors(instance: Instance) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """Return transfer, bytes, producer and consumers of all tensors, in the order in which proofs number them."""
    found: list[tuple[int, int, int, tuple[int, ...]]] = []
    for t in range(instance.tensor_count):
        producer, *readers = instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]].tolist()
        found.append((int(instance.transfer[t]), int(instance.tensor_bytes[t]), producer, tuple(sorted(readers))))
    return found


def _check(problem: RelaxedProblem, pick: random.Random, most: int = 25) -> int:
    """Check one problem; return how many stages were compared."""
    relaxation, relaxed = problem.relaxation, problem.relaxed
    inner = relaxation.instance
    ground = inner if inner.ground is None else inner.ground.instance
    assert list(ground.op_names) == relaxed.op_names
    assert ground.work.tolist() == relaxed.work
    assert ground.param_bytes.tolist() == relaxed.param_bytes
    assert ground.order.tolist() == relaxed.order
    theirs = [
        (cost, size or 0, maker, tuple(sorted(readers)))
        for cost, size, maker, readers in zip(
            relaxed.transfer, relaxed.tensor_bytes, relaxed.producer, relaxed.consumers, strict=True
        )
    ]
    assert _tensors(ground) == theirs
    number = {name: v for v, name in enumerate(problem.graph.op_names)}
    kept = [number[name] for name in relaxed.op_names]
    group_of = range(len(kept)) if inner.ground is None else inner.ground.op_of.tolist()
    compared = 0
    for stages in problem.assignments(pick, most):
        left = [stages[v] for v in kept]
        of_group = dict(zip(group_of, left, strict=True))
        assert all(of_group[group] == stage for group, stage in zip(group_of, left, strict=True))
        partition = Partition.from_stages(inner, np.array([of_group[g] for g in range(inner.op_count)], dtype=np.int32))
        costs = stage_costs(inner, partition)  # raises if an edge goes back
        again = stage_figures(relaxed, left, problem.system.to_document())
        for stage in range(problem.k):
            ops = [v for v, s in enumerate(stages) if s == stage]
            figures = oracles.stage_figures(problem.graph, problem.system, ops)
            assert costs.cost[stage] <= figures["cost"]
            assert costs.peak_bytes[stage] <= figures["peak_bytes"]
            if stage in again:
                assert (again[stage].cost, again[stage].peak_bytes) == (costs.cost[stage], costs.peak_bytes[stage])
            compared += 1
    return compared


def test_no_stage_costs_more_without_ops() -> None:
    """Any ops, any transfers: restricted partitions are partitions, of stages that cost and hold no more."""
    compared = sum(_check(relaxed_problem(seed), random.Random(seed)) for seed in range(300))
    assert compared > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_stage_costs_more_in_thousands_of_relaxations(part: int) -> None:
    """The same on many more."""
    size = 1_500 // PARTS
    for seed in range(1_000 + part * size, 1_000 + (part + 1) * size):
        _check(relaxed_problem(seed), random.Random(seed), most=8)


def test_one_op_has_to_stay() -> None:
    """An instance without ops is none."""
    original = relaxed_problem(1).relaxation.original
    with pytest.raises(ValueError, match="must stay"):
        relax(original, np.ones(original.op_count, dtype=np.bool_))
