"""Bounds worked at side by side: the ticks that each has reached, and turns of lanes that trail."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from mtpp.host.progress import Counting, Observer
from mtpp.solvers.bounds.registry import BOUNDS

_LOOK_S = 0.02


class Headway:
    """Bounds at work, by name, with the ticks that they have reached."""

    def __init__(self) -> None:
        self._reached: dict[str, int] = {}
        self._at_work: set[str] = set()

    @contextmanager
    def at_work(self, name: str, observer: Observer) -> Iterator[Observer]:
        """Count a bound among those at work; return an observer for it that passes everything on."""
        self._at_work.add(name)
        try:
            yield _Listener(observer, lambda value: self._reach(name, value))
        finally:
            self._at_work.discard(name)

    def _reach(self, name: str, value: int) -> None:
        self._reached[name] = max(value, self._reached.get(name, 0))

    def raised(self, name: str) -> int:
        """Return the ticks that a bound has raised what was known to; 0 where it has not."""
        return self._reached.get(name, 0)

    def fills(self, cores: int) -> bool:
        """Tell whether bounds at work leave none of so many cores free."""
        return sum(cores if BOUNDS[name].parallel else 1 for name in self._at_work.copy()) >= cores

    def trails(self, lane: Collection[str]) -> bool:
        """Tell whether a bound at work has come further than those of a lane."""
        own = max(self._reached.get(name, 0) for name in lane)
        return any(self._reached.get(other, 0) > own for other in self._at_work.copy())

    def make_room(
        self,
        lane: Collection[str],
        seconds: float,
        over: Callable[[], bool],
        meanwhile: Callable[[float, Callable[[], bool]], None],
    ) -> None:
        """Wait as long as a lane trails, but no longer than that, nor when *over* says that all is over.

        Parameters
        ----------
        meanwhile
            What can be done in the meantime, asked again and again: told of the seconds left, and of a function that
            says when the wait is over.
        """
        until = time.perf_counter() + seconds

        def ended() -> bool:
            return not self.trails(lane) or time.perf_counter() >= until or over()

        while not ended():
            meanwhile(until - time.perf_counter(), ended)
            time.sleep(_LOOK_S)


class _Listener(Counting):
    """Passes everything on, and bounds to a second listener as well."""

    def __init__(self, observer: Observer, hear: Callable[[int], None]) -> None:
        super().__init__(observer)
        self._hear = hear

    def bound(self, value: int) -> None:
        """Pass it on to both."""
        self._hear(value)
        super().bound(value)
