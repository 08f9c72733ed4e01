"""Time and memory of ``mtpp partition GRAPH -k K -o PLAN`` on networks of growing size: ``python -m benchmarks.scale``.

Whole commands, each in a process of its own, from reading the graph to writing the plan, with compiled kernels at hand.
The networks are layered ones with one and a half tensors per op. The exponent e of a row says that time grew as n^e
since the row before. Other sizes can be given as arguments: ``python -m benchmarks.scale 1000 50000``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import log
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.commands import run
from benchmarks.report import print_report

SIZES = (10**3, 10**4, 10**5, 10**6)
TENSORS_PER_OP = 1.5
STAGES, STAGES_OF_LARGEST = 16, 64
LARGEST = 10**6
COLUMNS = ("ops", "tensors", "k", "file MB", "seconds", "exponent", "peak MB", "bottleneck / bound")


def write_network(n: int, path: str) -> None:
    """Write a layered network of *n* ops in the native format."""
    from mtpp.datasets.layered import layered_network
    from mtpp.formats.graphs.native import write_native

    text = write_native(layered_network(n, tensors=round(n * TENSORS_PER_OP)))
    Path(path).write_text(text, encoding="utf-8")


def measure(sizes: Sequence[int], folder: Path) -> list[list[str]]:
    """Return one row per size."""
    rows: list[list[str]] = []
    before: tuple[int, float] | None = None
    cache = folder / "kernels"
    run(["warmup"], cache)
    for n in sizes:
        graph, plan = folder / f"{n}.json", folder / f"{n}.plan.json"
        with get_context("spawn").Pool(1) as pool:
            pool.apply(write_network, (n, str(graph)))
        k = STAGES_OF_LARGEST if n >= LARGEST else STAGES
        seconds, peak_mb = run(["partition", str(graph), "-k", str(k), "-o", str(plan)], cache)
        exponent = f"{log(seconds / before[1]) / log(n / before[0]):.2f}" if before else "–"
        document = json.loads(plan.read_text(encoding="utf-8"))
        size_mb = graph.stat().st_size / 1e6
        rows.append(
            [
                f"{n:,}",
                f"{document['model']['tensors']:,}",
                str(k),
                f"{size_mb:.1f}",
                f"{seconds:.2f}",
                exponent,
                f"{peak_mb:.0f}",
                f"{document['ratio']:.4f}",
            ]
        )
        before = n, seconds
        graph.unlink()
        plan.unlink()
    return rows


def main(sizes: Sequence[int]) -> None:
    """Measure every size."""
    with TemporaryDirectory() as folder:
        rows = measure(sizes, Path(folder))
    print_report("Whole commands on networks of growing size", COLUMNS, rows)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or SIZES)
