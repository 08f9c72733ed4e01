"""Time per topological order, windowed slicing against the textbook: ``python -m benchmarks.slicing``.

All make the same orders (Kahn with the same random priorities), on one core, in one run. "search" is what the random
search does per order: one pass that tells whether the order beats the best so far, which few do. "improve" is the full
programme for an order that does, here with a best so far that is 2 % above; "cut" is the public function, which knows
nothing beforehand and returns the partition as well.
"""

from __future__ import annotations

import numpy as np

from benchmarks.report import print_report, seconds_per_call
from benchmarks.textbook import textbook_slice
from mtpp.datasets.layered import layered_network
from mtpp.datasets.regal_style import regal_style
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.orders.kernels.random_orders import best_random_order
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE, best_segmentation
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.orders.slicing import slice_order

ORDERS = 64
STAGES = (4, 16, 64)
COLUMNS = (
    "graph",
    "ops",
    "k",
    "textbook ms",
    "cut ms",
    "ratio",
    "improve ms",
    "ratio",
    "search ms",
    "ratio",
    "orders/s",
)


def measure(graph: CostGraph, k: int) -> list[str]:
    """Return one row: milliseconds per order for each way, and ratios to the textbook."""
    instance = Instance.build(graph, Machine.uniform(k, load_device()))
    ordering, slicing = order_arrays(instance), slicing_arrays(instance)
    plain = (slicing.costs.work, slicing.costs.transfer, slicing.pin_offsets, instance.pins.copy())
    priorities = np.random.default_rng(0).random((ORDERS, instance.op_count))
    bottlenecks = [int(textbook_slice(kahn_order(ordering, row), k, *plain)) for row in priorities]
    best = min(bottlenecks)

    def textbook(i: int) -> int:
        return textbook_slice(kahn_order(ordering, priorities[i % ORDERS]), k, *plain)

    def improve(i: int) -> int:
        order = kahn_order(ordering, priorities[i % ORDERS])
        known = bottlenecks[i % ORDERS]
        return best_segmentation(order, k, known + known // 50 + 1, slicing)

    def cut(i: int) -> int:
        found = slice_order(instance, kahn_order(ordering, priorities[i % ORDERS]), arrays=slicing)
        return -1 if found is None else found.bottleneck

    receiver = np.empty(instance.op_count, dtype=np.int32)

    def search(i: int) -> int:
        return best_random_order(priorities, k, best, ordering, slicing, receiver)

    for i, expected in enumerate(bottlenecks):
        if not expected == cut(i) == improve(i) or search(0) != INFEASIBLE:
            raise SystemExit(f"{graph.name}, k = {k}: the ways differ")
    slow = seconds_per_call(textbook)
    row = [graph.name, str(graph.op_count), str(k), f"{slow * 1e3:.3f}"]
    for fast in (seconds_per_call(cut), seconds_per_call(improve), seconds_per_call(search) / ORDERS):
        row += [f"{fast * 1e3:.3f}", f"{slow / fast:.1f}"]
    return [*row, f"{1 / fast:,.0f}"]


def main() -> None:
    """Measure two sizes of two kinds of graph."""
    graphs = [regal_style("ws", 200, 0), layered_network(200, 0), regal_style("ws", 1000, 0), layered_network(1000, 0)]
    rows = [measure(graph, k) for graph in graphs for k in STAGES]
    print_report("Time per order, one core: the paper's Algorithms 1, 4, 5 and the window", COLUMNS, rows)


if __name__ == "__main__":
    main()
