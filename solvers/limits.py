"""What every partitioner is given besides the instance, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mtpp.host.deadline import Deadline
from mtpp.host.memory_limit import short_of_memory
from mtpp.host.progress import Observer, Silent
from mtpp.inference.certificate import LowerBound
from mtpp.inference.partition import Partition
from mtpp.solvers.best_so_far import Forgetful, Keeper

STOPS = ("finished", "optimal", "budget", "time-limit", "memory-limit", "interrupted")
"""Reasons for an end: nothing left to try, bound reached, evaluations spent, time up, memory used up, or the user."""

UNLIMITED = 2**62
"""A number of evaluations that no search reaches."""


@dataclass(frozen=True)
class SearchLimits:
    """How long a partitioner may run, and how.

    Attributes
    ----------
    evaluations
        Candidates to evaluate at most.
    deadline
        When to stop at the latest; without one the result depends on *seed* and *evaluations* alone.
    lower_bound
        Ticks that no partition can beat: a search that reaches them stops.
    seed
        Of all random choices.
    jobs
        Threads to use; changes the speed, never the result (as long as no deadline strikes).
    observer
        Is told of progress.
    memory_bytes
        What an exhaustive search may keep in memory; None: its own choice.
    population, generations
        Size and number of generations of the evolutionary searches; None: their own choice.
    interrupted
        Tells whether the user wants the search to end now, with the best so far.
    keeper
        Is given every better partition and bound at once, for a caller who cannot wait for the end.
    """

    evaluations: int
    deadline: Deadline = field(default_factory=Deadline)
    lower_bound: int = 0
    seed: int = 0
    jobs: int = 1
    observer: Observer = field(default_factory=Silent)
    memory_bytes: int | None = None
    population: int | None = None
    generations: int | None = None
    interrupted: Callable[[], bool] = lambda: False
    keeper: Keeper = field(default_factory=Forgetful)

    @property
    def stop(self) -> str | None:
        """Why the search has to end now, one of :data:`STOPS`, or None to go on."""
        if self.interrupted():
            return "interrupted"
        if short_of_memory():
            return "memory-limit"
        return "time-limit" if self.deadline.expired() else None

    def ended(self) -> bool:
        """Tell whether the search has to end now, whatever the reason: what inner loops ask."""
        return self.stop is not None


@dataclass(frozen=True)
class SearchResult:
    """The best partition that a search found.

    Attributes
    ----------
    partition, bottleneck
        The partition, and its bottleneck in ticks.
    found_by
        Name of the algorithm that found it.
    evaluations
        Candidates evaluated.
    stopped
        One of :data:`STOPS`.
    lower
        A lower bound that the search has proven, None if it has proven none.
    coverage
        What the search left out of that which its algorithm is to look through; empty if nothing.
    """

    partition: Partition
    bottleneck: int
    found_by: str
    evaluations: int
    stopped: str
    lower: LowerBound | None = None
    coverage: str = ""
