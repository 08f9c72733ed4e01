"""Time of the inner loops of searches on five graphs of 10³ to 10⁵ ops: ``python -m benchmarks.kernels``.

"slice" asks for the fewest stages of the file's order below its bottleneck, "cut" for its best bottleneck, "anneal"
makes two million proposals, "polish" looks at up to 400,000 moves, "downsets" makes 1.5 million steps (graphs of up to
20,000 ops). Least CPU time of three runs, on one core. To compare two checkouts, run both in turns and take the median
of their ratios.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.report import print_report
from mtpp.datasets.layered import layered_network
from mtpp.datasets.regal_style import regal_style
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.arrays import slicing_arrays
from mtpp.solvers.downsets.enumeration import DownsetEnumeration, downset_problem
from mtpp.solvers.local_search.assignment import assignment_state, move_arrays
from mtpp.solvers.local_search.kernels.annealing import anneal
from mtpp.solvers.local_search.kernels.moves import start_from
from mtpp.solvers.local_search.kernels.polishing import polish
from mtpp.solvers.orders.kernels.slicing import best_segmentation, fewest_stages
from mtpp.solvers.orders.slicing import slice_order

RUNS = 3
MOST_OPS_OF_DOWNSETS = 20_000


def seconds(call: Callable[[], object]) -> float:
    """Return the least CPU time of a few runs, the first of which compiles."""
    call()
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def measure(name: str, graph: CostGraph, k: int) -> list[str]:
    """Return one row: milliseconds of each inner loop."""
    instance = Instance.build(graph, Machine.uniform(k, load_device()))
    slicing, order = slicing_arrays(instance), instance.order.copy()
    start = slice_order(instance, instance.order)
    assert start is not None
    parent = np.empty(instance.op_count + 1, dtype=np.int32)
    least = start.bottleneck
    moves = move_arrays(instance, k)
    state = assignment_state(moves, k, 1)

    def annealed() -> None:
        start_from(start.partition.assignment, moves, state)
        state.stream[0] = 1
        anneal(2_000_000, float(least), 20.0, 0.05, 0.001, moves, state)

    def polished() -> None:
        start_from(start.partition.assignment, moves, state)
        polish(400_000, moves, state)

    found = [
        seconds(lambda: fewest_stages(order, least + 1, k, slicing, parent)),
        seconds(lambda: best_segmentation(order, k, least + least // 50 + 1, slicing)),
        seconds(annealed),
        seconds(polished),
    ]
    if instance.op_count <= MOST_OPS_OF_DOWNSETS:
        problem = downset_problem(instance)
        found.append(seconds(lambda: DownsetEnumeration(problem, least - 1, 2**28).run(1_500_000)))
    cells = [f"{1000 * one:,.2f}" for one in found]
    return [name, f"{instance.op_count:,}", str(k), *cells, *["–"] * (5 - len(cells))]


def main() -> None:
    """Print the table."""
    graphs = [
        ("layered", layered_network(1000, 0), 8),
        ("small world", regal_style("ws", 2000, 1), 16),
        ("layered", layered_network(10_000, 1), 8),
        ("small world", regal_style("ws", 20_000, 2), 32),
        ("layered", layered_network(100_000, 2), 16),
    ]
    columns = ("graph", "ops", "k", *(f"{name} ms" for name in ("slice", "cut", "anneal", "polish", "downsets")))
    print_report("Inner loops of searches", columns, [measure(*one) for one in graphs])


if __name__ == "__main__":
    main()
