"""Turns of the strong bounds of a cell: lanes side by side, the bounds of a lane one after the other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from threading import Condition
from typing import Protocol

from mtpp.host.deadline import Deadline
from mtpp.host.ending import TimedThread
from mtpp.host.progress import Observer
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.certify.headway import Headway

_TIMES_ROOM = 3
"""As long as it has been worked at, so many times, a bound makes room for lanes that are further."""

_TRAILING = 0.5
"""Part of a turn of a bound that makes room after which it ends if its lane trails, or it has come to nothing."""


class BoundWork(Protocol):
    """Work at bounds, by name."""

    def attempt(
        self, name: str, deadline: Deadline, thread: TimedThread, ended: Callable[[], bool] = lambda: False
    ) -> None:
        """Begin a bound, or go on with it, until its time is up or *ended* says so."""

    def over(self) -> bool:
        """Tell whether all work is over."""

    def give_up(self) -> None:
        """End all work that has begun."""

    def through(self, name: str) -> bool:
        """Tell whether a bound has come to its end, or was not worked at for a reason."""

    def unfinished(self, name: str) -> bool:
        """Tell whether a bound can go on where it ended."""

    def seconds(self, name: str) -> float:
        """Return how long a bound has been worked at."""

    def reached(self, name: str) -> int:
        """Return the ticks that a bound has come to; 0 for none."""

    def search(self, seconds: float, thread: TimedThread, ended: Callable[[], bool]) -> None:
        """Search for better partitions for so long, or until *ended* says so, where no bound needs the core."""


class LaneTurns:
    """Lanes of bounds, and the time that there is for them."""

    def __init__(self, work: BoundWork, deadline: Deadline, headway: Headway, observer: Observer) -> None:
        self._work, self._deadline, self._headway, self._observer = work, deadline, headway, observer
        self._ahead_ended = 0
        self._ahead = Condition()

    def take(self, lanes: list[list[str]]) -> None:
        """Work at lanes side by side, until nothing is left to do or all is over.

        Bounds that have a turn ahead of the lanes begin. As each of these turns ends, a lane begins in its place. All
        others begin when the last one has ended, the lane of these bounds among them.
        """
        if not lanes or self._work.over():
            return
        self._observer.phase(", ".join(name for lane in lanes for name in lane))
        ahead = [name for lane in lanes for name in lane if BOUNDS[name].ahead]
        works: list[Callable[[], None]] = [partial(self._go_ahead, name) for name in ahead]
        others = [lane for lane in lanes if not any(name in ahead for name in lane)]
        for number, lane in enumerate(others, 1):
            works.append(partial(self._take_turns, lane, min(number, len(ahead))))
        works += [partial(self._take_turns, lane, len(ahead)) for lane in lanes if lane not in others]
        self._side_by_side(works)

    def _side_by_side(self, works: list[Callable[[], None]]) -> None:
        with ThreadPoolExecutor(len(works)) as threads:
            try:
                for done in as_completed([threads.submit(work) for work in works]):
                    done.result()
            except BaseException:
                self._work.give_up()  # or the others would be waited for
                raise

    def _came_to_something(self, lane: list[str]) -> list[str]:
        """Return the bounds of a lane that came to something ahead of the lanes."""
        return [name for name in lane if BOUNDS[name].ahead and self._work.reached(name)]

    def _furthest_first(self, lane: list[str]) -> list[str]:
        """Let bounds that came to something ahead of the lanes change places, so that the best ones go on first."""
        some = self._came_to_something(lane)
        best = iter(sorted(some, key=self._work.reached, reverse=True))
        return [next(best) if name in some else name for name in lane]

    def _leader(self, lane: list[str]) -> str | None:
        """Return the bound that alone came to something ahead of the lanes, where others of its lane did not."""
        some = self._came_to_something(lane)
        others = any(BOUNDS[name].ahead for name in lane if name not in some)
        return some[0] if len(some) == 1 and others else None

    def _go_ahead(self, name: str) -> None:
        """Work at a bound for as long as it may, or less if it has proven nothing when that is due."""
        entry, thread, ends = BOUNDS[name], TimedThread(), False
        end, due = self._deadline.share(entry.ahead), self._deadline.share(entry.due)

        def comes_to_nothing() -> bool:
            nonlocal ends
            ends = ends or (due.expired() and not self._headway.raised(name))
            return ends

        try:
            self._work.attempt(name, end, thread, comes_to_nothing)
        except BaseException:
            self._work.give_up()  # or lanes would begin
            raise
        finally:
            thread.close()
            with self._ahead:
                self._ahead_ended += 1
                self._ahead.notify_all()

    def _take_turns(self, lane: list[str], after: int) -> None:
        """Work at the bounds of a lane one after the other, and then on at those left; the last ones make room.

        The lane begins *after* so many turns ahead of the lanes have ended.
        """
        with self._ahead:
            self._ahead.wait_for(lambda: self._ahead_ended >= after)
        lane, leader = self._furthest_first(lane), self._leader(lane)
        work, thread = self._work, TimedThread()
        cut = []  # by their shares
        try:
            for number, name in enumerate(lane):
                others = lane[number + 1 :] + [other for other in lane if work.unfinished(other)]
                share = BOUNDS[name].share if others else 1.0
                if name == leader:
                    share = (1 + share) / 2
                if not work.over() and not work.through(name):
                    self._take_turn(name, lane, self._deadline.share(share), thread)
                    if share < 1 and not work.through(name):
                        cut.append(name)
            while not work.over():
                left = [name for name in lane if work.unfinished(name)]
                if not left and not cut:
                    break
                for name in sorted(left, key=lambda name: BOUNDS[name].makes_room) or [cut.pop()]:
                    if BOUNDS[name].makes_room:
                        seconds = _TIMES_ROOM * work.seconds(name)
                        self._headway.make_room(
                            lane, seconds, work.over, lambda left_s, ended: work.search(left_s, thread, ended)
                        )
                    if not work.over():
                        self._take_turn(name, lane, self._deadline, thread)
        finally:
            thread.close()

    def _take_turn(self, name: str, lane: list[str], end: Deadline, thread: TimedThread) -> None:
        """Work at a bound of a lane; one that makes room ends early if its lane trails or nothing is proven."""
        headway, due, ends = self._headway, end.share(_TRAILING), False

        def ends_early() -> bool:
            nonlocal ends
            if BOUNDS[name].makes_room and due.expired():
                ends = ends or headway.trails(lane) or not headway.raised(name)
            return ends

        self._work.attempt(name, end, thread, ends_early)
