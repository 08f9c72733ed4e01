"""Many parallel ops: a bound that takes a tenth of a second closes what searches leave open."""

from __future__ import annotations

from pathlib import Path

import pytest

import mtpp


@pytest.mark.parametrize("k", [4, 8, 16])
def test_a_cheap_bound_closes_it(shared_data: Path, k: int) -> None:
    """The op that gathers all branches costs as much as the slowest stage, whatever is beside it."""
    model = shared_data / "cases" / "wide" / "model.onnx"
    plan = mtpp.partition(model, k)
    assert plan.optimal
    assert plan.lower_bound.method == "node"
    assert mtpp.verify(plan, model).passed
