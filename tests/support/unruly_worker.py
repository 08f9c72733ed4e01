"""A worker process whose cells do what their labels say: what a real one does only in a bad hour."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mtpp.errors import InconsistentBound
from mtpp.solvers.certify.cell_state import Certification
from mtpp.solvers.certify.cells import cell as cells
from mtpp.solvers.certify.cells.worker import serve

COMMAND = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import unruly_worker; unruly_worker.start()"

_certify = cells.CertificateCell.work


def start() -> None:
    """Serve, with cells that misbehave."""
    cells.CertificateCell.work = _unruly  # type: ignore[method-assign]
    serve()


def _unruly(
    cell: cells.CertificateCell,
    report: Callable[[Certification], None] = lambda state: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Certification:
    """Do what the label says: ``VERB`` or ``VERB FILE``."""
    verb, _, file = cell.label.partition(" ")
    if file:
        with Path(file).open("a") as attempts:
            attempts.write("x")
    tries = Path(file).stat().st_size if file else 0
    if verb in ("die", "die-once", "hang", "end-softly"):
        _certify(replace(cell, limits=replace(cell.limits, time_limit_s=60.0)), report)
    if verb == "die" or (verb == "die-once" and tries == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if verb == "exhaust":
        raise MemoryError
    if verb == "contradict":
        raise InconsistentBound("the lower bound 3 (some) is above the bottleneck 2")
    if verb == "chatter":
        print("something")
        os.write(1, b"from a library")
    if verb == "end-softly":
        Path(file).write_text("at work")
        while not interrupted():
            time.sleep(0.01)
    if verb.startswith("hang"):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        Path(file).write_text(f"{os.getpid()} {child.pid}")
        while True:
            time.sleep(0.01)
    return _certify(cell, report, interrupted)
