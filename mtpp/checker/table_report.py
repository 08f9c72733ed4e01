"""Outcome of a verification of a table of certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mtpp.checker.report import FORMAT, VALID, VERSION, Check, Report, Verdict, listed, worst
from mtpp.checker.tables.single_bounds import on_the_rest


@dataclass(frozen=True)
class TableReport:
    """The outcome of a verification of a table: a report on each row, and checks of the means.

    Attributes
    ----------
    rows
        As they stand in the table.
    reports
        One for each of them.
    """

    rows: Sequence[dict[str, Any]]
    reports: Sequence[Report]
    means: Sequence[Check]

    ROW: ClassVar[str] = "row"
    ROWS: ClassVar[str] = "rows"
    MEANS: ClassVar[str] = "means"
    """Words for a row, for several, and for the claims on all of them."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on all claims together; a table without rows is none."""
        if not self.rows:
            return Verdict.FALSE
        return worst([*(found.verdict for found in self.reports), *(check.verdict for check in self.means)])

    def named(self) -> list[tuple[str, Report]]:
        """Return the reports with what to call their rows."""
        return [(f"{row['path']}, k = {row['k']}: ", found) for row, found in zip(self.rows, self.reports, strict=True)]

    def sentence(self) -> str:
        """Say how much of the table is proven, and how much is merely claimed."""
        if not self.rows:
            return "INVALID: the table has no rows"
        counts = {
            verdict: [
                f"{count} of {len(every)} {what}"
                for every, what in ((self.reports, self.ROWS), (self.means, self.MEANS))
                if (count := sum(one.verdict is verdict for one in every))
            ]
            for verdict in (Verdict.OK, Verdict.FALSE, Verdict.UNCHECKED)
        }
        if self.verdict is Verdict.FALSE:
            unchecked = (
                f"; {listed(counts[Verdict.UNCHECKED])} not checked in full" if counts[Verdict.UNCHECKED] else ""
            )
            return f"INVALID: {listed(counts[Verdict.FALSE])} have something false in them{unchecked}"
        if self.verdict is Verdict.UNCHECKED:
            if all(on_the_rest(found) is Verdict.OK for found in self.reports):
                singles = sum(found.verdict is Verdict.UNCHECKED for found in self.reports)
                rows = "the row" if len(self.rows) == 1 else f"{singles} of {len(self.rows)} rows"
                held = "its best bound holds" if len(self.rows) == 1 else "the best bound of every row holds"
                return f"NOT PROVEN: single bounds of {rows} are merely claimed; {held}, and all else"
            proven = f"; {listed(counts[Verdict.OK])} are proven" if counts[Verdict.OK] else ""
            return f"NOT PROVEN: {listed(counts[Verdict.UNCHECKED])} merely claim a part of what they say{proven}"
        if len(self.rows) == 1:
            return f"valid: the {self.ROW} holds, every bound checked again"
        return f"valid: all {len(self.rows)} {self.ROWS} hold, every bound checked again"

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of this report."""
        rows = []
        for row, report in zip(self.rows, self.reports, strict=True):
            document = report.to_document()
            rows.append(
                {"model": row["model"], "path": row["path"], "k": row["k"]}
                | {key: document[key] for key in ("valid", "verdict", "sentence", "tier", "ratio", "checks")}
            )
        return {
            "format": FORMAT,
            "version": VERSION,
            "valid": VALID[self.verdict],
            "verdict": str(self.verdict),
            "sentence": self.sentence(),
            "rows": rows,
            "summary": [check.to_document() for check in self.means],
        }
