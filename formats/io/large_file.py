"""File too large to keep in memory, read in parts: an archive with gigabytes of weights."""

from __future__ import annotations

import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self, TypeAlias

from mtpp.errors import InputError


@dataclass(frozen=True)
class LargeFile:
    """A file, and what shows that it is still the one that was looked at first.

    Attributes
    ----------
    size
        In bytes.
    changed_ns
        Time of its last change, in nanoseconds.
    """

    path: Path
    size: int
    changed_ns: int

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return the file at a path as it is now."""
        try:
            with path.open("rb") as file:
                return cls._of(path, os.fstat(file.fileno()))
        except OSError as error:
            raise _unreadable(path, error) from None

    @classmethod
    def of_open(cls, path: Path, descriptor: int) -> Self | None:
        """Return the file that is open; None for what cannot be read twice, such as a pipe."""
        status = os.fstat(descriptor)
        return cls._of(path, status) if stat.S_ISREG(status.st_mode) else None

    @classmethod
    def _of(cls, path: Path, status: os.stat_result) -> Self:
        return cls(path, status.st_size, status.st_mtime_ns)

    def open(self) -> BinaryIO:
        """Open it for reading."""
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise _unreadable(self.path, error) from None
        if self._of(self.path, os.fstat(file.fileno())) != self:
            file.close()
            raise InputError("has changed since it was read", source=str(self.path), remedy="start again")
        return file


Stored: TypeAlias = bytes | LargeFile
"""Content in memory, or in its file."""


def opened(stored: Stored) -> BinaryIO:
    """Return content as a stream that can be read from anywhere.

    Raises
    ------
    InputError
        If its file cannot be read, or has changed.
    """
    return stored.open() if isinstance(stored, LargeFile) else io.BytesIO(stored)


def _unreadable(path: Path, error: OSError) -> InputError:
    problem = f"cannot be read: {error.strerror or error}"
    return InputError(problem, source=str(path), remedy="check the path and its permissions")
