"""Plans for this machine as measured: ``python -m benchmarks.calibration [--rounds N] [--prefix COMMAND] [MODEL …]``.

Each model goes the whole way: ``mtpp profile``; a first plan, whose run measures hand-overs and writes the machine; a
plan for that machine, and its run, held against the plan by ``mtpp evaluate --run``. Where the plan for the machine is
one stage, because a pipeline does not pay, the first plan takes its place: it must not pay either when it is run.
"ratio" is measured / predicted of the slowest stage; figures are medians of the rounds, each with a profile of its own.
Without models: seven of different kinds, on two processes of one thread, a core for each.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.calibration.models import MODELS, SIZES
from benchmarks.report import print_report

COLUMNS = (
    *("model", "ops", "latency", "bandwidth", "residual", "slowest stage, predicted", "measured", "ratio"),
    *("unsplit, predicted", "measured", "speed-up, predicted", "measured", "pays, predicted", "measured"),
)


def measure(model: Path, folder: Path, batches: int, prefix: list[str]) -> dict[str, Any]:
    """Take a model from its file to the run of a plan for this machine; return the figures."""
    sizes = SIZES.get(model.stem, ())
    costs, machine = folder / "costs.json", folder / "machine.toml"

    def mtpp(*arguments: str | Path, measuring: bool = False) -> str:
        command = [*(prefix if measuring else []), sys.executable, "-m", "mtpp", *map(str, arguments), "-q"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def run(plan: Path, name: str, *more: str | Path) -> dict[str, Any]:
        stages = folder / name
        mtpp("split", model, plan, "-o", stages)
        terms = ("--model", model, "--batches", str(batches), "--pin", "-o", folder / f"{name}.json")
        mtpp("run", stages, *terms, *more, measuring=True)
        return read(folder / f"{name}.json")

    mtpp("profile", model, *sizes, "-o", costs, measuring=True)
    first, second = folder / "first-plan.json", folder / "plan.json"
    mtpp("partition", model, *sizes, "--costs", costs, "-k", "2", "-o", first)
    found = run(first, "first", "--write-machine", machine)
    on_machine = (*sizes, "--costs", costs, "--machine", machine)
    mtpp("partition", model, *on_machine, "-o", second)
    name, plan = "first", first
    if all(stage["ops"] for stage in read(second)["stages"]):
        name, plan = "second", second
        run(second, "second")
    text = mtpp(
        *("evaluate", model, *on_machine, "--assignment", plan, "--run", folder / f"{name}.json", "--format", "json")
    )
    return {**json.loads(text), "line": found["hand_overs"]["line"]}


def row(name: str, rounds: list[dict[str, Any]]) -> list[str]:
    """Return the line of a model: medians of its rounds."""

    def middle(figure: Callable[[dict[str, Any]], float]) -> float:
        return median(map(figure, rounds))

    def ms(*keys: str) -> str:
        return f"{1e3 * middle(lambda one: one[keys[0]][keys[1]]):.3g} ms"

    due, speedup = (middle(lambda one, side=side: one["speedup"][side]) for side in ("predicted", "measured"))
    return [
        name,
        str(rounds[0]["model"]["ops"]),
        f"{1e6 * middle(lambda one: one['line']['latency_s']):.3g} µs",
        f"{1e-9 * middle(lambda one: one['line']['bandwidth_bytes_per_s']):.3g} GB/s",
        f"{middle(lambda one: one['line']['residual']):.0%}",
        ms("bottleneck", "predicted_s"),
        ms("bottleneck", "measured_s"),
        f"{middle(lambda one: one['bottleneck']['ratio']):.2f}",
        ms("unsplit", "predicted_s"),
        ms("unsplit", "measured_s"),
        f"{due:.2f}",
        f"{speedup:.2f}",
        "yes" if due > 1 else "no",
        "yes" if speedup > 1 else "no",
    ]


def read(path: Path) -> dict[str, Any]:
    """Return a JSON file."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def main(arguments: list[str]) -> None:
    """Measure every model."""
    parser = argparse.ArgumentParser(prog="benchmarks.calibration")
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--prefix", type=shlex.split, default=[], help="put before commands that measure")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        models = list(given.models)
        if not models:
            for name, write in MODELS.items():
                models.append(Path(made) / name)
                write(models[-1])
        found: dict[Path, list[dict[str, Any]]] = {model: [] for model in models}
        for _ in range(given.rounds):
            for model in models:
                with tempfile.TemporaryDirectory() as folder:
                    found[model].append(measure(model, Path(folder), given.batches, given.prefix))
                print(f"{model.stem}: load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    rows = [row(model.stem, rounds) for model, rounds in found.items()]
    print_report("Predicted against measured on a machine as measured", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
