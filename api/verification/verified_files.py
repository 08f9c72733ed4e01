"""Verification of results in many files, each beside its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mtpp.api.output import ShownResult
from mtpp.api.verification.files_beside import FilesBeside
from mtpp.api.verification.reporting import read_result, report_on, within_time
from mtpp.api.verify import Verification
from mtpp.errors import InputError, Interrupted, MtppError
from mtpp.formats.results.verifications import VerifiedFile

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.formats.io.source import Source
    from mtpp.views.terminal import Medium

__all__ = ["FileVerdict", "VerifiedFile", "VerifiedFiles", "verify_files", "worst_code"]

WORST_FIRST = (1, 2, 3, 0)
"""Exit codes: something false, something malformed, something unchecked, all well."""


@dataclass(frozen=True, repr=False)
class VerifiedFiles(ShownResult):
    """Verdicts on several files; shown as the line below the sections on each."""

    files: Sequence[VerifiedFile]
    exit_code: int

    def _said(self) -> dict[str, Any]:
        from mtpp.formats.results.verifications import verifications_document

        return verifications_document(self.files, self.exit_code)

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.verified_files import closing_text

        del medium
        return closing_text(self.files)


@dataclass(frozen=True)
class FileVerdict:
    """Verdict on one file.

    Attributes
    ----------
    path
        As it was given, or found in a folder that was.
    outcome
        An error if the file or its model could not be read.
    model
        Path of the model that was found beside it.
    """

    path: str
    outcome: Verification | MtppError
    model: str | None = None


def verify_files(
    paths: Sequence[str], request: VerifyRequest, observer: Observer, *, beside: bool
) -> Iterator[FileVerdict]:
    """Verify one file after the other, as if each were the only one.

    Parameters
    ----------
    paths
        Files and folders; see :func:`mtpp.api.verification.result_files.result_files`.
    request
        Terms for each of them; its result is not looked at.
    beside
        Whether models and measured costs are found by SHA-256 (:class:`FilesBeside`), those of the request first. What
        is not found leaves all claims about it unchecked.
    """
    from mtpp.api.verification.result_files import result_files

    files = FilesBeside(_named(request.models), request.max_model_bytes) if beside else None
    for path in result_files(paths):
        observer.note(f"checking {path}")
        yield _verdict(path, replace(request, result=path), files, observer)


def worst_code(codes: Iterable[int]) -> int:
    """Return the exit code of a run over several files, given that of each."""
    return min(codes, key=WORST_FIRST.index)


def _verdict(path: str, request: VerifyRequest, files: FilesBeside | None, observer: Observer) -> FileVerdict:
    model = None
    try:
        with within_time(request):
            claims, source = read_result(request)
            if files is not None:
                request, model = _with_files(claims, source, request, files)
            return FileVerdict(path, Verification(report_on(claims, source, request, observer)), model)
    except Interrupted:
        raise
    except MtppError as error:
        return FileVerdict(path, error, model)


def _with_files(
    claims: dict[str, Any], source: Source, request: VerifyRequest, files: FilesBeside
) -> tuple[VerifyRequest, str | None]:
    """Return the request with what a result is about, or with why that was not found; and the path of the model."""
    from mtpp.formats.results.verifiable import is_table

    if is_table(claims):
        return replace(request, models=files.folders_for(source.path)), None
    stated = claims["model"] if isinstance(claims.get("model"), dict) else {}
    name = stated["name"] if isinstance(stated.get("name"), str) else ""
    wanted = stated.get("sha256")
    request = replace(request, models=())
    if wanted is None and "sha256" in stated:
        return replace(request, unfound="it names no file that could be beside it"), None
    if not isinstance(wanted, str):  # malformed, which is said later
        return request, None
    model = files.find(wanted, source.path, name)
    if model.path is None:
        return replace(request, unfound=model.why), None
    if isinstance(costs := stated.get("costs_sha256"), str) and request.asked.costs is None:
        measured = files.find(costs, source.path, name)
        if measured.path is None:
            return replace(request, unfound=f"its measured costs are not here: {measured.why}"), None
        request = replace(request, asked=replace(request.asked, costs=measured.path))
    return replace(request, models=(model.path,)), model.path


def _named(models: Sequence[Any]) -> list[str]:
    """Return the paths among models; only files can be found by SHA-256."""
    for model in models:
        if not isinstance(model, str) or model == "-":
            raise InputError("has to be a file or a folder", parameter="models", remedy="leave ‹beside› out")
    return list(models)
