"""Compilation of each kernel by itself: processor time, and the commands that need it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import defaultdict
from shutil import copytree
from tempfile import TemporaryDirectory

from mtpp.api.warmup import COMMANDS
from mtpp.datasets import sample_path

_RUN = """
import sys, time
from numba.core import event
from mtpp.cli.main import root

class Watch(event.Listener):
    open = []

    def on_start(self, event):
        self.open.append([time.process_time(), 0.0])

    def on_end(self, event):
        begin, inner = self.open.pop()
        spent = time.process_time() - begin
        if self.open:
            self.open[-1][1] += spent
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("mtpp."):
            print("kernel", function.__module__, function.__qualname__, spent - inner, file=sys.stderr)
        elif self.open:
            self.open[-1][1] -= spent  # numba's own functions count for the kernel that needs them

event.register("numba:compile", Watch())
root.main(sys.argv[1:], standalone_mode=False)
"""


def kernel_rows() -> list[list[str]]:
    """Return a row for each kernel: without those that it calls, but with what numba compiles for it.

    Kernels that a command compiles in processes of its own are left out.
    """
    seconds: dict[str, list[float]] = defaultdict(list)
    commands: dict[str, list[str]] = defaultdict(list)
    for command in COMMANDS:
        for name, each in _compiled_by(command).items():
            commands[name].append(command)
            seconds[name] = seconds[name] or each
    total = ["all", "", str(sum(map(len, seconds.values()))), f"{sum(map(sum, seconds.values())):.1f}"]
    ordered = sorted(seconds, key=lambda name: -sum(seconds[name]))
    rows = [[name, ", ".join(commands[name]), str(len(seconds[name])), f"{sum(seconds[name]):.2f}"] for name in ordered]
    return [*rows, total]


def _compiled_by(command: str) -> dict[str, list[float]]:
    """Return seconds for each time that a kernel is compiled by the command lines of a command, from nothing."""
    found: dict[str, list[float]] = defaultdict(list)
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    with TemporaryDirectory() as folder, TemporaryDirectory() as code:
        copytree(sample_path("resnet50").parent, folder, dirs_exist_ok=True)
        for line in (line for lines in COMMANDS[command] for line in lines):
            done = subprocess.run(
                [sys.executable, "-c", _RUN, *shlex.split(line)],
                check=True,
                capture_output=True,
                text=True,
                cwd=folder,
                env={**os.environ, "NUMBA_CACHE_DIR": code, "PYTHONPATH": path},
            )
            for said in done.stderr.splitlines():
                if said.startswith("kernel "):
                    _, module, name, spent = said.split()
                    short = module.removeprefix("mtpp.solvers.").replace(".kernels", "")
                    found[f"{short}.{name}"].append(float(spent))
    return found
