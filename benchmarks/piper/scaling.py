"""Planning time as devices, micro-batches and layers grow: BERT-32 with more Transformer layers, at 8 GiB."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from multiprocessing import get_context

from benchmarks.piper.cases import BERT, Run, model_of, problem_of, run, shown
from benchmarks.piper.lengthened import lengthened
from benchmarks.report import print_report
from mtpp.solvers.planners.equal.equi import repeated_layers
from mtpp.training.model import TrainingModel

DEVICES = (64, 128, 256, 512, 1024, 2048)
MICRO_BATCHES = (512, 2048)
MEMORY_GIB = 8
COLUMNS = ("layers", "N", "k", "seconds", "peak MB", "time per sample, ms", "proven ratio")


def bert(layers: int) -> TrainingModel:
    """Return BERT with so many Transformer layers."""
    model = model_of(BERT)
    found = repeated_layers(model)
    if found is None:
        raise AssertionError("BERT repeats a layer")
    return lengthened(model, found.layers, layers)


def cell(task: tuple[str, int, int, int, str, int]) -> list[str]:
    """Plan once, in a process of its own, after a small problem that loads what is compiled."""
    planner, layers, micro_batches, devices, convention, jobs = task
    model = bert(layers)

    def planned(k: int, n: int) -> Run:
        problem = problem_of(BERT, k, MEMORY_GIB, convention=convention, micro_batches=n, model=model)
        return run(problem, planner, jobs=jobs)

    planned(16, 16)
    outcome = planned(devices, micro_batches)
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ratio = getattr(outcome.result, "ratio", None)
    return [
        str(layers), str(micro_batches), str(devices), f"{outcome.seconds:.2f}", f"{peak_kib * 1024 / 1e6:.0f}",
        shown(None if outcome.ticks is None else outcome.ticks / 10**9),
        "–" if ratio is None else f"{ratio:.4f}",
    ]  # fmt: skip


def scale(
    planner: str,
    layers: Sequence[int],
    devices: Sequence[int] | None,
    micro_batches: Sequence[int] | None,
    convention: str,
    jobs: int,
) -> None:
    """Print one row per model, N and k."""
    rows = []
    for count in layers:
        for n in micro_batches or MICRO_BATCHES:
            for k in devices or DEVICES:
                with get_context("spawn").Pool(1) as pool:
                    rows.append(pool.apply(cell, ((planner, count, n, k, convention, jobs),)))
    print_report(f"Time and memory of planning, {MEMORY_GIB} GiB, {convention}'s rules, {jobs} threads", COLUMNS, rows)
