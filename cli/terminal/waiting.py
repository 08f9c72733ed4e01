"""A line on standard error for people who wait at a terminal: what a command does, since when, and how long it may."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mtpp.host.deadline import deadline_from_start, process_age_s
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, Task
    from rich.text import Text

AFTER_S = 2.0
"""Age of the process at which a line appears that nothing else has taken the place of."""

DONE = "writing the result"

BAR_CELLS = 20

_DOING = {
    "evaluate": "evaluating",
    "generate": "drawing graphs",
    "inspect": "inspecting",
    "machine": "measuring",
    "simulate": "simulating",
    "verify": "verifying",
    "warmup": "compiling",
}
"""First words of commands that do not begin with reading."""

_LIMITED_EACH = ("bound", "certify", "compare", "evaluate")
"""Commands whose ``--time-limit`` is that of a part."""

_entered: list[Waiting] = []


class Clock:
    """Age of the process, and the time that is left to it.

    Parameters
    ----------
    limit_s
        Seconds from the start of the process; None: no limit.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self._started = time.monotonic() - process_age_s()
        self._deadline = deadline_from_start(limit_s)

    def told(self) -> str:
        """Return both for people: ``0:07 · 0:23 left``."""
        elapsed = format_clock(time.monotonic() - self._started)
        if self._deadline.limit_s is None:
            return elapsed
        return f"{elapsed} · {format_clock(max(0.0, self._deadline.remaining_s()))} left"


class Waiting(AbstractContextManager["Waiting"]):
    """The line of a command, which appears after two seconds and gives way to others.

    Attributes
    ----------
    clock
        Of the command.
    """

    def __init__(self, text: str = "", clock: Clock | None = None, *, shown: bool = False) -> None:
        self.clock = clock or Clock()
        self.refresh_per_second = 4.0
        self._text, self._shown = text, shown
        self._pauses = 0
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._progress: Progress | None = None

    def __enter__(self) -> Waiting:
        if self._shown:
            _entered.append(self)
            self._timer = threading.Timer(max(0.0, AFTER_S - process_age_s()), self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def say(self, text: str) -> None:
        """Say what is being done from here on."""
        self._text = text
        progress = self._progress
        if progress is not None:
            progress.update(progress.task_ids[0], description=terminal_safe(text))

    def end(self) -> None:
        """Show nothing any more."""
        with self._lock:
            self._shown = False
            if self._timer is not None:
                self._timer.cancel()
            self._disappear()
        if self in _entered:
            _entered.remove(self)

    @contextmanager
    def paused(self, then: str = DONE) -> Iterator[None]:
        """Give way to another line while this is entered; *then* is said after it."""
        with self._lock:
            self._pauses += 1
            self._disappear()
        try:
            yield
        finally:
            self.say(then)
            with self._lock:
                self._pauses -= 1
                if self._timer is not None and not self._timer.is_alive():
                    self._appear()

    def _appear(self) -> None:
        with self._lock:
            if self._shown and not self._pauses and self._progress is None:
                self._progress = line_of(self.clock, refresh_per_second=self.refresh_per_second)
                self._progress.add_task(terminal_safe(self._text), total=None)
                self._progress.start()

    def _disappear(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def waiting_for(command: str, limits: dict[str, Any], *, quiet: bool) -> Waiting:
    """Return the line of a command.

    Parameters
    ----------
    limits
        Values of its options by name, limits on its time among them.
    """
    own = None if command in _LIMITED_EACH else limits.get("time_limit_s")
    total = limits.get("total_time_limit_s")
    return Waiting(_DOING.get(command, "reading"), Clock(own if total is None else total), shown=shows(quiet))


def shows(quiet: bool) -> bool:
    """Return whether standard error is a terminal with somebody who wants to hear."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def end_waiting() -> None:
    """End every line, before results are printed."""
    for one in list(_entered):
        one.end()


def line_of(clock: Clock, *, bar: bool = False, refresh_per_second: float = 10.0) -> Progress:
    """Return a line of a spinner or a bar, the time and a description; standard output is left alone."""
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn
    from rich.text import Text

    console = RichConsole(stderr=True)

    class Said(ProgressColumn):
        """Time and description, cut where the terminal ends: rich would shorten the time as well."""

        def render(self, task: Task) -> Text:
            """Return them as they are now."""
            taken = len(f"{task.total or '?'}") * 2 + BAR_CELLS + 3 if bar else 2
            text = Text.assemble((clock.told(), "progress.elapsed"), "  ", task.description)
            text.truncate(max(1, console.width - taken), overflow="ellipsis")
            return text

    front: tuple[ProgressColumn, ...] = (MofNCompleteColumn(), BarColumn(BAR_CELLS)) if bar else (SpinnerColumn(),)
    return Progress(
        *front,
        Said(),
        console=console,
        transient=True,
        refresh_per_second=refresh_per_second,
        redirect_stdout=False,
    )
