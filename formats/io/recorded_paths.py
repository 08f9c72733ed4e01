"""Paths of models in documents: relative to the document's folder in its file, to the working folder in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_NO_FILE = ("-", "<", "‹")
"""Beginnings of names of models that came from no file."""


def recorded_path(path: str | Path | None) -> str | None:
    """Return the path of a file as documents in memory have it; None for no file, or a name that is no text.

    It is relative to the working folder where the file is below that, absolute elsewhere, and has slashes.
    """
    text = "" if path is None else str(path)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # bytes of a name that are no UTF-8
        return None
    if not text or text.startswith(_NO_FILE):
        return None
    whole, here = Path(os.path.abspath(text)), Path.cwd()
    return (whole.relative_to(here) if here in whole.parents else whole).as_posix()


def relocated(document: Mapping[str, Any], file: str | os.PathLike[str]) -> dict[str, Any]:
    """Return a document for its file: paths of models are relative to the file's folder.

    Parameters
    ----------
    document
        A plan, a table, plans for several k, a manifest, or a simulation; its paths are relative to the working folder.
    file
        Path of the file that will hold it.
    """
    return _with_paths(document, lambda path: _seen_from(os.path.dirname(os.path.abspath(file)), path))


def located(document: Mapping[str, Any], file: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Return a document that was read from a file with paths as documents in memory have them.

    Parameters
    ----------
    file
        None for a document that comes from no file.
    """
    if file is None:
        return dict(document)
    folder = os.path.dirname(os.path.abspath(file))
    real = os.path.realpath(folder)  # where steps up begin
    return _with_paths(
        document, lambda path: recorded_path(os.path.join(real if ".." in path else folder, path)) or path
    )


def _with_paths(document: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a document whose paths are changed: those of its model and pipeline, of its rows, and of its plans."""
    found = dict(document)
    for key in ("model", "pipeline"):
        if isinstance(file := document.get(key), Mapping):
            found[key] = _changed(file, change)
    if rows := _records(document.get("rows")):
        found["rows"] = [_changed(row, change) for row in rows]
    if plans := _records(document.get("plans")):
        found["plans"] = [_with_paths(plan, change) for plan in plans]
    return found


def _records(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return a list of records, an empty one for anything else."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, Mapping) for one in value):
        return ()
    return value


def _changed(record: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    found = dict(record)
    for key in ("path", "costs_path"):
        if isinstance(path := record.get(key), str) and recorded_path(path) is not None:
            found[key] = change(path)
    if isinstance(adapters := record.get("adapters"), Sequence) and not isinstance(adapters, str):
        found["adapters"] = [change(path) if isinstance(path, str) else path for path in adapters]
    return found


def _seen_from(folder: str, path: str) -> str:
    """Return the path of a file relative to a folder; names stay as they are, be they links.

    Steps up are taken from the folders that links lead to, as the system takes them.
    """
    whole = Path(os.path.abspath(path))
    if Path(folder) in whole.parents:
        return whole.relative_to(folder).as_posix()
    place = os.path.join(os.path.realpath(whole.parent), whole.name)
    try:
        return Path(os.path.relpath(place, os.path.realpath(folder))).as_posix()
    except ValueError:  # on another drive
        return Path(path).as_posix()
