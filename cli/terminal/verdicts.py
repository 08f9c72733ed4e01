"""Verdicts of ``mtpp verify`` on standard output, and the exit codes that requirements make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mtpp.cli.flags import flag_of
from mtpp.cli.options.verify_terms import FALSE
from mtpp.cli.terminal.output import write_stdout
from mtpp.terminal_safe import terminal_safe

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.verified_files import FileVerdict, VerifiedFile
    from mtpp.api.verify import Verification
    from mtpp.cli.options.verify_terms import Requirements
    from mtpp.cli.terminal.console import Console


def verify_one(request: VerifyRequest, console: Console, requirements: Requirements, output_format: str) -> int:
    """Verify one result, print its report and return the exit code."""
    from mtpp.api.verify import verify_document

    found = verify_document(request, console).told(flag_of)
    write_stdout(found.text(output_format))
    unmet = requirements.unmet(found)
    _say(_needed(found, unmet))
    return requirements.exit_code(found, unmet)


def verify_many(
    paths: Sequence[str],
    request: VerifyRequest,
    console: Console,
    requirements: Requirements,
    output_format: str,
    *,
    beside: bool,
) -> int:
    """Verify results in files and folders, print a section for each or one JSON document, and return the exit code."""
    from mtpp.api.verification.verified_files import VerifiedFiles, verify_files, worst_code
    from mtpp.views.verification import section_text

    files: list[VerifiedFile] = []
    for verdict in verify_files(paths, request, console, beside=beside):
        file, said = _shown(verdict, requirements)
        files.append(file)
        if output_format == "table":
            write_stdout(section_text(file))
        _say(said)
    code = worst_code(file.exit_code for file in files)
    write_stdout(VerifiedFiles(files, code).text(output_format))
    return code


def _shown(verdict: FileVerdict, requirements: Requirements) -> tuple[VerifiedFile, list[str]]:
    """Return what standard output shows of a file, and what standard error says."""
    from mtpp.api.verification.verified_files import VerifiedFile
    from mtpp.api.verify import Verification

    path, model, outcome = verdict.path, verdict.model, verdict.outcome
    if not isinstance(outcome, Verification):
        message = outcome.told(flag_of)
        return VerifiedFile(path, outcome.exit_code, model, error=message), [f"error: {message}"]
    found = outcome.told(flag_of)
    unmet = requirements.unmet(found)
    shown = VerifiedFile(path, requirements.exit_code(found, unmet), model, found.report)
    return shown, _needed(found, [f"{path}: {why}" for why in unmet])


def _needed(found: Verification, unmet: Sequence[str]) -> list[str]:
    """Return lines on what is unmet, none where something is false in any case."""
    return [] if found.exit_code == FALSE else [f"unmet: {why}" for why in unmet]


def _say(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(terminal_safe(line), err=True)
