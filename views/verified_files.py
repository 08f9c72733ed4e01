"""Verdicts on several files: a section for each, and a line on all of them."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.formats.results.verifications import Outcome, VerifiedFile
from mtpp.terminal_safe import terminal_safe
from mtpp.views.verification import verification_text


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
