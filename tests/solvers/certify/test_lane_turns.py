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
