"""Reports of verifications as text: a line a claim, or a row of a table of certificates; a section for each file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mtpp.checker.report import BOUND_CHECK, Report, Verdict, listed
from mtpp.checker.table_report import TableReport
from mtpp.checker.tables.single_bounds import NAME as BOUNDS_TRIED
from mtpp.formats.results.verifications import Outcome, VerifiedFile
from mtpp.terminal_safe import terminal_safe
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table
from mtpp.views.terminal import Medium

MARKS: dict[Verdict | None, str] = {**{verdict: str(verdict) for verdict in Verdict}, None: "–"}
"""Beginning of a row of a report, by its verdict."""


@view
def verification_text(report: Report | TableReport, medium: Medium) -> Iterable[Table | str]:
    """Return lines for a terminal, and elsewhere a table of the claims, or of the rows of a table."""
    if isinstance(report, TableReport):
        if medium.form == "table":
            return [_table_text(report)]
        figures = [(MARKS[check.verdict], f"{check.name}: {check.detail}") for check in report.means]
        figures += [(MARKS[None], setting) for setting in _settings(report)]
        return [Table(report.sentence(), _columns("model", "k", "tier", "outcome"), _row_cells(report), figures)]
    if medium.form == "table":
        return [_plan_text(report)]
    rows = [(MARKS[check.verdict], check.name, check.detail) for check in report.checks]
    return [Table(report.sentence(), _columns("claim", "detail"), rows)]


def _columns(*names: str) -> list[Column]:
    return [Column(name, left=True) for name in ("verdict", *names)]


def _plan_text(report: Report) -> str:
    marks = max(len(MARKS[check.verdict]) for check in report.checks)
    names = max(len(check.name) for check in report.checks)
    lines = [f"{MARKS[check.verdict]:<{marks}}  {check.name:<{names}}  {check.detail}" for check in report.checks]
    return "\n".join(map(terminal_safe, [*lines, "", report.sentence()]))  # no name makes a row of its own


def _row_cells(report: TableReport) -> list[tuple[str, ...]]:
    """Return a verdict, a path, k, a tier and an outcome for each row."""
    outcomes: dict[int, tuple[str, str]] = {}  # rows that the time limit came before share a report
    cells: list[tuple[str, ...]] = []
    for row, found in zip(report.rows, report.reports, strict=True):
        if id(found) not in outcomes:
            outcomes[id(found)] = (MARKS[found.verdict], _outcome(row, found))
        mark, outcome = outcomes[id(found)]
        cells.append((mark, terminal_safe(row["path"]), f"k = {row['k']}", found.tier, outcome))
    return cells


def _table_text(report: TableReport) -> str:
    cells = _row_cells(report)
    widths = [max((len(cell[i]) for cell in cells), default=0) for i in range(4)]
    lines = ["  ".join([*map(str.ljust, cell, widths), cell[4]]) for cell in cells]
    lines += [f"{MARKS[check.verdict]:<{widths[0]}}  {check.name}: {check.detail}" for check in report.means]
    lines += [f"{MARKS[None]:<{widths[0]}}  {setting}" for setting in _settings(report)]
    return "\n".join(map(terminal_safe, [*lines, "", report.sentence()]))  # no name makes a row of its own


def _settings(report: TableReport) -> list[str]:
    """Return what rows are about by their own choice: one line for each combination."""
    names = ("system", "bandwidth", "memory", "dims", "groups")
    found: dict[tuple[str, ...], int] = {}
    for reported in report.reports:
        told = tuple(f"{check.name} {check.detail}" for check in reported.checks if check.name in names)
        if told:
            found[told] = found.get(told, 0) + 1
    return [
        f"{f'1 {report.ROW}' if count == 1 else f'{count} {report.ROWS}'}: {'; '.join(told)}"
        for told, count in found.items()
    ]


def _outcome(row: dict[str, Any], report: Report) -> str:
    """Say what is wrong, or what is unchecked, or how much of the row was checked."""
    wrong = next((check for check in report.checks if check.verdict is Verdict.FALSE), None)
    if wrong is not None:
        return f"{wrong.name}: {wrong.detail}"
    bound = next(check.detail for check in report.checks if check.name == BOUND_CHECK)
    if report.verdict is Verdict.UNCHECKED:
        open_ = report.named(Verdict.UNCHECKED)
        if open_ == [BOUNDS_TRIED]:
            why = next(check.detail for check in report.checks if check.name == BOUNDS_TRIED)
            return f"{_held(row)}; {bound}; unchecked: {why}"
        return f"{listed(open_)} unchecked; {bound}"
    return f"{_held(row)}; {bound}"


def _held(row: dict[str, Any]) -> str:
    return "partition and ratio" if "upper" in row else "bound alone"


def section_text(file: VerifiedFile) -> str:
    """Return the section of one file: its name, and its report if there is one."""
    title = terminal_safe(f"== {file.path}" + (f", model {file.model}" if file.model else ""))
    body = f"{Outcome.NOT_READ}\n" if file.report is None else verification_text(file.report, "table")
    return f"{title}\n{body}\n"


def closing_text(files: Sequence[VerifiedFile]) -> str:
    """Return the line after all sections: how many files are valid, and which are not."""
    outcomes = [file.outcome for file in files]
    parts = [f"{'1 file' if len(files) == 1 else f'{len(files)} files'}: {outcomes.count(Outcome.VALID)} valid"]
    for outcome in (Outcome.FALSE, Outcome.NOT_READ, Outcome.UNCHECKED):
        if outcome in outcomes:
            parts.append(f"{outcome}: {', '.join(file.path for file in files if file.outcome == outcome)}")
    return terminal_safe("; ".join(parts))
