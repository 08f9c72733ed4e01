"""Limits of a run of cells, and the place where they are worked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mtpp.api.cells.overheads import Overheads
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.solvers.certify.cell_limits import CellLimits
    from mtpp.solvers.certify.cells.cell import Cell, Outcome
    from mtpp.solvers.certify.cells.store import Store

Runner = Callable[[Iterable["Cell"], Callable[[], bool]], Iterator["Outcome"]]
"""Works at cells, asking for them one by one, and gives their outcomes as they come, until it is told to end."""


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
