"""Atomic output files: they appear whole or not at all."""

from __future__ import annotations

import gzip
import os
import secrets
import stat
from pathlib import Path

from mtpp.errors import InputError
from mtpp.host.interrupts import held


def check_output(path: str | Path) -> None:
    """Check that a result can be written to *path*, before the work that makes the result."""
    target = _target(path)
    display = str(path)
    if target.is_dir():
        raise InputError("is a directory", source=display, remedy="give the name of a file")
    if not target.parent.is_dir():
        raise InputError(f"there is no directory {str(target.parent)!r}", source=display, remedy="make it first")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError("cannot be written: permission denied", source=display, remedy="choose another place")


def write_text_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a whole file or none: to a temporary file beside it, flushed to the disk, then renamed.

    Parameters
    ----------
    path
        A name that ends in ``.gz`` gets gzip (with no time stamp in it: equal content gives equal bytes).
        Devices and pipes (``/dev/stdout``) are written in place; a symbolic link is followed.
    content
        Text is written as UTF-8.

    Raises
    ------
    InputError
        If the file cannot be written; nothing is left behind then.
    """
    data = content.encode() if isinstance(content, str) else content
    if str(path).lower().endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    check_output(path)
    target = _target(path)
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            target.write_bytes(data)
        else:
            with held():
                _replace(target, data)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", source=str(path), remedy="choose another place"
        ) from None


def _target(path: str | Path) -> Path:
    """Return the file behind symbolic links; a device or pipe as given: the link to it may lead nowhere."""
    plain = Path(path)
    try:
        special = not stat.S_ISREG(plain.stat().st_mode) and not plain.is_dir()
    except OSError:
        special = False
    return plain if special else Path(os.path.realpath(plain))


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    # os.open, unlike tempfile, leaves the permissions to the umask.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
