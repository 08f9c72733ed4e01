"""Time from Ctrl-C to the end: ``python -m benchmarks.interruptions [--group NAME …] [--case NAME …] …``.

Whole commands and planners on large inputs, each in a process of its own, interrupted at random moments of their run. A
row says how long they took from the signal to their end, the processor time that they had meanwhile, and how they
ended: 130 with a best answer so far or without one, or their own exit code where they had come to their end. Two
seconds are allowed: on a machine that is busy with other things, of processor time.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.interruptions.cases import CASES, COMPILED_ANEW, GROUPS, inputs, needed
from benchmarks.process_tree import family, kill_family
from benchmarks.report import print_report

COLUMNS = ("command", "signal after s", "seconds to the end", "CPU s", "exit", "answer", "holds")
ALLOWED_S = 2.0
LATEST_S = 12.0
"""Latest moment of a signal, if no other is given: a busy machine takes longer to get anywhere."""

_KILLED_AFTER_S = 60.0
_LOOK_S = 0.01


@dataclass(frozen=True)
class Interrupted:
    """The end of an interrupted command; *seconds* and *processor_s* from the signal on."""

    seconds: float
    processor_s: float
    exit_code: int | None
    answered: bool
    complaint: str


def interrupted(
    command: Sequence[str], after_s: float, checkout: Path, environment: Mapping[str, str]
) -> Interrupted | None:
    """Run a command and interrupt it after so many seconds; None if it had come to its end before."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=checkout,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        process.communicate(timeout=after_s)
        return None
    except subprocess.TimeoutExpired:
        pass
    start, before = time.perf_counter(), _processor_s(process.pid)
    spent = before
    process.send_signal(signal.SIGINT)
    while process.poll() is None and time.perf_counter() - start < _KILLED_AFTER_S:
        spent = max(spent, _processor_s(process.pid))
        try:
            process.communicate(timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            continue
    seconds, code = time.perf_counter() - start, process.returncode
    if code is None:
        kill_family(process.pid)
    out, err = process.communicate()
    said = err.decode(errors="replace")[-300:]
    return Interrupted(seconds, spent - before, code, bool(out.strip()), said)


def _processor_s(pid: int) -> float:
    """Return the processor time of a process and its descendants; of one that is gone, none."""
    ticks = 0
    for one in family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def moments(count: int, seed: str, latest_s: float) -> list[float]:
    """Return random moments, one of each of so many equal parts of the logarithm of the time."""
    draws = random.Random(seed)
    first = 0.3
    cuts = [first * (latest_s / first) ** (i / count) for i in range(count + 1)]
    return [draws.uniform(low, high) for low, high in pairwise(cuts)]


def measure(chosen: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    """Give one row per signal."""
    names = [name for group in chosen.group or () for name in GROUPS[group]] + (chosen.case or [])
    names = names or list(CASES)
    paths = inputs(folder, set().union(*(needed(CASES[name]) for name in names)))
    for name in names:
        command = [sys.executable, "-m", "mtpp", *(part.format(**paths) for part in CASES[name])]
        for after_s in moments(chosen.signals, f"{chosen.seed} {name}", chosen.latest):
            with TemporaryDirectory() as empty:
                anew = {"NUMBA_CACHE_DIR": empty} if name in COMPILED_ANEW else {}
                done = interrupted(command, after_s, Path(chosen.checkout).absolute(), {**os.environ, **anew})
            if done is None:
                yield [name, f"{after_s:.2f}", "–", "–", "ended before", "–", "yes"]
                break
            holds = done.exit_code is not None and min(done.seconds, done.processor_s) <= ALLOWED_S
            row = [name, f"{after_s:.2f}", f"{done.seconds:.2f}", f"{done.processor_s:.2f}"]
            row += ["killed" if done.exit_code is None else str(done.exit_code), "yes" if done.answered else "no"]
            row += ["yes" if holds else "NO"]
            print(" ".join(row), done.complaint.strip().splitlines()[-1:], file=sys.stderr, flush=True)
            yield row


def main() -> None:
    """Measure what the options choose, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interruptions")
    parser.add_argument("--case", action="append", choices=list(CASES), metavar="NAME")
    parser.add_argument("--group", action="append", choices=list(GROUPS))
    parser.add_argument("--signals", type=int, default=4, help="Moments of each case.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latest", type=float, default=LATEST_S, metavar="S", help="Latest moment of a signal.")
    parser.add_argument("--folder", help="Keep the inputs there.")
    parser.add_argument("--checkout", default=".", help="Whose mtpp to measure.")
    chosen = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(chosen.folder or temporary).absolute()
        folder.mkdir(exist_ok=True)
        rows = list(measure(chosen, folder))
    print_report("Interruptions", COLUMNS, rows)


if __name__ == "__main__":
    main()
