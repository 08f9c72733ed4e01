"""The claims of Piper's paper, as tables: ``python -m benchmarks.piper [--table NAME …] [options]``.

``table1``: GNMT and ResNet-50 of Table 1, and BERT-32: time per sample in the file's unit beside what the published
program and the paper have, under the rules of either, with seconds, and what it is if bang per buck chooses the
configurations. ``fig1``: throughput of Piper and its baselines against the best, for 1, 2, 8 and 80 GiB. ``fig2``:
time per sample against the number of devices. ``appendix-c``: how often bang per buck does not find the best
configurations of a stage, and by how much. ``scaling``: seconds and peak memory by devices, micro-batches and layers.
Without ``--table``, all of them.

Models and published numbers are read from ``../shared``; where that is absent, there is nothing to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from benchmarks.piper.cases import (
    BERT,
    VARIANTS,
    WORKLOADS,
    Run,
    Workload,
    best_times,
    gib,
    half_a_digit,
    missing,
    problem_of,
    published,
    run,
    shown,
)
from benchmarks.report import print_report
from mtpp.training.plan import NoPlan

MEMORIES_GIB = (1, 2, 8, 80)
FIG1_DEVICES = (8, 32, 64, 128, 512, 1024, 2048)
FIG2_DEVICES = (8, 16, 22, 32, 64, 128, 256, 384, 512, 640, 768, 960, 1024, 1280, 1536, 1792, 2048)
FIG2_MICRO_BATCHES = (512, 960)
FIG2_MEMORY_GIB = 8
CONVENTIONS = ("program", "paper")

ALIKE = Fraction(1, 1000)
"""Numbers of the paper count as reproduced that are off by no more than this part of them."""


def _ours(outcome: Run, workload: Workload) -> str:
    if isinstance(outcome.result, NoPlan):
        return f"OOM, needs {gib(outcome.result.least_memory_bytes)}"
    return shown(outcome.result.time_per_sample / workload.ticks)


def _holds(outcome: Run, workload: Workload, number: Decimal | None) -> str:
    """Tell whether a result is no slower than a printed number, up to half a unit of its last digit."""
    if number is None:
        return "yes" if outcome.ticks is None else "better"
    if outcome.ticks is None:
        return "NO"
    return "yes" if outcome.ticks / workload.ticks <= Fraction(number) + half_a_digit(number) else "NO"


def table1(options: argparse.Namespace) -> None:
    """Print Table 1 and the rows of BERT-32, with what differs between the rules of program and paper."""
    rules: list[list[str]] = []
    for workload in WORKLOADS.values():
        numbers = published()[workload.name]
        papers = {(row["devices"], Fraction(row["memory_gib"])): row for row in numbers.get("paper", ())}
        rows = []
        off: dict[tuple[str, str], list[Fraction]] = {}
        for row in numbers["program"]:
            devices, memory = row["devices"], row["memory_gib"]
            paper: dict[str, Any] = papers.get((devices, Fraction(memory)), {})
            piper, equi = (
                {
                    convention: run(
                        problem_of(workload, devices, memory, convention=convention), planner, jobs=options.jobs
                    )
                    for convention in CONVENTIONS
                }
                for planner in (options.planner, "equi")
            )
            for name, runs, key in (("Piper", piper, "tps"), ("equi", equi, "equi_tps")):
                for convention in CONVENTIONS:
                    there, here = paper.get(key), runs[convention].ticks
                    if there is not None and here is not None:
                        gap = abs(here / workload.ticks - Fraction(there)) / Fraction(there)
                        off.setdefault((name, convention), []).append(gap)
            problem = problem_of(workload, devices, memory, convention="program")
            heuristic = run(problem, options.planner, jobs=options.jobs, knapsack="heuristic")
            result = piper["program"].result
            rows.append(
                [
                    f"{devices} × {memory} GiB", shown(row["tps"]), _ours(piper["program"], workload),
                    _holds(piper["program"], workload, row["tps"]),
                    "–" if isinstance(result, NoPlan) or result.ratio is None else f"{result.ratio:.4f}",
                    f"{piper['program'].seconds:.2f}", f"{row['peer_seconds']}",
                    "=" if heuristic.ticks == piper["program"].ticks else _ours(heuristic, workload),
                    shown(paper.get("tps"), absent="–"), _ours(piper["paper"], workload),
                    f"{piper['paper'].seconds:.2f}",
                    shown(row["equi_tps"]) if "equi_tps" in row else "–", _ours(equi["program"], workload),
                    shown(paper["equi_tps"]) if "equi_tps" in paper else "–", _ours(equi["paper"], workload),
                ]
            )  # fmt: skip
        columns = (
            "devices × memory", "program", "ours", "≤ program", "proven ratio", "seconds", "its seconds",
            "by bang per buck", "paper", "ours, paper's rules", "seconds", "equi: program", "ours", "paper",
            "ours, paper's rules",
        )  # fmt: skip
        print_report(f"Table 1: {workload.name}, time per sample in {workload.time_unit}", columns, rows)
        for (name, convention), gaps in off.items():
            alike = sum(gap <= ALIKE for gap in gaps)
            rules.append([f"{name}, {workload.name}", convention, f"{alike} of {len(gaps)}", f"{float(max(gaps)):.2%}"])
    columns = ("rows of the paper's Table 1", "rules", "within 0.1 %", "largest difference")
    print_report("Which rules reproduce the paper's numbers", columns, rules)


def fig1(options: argparse.Namespace) -> None:
    """Print the throughput of Piper and its baselines over the best of them, memory by memory."""
    for memory in options.memory or MEMORIES_GIB:
        times = _variant_times(options, memory, BERT.micro_batches, options.devices or FIG1_DEVICES)
        best = {
            k: min((times[name][k] for name in times if times[name][k] is not None), default=None)
            for k in options.devices or FIG1_DEVICES
        }
        rows = [
            [name, *(_normalised(by_devices[k], best[k]) for k in by_devices)] for name, by_devices in times.items()
        ]
        title = f"Fig. 1, {memory} GiB: throughput / best, N = {BERT.micro_batches}, {options.convention}'s rules"
        print_report(title, ["BERT-32", *(f"k = {k}" for k in best)], rows)


def fig2(options: argparse.Namespace) -> None:
    """Print the time per sample of Piper and its baselines against the number of devices."""
    for micro_batches in options.micro_batches or FIG2_MICRO_BATCHES:
        for memory in options.memory or (FIG2_MEMORY_GIB,):
            devices = options.devices or FIG2_DEVICES
            times = _variant_times(options, memory, micro_batches, devices)
            rows = [[str(k), *(_milliseconds(times[name][k]) for name in times)] for k in devices]
            title = f"Fig. 2: time per sample in ms, N = {micro_batches}, {memory} GiB, {options.convention}'s rules"
            print_report(title, ["k", *times], rows)


def _variant_times(
    options: argparse.Namespace, memory: int, micro_batches: int, devices: Sequence[int]
) -> dict[str, dict[int, Fraction | None]]:
    times = {}
    for name, (planner, schemes) in VARIANTS.items():
        problems = {
            k: problem_of(BERT, k, memory, convention=options.convention, micro_batches=micro_batches, schemes=schemes)
            for k in devices
        }
        found = best_times(problems, options.planner if planner == "piper" else planner, jobs=options.jobs)
        times[name] = {k: found[k] for k in devices}
    return times


def _normalised(time: Fraction | None, best: Fraction | None) -> str:
    return "0.000x" if time is None or best is None else f"{float(best / time):.3f}x"


def _milliseconds(ticks: Fraction | None) -> str:
    return shown(None if ticks is None else ticks / 10**9, 5)


def appendix_c(options: argparse.Namespace) -> None:
    """Print how often bang per buck is not optimal."""
    from benchmarks.piper.knapsacks import replay

    replay(options.instances, options.seed, options.convention)


def scaling(options: argparse.Namespace) -> None:
    """Print seconds and memory by devices, micro-batches and layers."""
    from benchmarks.piper.scaling import scale

    scale(options.planner, options.layers, options.devices, options.micro_batches, options.convention, options.jobs)


TABLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "table1": table1, "fig1": fig1, "fig2": fig2, "appendix-c": appendix_c, "scaling": scaling,
}  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Print the tables asked for."""

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(map(int, text.split(",")))

    parser = argparse.ArgumentParser(prog="python -m benchmarks.piper")
    parser.add_argument("--table", action="append", choices=TABLES, help="may be given several times [default: all]")
    parser.add_argument("--convention", choices=CONVENTIONS, default="paper", help="of all tables but table1")
    parser.add_argument(
        "--planner", choices=("piper", "equi", "pipedream-2bw"), default="piper", help="in Piper's place"
    )
    parser.add_argument("--devices", type=numbers, metavar="K,…", help="of figures and scaling")
    parser.add_argument("--memory", type=numbers, metavar="GIB,…", help="of the figures")
    parser.add_argument("--micro-batches", type=numbers, metavar="N,…", help="of fig2 and scaling")
    parser.add_argument("--layers", type=numbers, default=(32, 48, 64, 96), metavar="n,…", help="of scaling")
    parser.add_argument("--instances", type=int, default=27_000, metavar="n", help="of appendix-c")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    options = parser.parse_args(arguments)
    if absent := missing():
        print(f"skipped: there is no {absent[0]}", file=sys.stderr)
        return
    # The first run may compile.
    run(problem_of(BERT, 8, 8, convention=options.convention), options.planner, jobs=options.jobs)
    for name in options.table or TABLES:
        TABLES[name](options)


if __name__ == "__main__":
    main(sys.argv[1:])
