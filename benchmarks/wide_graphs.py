"""Wide graphs, cell by cell: ``python -m benchmarks.wide_graphs FOLDER [SECONDS [K,K [REFERENCE]]]``.

Each graph of the folder is certified for every k in that many seconds (10) on two threads, kernels compiled. Bound and
bottleneck stand as parts of the best bottleneck known, the smaller one of REFERENCE and of this run. REFERENCE is a
JSON object with ``graphs``: name → k → ``upper`` and ``lower`` in ticks, such as a run writes with ``--write FILE``; by
default what 60 seconds a cell came to, beside this module.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from time import perf_counter
from typing import Any

import mtpp
from benchmarks.report import print_report
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.certify.cell_state import CellLimits, Certification
from mtpp.solvers.certify.cell_work import certify

STAGES = (2, 4, 8, 16, 32, 64)
REFERENCE = Path(__file__).with_suffix(".json")
COLUMNS = ("graph", "ops", "k", "lower", "method", "upper", "by", "lower / upper", "seconds", "stopped", "before")


@dataclass(frozen=True)
class Cell:
    """What a run came to, and what was known before."""

    name: str
    ops: int
    k: int
    found: Certification
    seconds: float
    known: dict[str, int] | None

    @property
    def best(self) -> int:
        """The best bottleneck known, in ticks."""
        upper = self.found.upper or 0
        return upper if self.known is None else min(upper, self.known["upper"])

    @property
    def closed(self) -> bool:
        """Whether a proof in integers meets the bottleneck."""
        return self.found.proven.value == self.found.upper

    def row(self) -> list[str]:
        """Return the cell as a row of the table."""
        found, best = self.found, self.best
        before = "–" if self.known is None else f"{self.known['lower'] / self.known['upper']:.4f}"
        return [
            self.name[:28],
            str(self.ops),
            str(self.k),
            f"{found.lower.value / best:.4f}",
            found.lower.method,
            f"{(found.upper or 0) / best:.4f}",
            found.upper_algorithm or "–",
            "optimal" if self.closed else f"{found.proven.value / (found.upper or 1):.4f}",
            f"{self.seconds:.1f}",
            str(found.stopped),
            before,
        ]


def known_cells(path: str | Path = REFERENCE) -> dict[str, Any]:
    """Return what is known of cells, by the name of the graph and k."""
    cells: dict[str, Any] = json.loads(Path(path).read_text())["graphs"]
    return cells


def instances(folder: Path, stages: Sequence[int]) -> Iterator[tuple[str, Instance]]:
    """Yield the name and the instance of every graph of a folder, for every k."""
    system = load_device()
    for path in sorted(folder.iterdir()):
        if not path.name.endswith((".json", ".json.gz", ".onnx")):
            continue
        name = path.name.split(".json")[0].removesuffix(".onnx")
        graph = read_graph(read_source(str(path)), system=system)
        for k in stages:
            yield name, Instance.build(graph, Machine.uniform(k, system))


def cells(folder: Path, limit_s: float, stages: Sequence[int], reference: dict[str, Any]) -> Iterator[Cell]:
    """Certify every graph of a folder for every k."""
    for name, instance in instances(folder, stages):
        begin = perf_counter()
        found = certify(instance, CellLimits(limit_s, jobs=2, proofs_only=True))
        known = reference.get(name, {}).get(str(instance.k))
        yield Cell(name, instance.op_count, instance.k, found, perf_counter() - begin, known)


def main(arguments: list[str]) -> None:
    """Print the table, and the means by k."""
    written = None
    if "--write" in arguments:
        at = arguments.index("--write")
        written = Path(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2 :]
    folder, *rest = arguments
    limit_s = float(rest[0]) if rest else 10.0
    stages = [int(k) for k in rest[1].split(",")] if len(rest) > 1 else list(STAGES)
    reference = known_cells(*rest[2:3])
    mtpp.warmup("certify")
    found = []
    for cell in cells(Path(folder), limit_s, stages, reference):
        print("  ".join(cell.row()), file=sys.stderr, flush=True)
        found.append(cell)
    print_report("Wide graphs", COLUMNS, [cell.row() for cell in found])
    for k in [*stages, 0]:
        some = [cell for cell in found if k in (0, cell.k)]
        lower = exp(sum(log(cell.found.proven.value / cell.best) for cell in some) / len(some))
        upper = exp(sum(log(cell.best / (cell.found.upper or 1)) for cell in some) / len(some))
        worst = min(cell.found.proven.value / cell.best for cell in some)
        print(
            f"{f'k = {k}' if k else 'all':>8}: closed {sum(cell.closed for cell in some)} of {len(some)}, "
            f"lower / best {lower:.4f}, worst {worst:.4f}, best / upper {upper:.4f}"
        )
    if written is not None:
        table: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for cell in found:
            table[cell.name][str(cell.k)] = {"upper": cell.best, "lower": cell.found.proven.value}
        written.write_text(json.dumps({"graphs": table}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
