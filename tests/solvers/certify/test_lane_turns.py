"""Lanes of bounds: who goes first, and how long turns before the lanes are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from mtpp.host.deadline import Deadline
from mtpp.host.ending import TimedThread
from mtpp.host.progress import Silent
from mtpp.solvers.certify.headway import Headway
from mtpp.solvers.certify.lane_turns import LaneTurns


class Work:
    """Bounds that are never over; tests say what comes of an attempt."""

    def __init__(self, figures: dict[str, int] | None = None) -> None:
        self.headway = Headway()
        self.figures = figures or {}
        self.told: list[str] = []

    def turns(self, deadline: Deadline) -> LaneTurns:
        """Return turns at these bounds."""
        return LaneTurns(self, deadline, self.headway, Silent())

    def attempt(
        self, name: str, deadline: Deadline, thread: TimedThread, ended: Callable[[], bool] = lambda: False
    ) -> None:
        """Note that there was one."""
        self.told.append(name)

    def over(self) -> bool:
        """Tell that there is time."""
        return False

    def give_up(self) -> None:
        """Fail: nothing is given up here."""
        raise AssertionError

    def through(self, name: str) -> bool:
        """Tell whether a bound need not go on."""
        return name in self.told

    def unfinished(self, name: str) -> bool:
        """Tell that no bound can go on."""
        return False

    def seconds(self, name: str) -> float:
        """Return no time."""
        return 0.0

    def reached(self, name: str) -> int:
        """Return the figure of a bound."""
        return self.figures.get(name, 0)

    def search(self, seconds: float, thread: TimedThread, ended: Callable[[], bool]) -> None:
        """Fail: no bound can go on, so that none makes room."""
        raise AssertionError


@pytest.mark.parametrize(
    ("figures", "order"),
    [
        ({"convex-weights": 4, "position-weights": 5}, "position-weights convex-weights configuration"),
        ({"convex-weights": 5, "position-weights": 4}, "convex-weights position-weights configuration"),
        ({"position-weights": 5, "configuration": 6}, "convex-weights position-weights configuration"),
        ({}, "convex-weights position-weights configuration"),
    ],
)
def test_the_best_of_those_that_went_ahead_goes_first(figures: dict[str, int], order: str) -> None:
    """Bounds that came to nothing keep their places, and bounds that did not go ahead."""
    work = Work(figures)
    work.turns(Deadline(60.0)).take([["convex-weights", "position-weights", "configuration"]])
    assert " ".join(work.told) == order


@pytest.mark.parametrize("proves", [False, True])
def test_a_turn_ahead_that_comes_to_nothing_ends_early(*, proves: bool) -> None:
    """One in which something was proven has all of its time."""
    parts: list[float] = []

    class Timed(Work):
        def attempt(
            self, name: str, deadline: Deadline, thread: TimedThread, ended: Callable[[], bool] = lambda: False
        ) -> None:
            whole_s = deadline.remaining_s()
            with self.headway.at_work(name, Silent()) as observer:
                if proves:
                    observer.bound(7)
                while not (ended() or deadline.expired()):
                    pass
                observer.bound(7)
                assert ended() is not proves  # for good
            parts.append((whole_s - deadline.remaining_s()) / whole_s)

    ticks = count()
    deadline = Deadline(1000.0, clock=lambda: float(next(ticks)))
    Timed().turns(deadline).go_ahead([["convex-weights", "configuration"]])
    (part,) = parts
    assert part > 0.95 if proves else 0.2 < part < 0.45


@pytest.mark.parametrize("leads", [False, True])
def test_a_bound_that_makes_room_ends_its_turn_early_where_its_lane_trails(*, leads: bool) -> None:
    """Not one that has come further than the others, and no other bound: these come to an end."""
    parts: dict[str, float] = {}

    class Timed(Work):
        def attempt(
            self, name: str, deadline: Deadline, thread: TimedThread, ended: Callable[[], bool] = lambda: False
        ) -> None:
            super().attempt(name, deadline, thread, ended)
            whole_s = deadline.remaining_s()
            with self.headway.at_work("convex-weights", Silent()) as other:
                other.bound(8)
                with self.headway.at_work(name, Silent()) as observer:
                    observer.bound(9 if leads else 7)
                    while not (ended() or deadline.expired()):
                        pass
            parts[name] = (whole_s - deadline.remaining_s()) / whole_s

    ticks = count()
    deadline = Deadline(1000.0, clock=lambda: float(next(ticks)))
    Timed().turns(deadline).take([["relaxation"]])
    Timed().turns(Deadline(1000.0, clock=lambda: float(next(ticks)))).take([["branch-and-bound"]])
    assert parts["branch-and-bound"] > 0.95
    assert parts["relaxation"] > 0.95 if leads else 0.45 < parts["relaxation"] < 0.7


def test_bounds_that_make_room_go_on_after_the_others_of_their_lane() -> None:
    """In each round, and with a search for partitions while room is made."""

    class Resumed(Work):
        def unfinished(self, name: str) -> bool:
            """Tell that each can go on once."""
            return self.told.count(name) == 1

        def search(self, seconds: float, thread: TimedThread, ended: Callable[[], bool]) -> None:
            """Note it, and let the other lane end."""
            self.told.append("search")
            other.__exit__(None, None, None)

        def seconds(self, name: str) -> float:
            """Return a long time."""
            return 1e6

    work = Resumed()
    other = work.headway.at_work("convex-weights", Silent())
    other.__enter__().bound(5)
    work.turns(Deadline(1e9)).take([["relaxation", "branch-and-bound"]])
    assert work.told == ["relaxation", "branch-and-bound", "branch-and-bound", "search", "relaxation"]
