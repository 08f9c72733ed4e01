"""Processes that die, refuse, or never end: whoever waits for them is told at once, and none is left."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest
from unruly_jobs import UnrulyJob

from mtpp.errors import InputError, MtppError
from mtpp.host.deadline import Deadline
from mtpp.host.ending import EndedEarly
from mtpp.runtime.pipeline import crew as crews
from mtpp.runtime.pipeline.crew import Crew, RunLimits
from mtpp.runtime.pipeline.worker_process import WorkerDied

ENDLESS = RunLimits(Deadline(), lambda: False)


def _run(*verbs: str, limits: RunLimits = ENDLESS) -> None:
    """Have a process for each verb, wait for all to be done, and see that none is left."""
    with Crew(limits) as crew:
        for verb in verbs:
            crew.start(f"worker {verb}", UnrulyJob(verb))
        pids = crew.pids
        try:
            assert crew.gather("ready") == list(verbs)
            crew.gather("done")
        finally:
            crew.__exit__(None, None, None)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, 0)
                    pytest.fail(f"process {pid} is left")


def test_what_a_worker_said_before_it_died_is_told() -> None:
    """A traceback, the words of a library, an exit code; those that merely lost it are not blamed."""
    with pytest.raises(WorkerDied, match="worker raise: its process ended with exit code 1") as raised:
        _run("raise", "peer lost", "hang")
    assert raised.value.last_lines[0] == "first words"
    assert raised.value.last_lines[-1] == "ValueError: something is odd"
    with pytest.raises(WorkerDied, match="worker die: its process was killed by SIGKILL; see that") as killed:
        _run("hang", "die")
    assert killed.value.last_lines == ("the library's last words",)
    with pytest.raises(WorkerDied, match="worker exit: its process ended with exit code 3"):
        _run("exit", "work")


def test_a_refusal_is_the_workers_own() -> None:
    """With its file and remedy."""
    with pytest.raises(InputError, match=r"^some\.onnx: not like this; do it otherwise$"):
        _run("peer lost", "refuse")


def test_waiting_ends_with_the_time_and_the_users_limits() -> None:
    """Even if a process never answers."""
    with pytest.raises(EndedEarly, match="time-limit"):
        _run("hang", limits=RunLimits(Deadline(0.5), lambda: False))
    with pytest.raises(EndedEarly, match="interrupted"):
        _run("hang", limits=RunLimits(Deadline(), lambda: True))


def test_losing_contact_without_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot last, whatever the reason."""
    monkeypatch.setattr(crews, "_CAUSE_S", 0.0)
    with pytest.raises(MtppError, match="lost contact"):
        _run("peer lost", "hang")


def test_a_crew_that_is_waited_on_has_to_live() -> None:
    """The death of a process that is needed later ends the wait for others now."""
    with Crew(ENDLESS) as needed:
        needed.start("needed", UnrulyJob("hang"))
        assert needed.gather("ready") == ["hang"]
        assert needed.check() > 0
        os.kill(needed.pids[0], signal.SIGKILL)
        with Crew(needed) as crew:
            crew.start("waiting", UnrulyJob("hang"))
            with pytest.raises(WorkerDied, match="needed: its process was killed by SIGKILL"):
                crew.gather("done")
