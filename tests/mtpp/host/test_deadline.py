"""Deadlines count from when they are made; those of the command line from the start of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mtpp.host.deadline import Deadline


def test_the_clock_of_a_command_starts_with_the_process(checkout: Path) -> None:
    """Time spent before the module was imported counts there."""
    code = (
        "import time; time.sleep(0.3)\n"
        "from mtpp.host.deadline import deadline_from_start\n"
        "from mtpp.host.deadline import process_age_s\n"
        "assert process_age_s() > 0.28 or not __import__('os').path.exists('/proc/self/stat')\n"
        "assert deadline_from_start(0.25).expired() or not __import__('os').path.exists('/proc/self/stat')\n"
        "assert not deadline_from_start(100).expired() and not deadline_from_start(None).expired()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=checkout)


def test_no_limit_never_expires() -> None:
    """Without a limit there is always time left, and with one far away too."""
    assert not Deadline(None).expired()
    assert not Deadline(1e6).expired()
    assert Deadline(0).expired()


def test_a_limit_counts_from_the_call() -> None:
    """It is all ahead, however old the process is, but for what is said to be spent."""
    assert 999 < Deadline(1000.0).remaining_s() <= 1000
    assert 899 < Deadline(1000.0, 100.0).remaining_s() <= 900
    assert Deadline(-1.0).expired()
    assert Deadline(None).remaining_s() == float("inf")
