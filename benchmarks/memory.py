"""Cost of memory limits to the search: ``python -m benchmarks.memory``.

Time of one pass over a random order (the least number of stages below a cutoff), with no memory, with a fast memory
that holds an average stage and a fixed reserve, and with the same memory and peaks in order. The cutoff is each order's
best bottleneck + 1 under its own memory, so windows differ too: what is paid for makes stages more expensive. The last
column divides the time of peaks in order by the segments that they were found for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.report import print_report, seconds_per_call
from mtpp.datasets.layered import layered_network
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.arrays import SlicingArrays, order_arrays, slicing_arrays
from mtpp.solvers.orders.kernels.slicing import fewest_stages
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.orders.slicing import slice_order

STAGES = (4, 16)
COLUMNS = ("graph", "ops", "k", "no memory µs", "reserve µs", "ratio", "in order µs", "ratio", "ns per segment")


def measure(graph: CostGraph, k: int) -> list[str]:
    """Return one row: microseconds per pass under each kind of memory."""
    system = load_device()
    average = sum(graph.param_bytes.tolist()) // k
    times: list[float] = []
    segments = 0
    for known in (
        system,
        system.overriding(fast_memory_bytes=average),
        system.overriding(fast_memory_bytes=average, peak="order"),
    ):
        instance = Instance.build(graph, Machine.uniform(k, known))
        slicing = slicing_arrays(instance)
        order = kahn_order(order_arrays(instance), np.random.default_rng(0).random(instance.op_count))
        found = slice_order(instance, order, arrays=slicing)
        if found is None:
            raise SystemExit(f"{graph.name}, k = {k}: no cut found")
        cutoff = found.bottleneck + 1
        parent = np.empty(instance.op_count + 1, dtype=np.int32)

        def one_pass(_: int, order: np.ndarray = order, cutoff: int = cutoff, slicing: SlicingArrays = slicing) -> int:
            return fewest_stages(order, cutoff, k, slicing, parent)  # noqa: B023

        if one_pass(0) > k:
            raise SystemExit(f"{graph.name}, k = {k}: the cut is not found again")
        times.append(seconds_per_call(one_pass))
        segments = _segments_below(slicing.costs.work[order], cutoff)
    plain, reserve, in_order = times
    return [
        graph.name,
        str(graph.op_count),
        str(k),
        f"{plain * 1e6:.1f}",
        f"{reserve * 1e6:.1f}",
        f"{reserve / plain:.1f}",
        f"{in_order * 1e6:.0f}",
        f"{in_order / plain:.0f}",
        f"{in_order / segments * 1e9:.0f}",
    ]


def _segments_below(work: np.ndarray, cutoff: int) -> int:
    """Return the number of segments whose work alone is below the cutoff."""
    ends = np.concatenate(([0], np.cumsum(work)))
    return int(sum(right - np.searchsorted(ends, ends[right] - cutoff, side="right") for right in range(1, len(ends))))


def main() -> None:
    """Measure ResNet-50 and two sizes of a synthetic network."""
    sample = Path(__file__).parent.parent / "datasets" / "samples" / "resnet50.onnx"
    graphs = [read_graph(read_source(str(sample)), system=load_device())]
    graphs += [layered_network(200, 0), layered_network(1000, 0)]
    rows = [measure(graph, k) for graph in graphs for k in STAGES]
    print_report("Time per pass over an order, one core: memories", COLUMNS, rows)


if __name__ == "__main__":
    main()
