"""Figures as a Markdown table under the line that says on what they were measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter


def print_report(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *title*, the machine and the table on stdout; the first column is text, the others are numbers."""
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join([first, *others]) + " |"

    rule = "|" + "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths))
    print(f"## {title}\n\n{machine_line()}\n", line(columns), rule + "|", *map(line, rows), "", sep="\n")


def seconds_per_call(function: Callable[[int], object], *, at_least_s: float = 0.5, rounds: int = 3) -> float:
    """Return the mean time of ``function(0), function(1), …`` in the fastest of some rounds.

    A round lasts *at_least_s*; the first call, which may compile, is not measured.
    """
    function(0)
    best = float("inf")
    for _ in range(rounds):
        calls = 0
        start = perf_counter()
        while (spent := perf_counter() - start) < at_least_s:
            function(calls)
            calls += 1
        best = min(best, spent / calls)
    return best


def machine_line() -> str:
    """Return processor, cores, Python and the versions of the packages that decide speed, in one line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy"))
    system = f"{platform.system()} {platform.machine()}"
    return f"{_processor()}, {os.cpu_count()} cores, {system}, Python {platform.python_version()}, {packages}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
