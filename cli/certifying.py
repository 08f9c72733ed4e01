"""What ``mtpp certify`` and ``mtpp bound`` do: every model for every k, a row of the table each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mtpp.cli.certificate_rows import certificate_row

if TYPE_CHECKING:
    from mtpp.certificate_table import CertificateRow
    from mtpp.cli.console import Console, ProgressBar
    from mtpp.cli.model_files import ModelFile, ModelFiles
    from mtpp.solvers.cells.cell import Cell, CellLimits, Outcome

Runner = Callable[[Iterable["Cell"], Callable[[], bool]], Iterator["Outcome"]]
"""What works at cells as they are asked for and gives their outcomes as they come, until it is told to end."""


@dataclass
class CertifiedCells:
    """What came out.

    Attributes
    ----------
    models, stage_counts
        All that was to be certified, whether its turn came or not.
    rows
        By place of the model and of k in these.
    problems
        Why cells that had their turn have no row, by label.
    interrupted
        Whether the user ended it before the last cell.
    """

    models: Sequence[ModelFile]
    stage_counts: Sequence[int]
    by_place: dict[tuple[int, int], CertificateRow] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def rows(self) -> list[CertificateRow]:
        """The rows, model by model."""
        return [self.by_place[place] for place in sorted(self.by_place)]

    @property
    def cells(self) -> int:
        """Number of cells that were asked for."""
        return len(self.models) * len(self.stage_counts)


def certify_models(
    paths: Sequence[str], options: dict[str, Any], limits: CellLimits, run: Runner, console: Console
) -> CertifiedCells:
    """Check all models, then work at every cell; progress goes to standard error.

    Raises
    ------
    InputError
        If a model cannot be read; before the first cell.
    """
    from mtpp.cli.console import ProgressBar
    from mtpp.cli.interruption import Interruption
    from mtpp.cli.model_files import ModelFiles

    with ProgressBar(console) as progress:
        files = ModelFiles(options, console.warn, progress.show)
        models = files.check(paths, max(options["stage_counts"]))
        table = CertifiedCells(models, options["stage_counts"])
        _load_kernels(limits, options, max(model.ops for model in models), console)
        watch = _Watch(table, console, progress)
        with Interruption() as interruption:
            for outcome in run(watch.begun(_cells(table, files, limits, console)), lambda: interruption.requested):
                watch.ended(outcome)
            table.interrupted = interruption.requested
    _warn_of_gaps(table, console)
    return table


def _load_kernels(limits: CellLimits, options: dict[str, Any], most_ops: int, console: Console) -> None:
    from mtpp.cli.options import system_of
    from mtpp.solvers.compiling import compiled, load_kernels, tiny_instances

    system = system_of(options)
    if not all(compiled(instance, [limits.algorithm]) for instance in tiny_instances(system)):
        console.say("compiling (once) …")
    load_kernels([limits.algorithm], system, most_ops)


def _cells(table: CertifiedCells, files: ModelFiles, limits: CellLimits, console: Console) -> Iterator[Cell]:
    """Give the cells; each model is read again when its turn comes, and let go afterwards."""
    from mtpp.solvers.cells.cell import Cell

    for m, file in enumerate(table.models):
        model = files.read_again(file, console.warn)
        if model is None:
            continue
        for i, k in enumerate(table.stage_counts):
            number = m * len(table.stage_counts) + i
            yield Cell(number, f"{file.path}, k = {k}", model.instance(k), limits)


@dataclass(frozen=True)
class _Watch:
    """Makes rows of what comes out, and says on standard error what is being done."""

    table: CertifiedCells
    console: Console
    progress: ProgressBar

    def begun(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        for cell in cells:
            self._show(cell.label)
            yield cell

    def ended(self, outcome: Outcome) -> None:
        cell = outcome.cell
        place = divmod(cell.number, len(self.table.stage_counts))
        if outcome.state is None:
            self.table.problems[cell.label] = outcome.problem
            self.console.note(f"{cell.label}: {outcome.problem}")
            return
        row = certificate_row(outcome.state, cell.instance, self.table.models[place[0]])
        self.table.by_place[place] = row
        self.console.note(f"{cell.label}: {_outcome_text(row, cell)}")
        self._show(cell.label)

    def _show(self, label: str) -> None:
        self.progress.show(label, len(self.table.by_place) + len(self.table.problems), self.table.cells)


def _outcome_text(row: CertificateRow, cell: Cell) -> str:
    describe = cell.instance.describe
    ratio = "none" if row.ratio is None else f"{row.ratio:.4f}"
    return (
        f"{describe(row.upper or 0)} by {row.upper_algorithm}, at least {describe(row.lower.value)} by "
        f"{row.lower.method} ({row.lower.tier}), ratio {ratio}, {row.total_seconds:.1f} s, {row.stopped}"
    )


def _warn_of_gaps(table: CertifiedCells, console: Console) -> None:
    for label, problem in table.problems.items():
        console.warn(f"{label}: no certificate: {problem}")
    if table.interrupted:
        console.warn(f"interrupted after {len(table.by_place)} of {table.cells} cells")
