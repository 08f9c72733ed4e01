"""A folder of files that belong together: all of it appears at once, or nothing does."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mtpp.errors import InputError
from mtpp.host.interrupts import held


def check_folder(target: str | Path, ours: re.Pattern[str], *, force: bool = False) -> None:
    """Check that a folder of stages can be written to *target*, before the work.

    Parameters
    ----------
    ours
        Names of files that an earlier run may have written there.
    force
        Whether these may be replaced.
    """
    path, display = _resolved(target), str(target)
    if not display:
        raise InputError("names no folder", source="-o ''")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {str(path.parent)!r}", source=display, remedy="make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError("cannot be written: permission denied", source=display, remedy="choose another place")
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError("is a file", source=display, remedy="give the name of a folder")
    others = sorted(entry.name for entry in path.iterdir() if not ours.fullmatch(entry.name) or entry.is_dir())
    if others:
        raise InputError(
            f"holds other files, such as {others[0]!r}", source=display, remedy="give a new or empty folder"
        )
    if any(path.iterdir()) and not force:
        raise InputError("holds stages already", source=display, remedy="choose another folder, or ‹force›")


@contextmanager
def new_folder(target: str | Path, ours: re.Pattern[str], *, force: bool = False) -> Iterator[Path]:
    """Give an empty folder beside *target*, and put it there when the block ends well; else leave nothing behind.

    Parameters
    ----------
    ours, force
        As :func:`check_folder` takes them.

    Raises
    ------
    InputError
        As :func:`check_folder`, and if the disk is full or refuses.
    """
    check_folder(target, ours, force=force)
    path = _resolved(target)
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        draft.mkdir()
        yield draft
        _flush_folder(draft)
        check_folder(target, ours, force=force)  # it may have been filled meanwhile
        with held():
            _replace(path, draft)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", source=str(target), remedy="choose another place"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _resolved(target: str | Path) -> Path:
    return Path(os.path.realpath(target))


def _replace(path: Path, draft: Path) -> None:
    old = None
    if path.exists() and any(path.iterdir()):
        old = draft.with_suffix(".old")
        path.rename(old)
    try:
        draft.rename(path)  # over an empty folder as well
    except BaseException:
        if old is not None:
            old.rename(path)
        raise
    _flush_folder(path.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, content: bytes) -> None:
    """Write a new file, down to the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
