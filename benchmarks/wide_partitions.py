"""Partitions of wide graphs with the default budget: ``python -m benchmarks.wide_partitions FOLDER [K,K [REFERENCE]]``.

One thread, kernels compiled. The best bottleneck known is REFERENCE's, see :mod:`benchmarks.wide_graphs`, or that of
this run where it is smaller.
"""

from __future__ import annotations

import sys
from math import exp, log
from pathlib import Path
from time import process_time

import mtpp
from benchmarks.report import print_report
from benchmarks.wide_graphs import STAGES, instances, known_cells
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.registry import partitioner

COLUMNS = ("graph", "ops", "k", "by", "best known / bottleneck", "lower / bottleneck", "CPU seconds")


def main(arguments: list[str]) -> None:
    """Print the table, the mean and the worst."""
    folder, *rest = arguments
    stages = [int(k) for k in rest[0].split(",")] if rest else list(STAGES)
    reference = known_cells(*rest[1:2])
    mtpp.warmup("partition")
    entry = partitioner("auto")
    rows, shares, seconds = [], [], 0.0
    for name, instance in instances(Path(folder), stages):
        begin = process_time()
        limits = SearchLimits(entry.budget(instance), lower_bound=simple_bound(instance).value)
        found = entry.load()(instance, limits)
        spent = process_time() - begin
        known = reference.get(name, {}).get(str(instance.k), {"upper": found.bottleneck})
        share = min(1.0, known["upper"] / found.bottleneck)
        lower = limits.lower_bound if found.lower is None else found.lower.value
        figures = (instance.op_count, instance.k, found.found_by, f"{share:.4f}", f"{lower / found.bottleneck:.4f}")
        rows.append([name[:28], *map(str, figures), f"{spent:.2f}"])
        shares.append(share)
        seconds += spent
    print_report("Partitions of wide graphs", COLUMNS, rows)
    mean = exp(sum(map(log, shares)) / len(shares))
    print(f"best known / bottleneck: geometric mean {mean:.4f}, worst {min(shares):.4f}; {seconds:.0f} s of CPU in all")


if __name__ == "__main__":
    main(sys.argv[1:])
