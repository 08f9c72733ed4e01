"""Models of results, found by SHA-256 in the folders of the results and in those above them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mtpp.errors import InputError
from mtpp.wording import first_of

_POINTER = re.compile(rb"version https://git-lfs\S*\noid sha256:([0-9a-f]{64})\n")
"""What stands in place of a large file where Git LFS has not fetched it."""

_LONGEST_POINTER = 1024
_FEW = 4
"""Folders that a message names."""


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
        self._max_bytes = max_bytes
        self._digests: dict[Path, str | None] = {}

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
        folders = [path for path in self._given if path.is_dir()]
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

        yield from (path for path in self._given if path.is_file())
        for folder in folders:
            with suppress(InputError):  # one that may not be listed holds nothing for us
                yield from sorted(files_of(folder), key=lambda path: not path.name.startswith(name))

    def _digest(self, path: Path) -> str | None:
        """Return the SHA-256 of a file that may be a model or measured costs, None for others."""
        from mtpp.formats.io.source import file_sha256

        if path not in self._digests:
            self._digests[path] = None
            with suppress(InputError, OSError, ValueError):
                if path.stat().st_size <= self._max_bytes and _may_be_meant(path):
                    self._digests[path] = file_sha256(str(path))
        return self._digests[path]


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
