"""Lanes of bounds: who goes first, and how long turns ahead of the lanes are."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from queue import Queue
from threading import Event

import pytest

from mtpp.host.deadline import Deadline
from mtpp.host.ending import TimedThread
from mtpp.host.progress import Silent
from mtpp.solvers.bounds.registry import BOUNDS
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
        """Note that there was one, and work."""
        self.told.append(name)
        self.work_at(name, deadline, ended)

    def work_at(self, name: str, deadline: Deadline, ended: Callable[[], bool]) -> None:
        """Do nothing: tests say what is done."""

    def over(self) -> bool:
        """Tell that there is time."""
        return False

    def give_up(self) -> None:
        """Fail: nothing is given up here."""
        raise AssertionError

    def through(self, name: str) -> bool:
        """Tell whether a bound need not go on: after its turn in its lane."""
        return self.told.count(name) > bool(BOUNDS[name].ahead)

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
    assert " ".join(work.told[2:]) == order


@pytest.mark.parametrize("proves", [False, True])
@pytest.mark.parametrize(("name", "due", "whole"), [("convex-weights", 0.15, 0.3), ("position-weights", 0.1, 0.4)])
def test_a_turn_ahead_that_comes_to_nothing_ends_early(name: str, due: float, whole: float, *, proves: bool) -> None:
    """When it is due, whatever it could have had; one in which something was proven has all of its time."""
    parts: list[float] = []

    class Once(Work):
        def work_at(self, name: str, deadline: Deadline, ended: Callable[[], bool]) -> None:
            if len(self.told) > 1:  # in its lane
                return
            begin = deadline.remaining_s()
            with self.headway.at_work(name, Silent()) as observer:
                if proves:
                    observer.bound(7)
                while not (ended() or deadline.expired()):
                    pass
                observer.bound(7)
                assert ended() is not proves  # for good
            parts.append((begin - deadline.remaining_s()) / 1000)

    ticks = count()
    deadline = Deadline(1000.0, clock=lambda: float(next(ticks)))
    Once().turns(deadline).take([[name]])
    assert parts == pytest.approx([whole if proves else due], abs=0.02)


class Gated(Work):
    """Bounds of which each is at work until a test lets it end."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: Queue[str] = Queue()
        self.gates: dict[str, Event] = {}
        self.ended = False

    def work_at(self, name: str, deadline: Deadline, ended: Callable[[], bool]) -> None:
        """Tell that it has begun, and wait."""
        self.gates[name] = Event()
        self.begun.put(name)
        assert self.gates[name].wait(60)
        if name == "exact-mip":
            raise MemoryError

    def through(self, name: str) -> bool:
        """Tell whether a bound has ended: after any turn."""
        return name in self.told

    def over(self) -> bool:
        """Tell whether work was given up."""
        return self.ended

    def give_up(self) -> None:
        """Let all end."""
        self.ended = True
        for gate in self.gates.values():
            gate.set()

    def next(self, some: int) -> set[str]:
        """Return as many as begin next."""
        return {self.begun.get(timeout=60) for _ in range(some)}


def test_lanes_begin_as_turns_ahead_of_them_end() -> None:
    """One by one, and lanes of bounds that went ahead when all have; one that fails ends all."""
    work = Gated()
    lanes = [
        ["position-weights"],
        ["convex-weights", "configuration"],
        ["relaxation"],
        ["branch-and-bound"],
        ["exact-mip"],
    ]
    with ThreadPoolExecutor(1) as threads:
        taken = threads.submit(work.turns(Deadline(1000.0)).take, lanes)
        assert work.next(2) == {"convex-weights", "position-weights"}
        work.gates["position-weights"].set()
        assert work.next(1) == {"relaxation"}
        assert work.begun.empty()
        work.gates["convex-weights"].set()
        assert work.next(3) == {"branch-and-bound", "exact-mip", "configuration"}
        work.gates["exact-mip"].set()
        with pytest.raises(MemoryError):
            taken.result(60)
    assert work.begun.empty()


def test_a_turn_ahead_that_fails_ends_all() -> None:
    """Lanes that waited for it do not begin."""

    class Failing(Work):
        given_up = False

        def work_at(self, name: str, deadline: Deadline, ended: Callable[[], bool]) -> None:
            raise MemoryError

        def give_up(self) -> None:
            self.given_up = True

        def over(self) -> bool:
            return self.given_up

    work = Failing()
    with pytest.raises(MemoryError):
        work.turns(Deadline(1000.0)).take([["relaxation"], ["convex-weights"]])
    assert work.given_up
    assert work.told == ["convex-weights"]


@pytest.mark.parametrize(
    ("figures", "shares"),
    [
        ({"convex-weights": 4}, (0.875, 0.7)),
        ({"position-weights": 4}, (0.75, 0.85)),
        ({"convex-weights": 4, "position-weights": 3}, (0.75, 0.7)),
        ({}, (0.75, 0.7)),
    ],
)
def test_a_bound_that_alone_came_to_something_ahead_has_more_of_its_lane(
    figures: dict[str, int], shares: tuple[float, float]
) -> None:
    """Half of the time that it would leave to the others."""
    found: dict[str, float] = {}

    class Shared(Work):
        def work_at(self, name: str, deadline: Deadline, ended: Callable[[], bool]) -> None:
            found[name] = deadline.remaining_s() / 1000

    whole = Deadline(1000.0, clock=lambda: 0.0)
    Shared(figures).turns(whole).take([["convex-weights", "position-weights", "configuration"]])
    assert (found["convex-weights"], found["position-weights"]) == pytest.approx(shares)


@pytest.mark.parametrize(("raised", "further", "early"), [(7, 8, True), (9, 8, False), (0, 0, True), (7, 0, False)])
def test_a_bound_that_makes_room_ends_its_turn_early_where_its_lane_trails(
    raised: int, further: int, *, early: bool
) -> None:
    """Or where nothing is proven, but not if it has come further than the others, and no other bound."""
    parts: dict[str, float] = {}

    class Timed(Work):
        def work_at(self, name: str, deadline: Deadline, ended: Callable[[], bool]) -> None:
            whole_s = deadline.remaining_s()
            with self.headway.at_work("convex-weights", Silent()) as other:
                other.bound(further)
                with self.headway.at_work(name, Silent()) as observer:
                    observer.bound(raised)
                    while not (ended() or deadline.expired()):
                        pass
            parts[name] = (whole_s - deadline.remaining_s()) / whole_s

    ticks = count()
    deadline = Deadline(1000.0, clock=lambda: float(next(ticks)))
    Timed().turns(deadline).take([["relaxation"]])
    Timed().turns(Deadline(1000.0, clock=lambda: float(next(ticks)))).take([["branch-and-bound"]])
    assert parts["branch-and-bound"] > 0.95
    assert 0.45 < parts["relaxation"] < 0.7 if early else parts["relaxation"] > 0.95


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
