"""Claims of GraphPipe's paper: ``python -m benchmarks.graphpipe [--table NAME …] [--bandwidth RATE]``.

Models, mini-batches and devices of Jeon et al. (2025), appendix A.2; costs are rooflines of whole layers, in place of
measured times. Iterations are simulated. The paper's figures stand beside ours where it gives any.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import mtpp
from benchmarks.report import print_report
from mtpp.api.options.graphpipe import GraphPipe
from mtpp.api.plan_training import plan_training
from mtpp.api.training.plan_results import GraphPlanResult
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.training.model import TrainingModel

DEVICES = (4, 8, 16, 32)
BATCH = {"mmt": 16, "dlrm": 64, "candle-uno": 1024}
"""Samples of a mini-batch by device."""

PAPER_SECONDS = {
    "mmt": (0.12, 0.76, 3.0, 10.11),
    "dlrm": (0.33, 2.73, 13.28, 54.6),
    "candle-uno": (0.19, 1.43, 6.14, 22.37),
}
"""Search times of GraphPipe, Table 1 (Apple M1 Max): MMT of 2 branches, DLRM and CANDLE-Uno of 8."""

MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "MMT 2 × 8": ("mmt", {"branches": 2}),
    "MMT 4 × 8": ("mmt", {}),
    "DLRM 7 + 7 × 4": ("dlrm", {}),
    "CANDLE-Uno 7 × 4": ("candle-uno", {}),
    "CANDLE-Uno 8 × 4": ("candle-uno", {"branches": 8}),
}
ROUNDS = 3


def planned(model: TrainingModel, family: str, devices: int, bandwidth: str, **rules: Any) -> GraphPlanResult:
    """Return the plan for so many devices of 16 GiB."""
    planner = GraphPipe(batch_size=BATCH[family] * devices, **rules)
    return plan_training(model, planner=planner, devices=devices, memory="16GiB", bandwidth=bandwidth)


def search(bandwidth: str) -> None:
    """Print how long planning takes, the bound included, beside GraphPipe's search."""
    rows = []
    for name, (family, shape) in MODELS.items():
        model = multi_branch_model(family, **shape)
        for devices, paper in zip(DEVICES, PAPER_SECONDS[family], strict=True):
            seconds = []
            for _ in range(ROUNDS):
                begin = perf_counter()
                plan = planned(model, family, devices, bandwidth)
                seconds.append(perf_counter() - begin)
            best = min(seconds)
            assert plan.ratio is not None
            figures = (f"{1000 * plan.iteration_s:.2f}", f"{plan.ratio:.4f}", f"{best:.3f}", f"{paper:.2f}")
            rows.append([f"{name}, K = {devices}", *figures, f"{paper / best:.0f}"])
    columns = ("model", "iteration (ms)", "iteration / bound", "seconds", "paper's search", "times as fast")
    print_report(f"Planning with its proof, {bandwidth}", columns, rows)


def gains(bandwidth: str) -> None:
    """Print how much faster graphs of stages are than lines, by what is in flight and by the size of micro-batches."""
    rows = []
    for name, (family, shape) in MODELS.items():
        model = multi_branch_model(family, **shape)
        for devices in DEVICES:
            row = [f"{name}, K = {devices}"]
            for rule in ("any", "least"):
                graph = planned(model, family, devices, bandwidth, in_flight=rule)
                line = planned(model, family, devices, bandwidth, in_flight=rule, sequential=True)
                same = planned(model, family, devices, bandwidth, in_flight=rule, micro_batch_sizes=[_size(line)])
                row += [f"{1000 * graph.iteration_s:.2f}", f"{line.iteration_s / graph.iteration_s:.3f}"]
                row += [f"{line.iteration_s / same.iteration_s:.3f}", f"{graph.depth} / {line.depth}"]
                row += [f"{_size(graph)} / {_size(line)}"]
            rows.append(row)
    parts = ("iteration (ms)", "gain", "with its size", "depth / line's", "size / line's")
    columns = ["model", *(f"{rule}: {part}" for rule in ("any", "least") for part in parts)]
    print_report(f"Gain over a line of stages, {bandwidth}", columns, rows)


def branches(bandwidth: str) -> None:
    """Print the gain for CANDLE-Uno of n branches on n devices; the paper has 2 at n = 16 (section 7.3)."""
    rows = []
    for count in (2, 4, 8, 12, 16):
        model = multi_branch_model("candle-uno", branches=count)
        row = [str(count)]
        for rule in ("any", "least"):
            graph = planned(model, "candle-uno", count, bandwidth, in_flight=rule)
            line = planned(model, "candle-uno", count, bandwidth, in_flight=rule, sequential=True)
            row += [f"{1000 * graph.iteration_s:.2f}", f"{1000 * line.iteration_s:.2f}"]
            row.append(f"{line.iteration_s / graph.iteration_s:.3f}")
        rows.append(row)
    parts = ("graph (ms)", "line (ms)", "gain")
    columns = ["branches, devices", *(f"{rule}: {part}" for rule in ("any", "least") for part in parts)]
    print_report(f"CANDLE-Uno of n branches on n devices, {bandwidth}", columns, rows)


def variants(bandwidth: str) -> None:
    """Print what kFkB orders and sizes by stage add."""
    ways: dict[str, dict[str, Any]] = {
        "k = 1, 2, 4": {"kfkb": [1, 2, 4]},
        "size by stage": {"per_stage_micro_batch": True},
        "both": {"kfkb": [1, 2, 4], "per_stage_micro_batch": True},
    }
    rows = []
    for name, (family, shape) in MODELS.items():
        model = multi_branch_model(family, **shape)
        for devices in DEVICES:
            plain = planned(model, family, devices, bandwidth)
            row = [f"{name}, K = {devices}", f"{1000 * plain.iteration_s:.2f}"]
            for rules in ways.values():
                row.append(f"{plain.iteration_s / planned(model, family, devices, bandwidth, **rules).iteration_s:.3f}")
            rows.append(row)
    print_report(f"Gain of other orders and sizes, {bandwidth}", ["model", "iteration (ms)", *ways], rows)


def _size(plan: GraphPlanResult) -> int:
    return plan.stages[0].micro_batch


TABLES = {"search": search, "gains": gains, "branches": branches, "variants": variants}


def main() -> None:
    """Print the tables asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="append", choices=list(TABLES))
    parser.add_argument("--bandwidth", default="12.5GB/s")
    given = parser.parse_args()
    mtpp.warmup("plan")
    for name in given.table or TABLES:
        TABLES[name](given.bandwidth)


if __name__ == "__main__":
    main()
