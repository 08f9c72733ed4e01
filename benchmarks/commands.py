"""Wall time and peak memory of whole commands, as a user sees them: ``python -m benchmarks.commands [MODEL …]``.

Each command runs as a process, with compiled kernels at hand; :mod:`benchmarks.cold_start` has first runs. Python's
bytecode is at hand as well, as pip leaves it after an install; it is kept in a folder of its own, so that the figures
do not depend on PYTHONDONTWRITEBYTECODE. Models given as arguments are partitioned as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from benchmarks.report import print_report
from mtpp.datasets import sample_path

COLUMNS = ("command", "fastest s", "slowest s", "peak MB")
REPEATS = 5


class Run(NamedTuple):
    """What one process took."""

    seconds: float
    peak_mb: float


def run(arguments: list[str], cache: Path) -> Run:
    """Run ``mtpp`` with the kernels' cache in *cache* and return its wall time and largest resident set."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPYCACHEPREFIX": str(cache.parent / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "mtpp", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stderr is not None
    complaint = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"mtpp {' '.join(arguments)}: exit code {process.returncode}\n{complaint}")
    return Run(seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6)


def measure(label: str, arguments: list[str], cache: Path) -> list[str]:
    """Return one row, measured after a run that compiles."""
    _, *runs = [run(arguments, cache) for _ in range(REPEATS + 1)]
    seconds = [one.seconds for one in runs]
    return [label, f"{min(seconds):.2f}", f"{max(seconds):.2f}", f"{max(one.peak_mb for one in runs):.0f}"]


def main(models: list[str]) -> None:
    """Measure help, the light ResNet-50 of the onnx package, the shipped models, and those given."""
    light = str(files("onnx").joinpath("backend/test/data/light/light_resnet50.onnx"))
    with TemporaryDirectory() as folder:
        warm = Path(folder, "warm")
        rows = [
            measure("--help", ["--help"], warm),
            measure("partition light_resnet50.onnx -k 8", ["partition", light, "-k", "8"], warm),
            measure("partition resnet50.onnx -k 8", ["partition", str(sample_path("resnet50")), "-k", "8"], warm),
            measure(
                "partition gpt2.onnx --dim batch=1 --dim sequence=128 -k 8",
                ["partition", str(sample_path("gpt2")), "--dim", "batch=1", "--dim", "sequence=128", "-k", "8"],
                warm,
            ),
        ]
        rows += [
            measure(f"partition {Path(model).name} -k 8", ["partition", model, "-k", "8"], warm) for model in models
        ]
    print_report("Whole commands", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
