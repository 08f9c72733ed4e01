"""Verdicts of a verification as a table, and as what a report says first; origin of a plan as its document has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.checker.report import Check, Report, Verdict
from mtpp.checker.table_report import TableReport
from mtpp.views.report.page import MARKS, Cell, PageVerdict, Section, TableBlock
from mtpp.views.report.stated import StatedPlan
from mtpp.views.table import Column, Table
from mtpp.wording import counted

_MOST_REASONS = 12


def claims_section(checks: Sequence[Check]) -> Section:
    """Return what ``mtpp verify`` says of each claim; what a document merely records has no verdict."""
    caption = "What mtpp verify says of each claim; lines with – are what the file records or chose itself"
    table = TableBlock("claims", checks_table(caption, checks))
    return Section("checked", "What was checked", [table])


def checks_table(caption: str, checks: Iterable[Check]) -> Table:
    """Return a line for each check."""
    columns = [Column(name, left=True) for name in ("verdict", "claim", "detail")]
    return Table(caption, columns, [(verdict_cell(one.verdict), one.name, one.detail) for one in checks])


def verdict_cell(verdict: Verdict | None) -> Cell:
    """Return a cell with a verdict and its sign; ``–`` for what is no claim."""
    return Cell("–") if verdict is None else Cell(f"{MARKS[str(verdict)]} {verdict}", state=str(verdict))


def with_verdict(text: str, report: Report, claim: str) -> str:
    """Return what explains a figure, with the verdict on its claim where that does not hold."""
    verdict = next((one.verdict for one in report.checks if one.name == claim), None)
    return text if verdict in (Verdict.OK, None) else f"{text}{', ' if text else ''}{verdict}"


def plan_verdict(report: Report, proven: str) -> PageVerdict:
    """Return what is said first of a result; *proven* is its headline if every claim holds."""
    if report.verdict is Verdict.FALSE:
        false = [f"{one.name}: {one.detail}" for one in report.checks if one.verdict is Verdict.FALSE]
        return PageVerdict("false", "Verification failed: do not rely on these figures", report.sentence(), false)
    if report.verdict is Verdict.UNCHECKED:
        open_ = [f"{one.name}: {one.detail}" for one in report.checks if one.verdict is Verdict.UNCHECKED]
        return PageVerdict("unchecked", "Not checked in full", report.sentence(), open_)
    return PageVerdict("ok", proven, report.sentence())


def table_verdict(report: TableReport, proven: str) -> PageVerdict:
    """Return what is said first of a table; *proven* is its headline if every row holds."""
    headlines = {
        Verdict.FALSE: "Verification failed: do not rely on the rows named here",
        Verdict.UNCHECKED: "Not checked in full",
        Verdict.OK: proven,
    }
    reasons = []
    if report.verdict is not Verdict.OK:
        for name, row in report.named():
            wrong = [f"{one.name}: {one.detail}" for one in row.checks if one.verdict is report.verdict]
            reasons += [f"{name}{wrong[0]}"] if wrong else []
        reasons += [f"{one.name}: {one.detail}" for one in report.means if one.verdict is report.verdict]
    if len(reasons) > _MOST_REASONS:
        reasons = [*reasons[:_MOST_REASONS], f"and {len(reasons) - _MOST_REASONS:,} more, see below"]
    return PageVerdict(str(report.verdict), headlines[report.verdict], report.sentence(), reasons)


def origin_section(document: Mapping[str, Any], shown: StatedPlan) -> Section:
    """Return the section on a plan."""
    model = document["model"]
    facts = [
        ("model", f"{model['name']}: {model['ops']:,} ops, {model['tensors']:,} tensors"),
        ("SHA-256 of its file", model["sha256"] or "none: the model came from no file"),
        ("sizes", ", ".join(f"{name} = {size}" for name, size in model["dims"].items()) or "none to set"),
        ("system", shown.system.describe()) if shown.machine is None else ("machine", shown.machine.describe()),
        ("algorithm", f"{document['algorithm']}, seed {document['seed']}"),
        ("found by", _found_by(document)),
        ("ended by", str(document.get("stopped", "unknown"))),
    ]
    if "costs_sha256" in model:
        facts.insert(2, ("SHA-256 of its costs", model["costs_sha256"]))
    if document["together"]:
        facts.append(("kept together", f"{counted(len(document['together']), 'group')} of ops"))
    return facts_section("origin", "Where it comes from", "What the file records of the model and of the search", facts)


def facts_section(name: str, title: str, caption: str, facts: Iterable[tuple[str, str]]) -> Section:
    """Return a section with a table of names and what they stand for."""
    columns = [Column(header, left=True) for header in ("what", "value")]
    return Section(name, title, [TableBlock(f"{name}-table", Table(caption, columns, list(facts)))])


def _found_by(document: Mapping[str, Any]) -> str:
    found = str(document.get("found_by", document["algorithm"]))
    return f"{found} after {document['evaluations']:,} evaluations" if "evaluations" in document else found
