"""Standard error for people: warnings, notes, and something that moves while they wait at a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from mtpp.api.observer import Costs, Observer
from mtpp.cli.flags import flag_of
from mtpp.cli.terminal.waiting import Waiting, line_of, shows
from mtpp.errors import renamed
from mtpp.host.interrupts import tell
from mtpp.terminal_safe import terminal_safe

if TYPE_CHECKING:
    from rich.progress import Progress


class Console(Observer):
    """Where a command says things that are not its result."""

    def __init__(self, *, quiet: bool, verbose: bool, waiting: Waiting | None = None) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self.waiting = waiting or Waiting()

    def warn(self, text: str) -> None:
        """Print a warning unless told to be quiet."""
        if not self.quiet:
            self._print(f"warning: {text}")

    def warn_interrupted(self, text: str) -> None:
        """Warn that the user ended the run, unless told to be quiet: the one line that says so."""
        if not self.quiet:
            self.warn(f"interrupted {text}")
            tell()

    def complain(self, text: str) -> None:
        """Print what went wrong and is behind the exit code, even if told to be quiet."""
        self._print(f"error: {text}")

    def quote(self, speaker: str, line: str) -> None:
        """Print what a process said before it died, even if told to be quiet."""
        self._print(f"{speaker}: | {line}")

    def note(self, text: str) -> None:
        """Print a note if told to be verbose; who waits sees it as long as it holds."""
        self.waiting.say(text)
        if self.verbose and not self.quiet:
            self._print(text)

    def say(self, text: str) -> None:
        """Print something that the user should know while waiting, unless told to be quiet."""
        if not self.quiet:
            self._print(text)

    def search(self, costs: Costs) -> LiveLine:
        """Return a line that shows one search while it is entered."""
        return LiveLine(self, costs)

    def steps(self) -> ProgressBar:
        """Return a bar that shows work in steps while it is entered."""
        return ProgressBar(self)

    def _print(self, text: str) -> None:
        if sys.stderr is not None:  # closed; print would take standard output for it
            print("\n".join(map(terminal_safe, renamed(text, flag_of).split("\n"))), file=sys.stderr, flush=True)


class TalkativeConsole(Console):
    """A console that prints notes unless told to be quiet: where nothing may move, they say what is being done."""

    def note(self, text: str) -> None:
        """Print a note."""
        self.waiting.say(text)
        self.say(text)


class LiveLine(AbstractContextManager["LiveLine"]):
    """An observer that shows best, bound, ratio and speed on one line, only where standard error is a terminal.

    Attributes
    ----------
    costs
        Those whose ticks are told of: the ticks of an abstract graph depend on k.
    """

    def __init__(self, console: Console, costs: Costs) -> None:
        self._console = console
        self.costs = costs
        self._line: Progress | None = None
        self._shown = ExitStack()
        self._best: int | None = None
        self._bound: int | None = None
        self._phase = ""
        self._phases: set[str] = set()
        self._evaluations = 0
        self._start = time.monotonic()

    def __enter__(self) -> LiveLine:
        if shows(self._console.quiet):
            self._shown.enter_context(self._console.waiting.paused())
            self._line = line_of(self._console.waiting.clock)
            self._line.add_task("searching", total=None)
            self._shown.enter_context(self._line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()

    def phase(self, name: str) -> None:
        """Take note that the search enters the part called *name*."""
        self._phase = name
        if name not in self._phases:  # searches come back to the same ones again and again
            self._phases.add(name)
            self._console.note(f"search: {name}")
        self._show()

    def incumbent(self, bottleneck: int) -> None:
        """Take note of a better partition."""
        if self._best is None or bottleneck < self._best:
            self._best = bottleneck
            self._console.note(f"best so far: {self.costs.describe(bottleneck)}")
        self._show()

    def bound(self, value: int) -> None:
        """Take note of a better lower bound."""
        self._bound = value
        self._console.note(f"lower bound: {self.costs.describe(value)}")
        self._show()

    def evaluated(self, count: int) -> None:
        """Take note that *count* more candidates were evaluated."""
        self._evaluations += count
        self._show()

    def _show(self) -> None:
        if not self._line:
            return
        parts = [self._phase]
        if self._best is not None:
            parts.append(f"best {self.costs.describe(self._best)}")
        if self._bound is not None:
            parts.append(f"bound {self.costs.describe(self._bound)}")
        if self._best is not None and self._bound:
            parts.append(f"ratio {self._best / self._bound:.3f}")
        elapsed = time.monotonic() - self._start
        if self._evaluations and elapsed > 0:
            parts.append(f"{self._evaluations / elapsed:,.0f} evaluations/s")
        self._line.update(self._line.task_ids[0], description=" · ".join(part for part in parts if part))


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """How many of a number of steps are done and what is being done now, only where standard error is a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._shown = ExitStack()

    def __enter__(self) -> ProgressBar:
        if shows(self._console.quiet):
            self._shown.enter_context(self._console.waiting.paused())
            waiting = self._console.waiting
            self._progress = line_of(waiting.clock, bar=True, refresh_per_second=waiting.refresh_per_second)
            self._progress.add_task("", total=None)
            self._shown.enter_context(self._progress)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Say what is being done, and that *done* of *total* steps are done where the total is known."""
        if self._progress:
            self._progress.update(
                self._progress.task_ids[0], description=terminal_safe(text), completed=done, total=total
            )
