"""Verification of results in many files, each beside its model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.api.inputs.language_models import names_language_model
from mtpp.api.inputs.recorded_model import NamedFiles, plan_of, recorded_model
from mtpp.api.output import ShownResult
from mtpp.api.verification.reporting import read_result, report_on, within_time
from mtpp.api.verification.request import MAX_RESULT_BYTES
from mtpp.api.verify import Verification
from mtpp.errors import InputError, Interrupted, MtppError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results.verifications import VerifiedFile, verifications_document
from mtpp.wording import first_of

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.formats.io.source import Source
    from mtpp.views.terminal import Medium

__all__ = ["FileVerdict", "VerifiedFile", "VerifiedFiles", "verify_files", "worst_code"]

WORST_FIRST = (1, 2, 3, 0)
"""Exit codes: something false, something malformed, something unchecked, all well."""

_NAMES = ("mtpp-plan", "mtpp-plan-range", "mtpp-training-plan", "mtpp-certificates")
_FORMATS = b'"(?:' + "|".join(_NAMES).encode() + b')"'
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*' + _FORMATS)
_ANYWHERE = re.compile(rb'"format"\s*:\s*' + _FORMATS)
_NAME = re.compile(r"(?:^|[._-])plan\.json(?:\.gz)?$")
"""Names that plans have, those of the hooks for pre-commit."""

_SUFFIXES = (".json", ".json.gz")

_POINTER = re.compile(rb"version https://git-lfs\S*\noid sha256:([0-9a-f]{64})\n")
"""What stands in place of a large file where Git LFS has not fetched it."""

_LONGEST_POINTER = 1024
_FEW = 4
"""Folders that a message names."""


@dataclass(frozen=True, repr=False)
class VerifiedFiles(ShownResult):
    """Verdicts on several files; shown as the line below the sections on each."""

    files: Sequence[VerifiedFile]
    exit_code: int

    def _said(self) -> dict[str, Any]:
        return verifications_document(self.files, self.exit_code)

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.verification import closing_text

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
        Files and folders; see :func:`result_files`.
    request
        Terms for each of them; its result is not looked at.
    beside
        Whether models and measured costs are found by SHA-256 (:class:`FilesBeside`), those of the request first. What
        is not found leaves all claims about it unchecked.
    """
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
    model_claims = plan_of(claims).get("model")
    stated = model_claims if isinstance(model_claims, dict) else {}
    name = _text(stated.get("name"))
    wanted = stated.get("sha256")
    given, request = request.models, replace(request, models=())
    if wanted is None and "sha256" in stated:
        return replace(request, unfound="it names no file that could be beside it"), None
    if not isinstance(wanted, str):  # malformed, which is said later
        return request, None
    recorded = recorded_model(stated, source.path, files.named, request.asked.adapters)
    model = Found(None) if recorded.path and not given else files.find(wanted, source.path, name)
    if model.path is None and recorded.path is not None:
        asked = replace(request.asked, costs=request.asked.costs or recorded.costs, adapters=recorded.adapters)
        return replace(request, models=(recorded.path,), asked=asked), recorded.path
    if model.path is None:
        return replace(request, unfound=model.why), None
    if isinstance(costs := stated.get("costs_sha256"), str) and request.asked.costs is None:
        measured = files.find(costs, source.path, name)
        if measured.path is None:
            return replace(request, unfound=f"its measured costs are not here: {measured.why}"), None
        request = replace(request, asked=replace(request.asked, costs=measured.path))
    return replace(request, models=(model.path,)), model.path


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _named(models: Sequence[Any]) -> list[str]:
    """Return the paths among models; only files can be found by SHA-256."""
    for model in models:
        if not isinstance(model, str) or model == "-":
            raise InputError("has to be a file or a folder", parameter="models", remedy="leave ‹beside› out")
    return list(models)


def result_files(paths: Iterable[str]) -> list[str]:
    """Return files as they are, and for folders the results in them and below, each file once.

    In folders, plans, training plans and tables of certificates in files ``*.json`` and ``*.json.gz`` count, and
    damaged files that are called plans. Hidden files and folders are passed over; links to folders are not followed.
    """
    found: dict[str, str] = {}
    for path in paths:
        if path == "-" or not os.path.isdir(path):
            found.setdefault(path if path == "-" else os.path.realpath(path), path)
            continue
        inside = [file for file in _files_below(path) if _can_be_verified(file)]
        if not inside:
            raise InputError(
                "no plan and no table of certificates in this folder", source=path, remedy="name the files"
            )
        for file in inside:
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _files_below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for name in sorted(names):
            if name[0] != "." and name.lower().endswith(_SUFFIXES):
                yield os.path.normpath(os.path.join(place, name))


def _can_be_verified(path: str) -> bool:
    """Return whether a file is a result; one whose keys another program has sorted is read whole to tell.

    What is called a plan, or says that it is one, and cannot be read counts as well: nobody would notice that it was
    passed over.
    """
    from mtpp.formats.io.source import read_head, read_source

    meant = _NAME.search(os.path.basename(path)) is not None
    try:
        head = read_head(path)
        if _BEGINNING.match(head):
            return True
        if not meant and head.lstrip()[:1] != b"{":
            return False
        data = read_source(path, max_bytes=MAX_RESULT_BYTES).data
        meant = meant or _ANYWHERE.search(data) is not None
        document = parse_json(data, path) if meant else None
    except InputError:
        return meant
    return isinstance(document, dict) and document.get("format") in _NAMES


class Found(NamedTuple):
    """A file with the SHA-256 looked for; where there is none, *why* says where it was looked for."""

    path: str | None
    why: str = ""


class FilesBeside:
    """Files by SHA-256: those given, those in the folder of a result, and those above it in its repository.

    The folders above are looked at up to the first that holds ``.git``; where none does, the result's own is all.
    Subfolders are not looked into, but for folders given. Each file is read once, for however many results.

    Parameters
    ----------
    given
        Paths of models, or of folders of them, that come first.
    max_bytes
        Larger files are passed over.
    """

    def __init__(self, given: Sequence[str], max_bytes: int) -> None:
        missing = next((path for path in given if not os.path.exists(path)), None)
        if missing is not None:
            raise InputError("no such file or folder", source=missing, remedy="check the path")
        self._given = [Path(path) for path in given]
        self.named = NamedFiles(max_bytes)
        self._meant: dict[Path, bool] = {}

    def find(self, sha256: str, result: Path | None, name: str) -> Found:
        """Look for a file.

        Parameters
        ----------
        sha256
            In lower-case hexadecimal, of the bytes as they stand in the file.
        result
            Path of the result that is about the file; None for one from standard input, which is beside what is here.
        name
            Of the model: files called so are read before the others.
        """
        folders = [path for path in self._given if path.is_dir() and not names_language_model(path)]
        folders += [folder for folder in folders_of(result) if folder not in folders]
        pointer = None
        for path in self._candidates(folders, name):
            digest = self._digest(path)
            if digest == sha256:
                return Found(str(path))
            if pointer is None and _pointed_at(path) == sha256:
                pointer = path
        if pointer is not None:
            return Found(None, f"{pointer} is a pointer of Git LFS to it; run `git lfs pull`")
        places = [str(path) for path in (*(path for path in self._given if path.is_file()), *folders)]
        named = first_of(places, _FEW)
        return Found(None, f"no file in {named} has its SHA-256 {sha256}: it has changed, or is elsewhere")

    def folders_for(self, result: Path | None) -> tuple[str, ...]:
        """Return all places to look at for the models of a table, those given first."""
        return tuple(dict.fromkeys(map(str, (*self._given, *folders_of(result)))))

    def _candidates(self, folders: Sequence[Path], name: str) -> Iterator[Path]:
        from mtpp.formats.io.folder import files_of

        yield from (path for path in self._given if path.is_file() or names_language_model(path))
        for folder in folders:
            with suppress(InputError):  # one that may not be listed holds nothing for us
                inner = folder / name
                if name and "/" not in name and inner.is_dir() and names_language_model(inner):
                    yield inner
                yield from sorted(files_of(folder), key=lambda path: not path.name.startswith(name))

    def _digest(self, path: Path) -> str | None:
        """Return the SHA-256 of a file that may be a model or measured costs, None for others."""
        if path not in self._meant:
            self._meant[path] = False
            with suppress(InputError, OSError, ValueError):
                self._meant[path] = names_language_model(path) or _may_be_meant(path)
        return self.named.digest(str(path)) if self._meant[path] else None


def folders_of(result: Path | None) -> list[Path]:
    """Return the folder of a result, and those above it up to the root of its repository."""
    folder = Path() if result is None else result.parent
    above = [folder]
    while not (folder / ".git").exists():
        if folder.resolve().parent == folder.resolve():
            return above[:1]
        folder = folder.parent if folder.name not in ("", "..") else folder / ".."
        above.append(folder)
    return above


def _may_be_meant(path: Path) -> bool:
    from mtpp.api.inputs.file_contents import is_result, may_be_model

    return may_be_model(str(path)) and not is_result(str(path))


def _pointed_at(path: Path) -> str | None:
    """Return the SHA-256 that a pointer of Git LFS is to, None for other files."""
    with suppress(OSError):
        if path.stat().st_size <= _LONGEST_POINTER and (match := _POINTER.match(path.read_bytes())):
            return match[1].decode()
    return None
