"""Cases of ``vlm-branches``: an encoder beside a language model, whose plans get no slower with a freedom more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning import plan_with

import mtpp
from mtpp.api.training.plan_results import GraphPlanResult

FREEDOMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "sizes by stage": {"per_stage_micro_batch": True},
    "two orders": {"kfkb": (1, 2)},
}
SLOWER: dict[str, dict[str, Any]] = {
    "one line": {"sequential": True},
    "no replicas": {"data_parallel": False},
    "fewest in flight": {"in_flight": "least"},
}

PLAIN_MS = {"r0": 133.5, "r1": 153.5, "r2": 108.5, "frozen20": 330.0}
"""Iterations without a freedom more, from the brute force of the planner and of the verifier."""


@pytest.mark.parametrize("name", PLAIN_MS)
def test_a_freedom_more_is_never_slower(shared_data: Path, name: str) -> None:
    """Sizes by stage and two orders of passes are no slower than neither, and what forbids plans is no faster."""
    path = shared_data / "cases/vlm-branches" / f"{name}.json"
    plain = _planned(path)
    assert round(plain.iteration_s * 1e3, 1) == PLAIN_MS[name]
    assert plain.optimal
    for given in FREEDOMS.values():
        found = _planned(path, **given)
        assert found.plan.iteration <= plain.plan.iteration
        assert [row.claim for row in mtpp.verify(found, path).rows if row.verdict == "false"] == []
    for given in SLOWER.values():
        assert plain.plan.iteration <= _planned(path, **given).plan.iteration


def _planned(path: Path, **given: Any) -> GraphPlanResult:
    sizes = {} if path.stem == "frozen20" else {"micro_batch_size": 1}
    return plan_with(
        path, planner="graphpipe", devices=6, memory="1GiB", bandwidth="1GB/s", batch_size=8, **sizes, **given
    )
