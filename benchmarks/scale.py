"""Time and memory of one cut of large networks: ``python -m benchmarks.scale [OPS …]``.

A cut into k stages takes O(n² / k) time, so 10⁶ ops (minutes) are measured only when asked for. Each size runs in a
process of its own. Memory is what slicing adds to the peak of making the graph and the instance; the textbook's table
alone would take 8 n² bytes.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from time import perf_counter

from benchmarks.report import print_report

SIZES = (10**3, 10**4, 10**5)
STAGES = 16
COLUMNS = ("ops", "build s", "instance s", "slice s", "slice adds MB", "peak MB", "table of costs MB")


def peak_mb() -> float:
    """Return the largest resident set of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def measure(n: int) -> list[str]:
    """Return one row for a layered network of *n* ops."""
    from mtpp.datasets.layered import layered_network
    from mtpp.instance import Instance
    from mtpp.solvers.arrays import slicing_arrays
    from mtpp.solvers.slicing import slice_order
    from mtpp.system import load_system

    system = load_system()
    small = Instance.build(layered_network(50), system, STAGES)
    slice_order(small, small.order)  # compiles
    start = perf_counter()
    graph = layered_network(n)
    built = perf_counter()
    instance = Instance.build(graph, system, STAGES)
    arrays = slicing_arrays(instance)
    ready = perf_counter()
    before = peak_mb()
    found = slice_order(instance, instance.order, arrays=arrays)
    done = perf_counter()
    if found is None:
        raise SystemExit("no cut found")
    times = [f"{built - start:.2f}", f"{ready - built:.2f}", f"{done - ready:.3f}"]
    return [f"{n:,}", *times, f"{peak_mb() - before:.0f}", f"{peak_mb():.0f}", f"{8 * n * n / 1e6:,.0f}"]


def main(sizes: Sequence[int]) -> None:
    """Measure every size."""
    rows = []
    for n in sizes:
        with get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure, (n,)))
    print_report(f"One cut of the network's own order, k = {STAGES}", COLUMNS, rows)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or SIZES)
