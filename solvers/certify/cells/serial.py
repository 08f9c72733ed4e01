"""Cells one after the other in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mtpp.errors import Infeasible
from mtpp.host.memory_limit import begin_search
from mtpp.solvers.certify.cells.cell import Cell, Outcome, S


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
