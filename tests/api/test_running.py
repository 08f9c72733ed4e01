"""First plans before searches: made whatever the clock says, shown whatever ends the search, but not waited for."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import pytest

from mtpp.api.training.running import run_from_first
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.solvers.limits import Limits


@dataclass(frozen=True)
class _Plan:
    stopped: StopReason


def _result(found: object, first: object) -> object:
    return found


def test_first_plan_is_made_though_the_deadline_has_passed() -> None:
    """With no time left the first plan is the result, and no search begins."""
    began: list[str] = []

    def search() -> StopReason:
        began.append("search")
        return StopReason.FINISHED

    result = run_from_first(search, Limits(deadline=Deadline(0.0)), _Plan, _result)
    assert result == _Plan(StopReason.TIME_LIMIT)
    assert not began


@pytest.mark.parametrize("reason", [StopReason.TIME_LIMIT, StopReason.INTERRUPTED])
def test_first_plan_says_what_ended_the_search(reason: StopReason) -> None:
    """A search without a plan leaves the first one, made before it, with its own reason."""
    order: list[str] = []

    def first(stopped: StopReason) -> _Plan:
        order.append("first")
        return _Plan(stopped)

    def search() -> StopReason:
        order.append("search")
        return reason

    assert run_from_first(search, Limits(), first, _result) == _Plan(reason)
    assert order == ["first", "search"]


def test_results_are_chosen_from_beside_the_first_plan() -> None:
    """What a search came to, with a plan or without one, goes with the first plan to what chooses."""
    plan = _Plan(StopReason.TIME_LIMIT)
    assert run_from_first(lambda: "slow", Limits(), _Plan, lambda *both: both) == ("slow", plan)
    assert run_from_first(lambda: "no plan fits", Limits(), _Plan, _result) == "no plan fits"


def test_interruption_waits_for_no_first_plan() -> None:
    """A first plan that does not come back is given up when the user interrupts it, and no search begins."""
    pressed, never = Event(), Event()
    began: list[str] = []

    def first(stopped: StopReason) -> None:
        pressed.set()
        never.wait()

    def search() -> StopReason:
        began.append("search")
        return StopReason.FINISHED

    try:
        result = run_from_first(search, Limits(interrupted=pressed.is_set), first, _result)
    finally:
        never.set()
    assert result is StopReason.INTERRUPTED
    assert not began
