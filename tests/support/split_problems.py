"""Problems of split points and schedules for tests, and their plans."""

from __future__ import annotations

from typing import Any

import numpy as np
from machines import on_machine

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.planner import plan
from mtpp.training.pfeife.costs import LineCosts
from mtpp.training.pfeife.line import ModelLine, graph_line
from mtpp.training.pfeife.plan import SplitPlan
from mtpp.training.pfeife.problem import SplitProblem


def line_of(graph: CostGraph) -> ModelLine:
    """Return a graph in a line, with the factors that are the default."""
    return graph_line(
        graph, Instance.build(graph, Machine.uniform(1, load_device("reference"))), backward_ratio=2, state=4
    )


def problem_of(line: ModelLine, devices: int, micro_batches: int, **given: Any) -> SplitProblem:
    """Return a problem on the links of the reference system."""
    return SplitProblem.build(
        line,
        micro_batches=micro_batches,
        **on_machine(devices=devices, bandwidth_bytes_per_s=25 * 10**9, **given),
    )


def planned(problem: SplitProblem, **limits: Any) -> SplitPlan:
    """Return the plan of a problem that has one."""
    found = plan(problem, Limits(**limits))
    assert isinstance(found, SplitPlan)
    return found


def unit_line(ops: int) -> ModelLine:
    """Return ops of forward 1 and backward 2, with nothing to hand over."""
    ones, nothing = np.ones(ops, dtype=np.int64), np.zeros(ops, dtype=np.int64)
    costs = LineCosts(ones, 2 * ones, nothing, nothing, [])
    return ModelLine("units", "graph", [str(v) for v in range(ops)], "ps", 1, costs, True)
