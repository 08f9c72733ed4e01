"""Real models on devices that differ: ``python -m benchmarks.unequal_devices [OPTION …] MODEL|FOLDER …``.

Each model is partitioned for each machine in both orders, in 10 seconds a cell on two threads, kernels compiled; sizes
that a model leaves open are proposed ones. The machines are :data:`MACHINES`, whose memories are shares of all weights,
each weight once; ``--machine FILE`` names others, by their files. Cells that are proven infeasible count in no mean.
``--seconds``, ``--order`` and ``--on NAME`` choose; ``--transport neighbours`` joins the devices by links of pairs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import mtpp
from benchmarks.report import print_report
from mtpp.errors import Infeasible
from mtpp.names import DIRECT, FIXED, FREE, NEIGHBOURS

SUFFIXES = (".onnx", ".json", ".gz")
COLUMNS = ("model", "ops", "machine", "order", "upper", "by", "lower", "proof", "lower / upper", "seconds")


@dataclass(frozen=True)
class Kind:
    """Equal devices of a machine: speeds of work and link, and the share of all weights that one holds."""

    count: int
    speed: str
    link_speed: str
    share: str | None = None


MACHINES = {
    "2-slow-2-fast": (Kind(2, "1", "1"), Kind(1, "2", "2"), Kind(1, "4", "2")),
    "fast-first": (Kind(1, "3", "1"), Kind(1, "1", "1"), Kind(1, "3/2", "1/2")),
    "eight": (Kind(4, "1", "1"), Kind(3, "5/2", "4"), Kind(1, "1/2", "1")),
    "tight": (Kind(1, "1", "1", "3/5"), Kind(1, "2", "1", "1/4"), Kind(1, "4", "1", "1/5"), Kind(1, "1", "2", "3/20")),
}


@dataclass(frozen=True)
class Cell:
    """What a run came to: bottleneck and bound in ticks; none where there is no plan, or none was found."""

    model: str
    ops: int
    machine: str
    order: str
    found: mtpp.PartitionPlan | None
    infeasible: bool
    seconds: float

    @property
    def ratio(self) -> float:
        """The bound as a part of the bottleneck; 0 where no plan was found."""
        found = self.found
        return 0.0 if found is None else found.lower_bound.value / found.bottleneck

    def row(self) -> list[str]:
        """Return the cell as a row of the table."""
        head = [self.model[:32], str(self.ops), self.machine, self.order]
        if self.found is None:
            word = "infeasible" if self.infeasible else "none found"
            return [*head, word, "–", "–", "–", "–", f"{self.seconds:.1f}"]
        plan, lower = self.found, self.found.lower_bound
        ratio = "optimal" if lower.value == plan.bottleneck else f"{self.ratio:.4f}"
        figures = [str(plan.bottleneck), plan.found_by, str(lower.value), f"{lower.method}, {lower.tier}", ratio]
        return [*head, *figures, f"{self.seconds:.1f}"]


def machine_text(kinds: Sequence[Kind], order: str, transport: str, weights: int) -> str:
    """Return a machine as a file; of neighbours the first two tables are one node, the others another one."""
    lines = [f'order = "{order}"', f'transport = "{transport}"']
    for i, kind in enumerate(kinds):
        lines += ["[[device]]", f'name = "d{i}"', f"count = {kind.count}"]
        lines += [f'speed = "{kind.speed}"', f'link_speed = "{kind.link_speed}"']
        if kind.share is not None and weights:
            lines += [f'memory = "{int(Fraction(kind.share) * weights)}B"']
    if transport == NEIGHBOURS:
        for i in range(len(kinds)):
            for j in range(max(i + 1, 2), len(kinds)):
                if i < 2:
                    lines += ["[[link]]", f'between = ["d{i}", "d{j}"]', 'link_speed = "1/2"', 'latency = "5us"']
    return "\n".join(lines) + "\n"


def models(arguments: Sequence[str]) -> list[Path]:
    """Return the files named, and those in the folders named."""
    found: list[Path] = []
    for path in map(Path, arguments):
        found += sorted(one for one in path.iterdir() if one.suffix in SUFFIXES) if path.is_dir() else [path]
    return found


def cells(asked: argparse.Namespace) -> Iterator[Cell]:
    """Partition every model on every machine."""
    with TemporaryDirectory() as folder:
        for path in models(asked.models):
            name = path.name.removesuffix(".gz").rsplit(".", 1)[0]
            model = mtpp.read(path, dims="auto") if path.suffix == ".onnx" else mtpp.read(path)
            ops, weights = model.graph.op_count, model.graph.all_bytes
            files = {file.stem: file for file in map(Path, asked.machine)}
            for machine in asked.on or [*(files or MACHINES)]:
                for order in asked.order or (FIXED, FREE):
                    file = files.get(machine)
                    if file is None:
                        file = Path(folder, f"{machine}.toml")
                        file.write_text(machine_text(MACHINES[machine], order, asked.transport, weights))
                    dims = {"dims": "auto"} if path.suffix == ".onnx" else {}
                    placed = mtpp.read(path, machine=file, **dims)
                    begin = perf_counter()
                    found, infeasible = None, False
                    try:
                        found = mtpp.partition(placed, time_limit_s=asked.seconds, jobs=2)
                    except Infeasible as error:
                        infeasible = "proven infeasible" in str(error)
                    yield Cell(name, ops, machine, order, found, infeasible, perf_counter() - begin)


def main(arguments: Sequence[str]) -> None:
    """Print the table, and the means by order."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0] if __doc__ else None)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--order", action="append", choices=(FIXED, FREE))
    parser.add_argument("--on", action="append", choices=tuple(MACHINES))
    parser.add_argument("--transport", default=DIRECT, choices=(DIRECT, NEIGHBOURS))
    parser.add_argument("--machine", action="append", default=[])
    asked = parser.parse_args(arguments)
    mtpp.warmup("partition")
    found = []
    for cell in cells(asked):
        print("  ".join(cell.row()), file=sys.stderr, flush=True)
        found.append(cell)
    print_report("Devices that differ", COLUMNS, [cell.row() for cell in found])
    for order in (FIXED, FREE):
        some = [cell for cell in found if cell.order == order and not cell.infeasible]
        if some:
            mean = sum(cell.ratio for cell in some) / len(some)
            closed = sum(cell.ratio == 1 for cell in some)
            worst = min(cell.ratio for cell in some)
            print(f"{order}: {len(some)} cells, {closed} closed, lower / upper {mean:.4f}, worst {worst:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
