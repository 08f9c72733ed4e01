"""Observers of a running search, called from the thread that runs it."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Listens to a search; every method may be called many times and has to return quickly."""

    def phase(self, name: str) -> None:
        """Take note that the search enters the part called *name*."""

    def incumbent(self, bottleneck: int) -> None:
        """Take note of a better partition, its bottleneck in ticks."""

    def bound(self, value: int) -> None:
        """Take note of a better lower bound, in ticks."""

    def evaluated(self, count: int) -> None:
        """Take note that *count* more candidates were evaluated."""


class Counting:
    """An observer that counts candidates, and passes everything on.

    Attributes
    ----------
    count
        Candidates evaluated so far.
    """

    def __init__(self, observer: Observer) -> None:
        self.count = 0
        self._observer = observer

    def phase(self, name: str) -> None:
        """Pass it on."""
        self._observer.phase(name)

    def incumbent(self, bottleneck: int) -> None:
        """Pass it on."""
        self._observer.incumbent(bottleneck)

    def bound(self, value: int) -> None:
        """Pass it on."""
        self._observer.bound(value)

    def evaluated(self, count: int) -> None:
        """Count them."""
        self.count += count
        self._observer.evaluated(count)


class Silent:
    """The observer that ignores everything."""

    def phase(self, name: str) -> None:
        """Ignore it."""

    def incumbent(self, bottleneck: int) -> None:
        """Ignore it."""

    def bound(self, value: int) -> None:
        """Ignore it."""

    def evaluated(self, count: int) -> None:
        """Ignore it."""
