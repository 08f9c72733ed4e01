"""Cells as they travel between processes, and their outcomes.

The modules that work at them are imported where that happens: the process that hands them out needs no numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mtpp.errors import Infeasible
from mtpp.host.memory_limit import begin_search
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.solvers.certify.cell_state import CellLimits, Certification


class State(Protocol):
    """What is known of a cell, at its end or on the way."""

    @property
    def stopped(self) -> StopReason | None:
        """Why the work ended."""


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Cell(Generic[S]):
    """One instance to be worked at; S is the state that the work comes to.

    Attributes
    ----------
    number
        What tells it from the other cells of a run.
    label
        What people call it.
    """

    number: int
    label: str
    instance: Instance

    def work(
        self,
        report: Callable[[S], None] = lambda state: None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> S:
        """Work at the cell in this process, and report every step; the user may want it to end now."""
        raise NotImplementedError


@dataclass(frozen=True)
class CertificateCell(Cell[Certification]):
    """One instance to be certified."""

    limits: CellLimits

    def work(
        self,
        report: Callable[[Certification], None] = lambda state: None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> Certification:
        """Partition the instance and prove bounds; see :func:`~mtpp.solvers.certify.cell_work.certify`."""
        from mtpp.solvers.certify.cell_work import certify

        return certify(self.instance, self.limits, report, interrupted)


@dataclass(frozen=True)
class Outcome(Generic[S]):
    """What became of a cell.

    Attributes
    ----------
    state
        What is known of it, also where its work was cut off; None where that is nothing.
    problem
        Why there is nothing, or why the work was cut off by something other than a limit; empty if nothing went wrong.
    contradiction
        Whether that is two results that contradict each other: a bug.
    """

    cell: Cell[S]
    state: S | None
    problem: str = ""
    contradiction: bool = False

    @property
    def finished(self) -> bool:
        """Whether the cell got all it was to get: no accident, and no interruption."""
        return self.state is not None and not self.problem and self.state.stopped != StopReason.INTERRUPTED


class OtherVersion(Exception):
    """A cell was sent to another version of this program, which may not mean the same by it."""


def run_here(cells: Iterable[Cell[S]], interrupted: Callable[[], bool]) -> Iterator[Outcome[S]]:
    """Give the outcome of each cell as it comes, until the user ends it."""
    for cell in cells:
        begin_search()
        try:
            state = cell.work(interrupted=interrupted)
        except Infeasible as error:
            if interrupted():  # there was more to try
                return
            yield Outcome(cell, None, error.problem)
            continue
        yield Outcome(cell, state)
        del cell, state  # or they would be kept while the next model is read
        if interrupted():
            return
