"""The command that is proposed after a search that stopped short of a proof."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mtpp.api.partitioning.next_step import FIRST_NEAR, NEAR, likely_limit_s, limit_of_all
from mtpp.host.stop_reason import StopReason


def plan(ratio: float, **changes: Any) -> Any:
    """Return a plan of that ratio as a search leaves it, with changes."""
    usual = {
        "objective": "bottleneck",
        "capacity": None,
        "replicated": False,
        "algorithm": "auto",
        "stopped": StopReason.FINISHED,
        "stated": {},
        "optimal": False,
        "ratio": ratio,
        "op_count": 200,
        "bottleneck_s": 0.001,
        "k": 3,
    }
    return SimpleNamespace(**usual | changes)


@pytest.mark.parametrize(
    ("ratio", "given_s", "due"),
    [
        (1.19, None, 10),
        (FIRST_NEAR, None, 10),
        (1.21, None, None),
        (1.19, 10, None),
        (1.01, None, 10),
        (NEAR, 10, 60),
        (NEAR, 60, 300),
        (NEAR, 300, None),
    ],
)
def test_seconds_where_costs_are_times(ratio: float, given_s: float | None, due: int | None) -> None:
    """A first search is followed by a short one, even where it is far off; longer ones need a ratio near 1."""
    assert likely_limit_s(plan(ratio), given_s) == due


@pytest.mark.parametrize(
    ("ratio", "given_s", "due"), [(1.19, None, None), (NEAR, None, 60), (NEAR, 40, 300), (NEAR, 200, None)]
)
def test_seconds_without_a_unit_of_time(ratio: float, given_s: float | None, due: int | None) -> None:
    """A short search seldom closes the gap of an abstract graph."""
    assert likely_limit_s(plan(ratio, bottleneck_s=None), given_s) == due


@pytest.mark.parametrize(
    "changes",
    [
        {"optimal": True},
        {"ratio": None},
        {"objective": "latency"},
        {"algorithm": "slice"},
        {"stopped": StopReason.INTERRUPTED},
        {"replicated": True},
        {"capacity": 4096},
        {"op_count": 5_001},
        {"stated": {"max_latency": 7}},
        {"stated": {"degrees": [1, 2]}},
    ],
)
def test_nothing_is_proposed(changes: dict[str, Any]) -> None:
    """Of what is proven, of goals that the bounds do not speak of, and where the caller chose the search."""
    assert likely_limit_s(plan(**{"ratio": 1.01, **changes}), None) is None


def test_of_several_plans() -> None:
    """By number of stages, without those of which nothing is expected."""
    plans = [plan(1.1, k=2), plan(1.5, k=3), plan(1.0, k=4, optimal=True), plan(1.02, k=5)]
    assert limit_of_all(plans, None) == {2: 10, 5: 10}
