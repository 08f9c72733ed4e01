"""Work on a Dask cluster: one cell, in a process of its own."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable

from mtpp import __version__
from mtpp.solvers.certify.cells.cell import CertificateCell, OtherVersion
from mtpp.solvers.certify.cells.processes import run_in_processes

_LOOK_S = 1.0
"""Seconds between two looks at whether the work is still wanted."""


def certify_remotely(data: bytes, version: str) -> bytes:
    """Work at a pickled cell; return state, problem and contradiction of its outcome, pickled.

    In a process of its own: a crash costs the worker nothing, it can be killed when it overruns, and it may have
    children, which a worker of Dask, a daemonic process, may not have.
    """
    if version != __version__:
        raise OtherVersion(f"mtpp {version} sent a cell to a worker with mtpp {__version__}")
    cell: CertificateCell = pickle.loads(data)
    outcome = next(run_in_processes([cell], _dropped(), at_once=1), None)
    found = (None, "cancelled", False) if outcome is None else (outcome.state, outcome.problem, outcome.contradiction)
    return pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)


def _dropped() -> Callable[[], bool]:
    """Return what tells whether nobody waits for the present task any more: its run was cancelled, or died."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    looked, gone = time.monotonic(), False

    def dropped() -> bool:
        nonlocal looked, gone
        if time.monotonic() - looked > _LOOK_S:
            looked = time.monotonic()
            task = worker.state.tasks.get(key)
            gone = task is None or task.state == "cancelled"
        return gone

    return dropped
