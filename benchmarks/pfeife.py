"""Claims of Pfeife's paper: ``python -m benchmarks.pfeife [--table NAME …]``.

ViT-g/14, Llama 2 7B and any graphs named, cut for 2, 4 and 8 devices: how fast an iteration is evaluated, how long
planning takes with its bounds, what the plans gain over known schedules, and what a beam search comes to.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np

import mtpp
from benchmarks.report import print_report, seconds_per_call
from mtpp.api.options.pfeife import Pfeife
from mtpp.api.plan_training import plan_training
from mtpp.api.training.plan_results import SplitPlanResult
from mtpp.datasets.transformer import transformer
from mtpp.inference.graph import CostGraph
from mtpp.solvers.planners.pfeife.candidate import Scheduled
from mtpp.solvers.planners.pfeife.kernels.split_annealing import split_iteration
from mtpp.solvers.planners.pfeife.schedule_arrays import looped_arrays

SIZES = ((2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16))
"""Devices and micro-batches, as in the paper's Table 1."""


def models() -> dict[str, CostGraph]:
    """Return graphs with the shapes of the paper's models."""
    return {
        "ViT-g/14": transformer(40, kind="encoder", hidden=1408, heads=16, sequence=257),
        "Llama 2 7B": transformer(32, hidden=4096, heads=32, sequence=1024),
    }


def planned(model: Any, devices: int, micro_batches: int, **rules: Any) -> tuple[SplitPlanResult, float]:
    """Return a plan, and the seconds that it took."""
    begin = perf_counter()
    plan = plan_training(model, planner=Pfeife(micro_batches=micro_batches, **rules), devices=devices)
    return plan, perf_counter() - begin


def evaluation(graphs: dict[str, Any]) -> None:
    """Print how many splits are evaluated a second, each with all its passes."""
    rows = []
    for name, model in graphs.items():
        for devices, micro_batches in SIZES[1::2]:
            plan, _ = planned(model, devices, micro_batches, loops=[3])
            looped = plan.plan.looped
            assert looped is not None
            arrays = looped_arrays(looped)
            assert arrays is not None
            ready = Scheduled(plan.plan.problem, arrays, looped).split_arrays
            split = np.array(plan.plan.split, dtype=np.int64)
            seconds = seconds_per_call(lambda _, a=ready, s=split: split_iteration(a, s))
            passes = len(arrays.table)
            rows.append([f"{name}, D = {devices}, B = {micro_batches}", f"{passes}", f"{1 / seconds:,.0f}"])
    print_report("Evaluations of a split, called one by one from Python", ("model", "passes", "a second"), rows)


def gains(graphs: dict[str, Any]) -> None:
    """Print planning times, both ratios, and gains over known schedules with even stages."""
    rows = []
    for name, model in graphs.items():
        for devices, micro_batches in SIZES:
            plan, seconds = planned(model, devices, micro_batches)
            known = {key: gain for key, gain in plan.gains.items() if key != "even"}
            best = min(known, key=lambda key: known[key])
            figures = [f"{seconds:.2f}", f"{plan.ratio:.4f}", f"{plan.family_ratio:.4f}", f"{known['1f1b']:.3f}"]
            rows.append([f"{name}, D = {devices}, B = {micro_batches}", *figures, f"{known[best]:.3f} ({best})"])
    columns = ("model", "seconds", "ratio", "of all schedules", "over 1F1B", "over the best known")
    print_report("Plans with their proofs", columns, rows)


def parts(graphs: dict[str, Any]) -> None:
    """Print what uneven stages, prefetch and loops gain over 1F1B with even stages, one after the other."""
    rows = []
    for name, model in graphs.items():
        for devices, micro_batches in SIZES:
            none = [0] * devices
            asked: list[dict[str, Any]] = [{"loops": [1], "prefetch": none}, {"loops": [1]}, {"prefetch": none}, {}]
            found = [planned(model, devices, micro_batches, **rules)[0].gains["1f1b"] for rules in asked]
            rows.append([f"{name}, D = {devices}, B = {micro_batches}", *(f"{gain:.3f}" for gain in found)])
    columns = ("model", "uneven stages", "and prefetch", "uneven and loops", "all three")
    print_report("Gains over 1F1B with even stages", columns, rows)


def beams(graphs: dict[str, Any]) -> None:
    """Print how much longer plans by beam search take than annealed ones, and how long the searches do."""
    rows = []
    for name, model in graphs.items():
        for devices, micro_batches in SIZES:
            annealed, seconds = planned(model, devices, micro_batches)
            beam, longer = planned(model, devices, micro_batches, search="beam")
            ratio = beam.iteration_ticks / annealed.iteration_ticks
            rows.append(
                [f"{name}, D = {devices}, B = {micro_batches}", f"{ratio:.4f}", f"{seconds:.2f}", f"{longer:.2f}"]
            )
    print_report("Beam search against annealing", ("model", "iterations", "annealing (s)", "beam (s)"), rows)


TABLES = {"evaluation": evaluation, "gains": gains, "parts": parts, "beams": beams}


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--table", action="append", choices=TABLES, help="one of them [default: all]")
    parser.add_argument("models", nargs="*", help="further graphs")
    arguments = parser.parse_args()
    mtpp.warmup("plan")
    graphs: dict[str, Any] = {**models(), **{path.rsplit("/", 1)[-1]: path for path in arguments.models}}
    for name in arguments.table or TABLES:
        TABLES[name](graphs)


if __name__ == "__main__":
    main()
