"""Verification of a document of any kind, within a time limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtpp.errors import LimitReached
from mtpp.host.alarm import TimeIsUp, alarm

if TYPE_CHECKING:
    from mtpp.checker.plan import Report
    from mtpp.cli.options.verify_terms import Terms
    from mtpp.cli.table_checking import TableReport


@dataclass(frozen=True)
class Outcome:
    """Findings on a document, a plan of either kind or a table."""

    report: Report | TableReport

    @property
    def verdict(self) -> str:
        """The verdict on all claims together."""
        return self.report.verdict

    def text(self, output_format: str) -> str:
        """Return the report as ``table`` or ``json``."""
        from mtpp.cli.checking import report_text
        from mtpp.cli.table_checking import TableReport, table_text

        if isinstance(self.report, TableReport):
            return table_text(self.report, output_format)
        return report_text(self.report, output_format)

    def unmet(self, tier: str) -> list[str]:
        """Say of each bound that is trusted less than *tier* why."""
        from mtpp.cli.checking import unmet_tier
        from mtpp.cli.table_checking import TableReport

        named = [("", self.report)] if not isinstance(self.report, TableReport) else self.report.named()
        return [f"{name}{why}" for name, found in named if (why := unmet_tier(found, tier)) is not None]


def verify_document(path: str, models: Sequence[str], terms: Terms) -> Outcome:
    """Read a document and verify it.

    Raises
    ------
    InputError
        If the document or a model is malformed.
    LimitReached
        If the time limit passed while they were read.
    """
    try:
        with alarm(terms.deadline):
            return Outcome(_verify(path, models, terms))
    except TimeIsUp:
        problem = f"the time limit of {terms.deadline.limit_s:g} s passed while reading"
        raise LimitReached(problem, source=path, remedy="raise --time-limit") from None


def _verify(path: str, models: Sequence[str], terms: Terms) -> Report | TableReport:
    from mtpp.cli.checking import check_plan_document
    from mtpp.cli.table_checking import check_table_document
    from mtpp.cli.training_checking import check_training_document
    from mtpp.errors import InputError
    from mtpp.formats.io.source import read_source
    from mtpp.formats.results.verifiable import is_table, is_training_plan, read_verifiable, refuse_bloated

    source = read_source(path, max_bytes=terms.document_limit)
    if not terms.trusted_size:
        refuse_bloated(source.data, source.display)
    claims = read_verifiable(source.data, source.display)
    if is_table(claims):
        return check_table_document(claims, source, models, terms)
    if len(models) > 1:
        raise InputError("a plan is for one model", source="--model", remedy="give one")
    check = check_training_document if is_training_plan(claims) else check_plan_document
    return check(claims, source, next(iter(models), None), terms)
