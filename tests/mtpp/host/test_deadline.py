"""Deadlines count from the start of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mtpp.host.deadline import Deadline, process_age_s


def test_the_clock_starts_with_the_process(checkout: Path) -> None:
    """Time spent before the module was imported counts."""
    code = (
        "import time; time.sleep(0.3)\n"
        "from mtpp.host.deadline import Deadline, process_age_s\n"
        "assert process_age_s() > 0.28 or not __import__('os').path.exists('/proc/self/stat')\n"
        "assert Deadline(0.25).expired() or not __import__('os').path.exists('/proc/self/stat')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=checkout)


def test_no_limit_never_expires() -> None:
    """Without a limit there is always time left, and with one far away too."""
    assert not Deadline(None).expired()
    assert not Deadline(process_age_s() + 1e6).expired()
    assert Deadline(process_age_s()).expired()


def test_a_part_of_a_run_has_its_own_clock() -> None:
    """Counted from now, a limit is all ahead, however old the process is."""
    assert 999 < Deadline.from_now(1000.0).remaining_s() <= 1000
    assert Deadline.from_now(-1.0).expired()
    assert Deadline.from_now(None).remaining_s() == float("inf")
