"""Time from Ctrl-C to the end: ``python -m benchmarks.interruptions [--case NAME …] [--signals N] [--seed N] …``.

Whole commands and planners on large inputs, each in a process of its own, interrupted at random moments of their run. A
row says how long they took from the signal to their end, the share of the processors that they had meanwhile, and how
they ended: 130 with a best answer so far or without one, or their own exit code where they had come to their end. Two
seconds are allowed on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.limit_graphs import write_graph, write_training_model
from benchmarks.process_tree import family, kill_family
from benchmarks.report import print_report

COLUMNS = ("command", "signal after s", "seconds to the end", "load", "exit", "answer", "holds")
ALLOWED_S = 2.0
LATEST_S = 12.0
"""Latest moment of a signal."""

_KILLED_AFTER_S = 60.0
_LOOK_S = 0.01

LINE = ("--devices", "64", "--memory", "2TiB", "--bandwidth", "25GB/s", "--max-micro-batches", "128")
GRAPH = ("--devices", "64", "--memory", "2TiB", "--bandwidth", "25GB/s", "--batch-size", "256")
SPLIT = ("--devices", "64", "--memory", "2TiB", "--bandwidth", "25GB/s", "--micro-batches", "128")
NESTED = ("--topology", "{topology}", "--memory", "2TiB", "--max-micro-batches", "128")
SMALL = ("--devices", "16", *LINE[2:])

CASES = {
    **{
        f"plan {planner} {shape}": ("plan", f"{{{shape}}}", "--planner", planner, *arguments)
        for planner, arguments in {
            "piper": LINE,
            "equi": LINE,
            "pipedream-2bw": LINE,
            "graphpipe": (*GRAPH, "--micro-batch-size", "1"),
            "pfeife": SPLIT,
        }.items()
        for shape in ("layers", "star")
    },
    "plan nested layers": ("plan", "{layers}", *NESTED),
    "plan nested star": ("plan", "{star}", *NESTED),
    "plan pfeife searched order": ("plan", "{layered}", "--planner", "pfeife", *SPLIT, "--order", "search"),
    "plan pfeife beam": ("plan", "{layers}", "--planner", "pfeife", *SPLIT, "--search", "beam"),
    "plan sweep": ("plan", "{layers}", *SMALL, "--sweep"),
    **{
        f"{command} {shape}": (command, f"{{{shape}}}", "-k", "16")
        for command in ("partition", "bound", "certify")
        for shape in ("chain", "layered", "wide")
    },
    **{
        f"partition {algorithm}": ("partition", "{layered}", "-k", "16", "--algorithm", algorithm)
        for algorithm in ("downset", "slice", "brkga", "random", "series-parallel")
    },
    "compare": ("compare", "{layered}", "-k", "16"),
    "verify": ("verify", "{plan}", "--model", "{layered}"),
    "verify plan": ("verify", "{training_plan}"),
    "simulate": ("simulate", "{training_plan}"),
    "report": ("report", "{plan}", "--model", "{layered}", "-o", "{scratch}.html"),
    "evaluate": ("evaluate", "{layered}", "--assignment", "{plan}"),
    "inspect": ("inspect", "{layered}"),
    "convert": ("convert", "{chain}", "{scratch}.graphml"),
    "generate": ("generate", "chain", "-n", "300000", "-o", "{scratch}-chain.json"),
}


@dataclass(frozen=True)
class Interrupted:
    """The end of an interrupted command; *seconds* and *processors* from the signal on."""

    seconds: float
    processors: float
    exit_code: int | None
    answered: bool
    complaint: str


def write_star(layers: int, path: Path) -> None:
    """Write a model to be trained: layers that all read from one and feed one."""
    from mtpp.formats.training.native import write_training_model as written
    from mtpp.training.model import Configuration, Edge, Layer, TrainingModel

    random_ = random.Random(0)
    made = [
        Layer(v, f"l{v}", {1: [Configuration("one", random_.randrange(10**6, 10**8), 10**6, 10**6, 10**7)]})
        for v in range(layers)
    ]
    middle = range(1, layers - 1)
    edges = [Edge(0, v, 10**6) for v in middle] + [Edge(v, layers - 1, 10**6) for v in middle]
    path.write_text(written(TrainingModel.build("star", "ps", made, edges)), encoding="utf-8")


def inputs(folder: Path) -> dict[str, str]:
    """Write the inputs that are not there yet; return their paths by name."""
    files = {name: folder / f"{name}.json" for name in ("layers", "star", "chain", "layered", "wide", "plan")}
    files |= {"training_plan": folder / "training-plan.json", "topology": folder / "topology.toml"}
    files["scratch"] = folder / "scratch"
    for name, ops in (("chain", 100_000), ("layered", 20_000), ("wide", 20_000)):
        if not files[name].exists():
            write_graph(name, ops, files[name])
    if not files["layers"].exists():
        write_training_model(3_000, files["layers"])
    if not files["star"].exists():
        write_star(2_000, files["star"])
    levels = "".join(f'[[levels]]\ndevices = 8\nbandwidth = "{rate}GB/s"\n\n' for rate in (100, 10))
    files["topology"].write_text(levels, encoding="utf-8")
    paths = {name: str(path) for name, path in files.items()}
    short = ("--time-limit", "5", "-q", "-o")
    for name, command in (
        ("plan", ("partition", "{layered}", "-k", "16", *short, "{plan}")),
        ("training_plan", ("plan", "{layers}", "--planner", "pfeife", *SPLIT, *short, "{training_plan}")),
    ):
        if not files[name].exists():
            filled = [part.format(**paths) for part in command]
            subprocess.run([sys.executable, "-m", "mtpp", *filled], check=True, stdout=subprocess.DEVNULL)
    return paths


def interrupted(command: Sequence[str], after_s: float, checkout: Path) -> Interrupted | None:
    """Run a command and interrupt it after so many seconds; None if it had come to its end before."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=checkout,
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
    return Interrupted(seconds, (spent - before) / seconds, code, bool(out.strip()), said)


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


def moments(count: int, seed: str) -> list[float]:
    """Return random moments, one of each of so many equal parts of the logarithm of the time."""
    draws = random.Random(seed)
    first = 0.3
    cuts = [first * (LATEST_S / first) ** (i / count) for i in range(count + 1)]
    return [draws.uniform(low, high) for low, high in pairwise(cuts)]


def measure(chosen: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    """Give one row per signal."""
    paths = inputs(folder)
    for name in chosen.case or CASES:
        command = [sys.executable, "-m", "mtpp", *(part.format(**paths) for part in CASES[name])]
        for after_s in moments(chosen.signals, f"{chosen.seed} {name}"):
            done = interrupted(command, after_s, Path(chosen.checkout).absolute())
            if done is None:
                yield [name, f"{after_s:.2f}", "–", "–", "ended before", "–", "yes"]
                break
            holds = done.exit_code is not None and done.seconds <= ALLOWED_S
            row = [name, f"{after_s:.2f}", f"{done.seconds:.2f}", f"{done.processors:.1f}"]
            row += ["killed" if done.exit_code is None else str(done.exit_code), "yes" if done.answered else "no"]
            row += ["yes" if holds else "NO"]
            print(" ".join(row), done.complaint.strip().splitlines()[-1:], file=sys.stderr, flush=True)
            yield row


def main() -> None:
    """Measure what the options choose, all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interruptions")
    parser.add_argument("--case", action="append", choices=list(CASES), metavar="NAME")
    parser.add_argument("--signals", type=int, default=4, help="Moments of each case.")
    parser.add_argument("--seed", type=int, default=0)
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
