"""Results that can be verified among the files of folders, recognised by what is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from mtpp.errors import InputError

_NAMES = ("mtpp-plan", "mtpp-training-plan", "mtpp-certificates")
_FORMATS = b'"(?:' + "|".join(_NAMES).encode() + b')"'
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*' + _FORMATS)
_ANYWHERE = re.compile(rb'"format"\s*:\s*' + _FORMATS)
_NAME = re.compile(r"(?:^|[._-])plan\.json(?:\.gz)?$")
"""Names that plans have, those of the hooks for pre-commit."""

_SUFFIXES = (".json", ".json.gz")


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
    from mtpp.api.verification.request import MAX_RESULT_BYTES
    from mtpp.formats.io.json_text import parse_json
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
