"""Left-out ops put back: where they may be, and those that cost in the slow stages."""

from __future__ import annotations

import random

import numpy as np
from flow_proofs import relaxed_problem

from mtpp.inference.partition import Partition
from mtpp.solvers.relaxation.loop import blamed, put_back


def test_ops_are_put_back_where_they_may_be() -> None:
    """Between what they read and what reads them, the kept ops staying where they are."""
    for seed in range(200):
        problem = relaxed_problem(seed)
        relaxation = problem.relaxation
        for stages in problem.assignments(random.Random(seed), 5):
            whole = problem.whole_partition(stages)
            stage = put_back(relaxation, problem.restricted(whole))
            assert stage[relaxation.kept].tolist() == whole.assignment[relaxation.kept].tolist()
            Partition.from_stages(relaxation.original, stage)  # raises if an edge goes back


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
