"""Limits of searches, and the results of partitioners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from mtpp.host.deadline import Deadline
from mtpp.host.ending import reason_to_end
from mtpp.host.progress import Observer, Silent
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.best_so_far import Forgetful, Keeper

UNLIMITED = 2**62
"""A number of evaluations that no search reaches."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Time and threads that a search may use, and its listener.

    Attributes
    ----------
    deadline
        When to stop at the latest, with the best so far.
    jobs
        Threads to use; changes the speed, never the result (as long as no deadline strikes).
    observer
        Is told of progress.
    interrupted
        Tells whether the user wants the search to end now, with the best so far.
    """

    deadline: Deadline = field(default_factory=Deadline)
    jobs: int = 1
    observer: Observer = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False

    @property
    def stop(self) -> StopReason | None:
        """Why the search has to end now, or None to go on."""
        return reason_to_end(self.deadline, self.interrupted)

    def ended(self) -> bool:
        """Tell whether the search has to end now, whatever the reason: what inner loops ask."""
        return self.stop is not None


@dataclass(frozen=True, kw_only=True)
class InstanceLimits(Limits):
    """Limits of a search of partitions, or for a bound on all of them.

    Without a deadline the result depends on *seed* and on counted limits alone.

    Attributes
    ----------
    seed
        Of all random choices.
    memory_bytes
        What an exhaustive search may keep in memory; None: its own choice.
    """

    seed: int = 0
    memory_bytes: int | None = None


@dataclass(frozen=True)
class SearchLimits(InstanceLimits):
    """Limits of a partitioner.

    Attributes
    ----------
    evaluations
        Candidates to evaluate at most.
    lower_bound
        Ticks that no partition can beat: a search that reaches them stops.
    population, generations
        Size and number of generations of the evolutionary searches; None: their own choice.
    keeper
        Is given every better partition and bound at once, for a caller who cannot wait for the end.
    cheap_bounds
        Whether a search that proves bounds begins with those that cost little; False for a caller who tries them.
    """

    evaluations: int
    _: KW_ONLY
    lower_bound: int = 0
    population: int | None = None
    generations: int | None = None
    keeper: Keeper = field(default_factory=Forgetful)
    cheap_bounds: bool = True

    def tell(self, best: SearchResult) -> None:
        """Tell observer and keeper of a better partition."""
        self.observer.incumbent(best.bottleneck)
        self.keeper.offer(best.bottleneck, best.found_by, lambda: best.partition)


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
        Why it ended.
    lower
        A lower bound that the search has proven, None if it has proven none.
    coverage
        What the search left out of that which its algorithm is to look through; empty if nothing.
    """

    partition: Partition
    bottleneck: int
    found_by: str
    evaluations: int
    stopped: StopReason
    lower: LowerBound | None = None
    coverage: str = ""

    @property
    def devices(self) -> tuple[int, ...] | None:
        """Device of each stage, by its number in the machine's list; None: stage i stands on device i."""
        return self.partition.devices if isinstance(self.partition, PlacedPartition) else None


@dataclass(frozen=True, kw_only=True)
class PlanLimits(Limits):
    """Limits of a planner, and how it chooses configurations.

    Attributes
    ----------
    knapsack
        One of :data:`mtpp.names.KNAPSACKS`. With the heuristic, plans of others may be faster, and only bounds from
        single layers are proven.
    """

    knapsack: str = "exact"
