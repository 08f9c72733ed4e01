"""Compilation of each kernel by itself: processor time, and the commands that need it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

_LIST = """
import sys, time
from numba.core import event
from mtpp.solvers.warming import COMMANDS, load_for

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
            print(sys.argv[1], function.__module__, function.__qualname__, spent - inner)
        elif self.open:
            self.open[-1][1] -= spent  # numba's own functions count for the kernel that needs them

event.register("numba:compile", Watch())
load_for([sys.argv[1]])
"""


def kernel_rows() -> list[list[str]]:
    """Return a row for each kernel: without those that it calls, but with what numba compiles for it."""
    from mtpp.solvers.warming import COMMANDS

    seconds: dict[str, list[float]] = defaultdict(list)
    commands: dict[str, list[str]] = defaultdict(list)
    for command in COMMANDS:
        with TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", _LIST, command],
                check=True,
                capture_output=True,
                text=True,
                cwd=Path(__file__).resolve().parent.parent.parent,
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
            )
        found: dict[str, list[float]] = defaultdict(list)
        for line in done.stdout.splitlines():
            _, module, name, spent = line.split()
            found[f"{module.removeprefix('mtpp.solvers.').replace('.kernels', '')}.{name}"].append(float(spent))
        for name, each in found.items():
            commands[name].append(command)
            seconds[name] = seconds[name] or each
    total = ["all", "", str(sum(map(len, seconds.values()))), f"{sum(map(sum, seconds.values())):.1f}"]
    ordered = sorted(seconds, key=lambda name: -sum(seconds[name]))
    rows = [[name, ", ".join(commands[name]), str(len(seconds[name])), f"{sum(seconds[name]):.2f}"] for name in ordered]
    return [*rows, total]
