"""Runs of cells: all models checked first, then a row of the table for each model and k."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mtpp.api.overheads import Overheads
from mtpp.errors import MtppError
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.api.cells.certified import CertifiedCells
    from mtpp.api.model import Model, Reading
    from mtpp.api.observer import Observer
    from mtpp.solvers.certify.cell_limits import CellLimits
    from mtpp.solvers.certify.cells.cell import Cell, Outcome
    from mtpp.solvers.certify.cells.store import Store

Runner = Callable[[Iterable["Cell"], Callable[[], bool]], Iterator["Outcome"]]
"""Works at cells, asking for them one by one, and gives their outcomes as they come, until it is told to end."""


_WORKER_S = 1.1
"""Seconds in which a worker process starts and gets its first graph."""


@dataclass(frozen=True)
class CellRun:
    """Limits of the cells of one run, and the place where they are worked at.

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
    overheads
        Seconds of the limits that go to other things.
    """

    limits: CellLimits
    run: Runner
    jobs: int | None = None
    store: Store | None = None
    deadline: Deadline = field(default_factory=Deadline)
    processes: bool = True
    overheads: Overheads = field(default_factory=Overheads)

    def limits_of(self, cells: int) -> CellLimits:
        """Return the limits of each of so many cells."""
        from mtpp.api.cells.limits import shared_out

        if self.jobs is None:
            return self.limits
        return shared_out(self.limits, cells, self.jobs, processes=self.processes)


def work_at_cells(
    models: Sequence[str | Model], stage_counts: Sequence[int], reading: Reading, plan: CellRun, observer: Observer
) -> CertifiedCells:
    """Check all models, then work at every cell.

    What ends the run half-way, such as a store on a full disk, is in the result beside what is done.

    Raises
    ------
    InputError
        If a model cannot be read; before the first cell.
    """
    from mtpp.api.cells.certified import CertifiedCells
    from mtpp.api.cells.session import CellSession
    from mtpp.api.model_files import ModelFiles, ReadingLimits
    from mtpp.host.interruption import Interruption

    with observer.steps() as progress:
        start_s = _WORKER_S if plan.processes else 0.0
        limits = ReadingLimits(plan.limits.time_limit_s, plan.deadline, start_s, plan.overheads)
        files = ModelFiles(reading, observer.warn, progress.show, limits)
        table = CertifiedCells(files.check(models, max(stage_counts)), stage_counts)
        session = CellSession(table, files, plan, observer, progress)
        with Interruption() as interruption:
            try:
                for outcome in plan.run(session.cells(), lambda: interruption.requested):
                    session.ended(outcome)
            except MtppError as error:
                table.failure = error
            table.interrupted = interruption.requested
    table.tell(observer)
    return table
