"""Cells on a Dask cluster; the only importer of distributed."""

from __future__ import annotations

import logging
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING

from mtpp import __version__
from mtpp.errors import InputError
from mtpp.solvers.certify.cell_state import Certification
from mtpp.solvers.certify.cells.cell import CertificateCell, OtherVersion, Outcome
from mtpp.solvers.certify.cells.processes import run_in_processes

if TYPE_CHECKING:
    from distributed import Client, Future

_ADDRESS = re.compile(r"(tcp|tls|ws|wss)://[^\s/]+:\d{1,5}")
_WAIT_S = 10
"""For an answer of the scheduler."""

_LOOK_S = 0.1
"""Seconds between two looks at whether the work is still wanted."""

_COUNT_S = 1.0
"""Seconds between two looks at how many workers there are: they come and go."""

_DROPPED_S = 1.0
"""Seconds between two looks, on a worker, at whether its task is still wanted."""


class Cluster:
    """A cluster behind its scheduler.

    Parameters
    ----------
    address
        Such as ``tcp://host:8786``.

    Raises
    ------
    InputError
        If distributed is not installed, or no scheduler answers within ten seconds.
    """

    def __init__(self, address: str) -> None:
        if not _ADDRESS.fullmatch(address):
            raise InputError(f"{address!r} is no address", parameter="scheduler", remedy="write tcp://host:8786")
        try:
            from distributed import Client
            from distributed.security import Security
        except ImportError:
            raise InputError(
                "needs the package distributed", parameter="scheduler", remedy="pip install 'mtpp[dask]'"
            ) from None
        if address.startswith(("tls", "wss")) and not Security().get_connection_args("client").get("ssl_context"):
            raise InputError(
                f"{address!r} needs certificates",
                parameter="scheduler",
                remedy="name them in Dask's configuration, distributed.comm.tls",
            )
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is said here, in one line
        self._address = address
        try:
            self._client: Client = Client(address, timeout=_WAIT_S, set_as_default=False, name="mtpp")
        except Exception as error:  # of many kinds: the address is none, nobody is there, it speaks another language
            said = str(error).strip().splitlines()
            raise InputError(
                f"no scheduler at {address!r}: {said[0] if said else type(error).__name__}",
                parameter="scheduler",
                remedy="write tcp://host:8786, and see that `dask scheduler` runs there",
            ) from None
        self._count, self._count_again = 0, 0.0

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close(timeout=_WAIT_S)

    @property
    def threads(self) -> int:
        """Cells that the cluster can work at at once, now."""
        if time.monotonic() > self._count_again:
            self._check()
            self._count = sum(self._client.nthreads().values())
            self._count_again = time.monotonic() + _COUNT_S
        return self._count

    def run(
        self, cells: Iterable[CertificateCell], interrupted: Callable[[], bool]
    ) -> Iterator[Outcome[Certification]]:
        """Give the outcome of each cell as it comes, until the user ends it.

        Cells are sent as there are threads for them. That a worker is lost, Dask notices, and has another one work at
        its cell; one that takes several workers with it is given up.

        Raises
        ------
        InputError
            If the scheduler is lost, or a worker has another version of this program, or none.
        """
        waiting = iter(cells)
        at_work: dict[Future, CertificateCell] = {}
        ended: SimpleQueue[Future] = SimpleQueue()
        exhausted = False
        try:
            while not interrupted():
                while not exhausted and len(at_work) < self.threads:
                    cell = next(waiting, None)
                    if cell is None:
                        exhausted = True
                        break
                    future = self._send(cell)
                    at_work[future] = cell
                    future.add_done_callback(ended.put)
                if exhausted and not at_work:
                    return
                try:
                    future = ended.get(timeout=_LOOK_S)
                except Empty:
                    self._check()
                    continue
                yield self._outcome(future, at_work.pop(future))
        finally:
            if at_work and self._client.status == "running":
                self._client.cancel(list(at_work))

    def _send(self, cell: CertificateCell) -> Future:
        # Inside this one, so that it travels as it is: the scheduler need not have this program.
        def certify(data: bytes, version: str) -> bytes:
            from mtpp.solvers.certify.cells.cluster import certify_remotely

            return certify_remotely(data, version)

        data = pickle.dumps(cell, protocol=pickle.HIGHEST_PROTOCOL)
        return self._client.submit(certify, data, __version__, pure=False)  # no two runs have the same task

    def _outcome(self, future: Future, cell: CertificateCell) -> Outcome[Certification]:
        try:
            state, problem, contradiction = pickle.loads(future.result(timeout=_WAIT_S))
        except ImportError as error:
            raise self._error(f"a worker cannot run a cell: {error}", "install mtpp on the workers") from None
        except OtherVersion as error:
            raise self._error(str(error), "install the same version on the workers") from None
        except Exception as error:
            self._check()
            return Outcome(cell, None, f"its workers were lost ({type(error).__name__})")
        return Outcome(cell, state, problem, contradiction)

    def _check(self) -> None:
        """Raise if the scheduler is gone: what was sent to it is, too."""
        if self._client.status != "running":
            raise self._error("was lost", "start it again; with ‹store›, what is done is kept")

    def _error(self, problem: str, remedy: str) -> InputError:
        return InputError(problem, source=f"scheduler {self._address}", remedy=remedy)


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
        if time.monotonic() - looked > _DROPPED_S:
            looked = time.monotonic()
            task = worker.state.tasks.get(key)
            gone = task is None or task.state == "cancelled"
        return gone

    return dropped
