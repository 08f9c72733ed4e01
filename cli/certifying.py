"""What ``mtpp certify`` and ``mtpp bound`` do: every model for every k, a row of the table each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.errors import MtppError
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.cli.certified_cells import CertifiedCells
    from mtpp.cli.terminal.console import Console
    from mtpp.solvers.certify.cells.cell import Cell, CellLimits, Outcome
    from mtpp.solvers.certify.cells.store import Store

Runner = Callable[[Iterable["Cell"], Callable[[], bool]], Iterator["Outcome"]]
"""What works at cells, asking for them one by one, and gives their outcomes as they come, until it is told to end."""


_WORKER_S = 1.1
"""Seconds in which a worker process starts and gets its first graph."""


@dataclass(frozen=True)
class CellRun:
    """How all cells are worked at.

    Attributes
    ----------
    limits
        Of each, as the user gave them.
    run
        Works at them.
    jobs
        Cells at once on this machine, whose cores and memory they share; None: on other machines.
    store
        Has rows of earlier runs, and gets those of this one.
    deadline
        When the last cell has to end.
    processes
        Whether each cell is worked at in a process of its own.
    """

    limits: CellLimits
    run: Runner
    jobs: int | None = None
    store: Store | None = None
    deadline: Deadline = field(default_factory=Deadline)
    processes: bool = True

    def limits_of(self, cells: int) -> CellLimits:
        """Return the limits of each of so many cells."""
        from mtpp.cli.options.cells import shared_out

        if self.jobs is None:
            return self.limits
        return shared_out(self.limits, cells, self.jobs, processes=self.processes)


def certify_models(paths: Sequence[str], options: dict[str, Any], plan: CellRun, console: Console) -> CertifiedCells:
    """Check all models, then work at every cell; progress goes to standard error.

    What ends the run half-way, such as a store on a full disk, is in the result beside what is done.

    Raises
    ------
    InputError
        If a model cannot be read; before the first cell.
    """
    from mtpp.cli.cell_session import CellSession
    from mtpp.cli.certified_cells import CertifiedCells
    from mtpp.cli.model_files import ModelFiles
    from mtpp.host.interruption import Interruption

    with console.steps() as progress:
        start_s = _WORKER_S if plan.processes else 0.0
        files = ModelFiles(options, console.warn, progress.show, plan.limits.time_limit_s, plan.deadline, start_s)
        models = files.check(paths, max(options["stage_counts"]))
        table = CertifiedCells(models, options["stage_counts"])
        session = CellSession(table, files, plan, console, progress)
        with Interruption() as interruption:
            try:
                for outcome in plan.run(session.cells(), lambda: interruption.requested):
                    session.ended(outcome)
            except MtppError as error:
                table.failure = error
            table.interrupted = interruption.requested
    table.tell(console)
    return table


def unmet_cells(table: CertifiedCells, ratio: float | None) -> list[str]:
    """Return a line for each cell of which ``--require-ratio`` says what is not proven; None asks for nothing."""
    from mtpp.views.certificates import unmet_ratio

    if ratio is None:
        return []
    return [*unmet_ratio(table.rows, Fraction(repr(ratio))), *(f"{label}: no certificate" for label in table.missing)]
