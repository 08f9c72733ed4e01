"""Progress of a use case, as its caller hears it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Protocol, TypeVar

from mtpp.errors import InputError, renamed

L = TypeVar("L")


class MtppWarning(UserWarning):
    """Something that a reader of the result should know, such as an option without effect."""


class Costs(Protocol):
    """Costs in ticks, described for people: an instance, or a planning problem."""

    def describe(self, ticks: float) -> str:
        """Return so many ticks with their unit."""


class Search(Protocol):
    """Listener to one search; :class:`mtpp.host.progress.Observer` with the costs that ticks are described by."""

    costs: Costs

    def phase(self, name: str) -> None:
        """Take note that the search enters the part called *name*."""

    def incumbent(self, bottleneck: int) -> None:
        """Take note of a better partition, its bottleneck in ticks."""

    def bound(self, value: int) -> None:
        """Take note of a better lower bound, in ticks."""

    def evaluated(self, count: int) -> None:
        """Take note that *count* more candidates were evaluated."""


class Steps(Protocol):
    """Listener to work in steps."""

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Take note of what is being done, and that *done* of *total* steps are done where the total is known."""


class Observer:
    """Listener to a use case: override the methods whose news you want.

    Warnings become Python warnings of :class:`MtppWarning` at the line that called the library; all else is ignored.
    Methods are called many times and have to return quickly; a search with a time limit calls them from a thread of its
    own.

    Examples
    --------
    >>> class Best(Observer):
    ...     def incumbent(self, bottleneck):
    ...         print(f"a partition of {bottleneck} ticks")
    """

    def warn(self, text: str) -> None:
        """Take note of something that a reader of the result should know."""
        warnings.warn(renamed(text), MtppWarning, stacklevel=_levels_to_caller())

    def warn_interrupted(self, text: str) -> None:
        """Take note that Ctrl-C ended the work; *text* says how far it had come."""
        self.warn(f"interrupted {text}")

    def note(self, text: str) -> None:
        """Take note of a detail of what is being done."""

    def say(self, text: str) -> None:
        """Take note of a reason to wait."""

    def complain(self, text: str) -> None:
        """Take note of a part of the work that failed; the result says so too."""

    def quote(self, speaker: str, line: str) -> None:
        """Take note of what a process said before it died."""

    def phase(self, name: str) -> None:
        """Take note that a search enters the part called *name*."""

    def incumbent(self, bottleneck: int) -> None:
        """Take note of a better partition or plan, its bottleneck in ticks."""

    def bound(self, value: int) -> None:
        """Take note of a better lower bound, in ticks."""

    def evaluated(self, count: int) -> None:
        """Take note that *count* more candidates were evaluated."""

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Take note of what is being done, and that *done* of *total* steps are done where the total is known."""

    def search(self, costs: Costs) -> AbstractContextManager[Search]:
        """Return a listener to one search, which may show itself while it is entered."""
        return _entered(_Search(self, costs))

    def steps(self) -> AbstractContextManager[Steps]:
        """Return a listener to work in steps, which may show itself while it is entered."""
        return _entered(self)


def listener(observer: object) -> Observer:
    """Return the listener that a caller gives, or one that only turns warnings into Python's for None."""
    if observer is None:
        return Observer()
    if not isinstance(observer, Observer):
        raise InputError(f"must be an Observer, not a {type(observer).__name__}", parameter="observer")
    return observer


@contextmanager
def compilation_told(observer: Observer) -> Iterator[None]:
    """Tell *observer* of the wait, once, if inner loops are compiled while this is entered."""
    from mtpp.solvers.compilation import watched_compilation

    with watched_compilation(lambda: observer.say("compiling (once) …")):
        yield


def _levels_to_caller() -> int:
    """Return the ``stacklevel`` by which a function that warns names the line that called the library.

    Python 3.12 has ``skip_file_prefixes`` for that.
    """
    level, found = 0, 1
    frame = sys._getframe(1)
    while (caller := frame.f_back) is not None:
        level += 1
        if _is_ours(frame) and not _is_ours(caller):
            found = level + 1  # the outermost: an observer's own methods are called from inside
        frame = caller
    return found


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "mtpp"


class _Search:
    """Listener to one search that hands everything on."""

    def __init__(self, observer: Observer, costs: Costs) -> None:
        self.costs = costs
        self.phase = observer.phase
        self.incumbent = observer.incumbent
        self.bound = observer.bound
        self.evaluated = observer.evaluated


@contextmanager
def _entered(listener: L) -> Iterator[L]:
    yield listener
