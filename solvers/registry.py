"""The solvers by name: what each guarantees, and where it lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from mtpp.errors import InputError
from mtpp.instance import Instance
from mtpp.solvers.search import SearchLimits, SearchResult

Partitioner = Callable[[Instance, SearchLimits], SearchResult]

DEFAULT = "auto"


@dataclass(frozen=True)
class PartitionerEntry:
    """A partitioner that users can name.

    Attributes
    ----------
    summary
        One line of help.
    guarantee
        What its result is optimal among.
    module
        Module whose function ``partition`` it is; imported on first use, for it brings numba.
    """

    name: str
    summary: str
    guarantee: str
    module: str

    def load(self) -> Partitioner:
        """Import the solver and return it."""
        return cast(Partitioner, import_module(self.module).partition)


PARTITIONERS = {
    entry.name: entry
    for entry in (
        PartitionerEntry(
            "auto",
            "slice, then random within the budget",
            "never worse than slice or random",
            "mtpp.solvers.partitioners.auto",
        ),
        PartitionerEntry(
            "slice",
            "cut the graph's own order",
            "optimal among segmentations of the file's order",
            "mtpp.solvers.partitioners.slice",
        ),
        PartitionerEntry(
            "random",
            "cut T random topological orders, keep the best",
            "optimal among segmentations of the orders drawn",
            "mtpp.solvers.partitioners.random",
        ),
    )
}


def partitioner(name: str) -> PartitionerEntry:
    """Return the partitioner called *name*.

    Raises
    ------
    InputError
        If there is none; lists those there are.
    """
    try:
        return PARTITIONERS[name]
    except KeyError:
        raise InputError(
            f"no algorithm is called {name!r}", source="--algorithm", remedy=f"use one of {', '.join(PARTITIONERS)}"
        ) from None


def default_evaluations(op_count: int, k: int, *, peaks_in_order: bool = False) -> int:
    """Return the budget of a search, in evaluations, when the user sets no limit; the same on every machine.

    Aims at 0.1 s at 200 ops and 0.6 s at 1,000, at most 5 s, on one core of a 2021 server, start-up not included. An
    order of n ops takes about n · (n / k + 100) ns there, and a hundred times as long for each of the n² / k where
    peaks in order matter.
    """
    aim_s = min(0.1 * (op_count / 200) ** 1.12, 5.0)
    order_s = 1e-9 * op_count * (op_count / k * (100 if peaks_in_order else 1) + 100)
    return max(8, min(3000, int(aim_s / order_s)))
