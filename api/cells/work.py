"""Work at cells: all models checked first, then a row of the table for each model and k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.errors import MtppError

if TYPE_CHECKING:
    from mtpp.api.cells.certified import CertifiedCells
    from mtpp.api.cells.run import CellRun
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading

_WORKER_S = 1.1
"""Seconds in which a worker process starts and gets its first graph."""


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
    from mtpp.api.inputs.model_files import ModelFiles, ReadingLimits
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
