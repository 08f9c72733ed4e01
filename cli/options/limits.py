"""Limits of a whole command: the option for memory, reading that ends when a limit is reached, time left to write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from mtpp.errors import LimitReached
    from mtpp.host.deadline import Deadline

F = TypeVar("F", bound=Callable[..., Any])

_READING_OVER_S, _READING_OVER_SHARE = 0.7, 0.05
"""Seconds and part of a time limit by which reading may be late: a small model gives a first result all the same."""

_OVER_S, _OVER_SHARE = 0.9, 0.1
"""Seconds and part of a time limit by which a result may be late; there is none where it would be later."""

_WRITING_SHARE = 0.4
"""Of the seconds that a graph of many ops was read in, for stage costs, the plan's JSON and its table."""

_MANY_OPS = 20_000

_SHOWING_S = 0.15
"""Seconds of the processor for a table."""

_SLOWEST = 6.0

_FIRST_RESULT_S = 1e-5
"""Seconds of the processor per op, for a first partition, a simple bound and writing both."""

_PINS_PER_OP = 20
"""Readers of tensors that take as long as an op."""


class Graph(Protocol):
    """Size of a graph: its ops, and one entry for each that reads a tensor."""

    @property
    def op_count(self) -> int:
        """Number of ops."""

    @property
    def consumers(self) -> Any:
        """Array of the ops that read tensors."""


def memory_limit_option(more: str = "") -> Callable[[F], F]:
    """Add ``--memory-limit``, which holds for the whole process from here on; *more* ends its help."""
    return click.option(
        "--memory-limit", metavar="SIZE", callback=_limit_memory,
        help=f"Of all processes together, at least 512MiB{more}.",
    )  # fmt: skip


def _limit_memory(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    from mtpp.cli.options.values import bytes_option
    from mtpp.errors import InputError
    from mtpp.host.memory_limit import LEAST_BYTES, memory_limited

    if text is None or ctx.resilient_parsing:
        return text
    size = bytes_option("--memory-limit", text)
    assert size is not None
    if size < LEAST_BYTES:
        raise InputError(f"{text} is too little to work with", source="--memory-limit", remedy="give at least 512MiB")
    ctx.with_resource(memory_limited(size))
    return text


def search_memory(text: str | None) -> int:
    """Return what an exhaustive search may keep in memory, in bytes: a share of what the limit leaves.

    Without a limit half of what is free.
    """
    from mtpp.host.free_memory import memory_budget
    from mtpp.host.memory_limit import memory_left, search_share

    left = memory_left() if text is not None else None
    return memory_budget() if left is None else search_share(left)


@contextmanager
def reading(path: str, deadline: Deadline, limit_s: float | None = None) -> Iterator[None]:
    """End the block, in which the file at *path* is read, with an error of one line when a limit is reached.

    Parameters
    ----------
    deadline
        By when it has to be read.
    limit_s
        The time limit as the user gave it, if it does not count from process start.

    Raises
    ------
    LimitReached
        If the time is up, or the memory does not suffice.
    """
    from mtpp.errors import LimitReached
    from mtpp.host.alarm import TimeIsUp, alarm
    from mtpp.host.memory_limit import return_memory

    source = "<stdin>" if path == "-" else path
    try:
        with alarm(_a_little_later(deadline)):
            yield
        return_memory()
    except TimeIsUp:
        raise _passed_while_reading(source, deadline.limit_s if limit_s is None else limit_s) from None
    except MemoryError:
        raise LimitReached(
            "there is not enough memory to read it", source=source, remedy="raise --memory-limit, or free some"
        ) from None


def _a_little_later(deadline: Deadline) -> Deadline:
    from mtpp.host.deadline import Deadline as At

    if deadline.limit_s is None:
        return deadline
    left = max(0.0, deadline.remaining_s())
    return At((1 + _READING_OVER_SHARE) * left + _READING_OVER_S)


def refuse_too_late(path: str, limit_s: float | None, read_s: float, graph: Graph, *, start_s: float = 0) -> None:
    """End where reading took so long that not even a first result about the graph could be written in time.

    Parameters
    ----------
    read_s
        Seconds of the limit that are gone.
    start_s
        That it takes to start a process with a large graph.

    Raises
    ------
    LimitReached
        As :func:`reading`.
    """
    if limit_s is not None and read_s + first_result_s(graph, start_s) > (1 + _OVER_SHARE) * limit_s + _OVER_S:
        raise _passed_while_reading(path, limit_s)


def searching_s(time_limit_s: float | None, ops: int) -> float | None:
    """Return the end of a search, in seconds from process start, that leaves time to write what it has found.

    Writing takes a part of what reading took, which tells as well how fast this machine is just now.
    """
    from mtpp.host.process_age import process_age_s

    if time_limit_s is None:
        return None
    return max(time_limit_s - writing_s(process_age_s(), ops), 0.1 * time_limit_s)


def writing_s(read_s: float, ops: int) -> float:
    """Return the seconds that it takes to write a result about so many ops, whose graph was read in *read_s*."""
    return _SHOWING_S * _slowness() + _WRITING_SHARE * read_s * min(1.0, ops / _MANY_OPS)


def first_result_s(graph: Graph, start_s: float = 0) -> float:
    """Return the seconds from a graph at hand to a first result about it, written; *start_s* goes with large ones."""
    size: float = graph.op_count + graph.consumers.size / _PINS_PER_OP
    return _slowness() * (_FIRST_RESULT_S * size + start_s * min(1.0, size / _MANY_OPS))


def _slowness() -> float:
    """Return how much more slowly than alone this process gets on, as others compute on this machine as well."""
    from mtpp.host.process_age import process_age_s

    return min(_SLOWEST, process_age_s() / max(1e-3, time.process_time()))


def _passed_while_reading(source: str, limit_s: float | None) -> LimitReached:
    from mtpp.errors import LimitReached

    limit = "" if limit_s is None else f" of {limit_s:g} s"
    return LimitReached(
        f"the time limit{limit} passed while reading", source=source, remedy="raise it, or give a smaller model"
    )
