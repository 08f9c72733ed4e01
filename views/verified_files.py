"""Verdicts on several files as text and as one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.checker.report import VALID, Report, Verdict, worst
from mtpp.checker.table_report import TableReport
from mtpp.terminal_safe import terminal_safe
from mtpp.views.verification import verification_text

FORMAT = "mtpp-verifications"
VERSION = 1

_VALID, _FALSE, _UNCHECKED, _NOT_READ = "valid", "false", "unchecked", "not read"
_OUTCOMES = {Verdict.OK: _VALID, Verdict.FALSE: _FALSE, Verdict.UNCHECKED: _UNCHECKED}


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
    def outcome(self) -> str:
        """The verdict in a word or two; requirements that are unmet make it false."""
        if self.report is None:
            return _NOT_READ
        return _FALSE if self.exit_code == 1 else _OUTCOMES[self.report.verdict]

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


def section_text(file: VerifiedFile) -> str:
    """Return the section of one file: its name, and its report if there is one."""
    title = terminal_safe(f"== {file.path}" + (f", model {file.model}" if file.model else ""))
    body = _NOT_READ if file.report is None else verification_text(file.report, "table")
    return f"{title}\n{body}\n\n"


def closing_text(files: Sequence[VerifiedFile]) -> str:
    """Return the line after all sections: how many files are valid, and which are not."""
    outcomes = [file.outcome for file in files]
    parts = [f"{'1 file' if len(files) == 1 else f'{len(files)} files'}: {outcomes.count(_VALID)} valid"]
    for outcome in (_FALSE, _NOT_READ, _UNCHECKED):
        if outcome in outcomes:
            parts.append(f"{outcome}: {', '.join(file.path for file in files if file.outcome == outcome)}")
    return terminal_safe("; ".join(parts))


def files_json(files: Sequence[VerifiedFile], exit_code: int) -> str:
    """Return all files together as JSON text."""
    from mtpp.formats.io.json_text import dump_json

    verdict = worst(Verdict.UNCHECKED if file.report is None else file.report.verdict for file in files)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "valid": VALID[verdict],
        "exit_code": exit_code,
        "files": [file.to_document() for file in files],
    }
    return dump_json(document)
