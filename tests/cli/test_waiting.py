"""The line that says what a command does and since when: only for people at a terminal, and gone before the result."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from processes import ROOT

from mtpp.cli.terminal import waiting
from mtpp.cli.terminal.console import Console
from mtpp.cli.terminal.output import write_stdout
from mtpp.datasets import sample_path

PATIENCE_S = 60.0


def _screen(monkeypatch: pytest.MonkeyPatch, *, terminal: bool = True) -> io.StringIO:
    """Return what a terminal in place of standard error is sent; lines appear at once."""
    found = io.StringIO()
    monkeypatch.setattr(found, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(waiting, "AFTER_S", 0.0)
    return found


def _until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_time_of_a_command() -> None:
    """Minutes and seconds since the process began, and what is left of a limit, at least nothing."""
    assert re.fullmatch(r"(\d+:)?\d+:\d\d", waiting.Clock().told())
    assert re.fullmatch(r"(\d+:)?\d+:\d\d · 2\d:\d\d:\d\d left", waiting.Clock(100_000).told())
    assert waiting.Clock(1e-9).told().endswith(" · 0:00 left")


def test_the_line_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what is being done, gives way to bars, and ends before the result; names in it are safe and cut."""
    screen = _screen(monkeypatch)
    with waiting.waiting_for("inspect", {"time_limit_s": 90_000}, quiet=False) as line:
        console = Console(quiet=False, verbose=False, waiting=line)
        _until(lambda: "inspecting" in screen.getvalue())
        assert " left" in screen.getvalue()
        console.note("checking \x1b[31m" + "a" * 100)
        _until(lambda: "checking \\x1b[31ma" in screen.getvalue())
        assert "…" in screen.getvalue()
        assert "a" * 60 not in screen.getvalue()
        with console.steps() as bar:
            bar.show("bar", 1, 2)
            _until(lambda: "1/2" in screen.getvalue())
            screen.truncate(0)
            bar.show("bar", 2, 2)
            _until(lambda: "2/2" in screen.getvalue())
            assert "checking" not in screen.getvalue()
        _until(lambda: waiting.DONE in screen.getvalue())
        write_stdout("result")
        assert not waiting._entered
        assert line._progress is None


@pytest.mark.parametrize("quiet", [False, True])
def test_nobody_waits_at_a_pipe_or_wants_to_hear(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is shown, and no thread is begun."""
    screen = _screen(monkeypatch, terminal=quiet)
    with waiting.waiting_for("plan", {}, quiet=quiet) as line:
        assert line._timer is None
    assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("command", "limits", "left"),
    [
        ("partition", {"time_limit_s": 3600.0}, True),
        ("certify", {"time_limit_s": 3600.0, "total_time_limit_s": None}, False),
        ("bound", {"time_limit_s": 1.0, "total_time_limit_s": 3600.0}, True),
        ("convert", {}, False),
    ],
)
def test_limits(command: str, limits: dict[str, float | None], left: bool) -> None:
    """Those on the whole command count, not those on each cell."""
    assert waiting.waiting_for(command, limits, quiet=False).clock.told().endswith("left") is left


def test_a_command_that_waits_for_its_model() -> None:
    """At a terminal it says so after a while; the result is whole, and alone, on standard output."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    words = [sys.executable, "-m", "mtpp", "inspect", "-", "--format", "json"]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, cwd=ROOT, env=environment
    )
    os.close(theirs)
    try:
        said = b""
        while b"inspecting" not in said:
            said += os.read(ours, 4096)
        assert re.search(rb"0:\d\d", said)
        printed, _ = process.communicate(sample_path("resnet50").read_bytes(), timeout=PATIENCE_S)
    finally:
        process.kill()
        os.close(ours)
    assert process.returncode == 0
    assert json.loads(printed)["format"] == "mtpp-inspection"
