"""Results that can be verified among the files of folders, recognised by what is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from mtpp.errors import InputError

_FORMATS = rb'"mtpp-(?:plan|training-plan|certificates)"'
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*' + _FORMATS)
_ANYWHERE = re.compile(rb'"format"\s*:\s*' + _FORMATS)
_SUFFIXES = (".json", ".json.gz")


def result_files(paths: Iterable[str]) -> list[str]:
    """Return files as they are, and for folders the results in them and below, each file once.

    In folders, plans, training plans and tables of certificates in files ``*.json`` and ``*.json.gz`` count. Hidden
    files and folders are passed over, and links to folders are not followed.

    Raises
    ------
    InputError
        If there is no result in a folder: nothing would have been checked.
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
    """Return whether a file is a result; one whose keys another program has sorted is read whole to tell."""
    from mtpp.api.verification.request import MAX_RESULT_BYTES
    from mtpp.formats.io.json_text import parse_json
    from mtpp.formats.io.source import read_head, read_source
    from mtpp.formats.results.verifiable import verifiable

    with suppress(InputError):
        head = read_head(path)
        if _BEGINNING.match(head):
            return True
        if head.lstrip()[:1] == b"{":
            data = read_source(path, max_bytes=MAX_RESULT_BYTES).data
            if _ANYWHERE.search(data):
                verifiable(parse_json(data, path), path)
                return True
    return False
