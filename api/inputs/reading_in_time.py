"""Reading of a model that ends when a limit on time or memory is reached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mtpp.errors import LimitReached
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.api.cells.overheads import Overheads
    from mtpp.inference.graph import CostGraph

_READING_OVER_S, _READING_OVER_SHARE = 0.7, 0.05
"""Seconds and part of a time limit by which reading may be late: a small model gives a first result all the same."""

_OVER_S, _OVER_SHARE = 0.9, 0.1
"""Seconds and part of a time limit by which a result may be late; there is none where it would be later."""


@contextmanager
def reading(path: str, deadline: Deadline, limit_s: float | None = None) -> Iterator[None]:
    """End the block, in which the file at *path* is read, with an error of one line when a limit is reached.

    Parameters
    ----------
    deadline
        By when it has to be read.
    limit_s
        The time limit as the user gave it, if *deadline* has another one.
    """
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
            "there is not enough memory to read it", source=source, remedy="raise ‹memory_limit›, or free some"
        ) from None


@contextmanager
def reading_given(given: Any, parameter: str, deadline: Deadline) -> Iterator[None]:
    """Do the same for what a caller gives as a model: the path of a file, or its content in memory.

    A model that was read before takes no time to read: the block runs as it is.
    """
    from mtpp.api.inputs.model import Model

    if isinstance(given, Model):
        yield
        return
    with reading(os.fspath(given) if isinstance(given, str | os.PathLike) else f"‹{parameter}›", deadline):
        yield
    if deadline.limit_s is not None and -deadline.remaining_s() > _OVER_SHARE * deadline.limit_s + _OVER_S:
        raise _passed_while_reading(f"‹{parameter}›", deadline.limit_s)  # where no alarm rings


def _a_little_later(deadline: Deadline) -> Deadline:
    if deadline.limit_s is None:
        return deadline
    left = max(0.0, deadline.remaining_s())
    return Deadline((1 + _READING_OVER_SHARE) * left + _READING_OVER_S)


def refuse_too_late(
    path: str, limit_s: float | None, read_s: float, graph: CostGraph, overheads: Overheads, *, start_s: float = 0
) -> None:
    """End where reading took so long that not even a first result about the graph could be written in time.

    Parameters
    ----------
    read_s
        Seconds of the limit that are gone.
    start_s
        That it takes to start a process with a large graph.
    """
    if limit_s is None:
        return
    if read_s + overheads.first_result_s(graph, start_s) > (1 + _OVER_SHARE) * limit_s + _OVER_S:
        raise _passed_while_reading(path, limit_s)


def _passed_while_reading(source: str, limit_s: float | None) -> LimitReached:
    limit = "" if limit_s is None else f" of {limit_s:g} s"
    return LimitReached(
        f"the time limit{limit} passed while reading", source=source, remedy="raise it, or give a smaller model"
    )
