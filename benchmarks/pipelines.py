"""Predicted against measured pipelines: ``python -m benchmarks.pipelines [-k K] [--batches N] [MODEL …]``.

Each model goes the whole way: ``mtpp profile``, ``partition``, ``split --check`` and ``run``, one thread a worker.
Without models: the light ones of the ``onnx`` package. "predicted" and "measured" are of the slowest stage, "alone" is
what that stage takes with nothing else running, so measured / alone is what the stages cost each other; "unsplit" is a
batch through the whole model on one thread; roofline is the model's time on the preset ``reference``, for which it was
not made: how far its shares are off is the correlation of modelled with measured times of ops.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.report import print_report

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
COLUMNS = (
    "model", "ops", "k", "predicted", "measured", "measured / predicted", "measured / alone", "unsplit",
    "speed-up", "predicted speed-up", "roofline correlation",
)  # fmt: skip


def mtpp(*arguments: str | Path) -> str:
    """Run a command of mtpp and return what it prints."""
    command = [sys.executable, "-m", "mtpp", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(model: Path, k: int, batches: int, folder: Path) -> list[str]:
    """Take a model from file to pipeline, and return its row."""
    costs, plan, stages = folder / "costs.json", folder / "plan.json", folder / "stages"
    mtpp("profile", model, "-o", costs, "-q")
    mtpp("partition", costs, "-k", str(k), "-o", plan, "-q")
    mtpp("split", model, plan, "-o", stages, "--check", "-q")
    run = json.loads(mtpp("run", stages, "--model", model, "--batches", str(batches), "--format", "json", "-q"))
    slowest = run["bottleneck"]
    alone = next(stage["alone_s"] for stage in run["stages"] if stage["stage"] == slowest["stage"])
    return [
        model.stem,
        str(run["model"]["ops"]),
        str(k),
        milliseconds(slowest["predicted_s"]),
        milliseconds(slowest["measured_s"]),
        f"{slowest['measured_s'] / slowest['predicted_s']:.2f}",
        f"{slowest['measured_s'] / alone:.2f}",
        milliseconds(run["unsplit"]["measured_s"]),
        f"{run['speedup']['measured']:.2f}",
        f"{run['speedup']['predicted']:.2f}",
        roofline_correlation(model, costs, folder),
    ]


def roofline_correlation(model: Path, costs: Path, folder: Path) -> str:
    """Return how modelled and measured times of a model's ops go together."""
    modelled = folder / "modelled.json"
    mtpp("convert", model, modelled, "-q")
    works = [{op["name"]: float(op["work"]) for op in read(file)["ops"]} for file in (modelled, costs)]
    names = sorted(works[0].keys() & works[1].keys())
    pairs = np.array([[work[name] for name in names] for work in works])
    return f"{np.corrcoef(pairs)[0, 1]:.2f}"


def read(path: Path) -> dict[str, Any]:
    """Return a JSON file."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def milliseconds(seconds: float) -> str:
    """Return a time for the table."""
    return f"{seconds * 1e3:.2f} ms"


def main(arguments: list[str]) -> None:
    """Measure every model."""
    parser = argparse.ArgumentParser(prog="benchmarks.pipelines")
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("-k", type=int, default=2)
    parser.add_argument("--batches", type=int, default=100)
    given = parser.parse_args(arguments)
    rows = []
    for model in given.models or sorted(LIGHT.glob("*.onnx")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(model, given.k, given.batches, Path(folder)))
    print_report("Predicted against measured pipelines", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
