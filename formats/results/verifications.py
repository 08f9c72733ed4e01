"""Verdicts on several files, ``mtpp-verifications`` version 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mtpp.checker.report import VALID, Report, Verdict, worst
from mtpp.checker.table_report import TableReport

FORMAT = "mtpp-verifications"
VERSION = 1


class Outcome(StrEnum):
    """Verdict on a file."""

    VALID = "valid"
    FALSE = "false"
    UNCHECKED = "unchecked"
    NOT_READ = "not read"


_OUTCOMES = {Verdict.OK: Outcome.VALID, Verdict.FALSE: Outcome.FALSE, Verdict.UNCHECKED: Outcome.UNCHECKED}


@dataclass(frozen=True)
class VerifiedFile:
    """One file with its verdict, as it is shown.

    Attributes
    ----------
    model
        Path of the model that was found beside it.
    report
        None if the file or its model could not be read; *error* says why.
    exit_code
        Of a run on this file alone.
    """

    path: str
    exit_code: int
    model: str | None = None
    report: Report | TableReport | None = None
    error: str | None = None

    @property
    def outcome(self) -> Outcome:
        """The verdict in a word or two; requirements that are unmet make it false."""
        if self.report is None:
            return Outcome.NOT_READ
        return Outcome.FALSE if self.exit_code == 1 else _OUTCOMES[self.report.verdict]

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of this file."""
        report = None if self.report is None else self.report.to_document()
        return {
            "file": self.path,
            "model": self.model,
            "exit_code": self.exit_code,
            "verification": report,
            "error": self.error,
        }


def verifications_document(files: Sequence[VerifiedFile], exit_code: int) -> dict[str, Any]:
    """Return all files together as JSON takes them."""
    verdict = worst(Verdict.UNCHECKED if file.report is None else file.report.verdict for file in files)
    return {
        "format": FORMAT,
        "version": VERSION,
        "valid": VALID[verdict],
        "exit_code": exit_code,
        "files": [file.to_document() for file in files],
    }
