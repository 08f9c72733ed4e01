"""Cells one after the other in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mtpp.errors import Infeasible
from mtpp.host.memory_limit import begin_search
from mtpp.solvers.certify.cells.cell import Cell, Outcome


def run_here(cells: Iterable[Cell], interrupted: Callable[[], bool]) -> Iterator[Outcome]:
    """Give the outcome of each cell as it comes, until the user ends it."""
    for cell in cells:
        begin_search()
        try:
            state = cell.certify(interrupted=interrupted)
        except Infeasible as error:
            if interrupted():  # there was more to try
                return
            yield Outcome(cell, None, error.problem)
            continue
        yield Outcome(cell, state)
        if interrupted():
            return
