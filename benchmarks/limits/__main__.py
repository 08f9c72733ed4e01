"""Overshoot of limits: ``python -m benchmarks.limits [--command NAME] [--shape NAME] [--most-ops N] …``.

Whole commands on chains, layered, wide and dense graphs of 10³ to 10⁶ ops, each in a process of its own with compiled
kernels at hand, with a time limit and with a memory limit. A row says by how much the wall time is over the limit (from
the start of the process to its end, reading, imports and writing included) and how the peak of the memory of all its
processes compares with the limit. Allowed are 10 % + 1 s, and 10 %.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.limits.graphs import DENSE_OPS, SHAPES, write_graph, write_training_model
from benchmarks.process_tree import Watched, watch
from benchmarks.report import print_report

SIZES = (10**3, 10**4, 10**5, 10**6)
LAYERS = (100, 1_000, 10_000)
COMMANDS = ("partition", "bound", "certify", "verify", "plan")
COLUMNS = (
    *("command and graph", "time limit", "seconds", "over s", "over %", "CPU s"),
    *("memory limit", "peak MiB", "peak / limit", "exit", "holds"),
)
STAGES = 8
DEVICES = 16
MIB = 2**20
_KILLED_AFTER = 12
"""Times the limit, and a minute."""


def graphs(shapes: list[str], sizes: list[int]) -> Iterator[tuple[str, int]]:
    """Give the shapes and sizes to measure; a dense graph has one size, a wide one 200,000 ops in place of 10⁵."""
    for shape in shapes:
        if shape == "dense":
            yield shape, DENSE_OPS
            continue
        for n in sizes:
            yield shape, 2 * n if shape == "wide" and n == 10**5 else n


def made(folder: Path, shape: str, n: int) -> Path:
    """Return the file of a graph, written at its first use, by a process that takes its memory along."""
    path = folder / f"{shape}-{n}.json"
    if not path.exists():
        target = write_training_model if shape == "training" else write_graph
        arguments = (n, path) if shape == "training" else (shape, n, path)
        with get_context("spawn").Pool(1) as pool:
            pool.apply(target, arguments)
    return path


def arguments_of(command: str, path: Path, plan: Path, extra: list[str]) -> list[str]:
    """Return the arguments of ``mtpp`` for one run."""
    if command == "verify":
        return ["verify", str(plan), "--model", str(path), *extra]
    if command == "plan":
        return [
            "plan",
            str(path),
            "--devices",
            str(DEVICES),
            "--memory",
            "40GiB",
            "--bandwidth",
            "25GB/s",
            "--max-micro-batches",
            "64",
            *extra,
        ]
    output = ["-o", str(plan)] if command == "partition" else ["-o", os.devnull]
    return [command, str(path), "-k", str(STAGES), *extra, *(output if command == "partition" else [])]


def row_of(label: str, done: Watched, time_limit_s: float | None, memory_limit: int | None) -> list[str]:
    """Return one row of the table."""
    holds, over = True, ["–", "–"]
    if time_limit_s is not None:
        past = done.seconds - time_limit_s
        over = [f"{past:+.2f}", f"{100 * past / time_limit_s:+.0f}"]
        holds = done.exit_code is not None and past <= 0.1 * time_limit_s + 1
    share = "–"
    if memory_limit is not None:
        share = f"{done.peak_bytes / memory_limit:.2f}"
        holds = holds and done.peak_bytes <= 1.1 * memory_limit
    code = "killed" if done.exit_code is None else str(done.exit_code)
    return [
        label,
        "–" if time_limit_s is None else f"{time_limit_s:g}",
        f"{done.seconds:.2f}",
        *over,
        f"{done.cpu_seconds:.1f}",
        "–" if memory_limit is None else f"{memory_limit // MIB} MiB",
        f"{done.peak_bytes / MIB:.0f}",
        share,
        code,
        "yes" if holds else "NO",
    ]


def measure(chosen: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    """Give one row per run."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    checkout = Path(chosen.checkout).absolute()

    def run(command: str, path: Path, plan: Path, time_limit: float | None, memory: int | None) -> list[str]:
        extra = [] if time_limit is None else ["--time-limit", f"{time_limit:g}"]
        extra += [] if memory is None else ["--memory-limit", f"{memory // MIB}MiB"]
        if command == "verify" and chosen.plain_verify:
            extra = []
        whole = [sys.executable, "-m", "mtpp", *arguments_of(command, path, plan, extra)]
        kill_after_s = 60 + _KILLED_AFTER * (time_limit or 10)
        done = watch(whole, environment, checkout, kill_after_s)
        print(f"{' '.join(whole[3:])}: {done}", file=sys.stderr, flush=True)
        return row_of(f"{command} {path.stem}", done, time_limit, memory)

    limits: list[tuple[float | None, int | None]] = [(float(text), None) for text in chosen.time_limit]
    limits += [(max(map(float, chosen.time_limit), default=10.0), int(text) * MIB) for text in chosen.memory_limit]
    for command in chosen.command:
        cases = [("training", n) for n in LAYERS if n <= chosen.most_ops] if command == "plan" else None
        for shape, n in cases or graphs(chosen.shape, [n for n in SIZES if n <= chosen.most_ops]):
            path = made(folder, shape, n)
            plan = folder / f"{path.stem}.plan"
            if command == "verify" and not plan.exists():
                run("partition", path, plan, 60.0, None)
            for time_limit, memory in limits:
                yield run(command, path, plan, time_limit, memory)


def main() -> None:
    """Measure what the options choose, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits")
    parser.add_argument("--command", action="append", choices=COMMANDS)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--most-ops", type=int, default=10**6)
    parser.add_argument("--time-limit", nargs="*", default=["2", "10"], help="Seconds.")
    parser.add_argument("--memory-limit", nargs="*", default=["512", "1024"], help="MiB.")
    parser.add_argument("--folder", help="Keep the graphs there.")
    parser.add_argument("--checkout", default=".", help="Whose mtpp to measure.")
    parser.add_argument("--plain-verify", action="store_true", help="Of a checkout whose verify knows no limits.")
    chosen = parser.parse_args()
    chosen.command = chosen.command or list(COMMANDS)
    chosen.shape = chosen.shape or list(SHAPES)
    with TemporaryDirectory() as temporary:
        folder = Path(chosen.folder or temporary)
        folder.mkdir(exist_ok=True)
        rows = list(measure(chosen, folder))
    print_report("Limits", COLUMNS, rows)


if __name__ == "__main__":
    main()
