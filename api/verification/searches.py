"""Exhaustive searches behind results, run again for the independent verifier, and what is seen of them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from mtpp.api.observer import Observer, Steps, compilation_told
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.checker.claim import BoundClaim
    from mtpp.checker.merged import MergedGraph
    from mtpp.checker.report import Check, Outcome, Search
    from mtpp.checker.training.bounds import TrainingClaim
    from mtpp.checker.training.graphpipe.bounds import GraphClaim
    from mtpp.checker.training.model import TickModel
    from mtpp.checker.training.plan import TrainingSearches

R = TypeVar("R")


class GivenUp:
    """Flag by which a search in another thread learns that nobody waits for its result any more."""

    def __init__(self) -> None:
        self._event = Event()

    def set(self) -> None:
        """Have the search end at its next look, by :class:`mtpp.host.alarm.TimeIsUp` in its own thread."""
        self._event.set()

    def look(self) -> None:
        """Raise TimeIsUp if the search has been given up."""
        if self._event.is_set():
            from mtpp.host.alarm import TimeIsUp

            raise TimeIsUp


class SearchProgress:
    """Progress of a search towards the number of downsets that its proof states."""

    def __init__(self, observer: Observer, steps: Steps, given_up: GivenUp, downsets: int) -> None:
        self.alive = given_up.look
        self._observer = observer
        self._steps = steps
        self._downsets = downsets
        self._next_note = 1

    def searched(self, downsets: int) -> None:
        """Show the number of downsets expanded, as a note too each time that it has doubled."""
        self.alive()
        if downsets >= self._next_note:
            self._observer.note(f"searched again: {downsets:,} of {self._downsets:,} downsets")
            self._next_note = 2 * downsets
        self._steps.show("downsets searched again", min(downsets, self._downsets), self._downsets)


class PipelineProgress:
    """Progress of a search over all plans of a model to be trained: of so many downsets, or steps at most."""

    def __init__(self, observer: Observer, steps: Steps, given_up: GivenUp, what: str) -> None:
        self.alive = given_up.look
        self._observer = observer
        self._steps = steps
        self._what = what
        self._tenth = -1

    def searched(self, done: int, of_all: int) -> None:
        """Show how much is done, at every tenth of it as a note too."""
        self.alive()
        if done * 10 // of_all != self._tenth:
            self._tenth = done * 10 // of_all
            self._observer.note(f"searched again: {done:,} of {of_all:,} {self._what}")
        self._steps.show(f"{self._what} searched again", done, of_all)


def downset_search(observer: Observer, memory_bytes: int | None = None, deadline: Deadline | None = None) -> Search:
    """Return what runs the search behind a bound again, as :func:`mtpp.checker.plan.verify_plan` takes it.

    Parameters
    ----------
    memory_bytes
        That it may take; None: :data:`mtpp.solvers.recheck.downset.MEMORY_BYTES`.
    deadline
        When it ends with :class:`mtpp.host.alarm.TimeIsUp`; None: never.
    """

    def search(claim: BoundClaim, merged: MergedGraph | Sequence[MergedGraph] | None) -> Outcome:
        from mtpp.solvers.recheck.capacity import recheck_capacity
        from mtpp.solvers.recheck.downset import MEMORY_BYTES, recheck_downset, recheck_on_devices

        limit = MEMORY_BYTES if memory_bytes is None else memory_bytes
        given_up = GivenUp()
        if merged is None:
            with _progress(observer, given_up, "ops") as passed:
                return _until(deadline, given_up, lambda: recheck_capacity(claim, passed, limit))
        observer.note("running the search again")
        with compilation_told(observer), observer.steps() as steps:
            progress = SearchProgress(observer, steps, given_up, claim.proof["downsets"])
            if isinstance(merged, Sequence):
                return _until(deadline, given_up, lambda: recheck_on_devices(merged, claim, progress, limit))
            asked = (claim.graph, claim.system, claim.k, claim.value, claim.proof)
            return _until(deadline, given_up, lambda: recheck_downset(merged, *asked, progress, limit))

    return search


def training_searches(observer: Observer, deadline: Deadline | None = None) -> TrainingSearches:
    """Return what runs searches again, as :func:`mtpp.checker.training.plan.verify_training_plan` takes it.

    Parameters
    ----------
    deadline
        When they end with :class:`mtpp.host.alarm.TimeIsUp`; None: never.
    """
    from mtpp.checker.training.plan import TrainingSearches
    from mtpp.solvers.recheck.training import recheck_bound, recheck_graph_bound, recheck_no_plan

    def bound(claim: TrainingClaim, method: str) -> Check:
        given_up = GivenUp()
        with _progress(observer, given_up) as progress:
            return _until(deadline, given_up, lambda: recheck_bound(claim, method, progress))

    def no_plan(plan: dict[str, Any], model: TickModel) -> list[Check]:
        given_up = GivenUp()
        with _progress(observer, given_up) as progress:
            return _until(deadline, given_up, lambda: recheck_no_plan(plan, model, progress))

    def graph(claim: GraphClaim) -> Outcome:
        given_up = GivenUp()
        with _progress(observer, given_up, "steps") as progress:
            return _until(deadline, given_up, lambda: recheck_graph_bound(claim, progress))

    return TrainingSearches(bound, no_plan, graph)


@contextmanager
def _progress(observer: Observer, given_up: GivenUp, what: str = "downsets") -> Iterator[PipelineProgress]:
    observer.note("running the search again")
    with compilation_told(observer), observer.steps() as steps:
        yield PipelineProgress(observer, steps, given_up, what)


def _until(deadline: Deadline | None, given_up: GivenUp, work: Callable[[], R]) -> R:
    """Run a search in a thread of its own, so that the caller's hears signals and keeps the clock.

    However the wait for it ends, by the deadline or by a signal, the search does not outlive it for long.
    """
    from mtpp.host.alarm import TimeIsUp
    from mtpp.host.ending import EndedEarly, run_in_time

    end = deadline or Deadline()
    try:
        return run_in_time(work, end, lambda: StopReason.TIME_LIMIT if end.expired() else None)
    except EndedEarly as ended:
        raise (MemoryError if ended.stopped is StopReason.MEMORY_LIMIT else TimeIsUp) from None
    finally:
        given_up.set()
