"""The best partition and bound that a search has told of, for a caller who cannot wait for its end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Protocol

from mtpp.inference.certificate import LowerBound
from mtpp.inference.partition import Partition


class Keeper(Protocol):
    """Is given what a search has found so far."""

    def offer(self, bottleneck: int, found_by: str, partition: Callable[[], Partition]) -> None:
        """Take note of a partition with that bottleneck in ticks; *partition* makes it, and must not change later."""

    def prove(self, lower: LowerBound) -> None:
        """Take note of a lower bound on the instance that the search was given."""


class Forgetful:
    """The keeper that keeps nothing."""

    def offer(self, bottleneck: int, found_by: str, partition: Callable[[], Partition]) -> None:
        """Ignore it."""

    def prove(self, lower: LowerBound) -> None:
        """Ignore it."""


class BestSoFar:
    """The keeper that keeps the best.

    Attributes
    ----------
    bottleneck, found_by
        Of the best partition; None and empty while there is none.
    lower
        The best bound, None while there is none.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._make: Callable[[], Partition] | None = None
        self.bottleneck: int | None = None
        self.found_by = ""
        self.lower: LowerBound | None = None

    def offer(self, bottleneck: int, found_by: str, partition: Callable[[], Partition]) -> None:
        """Keep the partition if it is better than what there is."""
        with self._lock:
            if self.bottleneck is None or bottleneck < self.bottleneck:
                self.bottleneck, self.found_by, self._make = bottleneck, found_by, partition

    def prove(self, lower: LowerBound) -> None:
        """Keep the bound if it is better than what there is."""
        with self._lock:
            if self.lower is None or lower.value > self.lower.value:
                self.lower = lower

    def partition(self) -> tuple[Partition, int, str] | None:
        """Return the best partition with its bottleneck and what found it, None while there is none."""
        with self._lock:
            if self._make is None or self.bottleneck is None:
                return None
            return self._make(), self.bottleneck, self.found_by


class Lifted:
    """A keeper for a search on a smaller instance, whose partitions *lift* brings back to that of *keeper*.

    Bounds are let go: what is proven of the smaller instance is not yet a proof for the larger one.
    """

    def __init__(self, keeper: Keeper, lift: Callable[[Partition], Partition]) -> None:
        self._keeper = keeper
        self._lift = lift

    def offer(self, bottleneck: int, found_by: str, partition: Callable[[], Partition]) -> None:
        """Pass the partition on; it is lifted when somebody asks for it."""
        self._keeper.offer(bottleneck, found_by, lambda: self._lift(partition()))

    def prove(self, lower: LowerBound) -> None:
        """Ignore it."""
