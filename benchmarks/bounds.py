"""Value and contribution of each lower bound: ``python -m benchmarks.bounds [GRAPH|FOLDER …] [options]``.

Without paths: the REGAL-style graphs of ``../shared/data/instances`` if there are any, else a bed drawn here. The
bounds of the ladder are tried at each cell (a graph and a k) as ``mtpp certify`` does, until the ratio is 1 or the
time is up; with ``--each``, all there are, each by itself in an equal share of the time. Tables by k: the geometric
mean of bound / best partition; the same for the best bound so far, down the list; the cells in which a bound is above
all before it in the list; those that it completed; and the mean of its seconds. A bound that proved
nothing counts as the simple one; where one was not tried, for the work had ended, it is left out of all but the
second table. The best partition is our own, or one of ``--baselines``. ``--keep FILE`` writes each cell as soon as it
is done, and takes from there what an earlier run has done already.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from benchmarks.report import print_report
from mtpp.datasets.regal_style import regal_style
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.names import RANDOM_GRAPHS
from mtpp.solvers.bounds.registry import BOUNDS, BY_DEFAULT
from mtpp.solvers.certify.cell_state import CellLimits
from mtpp.solvers.certify.cell_work import certify

INSTANCES = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "instances"
STAGES = (2, 4, 8, 16, 32, 64)
SIZES = (50, 100, 150, 200)


@dataclass(frozen=True)
class Cell:
    """What bounds came to on one graph and k, in ticks; *figures* as value, seconds, solved."""

    graph: str
    k: int
    upper: int
    figures: dict[str, tuple[int | None, float, bool]]
    seconds: float


@dataclass(frozen=True)
class Task:
    """A cell to be worked at; *source* is a file, or the family and size of a graph to be drawn."""

    graph: str
    source: str | tuple[str, int]
    k: int
    bounds: tuple[str, ...]
    time_limit_s: float
    threads: int
    each: bool


def _graph_of(task: Task) -> CostGraph:
    if isinstance(task.source, str):
        return read_graph(read_source(task.source), dims={}, system=load_device())
    family, size = task.source
    return regal_style(family, size)  # type: ignore[arg-type]


def measure(task: Task) -> Cell:
    """Work at one cell."""
    instance = Instance.build(_graph_of(task), Machine.uniform(task.k, load_device()))
    start = perf_counter()
    limits = CellLimits(task.time_limit_s, bounds=task.bounds, each=task.each, jobs=task.threads)
    state = certify(instance, limits)
    rows = {name: (figure.value, figure.seconds, figure.solved) for name, figure in state.bounds.items()}
    return Cell(task.graph, task.k, state.upper, rows, perf_counter() - start)


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Yield the cells asked for, graph by graph."""
    paths: list[Path] = []
    for argument in options.paths or [INSTANCES] * INSTANCES.is_dir():
        path = Path(argument)
        pattern = "*" if options.paths else "regal-style-*"
        paths += sorted(path.glob(f"{pattern}.json")) if path.is_dir() else [path]
    sources: dict[str, str | tuple[str, int]] = {path.stem: str(path) for path in paths}
    if not sources:
        sources = {f"regal-style-{family}-{n}": (family, n) for family in RANDOM_GRAPHS for n in SIZES}
    for name, source in sources.items():
        for k in options.k:
            yield Task(name, source, k, options.bounds, options.time_limit, options.threads, options.each)


def done_before(path: Path | None) -> dict[tuple[str, int], Cell]:
    """Return the cells that an earlier run has kept."""
    if path is None or not path.exists():
        return {}
    cells = [Cell(**json.loads(line)) for line in path.read_text().splitlines()]
    return {(cell.graph, cell.k): cell for cell in cells}


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """Work at all cells that no earlier run has done, and return all, in order."""
    wanted = list(tasks(options))
    done = done_before(options.keep)
    left = [task for task in wanted if (task.graph, task.k) not in done]

    def take(cell: Cell) -> None:
        done[cell.graph, cell.k] = cell
        if options.keep is not None:
            with options.keep.open("a") as file:
                file.write(json.dumps(asdict(cell)) + "\n")
        lower = max(value or 0 for value, _, _ in cell.figures.values())
        print(f"{cell.graph} k={cell.k}: {lower} / {cell.upper} in {cell.seconds:.1f} s", file=sys.stderr, flush=True)

    if options.processes == 1:
        for task in left:
            take(measure(task))
    else:
        with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
            for future in as_completed([pool.submit(measure, task) for task in left]):
                take(future.result())
    return [done[task.graph, task.k] for task in wanted]


def best_partitions(cells: Sequence[Cell], baselines: Path | None) -> dict[tuple[str, int], int]:
    """Return the least bottleneck known of each cell.

    Raises
    ------
    SystemExit
        If a bound is above it.
    """
    known = json.loads(baselines.read_text()) if baselines else {}
    best = {}
    for cell in cells:
        # Beside bottlenecks by algorithm, there is what they took, and the simple bound.
        others = known.get(cell.graph, {}).get(str(cell.k), {})
        uppers = [value for key, value in others.items() if key != "simple" and not key.endswith("_s")]
        goal = best[cell.graph, cell.k] = min([cell.upper, *uppers])
        for name, (value, _, _) in cell.figures.items():
            if value is not None and value > goal:
                raise SystemExit(f"{cell.graph}, k = {cell.k}: {name} proves {value}, but there is {goal}")
    return best


def geometric_mean(ratios: Sequence[float]) -> str:
    """Return the mean to four digits, a dash if there is nothing to take it of."""
    if not ratios:
        return "–"
    return f"{math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if min(ratios) > 0 else 0:.4f}"


def report(cells: Sequence[Cell], best: dict[tuple[str, int], int], stages: Sequence[int]) -> None:
    """Print the tables."""
    names = [name for name in BOUNDS if any(name in cell.figures for cell in cells)]

    def value(cell: Cell, name: str) -> int:
        return max((cell.figures[other][0] or 0 for other in ("simple", name) if other in cell.figures), default=0)

    def share(cell: Cell, lower: int) -> float:
        goal = best[cell.graph, cell.k]
        return lower / goal if goal else 1.0

    def so_far(cell: Cell, name: str) -> int:
        return max(value(cell, other) for other in names[: names.index(name) + 1])

    def contributes(cell: Cell, name: str) -> bool:
        return name == names[0] or value(cell, name) > so_far(cell, names[names.index(name) - 1])

    def table(title: str, entry: Callable[[list[Cell], str], str]) -> None:
        groups = [[cell for cell in cells if cell.k == k] for k in stages]
        rows = [[name, *(entry(group, name) for group in [*groups, list(cells)])] for name in names]
        print_report(title, ["bound", *(f"k = {k}" for k in stages), "all"], rows)

    def tried(group: list[Cell], name: str) -> list[Cell]:
        return [cell for cell in group if name in cell.figures]

    def mean_seconds(group: list[Cell], name: str) -> str:
        seconds = [cell.figures[name][1] for cell in tried(group, name)]
        return f"{sum(seconds) / len(seconds):.2f}" if seconds else "–"

    def solved(group: list[Cell], name: str) -> str:
        return f"{sum(cell.figures[name][2] for cell in tried(group, name))}/{len(tried(group, name))}"

    table(
        f"Bound / best partition, {len(cells)} cells, geometric means",
        lambda group, name: geometric_mean([share(cell, value(cell, name)) for cell in tried(group, name)]),
    )
    table(
        "Best bound so far / best partition, geometric means",
        lambda group, name: geometric_mean([share(cell, so_far(cell, name)) for cell in group]),
    )
    table("Cells in which it is above all before it", lambda group, name: str(sum(contributes(c, name) for c in group)))
    table("Cells in which it came to its end, of those tried", solved)
    table("Mean seconds where tried", mean_seconds)


def main(arguments: Sequence[str]) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("-k", type=lambda text: tuple(map(int, text.split(","))), default=STAGES, metavar="2,4,…")
    parser.add_argument("--bounds", type=lambda text: tuple(text.split(",")), metavar="NAME,…")
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S", help="seconds per cell")
    parser.add_argument("--each", action="store_true", help="each bound by itself, in an equal share of the time")
    parser.add_argument("--threads", type=int, default=1, help="of a cell")
    parser.add_argument("--processes", type=int, default=1, help="cells at once")
    parser.add_argument("--baselines", type=Path, metavar="FILE", help="bottlenecks that others found")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="one line of JSON per cell")
    options = parser.parse_args(arguments)
    options.bounds = options.bounds or (tuple(BOUNDS) if options.each else BY_DEFAULT)
    cells = cells_of(options)
    report(cells, best_partitions(cells, options.baselines), options.k)


if __name__ == "__main__":
    main(sys.argv[1:])
