"""Work of ONNX Runtime in a process of its own: where it crashes there is an error, and this process goes on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from signal import Signals
from typing import Any

from mtpp.errors import MtppError
from mtpp.runtime.pipeline.crew import no_process
from mtpp.runtime.pipeline.worker_process import CRASHES, Job, WorkerDied, WorkerProcess


class RuntimeCrashed(MtppError):
    """The program that runs models was ended by a signal for what it did itself (exit code 1)."""

    exit_code = 1


@dataclass(frozen=True)
class _Call(Job):
    """A call of ``module:function``; its parameter *listener* is told what is being done."""

    function: str
    arguments: Mapping[str, Any]
    listener: str

    def run(self, parent: Connection) -> None:
        """Do it, and say ``returned`` with what came of it, or ``raised`` with the error that it ended with."""
        module, _, name = self.function.partition(":")

        def tell(*said: Any) -> None:
            parent.send(("told", said))

        try:
            value = getattr(import_module(module), name)(**self.arguments, **{self.listener: tell})
        except MtppError as error:
            parent.send(("raised", error))
        except Exception as error:
            parent.send(("raised", RuntimeError(f"{error!r}\n{traceback.format_exc()}")))
        else:
            parent.send(("returned", value))


def guarded(
    function: str,
    arguments: Mapping[str, Any],
    label: str,
    tell: Callable[..., None] = lambda *said: None,
    *,
    listener: str = "tell",
) -> Any:
    """Call a function in a process of its own, started anew, and return what it returns.

    Parameters
    ----------
    function
        ``module:function``.
    arguments
        By name; they are pickled, and so is what is returned.
    label
        What messages call the model that is run.
    tell
        Is called, in this process, with what the function tells its parameter *listener*.

    Notes
    -----
    Beside the work it takes as long as Python and its imports do.
    """
    try:
        worker = WorkerProcess(label, _Call(function, arguments, listener))
    except OSError as error:
        raise no_process(error) from None
    doing = ""
    try:
        while True:
            try:
                kind, value = worker.connection.recv()
            except (EOFError, OSError):
                raise _ended(worker.death(), label, doing) from None
            if kind == "told":
                doing = value[0] if isinstance(value[0], str) else doing
                tell(*value)
            elif kind == "returned":
                return value
            else:
                raise value
    finally:
        worker.close()


def _ended(death: WorkerDied, label: str, doing: str) -> MtppError:
    if death.signal not in CRASHES:
        return death
    return RuntimeCrashed(
        f"ONNX Runtime crashed{f' {doing}' if doing else ''}, ended by {Signals(death.signal).name}",
        source=label,
        remedy="it does so without mtpp as well: change the op that it crashes in, or try another version",
    )
