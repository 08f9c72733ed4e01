"""Run the command line the way users do: as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MTPP = (sys.executable, "-m", "mtpp")


def environment() -> dict[str, str]:
    """Return the environment of a process outside a terminal, with the checkout on its path."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


def run(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``mtpp ARGUMENTS`` and return its exit code, stdout and stderr."""
    done = subprocess.run(
        [*MTPP, *map(str, arguments)], input=stdin, cwd=cwd, env=environment(), capture_output=True, timeout=300
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
