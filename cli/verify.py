"""``mtpp verify``: verdicts on standard output, and the exit codes that requirements make of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mtpp.api.options.kinds import Flag, Repeated
from mtpp.api.options.machine import OnMachine, System
from mtpp.api.options.reading import Formats
from mtpp.api.options.verifying import Verifying
from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import DOCUMENT, MODEL
from mtpp.cli.options.made import options, single
from mtpp.cli.options.shared import output_options
from mtpp.cli.options.verify_terms import FALSE, MODELS, Requirements, verifying_options
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.cli.terminal.output import write_stdout
from mtpp.terminal_safe import terminal_safe

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.verified_files import FileVerdict, VerifiedFile
    from mtpp.api.verify import Verification
    from mtpp.cli.terminal.console import Console


@click.command("verify")
@click.argument("documents", type=DOCUMENT, nargs=-1, required=True, metavar="FILE...")
@single("model", Repeated(MODEL.kind), MODELS, "PATH")
@single(
    "beside", Flag(),
    "Find the model of each FILE, and its measured costs, by SHA-256: among those of ‹model›, in FILE's folder, "
    "and in those above it up to the root of its repository.",
)  # fmt: skip
@options(Requirements)
@verifying_options()
@output_options("table", "json")
@warm_up_behind_option("verify")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    documents: tuple[str, ...],
    model: tuple[str, ...],
    beside: bool,
    requirements: Requirements,
    verifying: Verifying,
    system: System,
    onmachine: OnMachine,
    formats: Formats,
    output_format: str,
    console: Console,
) -> None:
    """Check each FILE, a plan, a training plan or a table of certificates (- for standard input), and its proofs.

    Stages, costs, bounds and ratios are derived from scratch in plain integers and fractions, by code that shares
    nothing with the solvers; the exhaustive search behind a bound of tier enumerated runs again, which takes about as
    long as the first time. Each claim gets a verdict: ok, false, or unchecked, such as bounds of tier solver, which
    nobody can check. Rows that begin with – are what FILE records or chose itself: how it was found is taken as it
    stands, and its system and sizes are held to --system, --bandwidth, --dim and so on where these are given. The
    models of a table are found by SHA-256 among those given, or else where its rows say, seen from the table's folder
    or this one. What decided how a model is read (--time-unit and so on) has to be given again; only training plans
    say themselves what times without a unit are in.

    A folder stands for the plans and tables in it and below. With several FILEs or --beside, each has a section of its
    own, and JSON is one list.

    Exit codes: 0 every claim was checked and holds; 1 something is false; 2 bad usage or a malformed FILE; 3 nothing is
    false, but some claim is unchecked. Of several FILEs the worst one decides: 1 before 2 before 3.
    """
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.host.deadline import deadline_from_start

    if [*documents, verifying.costs, *model].count("-") > 1:
        raise click.UsageError("only one of plan, model and costs can be standard input", ctx)
    deadline = deadline_from_start(verifying.time_limit_s)
    request = VerifyRequest(documents[0], model, verifying, system, formats, onmachine, deadline=deadline)
    if beside or len(documents) > 1 or os.path.isdir(documents[0]):
        code = _verify_many(documents, request, console, requirements, output_format, beside=beside)
    else:
        code = _verify_one(request, console, requirements, output_format)
    ctx.exit(code)


def _verify_one(request: VerifyRequest, console: Console, requirements: Requirements, output_format: str) -> int:
    """Verify one result, print its report and return the exit code."""
    from mtpp.api.verify import verify_document

    found = verify_document(request, console).told(flag_of)
    write_stdout(found.text(output_format))
    unmet = requirements.unmet(found)
    _say(_needed(found, unmet))
    return requirements.exit_code(found, unmet)


def _verify_many(
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
