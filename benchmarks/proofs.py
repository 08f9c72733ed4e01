"""Proofs of optimality, model by model and k by k: ``python -m benchmarks.proofs [MODEL|FOLDER …]``.

Without arguments: the sample ResNet-50, and the light models of the ``onnx`` package. Seconds are those of ``auto`` on
two threads with its default budget, kernels compiled: search and proof together. Downsets and pairs are those of the
search that proved the bound, merges is how many there were before, "simple" the simple lower bound / the bottleneck.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import onnx

from benchmarks.report import print_report
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.registry import partitioner

ROOT = Path(__file__).resolve().parent.parent
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
STAGES = (2, 4, 8, 16, 32)
SUFFIXES = (".onnx", ".json")
COLUMNS = ("model", "ops", "k", "bottleneck", "proven", "ratio", "seconds", "downsets", "pairs", "merges", "simple")


def models(arguments: Iterable[str]) -> list[Path]:
    """Return the files named, and those in the folders named."""
    found: list[Path] = []
    for argument in arguments:
        path = Path(argument)
        found += sorted(one for one in path.iterdir() if one.suffix in SUFFIXES) if path.is_dir() else [path]
    return found


def measure(path: Path) -> list[list[str]]:
    """Return one row per number of stages."""
    system = load_device()
    graph = read_graph(read_source(str(path)), dims={}, system=system)
    entry = partitioner("auto")
    rows = []
    for k in STAGES:
        instance = Instance.build(graph, Machine.uniform(k, system))
        simple = simple_bound(instance)
        limits = SearchLimits(entry.budget(instance), lower_bound=simple.value, jobs=2)
        start = perf_counter()
        found = entry.load()(instance, limits)
        seconds = perf_counter() - start
        lower = simple if found.lower is None or found.lower.value < simple.value else found.lower
        optimal = lower.value == found.bottleneck
        proof = lower.proof
        rows.append(
            [
                graph.name,
                str(graph.op_count),
                str(k),
                str(found.bottleneck),
                "optimal" if optimal else "–",
                f"{found.bottleneck / lower.value:.4f}" if lower.value else "–",
                f"{seconds:.3f}",
                str(proof.get("downsets", "–")),
                str(proof.get("pairs", "–")),
                str(len(proof["merges"])) if "merges" in proof else "–",
                f"{simple.value / found.bottleneck:.4f}" if found.bottleneck else "–",
            ]
        )
    return rows


def main(arguments: list[str]) -> None:
    """Measure every model; the first run, on a part of the work, compiles."""
    paths = models(arguments or [str(ROOT / "datasets" / "samples" / "resnet50.onnx"), str(LIGHT)])
    graph = read_graph(read_source(str(paths[0])), dims={}, system=load_device())
    for name in ("auto", "anneal", "brkga"):
        instance = Instance.build(graph, Machine.uniform(3, load_device()))
        partitioner(name).load()(instance, replace(SearchLimits(30), jobs=2))
    rows = [row for path in paths for row in measure(path)]
    total = sum(float(row[6]) for row in rows)
    closed = sum(row[4] == "optimal" for row in rows)
    print_report(f"Proofs: {closed} of {len(rows)} cells optimal, {total:.1f} s in all", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
