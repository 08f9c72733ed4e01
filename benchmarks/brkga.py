"""The evolution of orders with our decoder against the textbook's: ``python -m benchmarks.brkga [GRAPH.json …]``.

Both make the same search, 100 chromosomes for 100 generations with the same random choices, on one core, in one run.
The textbook rates every chromosome in full by Algorithms 1, 4 and 5 of Archer et al. (2024); ours only as far as it
takes to tell whether it enters the elite.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import print_report
from benchmarks.textbook import textbook_slice
from mtpp.datasets.layered import layered_network
from mtpp.datasets.regal_style import regal_style
from mtpp.formats.graphs.native import read_native
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.orders.evolution import FloatArray, Rate, cut_rating, first_population, next_population
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.partitioners.brkga import GENERATIONS, POPULATION
from mtpp.solvers.threads import Threads

STAGES = (4, 16, 64)
COLUMNS = ("graph", "ops", "k", "bottleneck", "textbook s", "ours s", "ratio")


def textbook_rating(instance: Instance) -> Rate:
    """Return the rating that cuts every order in full, whatever the cutoff."""
    ordering, slicing = order_arrays(instance), slicing_arrays(instance)
    plain = (slicing.costs.work, slicing.costs.transfer, slicing.pin_offsets, instance.pins.copy())

    def rate(chromosomes: FloatArray, cutoff: Any) -> NDArray[Any]:
        cuts = [textbook_slice(kahn_order(ordering, row), instance.k, *plain) for row in chromosomes]
        return np.array(cuts, dtype=np.int64)

    return rate


def evolve(instance: Instance, rate: Rate) -> int:
    """Return the least bottleneck that the evolution finds, in ticks."""
    stream = np.random.Generator(np.random.PCG64(0))
    population = first_population(POPULATION, instance.op_count, stream, rate)
    for _ in range(GENERATIONS - 1):
        population, _ = next_population(population, stream, rate, POPULATION)
    return int(population.fitness[0])


def measure(graph: CostGraph, k: int) -> list[str]:
    """Return one row: seconds of both ways, and their ratio."""
    instance = Instance.build(graph, Machine.uniform(k, load_device()))
    results, seconds = [], []
    with Threads(1) as threads:
        for rate in (textbook_rating(instance), cut_rating(instance, threads, lambda: False)):
            rate(np.zeros((1, instance.op_count)), None)  # compiles
            start = perf_counter()
            results.append(evolve(instance, rate))
            seconds.append(perf_counter() - start)
    if results[0] != results[1]:
        raise SystemExit(f"{graph.name}, k = {k}: the ways differ: {results}")
    slow, fast = seconds
    return [
        graph.name,
        str(graph.op_count),
        str(k),
        str(results[1]),
        f"{slow:.2f}",
        f"{fast:.2f}",
        f"{slow / fast:.1f}",
    ]


def main(paths: list[str]) -> None:
    """Measure the graphs given, or two sizes of two kinds."""
    graphs = [read_native(Path(path).read_bytes(), Path(path).stem) for path in paths] or [
        regal_style("ws", 100, 0),
        regal_style("ws", 200, 0),
        layered_network(200, 0),
    ]
    rows = [measure(graph, k) for graph in graphs for k in STAGES]
    print_report("BRKGA, 100 × 100, one core: the textbook's decoder and ours", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
