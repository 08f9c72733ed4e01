"""Kernels of planners that are compiled ahead of time: those that real runs need."""

from __future__ import annotations

import pytest
from training_models import random_problem

from mtpp.names import KNAPSACKS
from mtpp.solvers.compilation import watched_compilation
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners import compiling
from mtpp.solvers.planners.compiling import (
    compiled_planner,
    compiled_simulation,
    load_planners,
    load_split_planner,
    planner_kernels,
    tiny_split_problem,
)
from mtpp.solvers.planners.limits import PlanLimits
from mtpp.solvers.planners.registry import PLANNERS, SPLIT_PLANNERS


def test_planners_are_compiled_ahead() -> None:
    """A run on another model, with either knapsack, finds all kernels ready."""
    load_planners()
    assert all(compiled_planner(entry, nested=nested) for entry in PLANNERS.values() for nested in (False, True))
    kernels = planner_kernels(PLANNERS["piper"], nested=False)
    before = [len(kernel.signatures) for kernel in kernels]
    assert min(before) > 0
    for knapsack in KNAPSACKS:
        PLANNERS["piper"].load()(random_problem(3), PlanLimits(knapsack=knapsack))
    assert [len(kernel.signatures) for kernel in kernels] == before


@pytest.mark.slow
def test_split_planners_are_compiled_ahead() -> None:
    """A line too long for all of its splits to be gone through finds the kernels that anneal them ready."""
    load_split_planner()
    said: list[str] = []
    with watched_compilation(lambda: said.append("compiled")):
        SPLIT_PLANNERS["pfeife"].load()(tiny_split_problem(200, "anneal"), Limits())
    assert not said


def test_a_schedule_needs_fewer_kernels_than_a_stage_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only kernels that a simulation calls have to be on disk for it to compile nothing."""
    monkeypatch.setattr(compiling, "on_disk", lambda kernel: kernel.__name__ == "pass_times")
    assert compiled_simulation(stage_graph=False)
    assert not compiled_simulation(stage_graph=True)
    monkeypatch.setattr(compiling, "on_disk", lambda kernel: kernel.__name__ == "stage_passes")
    assert not compiled_simulation(stage_graph=False)
