"""A process watched with all that it starts: wall time, processor time, and the memory of all together."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

_EVERY_S = 0.03


@dataclass(frozen=True)
class Watched:
    """The end of a process.

    Attributes
    ----------
    seconds, cpu_seconds
        From its start to its end, and of all processors, those of its children included.
    peak_bytes
        Most that it and its descendants had resident at once; pages that they share count once.
    exit_code
        Its own; None where it had to be killed.
    complaint
        The end of its standard error.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    exit_code: int | None
    complaint: str


def watch(command: list[str], environment: dict[str, str], folder: Path, kill_after_s: float) -> Watched:
    """Run a command to its end, or kill it and its family after so many seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    said: list[bytes] = []
    assert process.stderr is not None
    Thread(target=lambda: said.append(process.stderr.read()), daemon=True).start()  # type: ignore[union-attr]
    peak, code = 0, None
    usage = None
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.perf_counter() - start > kill_after_s:
            kill_family(process.pid)
            _, _, usage = os.wait4(process.pid, 0)
            break
        peak = max(peak, sum(map(resident_bytes, family(process.pid))))
        time.sleep(_EVERY_S)
    seconds = time.perf_counter() - start
    process.returncode = -9 if code is None else code
    time.sleep(0.05)
    text = b"".join(said).decode(errors="replace").strip()
    return Watched(seconds, usage.ru_utime + usage.ru_stime, peak, code, text[-200:])


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for one in found:
        for task in _names(f"/proc/{one}/task"):
            with suppress(OSError):
                found += map(int, Path(f"/proc/{one}/task/{task}/children").read_text(encoding="ascii").split())
    return found


def kill_family(pid: int) -> None:
    """Kill a process and its descendants."""
    for one in family(pid):
        with suppress(OSError):
            os.kill(one, 9)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, its share of what it shares with others; 0 where it is gone."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    return 0
