"""A worker process: takes cells one by one, and says all that it proves at once, for it may be killed.

It reads pickled tuples from its standard input: ``("cell", CertificateCell)``, and ``("end",)`` to have the present
cell end with what there is. It writes pickled tuples to what was its standard output: ``("ready",)`` once, then per
cell ``("began",)`` when its clock starts, ``("compiling",)`` where kernels have to be compiled, which is on no clock,
``("state", Certification)`` as often as there is news, and in the end one of ``("done", Certification)``,
``("refused", text)`` where there is no partition, ``("false", text)`` where results contradict each other,
``("short", text)`` where the memory is used up, and ``("failed", text)``. It ends when its input does: with its parent.
"""

from __future__ import annotations

import os
import pickle
import traceback
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, BinaryIO

from mtpp.errors import InconsistentResult, Infeasible, MtppError
from mtpp.host.child_process import follow_parent, message_pipes, orphaned
from mtpp.host.deadline import process_age_s
from mtpp.host.memory_limit import memory_limited
from mtpp.solvers.certify.cells.cell import CertificateCell
from mtpp.solvers.compilation import watched_compilation

_LEAST_SHARE = 0.15
"""Of its time limit, that a cell has at least, however long its process took to start."""

_TOO_LITTLE = "there is not enough memory; raise ‹memory_limit›"


class _Replies:
    """What goes to the parent, one whole message after the other."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = Lock()

    def send(self, *message: Any) -> None:
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            try:
                self._stream.write(data)
                self._stream.flush()
            except OSError:
                orphaned()


def serve() -> None:
    """Work at the cells that come in until the input ends, which it does with the parent at the latest."""
    follow_parent()
    requests, stream = message_pipes()
    replies = _Replies(stream)
    cells: SimpleQueue[CertificateCell] = SimpleQueue()
    end = Event()
    Thread(target=_listen, args=(requests, cells, end), daemon=True).start()
    replies.send("ready")
    first = True
    while True:
        cell = cells.get()
        replies.send(*_answer(cell, replies, end, first=first))
        first = False


def _listen(requests: BinaryIO, cells: SimpleQueue[CertificateCell], end: Event) -> None:
    try:
        while True:
            kind, *values = pickle.load(requests)
            if kind == "cell":
                end.clear()
                cells.put(values[0])
            else:
                end.set()
    except BaseException:  # the pipe is at its end, or broken
        orphaned()


def _end(replies: _Replies) -> None:
    replies.send("short", _TOO_LITTLE)
    orphaned()


def _in_time(cell: CertificateCell) -> CertificateCell:
    """Take the start of the process from the cell's time limit, in part."""
    limits = cell.limits
    if limits.time_limit_s is None:
        return cell
    left = max(_LEAST_SHARE * limits.time_limit_s, limits.time_limit_s - process_age_s())
    return replace(cell, limits=replace(limits, time_limit_s=left))


def _answer(cell: CertificateCell, replies: _Replies, end: Event, *, first: bool) -> tuple[Any, ...]:
    try:
        with (
            memory_limited(cell.limits.process_bytes, end=lambda: _end(replies)),
            watched_compilation(lambda: replies.send("compiling")),
        ):
            cell = _in_time(cell) if first else cell
            replies.send("began")
            state = cell.work(lambda state: replies.send("state", state), end.is_set)
    except Infeasible as error:
        return "refused", error.problem
    except InconsistentResult as error:
        return "false", error.problem
    except MtppError as error:
        return "refused", str(error)
    except BaseException as error:
        if isinstance(error, MemoryError) and cell.limits.process_bytes is not None:
            return "short", _TOO_LITTLE
        place = traceback.extract_tb(error.__traceback__)[-1]
        return "failed", f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"
    return "done", state
