"""Verdicts of a verification as a table, and as what a report says first; origin of a plan as its document has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.checker.report import Check, Report, Verdict
from mtpp.checker.table_report import TableReport
from mtpp.views.report.page import MARKS, Block, Cell, Claims, PageVerdict, Section, TableBlock
from mtpp.views.report.stated import StatedPlan
from mtpp.views.table import Column, Table
from mtpp.wording import counted

_MOST_REASONS = 6

_TICKS = re.compile(r"(\d+) per unit \((\w+)\)")

OPTIMAL, WITHIN, HELD, NO_PLAN = "✓", "≤", "=", "∅"
"""Signs of results that hold: of optima, of proven ratios and limits, of figures alone, and where nothing fits."""


_CAPTION = "Verdict on each claim, as mtpp verify gives it; lines with – are what the file records or chose itself"


def claims_of(checks: Sequence[Check]) -> Claims:
    """Return all claims of a result with their verdicts; what a document merely records has none."""
    return Claims(claims_line(checks), [TableBlock("claims", checks_table(_CAPTION, checks))], open=any_false(checks))


def claims_of_rows(report: TableReport, of: str, blocks: Sequence[Block]) -> Claims:
    """Return the claims of rows and of all of them together, *blocks* being the tables with their verdicts."""
    every = [*(one for found in report.reports for one in found.checks), *report.means]
    return Claims(claims_line(every, of), blocks, open=any_false(every))


def claims_line(checks: Iterable[Check], of: str = "") -> str:
    """Return how many claims were checked, and how many of them do not hold or were left unchecked.

    Examples
    --------
    >>> claims_line([Check("bottleneck", True, ""), Check("ratio", None, "")])
    '2 claims: 1 holds, 1 unchecked'
    """
    found = [one.verdict for one in checks if one.verdict is not None]
    line, hold = f"{counted(len(found), 'claim')}{of}", found.count(Verdict.OK)
    others = [f"{found.count(one):,} {one}" for one in (Verdict.FALSE, Verdict.UNCHECKED) if one in found]
    if others:
        return f"{line}: {', '.join([f'{hold:,} hold' + 's' * (hold == 1), *others])}"
    return f"{line} checked, {'it holds' if len(found) == 1 else 'all hold'}"


def any_false(checks: Iterable[Check]) -> bool:
    """Whether a claim is false."""
    return any(one.verdict is Verdict.FALSE for one in checks)


def checks_table(caption: str, checks: Iterable[Check]) -> Table:
    """Return a line for each check."""
    columns = [Column(name, left=True) for name in ("verdict", "claim", "detail")]
    return Table(caption, columns, [(verdict_cell(one.verdict), *_told(one)) for one in checks])


def _told(check: Check) -> tuple[str, str]:
    """Return a claim and its detail, that on ticks in other words: no page counts in them."""
    found = _TICKS.fullmatch(check.detail) if check.name == "ticks" else None
    if found is None:
        return ("unit of costs" if check.name == "ticks" else check.name), check.detail
    steps, unit = int(found[1]), found[2]
    if unit != "1":
        return "unit of costs", f"{unit}, in whole picoseconds"
    return "unit of costs", "that of the file" if steps == 1 else f"that of the file, in steps of 1/{steps:,}"


def verdict_cell(verdict: Verdict | None) -> Cell:
    """Return a cell with a verdict and its sign; ``–`` for what is no claim."""
    return Cell("–") if verdict is None else Cell(f"{MARKS[str(verdict)]} {verdict}", state=str(verdict))


def with_verdict(text: str, report: Report, claim: str) -> str:
    """Return what explains a figure, with the verdict on its claim where that does not hold."""
    verdict = next((one.verdict for one in report.checks if one.name == claim), None)
    return text if verdict in (Verdict.OK, None) else f"{text}{', ' if text else ''}{verdict}"


def plan_verdict(report: Report, proven: str, sign: str = HELD) -> PageVerdict:
    """Return what is said first of a result; *proven* is its headline if every claim holds, behind a *sign*."""
    if report.verdict is Verdict.FALSE:
        false = [f"{one.name}: {one.detail}" for one in report.checks if one.verdict is Verdict.FALSE]
        return PageVerdict("false", "Verification failed: do not rely on these figures", report.sentence(), false)
    if report.verdict is Verdict.UNCHECKED:
        open_ = [f"{one.name}: {one.detail}" for one in report.checks if one.verdict is Verdict.UNCHECKED]
        return PageVerdict("unchecked", "Not checked in full", report.sentence(), open_)
    return PageVerdict("ok", proven, report.sentence(), sign=sign)


def table_verdict(
    report: TableReport, proven: str, sign: str = HELD, names: Sequence[str] | None = None
) -> PageVerdict:
    """Return what is said first of a table; *proven* is its headline if every row holds, behind a *sign*.

    Parameters
    ----------
    names
        Of the rows, as reasons begin; those of the verifier by default.
    """
    headlines = {
        Verdict.FALSE: "Verification failed: do not rely on the rows named here",
        Verdict.UNCHECKED: "Not checked in full",
        Verdict.OK: proven,
    }
    reasons = []
    if report.verdict is not Verdict.OK:
        named = report.named()
        for name, (_, row) in zip(names or [own for own, _ in named], named, strict=True):
            wrong = [f"{one.name}: {one.detail}" for one in row.checks if one.verdict is report.verdict]
            reasons += [f"{name}{wrong[0]}"] if wrong else []
        reasons += [f"{one.name}: {one.detail}" for one in report.means if one.verdict is report.verdict]
    if len(reasons) > _MOST_REASONS:
        reasons = [*reasons[:_MOST_REASONS], f"and {len(reasons) - _MOST_REASONS:,} more, see below"]
    return PageVerdict(str(report.verdict), headlines[report.verdict], report.sentence(), reasons, sign)


def origin_section(document: Mapping[str, Any], shown: StatedPlan) -> Section:
    """Return the section on a plan."""
    model, modelled = document["model"], shown.modelled
    on = ("system", shown.system.describe(computing=modelled))
    if shown.machine is not None:
        on = ("machine", shown.machine.describe(computing=modelled))
    facts = [
        ("model", f"{model['name']}: {model['ops']:,} ops, {model['tensors']:,} tensors"),
        ("SHA-256 of its file", model["sha256"] or "none: the model came from no file"),
        ("sizes", ", ".join(f"{name} = {size}" for name, size in model["dims"].items()) or "none to set"),
        on,
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
    table = TableBlock(f"{name}-table", Table(caption, columns, list(facts)))
    return Section(name, title, [table], folded=True)


def _found_by(document: Mapping[str, Any]) -> str:
    found = str(document.get("found_by", document["algorithm"]))
    return f"{found} after {document['evaluations']:,} evaluations" if "evaluations" in document else found
