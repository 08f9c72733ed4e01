"""First and later runs of commands of an installed package: ``python -m benchmarks.cold_start [FOLDER]``.

The package is built, and installed into a virtual environment of its own. Before each cold run all that earlier runs
left there is removed, and the home folder is new and empty; warm runs follow one that is not measured. Processor time
is that of the command and all processes that it started. An error ends the benchmark if any of them goes on after the
command, or if the answers of cold and warm runs differ in more than times.

*FOLDER* holds more models, as ``shared/data`` does. ``--venv PATH`` measures a package that is installed already,
``--repeats N`` takes medians of N runs instead of five, ``--kernels`` prints which kernels are compiled for what, and
how long each takes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.cold_start.kernel_times import kernel_rows
from benchmarks.report import print_report

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "datasets" / "samples"
COLUMNS = ("command", "cold CPU s", "cold wall s", "warm CPU s", "warm wall s", "on one core s")
KERNEL_COLUMNS = ("kernel", "commands", "variants", "CPU s")
_PR_SET_CHILD_SUBREAPER = 36
_TIMES = ("elapsed_s", "seconds", "total_seconds", "partition_seconds")


class Spent(NamedTuple):
    """What one run took, and the answer that it wrote."""

    cpu_s: float
    wall_s: float
    answer: str


class Case(NamedTuple):
    """A command, called for people by its first words, and the exit code that it is to end with."""

    name: str
    arguments: Sequence[str]
    code: int = 0


class Installation:
    """A virtual environment with the package, whose state after the installation can be had again."""

    def __init__(self, venv: Path) -> None:
        self._venv = venv
        self.command = venv / "bin" / "mtpp"
        (self._package,) = venv.glob("lib/python*/site-packages/mtpp")
        self._installed = set(self._files())

    def clean(self) -> None:
        """Remove what runs have left in the package."""
        for path in set(self._files()) - self._installed:
            path.unlink()

    def _files(self) -> Iterator[Path]:
        return (path for path in self._package.rglob("*") if path.is_file())


def run(installation: Installation, case: Case, folder: Path, *, one_core: bool = False) -> Spent:
    """Run a command and all that it starts to their end."""
    output = folder / "answer.json"
    output.unlink(missing_ok=True)
    pinned = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))] if one_core else []
    command = [*pinned, str(installation.command), *case.arguments, "--format", "json"]
    before, begin = _children_cpu_s(), time.perf_counter()
    with output.open("wb") as answer:
        done = subprocess.run(
            command, stdout=answer, stderr=subprocess.PIPE, cwd=folder, env={"HOME": str(folder), "PATH": os.defpath}
        )
    wall_s = time.perf_counter() - begin
    _reap_orphans(case)
    if done.returncode != case.code:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.decode()}")
    return Spent(_children_cpu_s() - before, wall_s, _without_times(output.read_bytes()))


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _reap_orphans(case: Case) -> None:
    """Stop with an error if anything goes on after a command; what was killed with it is counted."""
    end = time.monotonic() + 1.0
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            if time.monotonic() > end:
                raise SystemExit(f"{case.name}: a process goes on after the command")
            time.sleep(0.01)


def _without_times(data: bytes) -> str:
    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(item) for key, item in value.items() if key not in _TIMES}
        return [timeless(item) for item in value] if isinstance(value, list) else value

    return json.dumps(timeless(json.loads(data)))


def measure(installation: Installation, case: Case, repeats: int, files: Sequence[Path]) -> list[str]:
    """Return the row of one command; *files* are what it reads from its folder."""
    runs: dict[str, list[Spent]] = {"cold": [], "one core": [], "warm": []}
    for kind in ("cold", "one core"):
        for _ in range(repeats):
            installation.clean()
            with _home(files) as folder:
                runs[kind].append(run(installation, case, folder, one_core=kind == "one core"))
    with _home(files) as folder:
        runs["warm"] = [run(installation, case, folder) for _ in range(repeats + 1)][1:]
    installation.clean()
    answers = {spent.answer for spents in runs.values() for spent in spents}
    if len(answers) > 1:
        raise SystemExit(f"{case.name}: cold and warm runs disagree")
    cold, one_core, warm = (_medians(runs[kind]) for kind in ("cold", "one core", "warm"))
    row = [case.name, *(f"{value:.2f}" for value in (*cold, *warm, one_core[1]))]
    print(*row, sep="\t", file=sys.stderr)
    return row


def _medians(spents: Sequence[Spent]) -> tuple[float, float]:
    return median(spent.cpu_s for spent in spents), median(spent.wall_s for spent in spents)


@contextmanager
def _home(files: Sequence[Path]) -> Iterator[Path]:
    with TemporaryDirectory() as name:
        for path in files:
            Path(name, path.name).symlink_to(path)
        yield Path(name)


def cases(folder: Path | None) -> list[Case]:
    """Return the commands, those on models of *folder* included."""
    tokens = ("--dim", "batch=1", "--dim", "sequence=128")
    resnet, gpt2 = str(SAMPLES / "resnet50.onnx"), str(SAMPLES / "gpt2.onnx")
    devices = ("--devices", "8", "--memory", "6GiB", "--bandwidth", "50GB/s")
    found = [
        Case("partition resnet50 -k 4", ("partition", resnet, "-k", "4")),
        Case("partition gpt2 -k 8", ("partition", gpt2, *tokens, "-k", "8")),
        Case("partition gpt2, fast memory", ("partition", gpt2, *tokens, "-k", "8", "--fast-memory", "24MiB")),
        Case(
            "partition gpt2, peaks in order",
            ("partition", gpt2, *tokens, "-k", "8", "--fast-memory", "24MiB", "--peak", "order"),
        ),
        Case("certify resnet50 -k 4", ("certify", resnet, "-k", "4")),
        Case("bound resnet50 -k 4", ("bound", resnet, "-k", "4", "--bounds", "simple,node,crossings,fraction")),
        Case(
            "evaluate resnet50 --against auto",
            ("evaluate", resnet, "--cuts", "layer1.2.conv1/Conv", "--against", "auto"),
        ),
        Case("verify plan.json", ("verify", "plan.json", "--model", resnet)),
        Case("plan", ("plan", "training.json", *devices, "--batch-size", "48", "--micro-batch-size", "2")),
        Case(
            "plan --planner graphpipe",
            (
                *("plan", "training.json", *devices, "--planner", "graphpipe"),
                *("--batch-size", "16", "--micro-batch-size", "2"),
            ),
        ),
        Case("plan --planner pfeife", ("plan", gpt2, *tokens, *devices, "--planner", "pfeife", "--micro-batches", "8")),
        Case("verify training-plan.json", ("verify", "training-plan.json", "--model", "training.json")),
        Case(
            "simulate training-plan.json",
            (
                *("simulate", "training-plan.json", "--model", "training.json"),
                *("--batch-size", "48", "--micro-batch-size", "2"),
            ),
        ),
    ]
    more = {"t5-small": (), "bert-base": (), "sd15-unet": ()}
    for name in more:
        path = Path() if folder is None else folder / "onnx" / f"{name}.onnx"
        if path.is_file():
            found.append(Case(f"partition {name} -k 8", ("partition", str(path.resolve()), "-k", "8")))
    return found


def prepare(command: Path, folder: Path) -> list[Path]:
    """Make the documents that commands read, with the package itself."""

    def call(name: str, *arguments: str) -> Path:
        path = folder / name
        with path.open("wb") as file:
            subprocess.run([str(command), *arguments], check=True, stdout=file, cwd=folder)
        return path

    training = call(
        "training.json",
        *("generate", "transformer-training", "--layers", "12", "--sequence", "2048", "--micro-batch-size", "2"),
    )
    plan = call("plan.json", "partition", str(SAMPLES / "resnet50.onnx"), "-k", "4", "--format", "json", "-q")
    devices = ("--devices", "8", "--memory", "6GiB", "--bandwidth", "50GB/s", "--batch-size", "48", "-q")
    training_plan = call(
        "training-plan.json", "plan", str(training), *devices, "--micro-batch-size", "2", "--format", "json"
    )
    return [training, plan, training_plan]


def installed(folder: Path) -> Path:
    """Build the package and install it into a new virtual environment; print what that takes."""
    begin = time.perf_counter()
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, built in {time.perf_counter() - begin:.0f} s\n")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", str(wheel)], check=True)
    return venv


def main(arguments: Sequence[str]) -> None:
    """Measure all commands."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_start", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--venv", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kernels", action="store_true")
    given = parser.parse_args(arguments)
    if given.kernels:
        print_report("Kernels", KERNEL_COLUMNS, kernel_rows())
        return
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with TemporaryDirectory() as name:
        folder = Path(name)
        installation = Installation((given.venv or installed(folder)).resolve())
        files = prepare(installation.command, folder)
        rows = [measure(installation, case, given.repeats, files) for case in cases(given.folder)]
    print_report("Cold and warm", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
