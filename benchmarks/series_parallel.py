"""Series-parallel pieces where many branches lie side by side: ``python -m benchmarks.series_parallel [SECONDS]``.

An op feeds one tensor to 2 … 16 equal chains of eight ops, and an op joins them; there is a stage for each branch and
two more, so that the best stages are pieces of the shape. The search over downsets, which has some seconds for each
graph (20 by default), finds the same optimum where it comes to an end: m such chains have more than nine to the power
of m downsets. A second table has networks of blocks, to show how decomposing and cutting grow.
"""

from __future__ import annotations

import random
import sys
from time import perf_counter

from benchmarks.report import print_report, seconds_per_call
from mtpp.datasets.layered import layered_network
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.registry import PARTITIONERS, partitioner
from mtpp.solvers.series_parallel.decomposition import decompose

LENGTH = 8
LIMIT_S = 20.0
BRANCHES = (2, 3, 4, 6, 8, 12, 16)
SIZES = (1_000, 10_000, 100_000)


def branches(count: int) -> CostGraph:
    """Return *count* equal chains between two ops that are nearly as much work as one of them."""
    draw = random.Random(1)
    chain = [(draw.randint(50, 100), draw.randint(5, 30)) for _ in range(LENGTH)]
    end = sum(work for work, _ in chain) * 9 // 10
    ops, tensors = [Op("in", end)], [Tensor("t", "in", tuple(f"b{b}.0" for b in range(count)), transfer=10)]
    for b in range(count):
        for i, (work, transfer) in enumerate(chain):
            ops.append(Op(f"b{b}.{i}", work))
            reader = f"b{b}.{i + 1}" if i + 1 < LENGTH else "out"
            tensors.append(Tensor(f"t{b}.{i}", f"b{b}.{i}", (reader,), transfer=transfer))
    return CostGraph.build(name=f"{count} branches", time_unit="1", ops=[*ops, Op("out", end)], tensors=tensors)


def search(name: str, instance: Instance, limit_s: float | None = None) -> SearchResult:
    """Run one algorithm until it ends by itself, or for some seconds."""
    limits = SearchLimits(UNLIMITED, deadline=Deadline(limit_s), lower_bound=simple_bound(instance).value, jobs=2)
    return partitioner(name).load()(instance, limits)


def compare(count: int, limit_s: float) -> list[str]:
    """Return one row: milliseconds of both ways on equal branches, the first also per branch."""
    instance = Instance.build(branches(count), Machine.uniform(count + 2, load_device()))
    found = search("series-parallel", instance)
    fast = seconds_per_call(lambda i: search("series-parallel", instance))
    row = [str(count), str(instance.op_count), str(found.bottleneck), f"{fast * 1e3:.1f}", f"{fast / count * 1e3:.2f}"]
    if "downset" not in PARTITIONERS:
        return [*row, "–", "–"]
    start = perf_counter()
    other = search("downset", instance, limit_s)
    spent = perf_counter() - start
    proven = other.stopped == "optimal"
    if other.bottleneck < found.bottleneck or (proven and other.bottleneck != found.bottleneck):
        raise SystemExit(f"{count} branches: {found.bottleneck} and {other.bottleneck}")
    return [*row, f"{spent * 1e3:.0f}" if proven else f"> {limit_s * 1e3:.0f}", f"{spent / fast:.0f}"]


def grow(size: int) -> list[str]:
    """Return one row: seconds to decompose a network and to cut it."""
    instance = Instance.build(layered_network(size, 0), Machine.uniform(8, load_device()))
    start = perf_counter()
    tree = decompose(instance)
    middle = perf_counter()
    sliced, found = search("slice", instance), search("series-parallel", instance)
    spent = perf_counter() - middle
    gain = found.bottleneck / sliced.bottleneck
    figures = f"{len(tree.cores())}", f"{middle - start:.3f}", f"{spent:.2f}", f"{gain:.4f}"
    return [f"layered-{size}", *figures, found.coverage or "–"]


def main(arguments: list[str]) -> None:
    """Measure 2 to 16 equal branches, then larger and larger networks."""
    limit_s = float(arguments[0]) if arguments else LIMIT_S
    partitioners = [name for name in ("series-parallel", "downset") if name in PARTITIONERS]
    for name in partitioners:  # compile
        search(name, Instance.build(branches(2), Machine.uniform(4, load_device())))
    columns = ("branches", "ops", "bottleneck", "series-parallel ms", "ms per branch", "downset ms", "ratio")
    print_report("Equal branches side by side", columns, [compare(count, limit_s) for count in BRANCHES])
    columns = ("network", "cores", "decompose s", "slice and cut s", "bottleneck / slice", "left out")
    print_report("Networks of blocks, k = 8", columns, [grow(size) for size in SIZES])


if __name__ == "__main__":
    main(sys.argv[1:])
