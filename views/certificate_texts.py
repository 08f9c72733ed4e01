"""Graph labels, ticks, seconds, and bounds and runs that a limit cut short, in tables of certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from mtpp.host.stop_reason import LIMITS_REACHED
from mtpp.names import BOTTLENECK_OBJECTIVE, CAPACITY, DOWNSET, LATENCY_OBJECTIVE, SIMPLE
from mtpp.views.table import NONE

if TYPE_CHECKING:
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.inference.goal import Goal
    from mtpp.solvers.certify.comparison import Run


class NamedGraph(Protocol):
    """Row of a table: the name of its graph, and the file that it was read from."""

    @property
    def model(self) -> str:
        """Name of the graph."""

    @property
    def path(self) -> str:
        """File."""


ON_ENVELOPE = "on equal devices with the best figures of any"
"""Where a bound is proven that holds on devices that differ."""


def _on_envelope(row: CertificateRow, name: str) -> bool:
    """Tell whether a bound holds on devices that differ since it does on equal ones with the best figures."""
    from mtpp.machine.machine import Machine

    figure = row.bounds[name]
    if figure.value is None or row.machine is None or not len(Machine.from_document(row.machine).classes) > 1:
        return False
    bound = row.lower if row.lower.method == name else figure.proof
    return name not in (SIMPLE, DOWNSET, CAPACITY) if bound is None else bound.on_envelope


def envelope_figure(rows: Sequence[CertificateRow]) -> Iterator[tuple[str, str]]:
    """Name the bounds that hold on the envelope of devices that differ, if any do."""
    found = dict.fromkeys(name for row in rows for name in row.bounds if _on_envelope(row, name))
    if found:
        yield "envelope", f"{', '.join(found)}: {ON_ENVELOPE}, which no device beats"


def model_labels(rows: Sequence[NamedGraph]) -> dict[str, str]:
    """Return what the graph in each file is called: by its name where no other graph has it, else by its file."""
    names = {row.path: row.model for row in rows}
    count = Counter(names.values())
    return {path: name if count[name] == 1 else path for path, name in names.items()}


def rows_by_graph(rows: Sequence[CertificateRow]) -> dict[str, list[int]]:
    """Return by file the places of its rows in the table."""
    places: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        places.setdefault(row.path, []).append(i)
    return places


def ticks_text(row: CertificateRow, ticks: int | None) -> str:
    """Write a number of ticks for people, as a time or in the unit of an abstract graph."""
    return NONE if ticks is None else row.describe(ticks)


class GoalRow(Protocol):
    """Row of a table with its goal."""

    @property
    def goal(self) -> Goal:
        """Objective, and the limit on the other figure."""

    @property
    def replicas(self) -> bool:
        """Whether stages may stand on several devices."""

    def describe(self, ticks: float) -> str:
        """Write a number of ticks for people."""


def goal_figures(rows: Sequence[GoalRow]) -> Iterator[tuple[str, str]]:
    """Say what partitions and bounds are of, where that is not the least bottleneck of stages on a device each."""
    objectives = dict.fromkeys(row.goal.objective for row in rows)
    limits = dict.fromkeys(goal_limit(row.goal, row.describe) for row in rows if row.goal.limit is not None)
    replicas = any(row.replicas for row in rows)
    if list(objectives) not in ([], [BOTTLENECK_OBJECTIVE]) or limits or replicas:
        yield "objective", "; ".join([*(OBJECTIVE_WORDS[one] for one in objectives), *limits])
    if replicas:
        yield "replicas", "a stage may stand on several devices, which take turns at its requests"


OBJECTIVE_WORDS = {
    BOTTLENECK_OBJECTIVE: "bottleneck, the time of the slowest stage",
    LATENCY_OBJECTIVE: "latency, the time of one request on an idle pipeline",
}
"""Objectives in words."""


def goal_limit(goal: Goal, describe: Callable[[float], str]) -> str:
    """Write the limit of a goal, which has one, for people."""
    other = BOTTLENECK_OBJECTIVE if goal.of_latency else LATENCY_OBJECTIVE
    return f"{other} at most {describe(goal.limit or 0)}"


def seconds_text(seconds: float) -> str:
    """Write a number of seconds for a column of them, without the unit."""
    for limit, digits in ((1, 3), (10, 2), (1000, 1)):
        if seconds < limit:
            return f"{seconds:.{digits}f}"
    return f"{seconds:,.0f}"


def unfinished_text(cut_short: int, without_row: int) -> str:
    """Write how many cells are unfinished: cut short with a row, or without one."""
    parts = [f"{count:,} {what}" for count, what in ((cut_short, "cut short"), (without_row, "not begun")) if count]
    return f"{cut_short + without_row:,} unfinished ({', '.join(parts)})" if parts else "0 unfinished"


def bounds_cut_short(rows: Sequence[CertificateRow], asked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Say which bounds a limit has cut short, and which of those *asked* for had no turn, in how many cells."""
    cut = [row for row in rows if row.stopped in LIMITS_REACHED]
    begun = Counter(name for row in cut for name, figure in row.bounds.items() if not figure.solved)
    untried = Counter(name for row in cut for name in asked if name not in row.bounds)
    parts = []
    if begun:
        parts.append(_listed(begun, len(rows)))
    if untried:
        parts.append(f"no turn: {_listed(untried, len(rows))}")
    if parts:
        yield "cut short", "; ".join(parts)


def runs_cut_short(cells: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Say which algorithms a limit has ended, in how many of their runs."""
    ended = Counter(cell.algorithm for cell in cells if cell.stopped in LIMITS_REACHED)
    if ended:
        each = Counter(cell.algorithm for cell in cells)
        yield "cut short", ", ".join(f"{name} ({count:,} of {each[name]:,} runs)" for name, count in ended.items())


def _listed(names: Counter[str], cells: int) -> str:
    return ", ".join(name if cells == 1 else f"{name} ({count:,} of {cells:,})" for name, count in names.items())
