"""Folders in which machine code is looked for, and the one in which new code is kept."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mtpp.solvers.machine_code.code_file import read_code, write_code

SUFFIX = ".kernel"
SHIPPED = Path(__file__).resolve().parent / "compiled"
"""Machine code that came with the package, for every processor of its architecture: see :mod:`.shipping`."""

BESIDE_SOURCE = Path(__file__).resolve().parent / "__pycache__"

_KEPT_VERSIONS = 4
"""Of a kernel and signature, in one folder: several installations and checkouts may share it."""


@dataclass(frozen=True)
class CodeName:
    """Name of a file of machine code.

    Attributes
    ----------
    kernel
        Module and name of the kernel, for people.
    source
        Digest of what it does and of what compiles it.
    target
        Digest of its signature and of the processor that it is for.
    """

    kernel: str
    source: str
    target: str

    @property
    def prefix(self) -> str:
        """Beginning of the names of all machine code of this kernel as it is now."""
        return f"{_plain(self.kernel)}-{self.source}-"

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.prefix}{self.target}{SUFFIX}"

    @property
    def versions(self) -> str:
        """Pattern of the names of all versions of this kernel for the same signature and processor."""
        return f"{_plain(self.kernel)}-*-{self.target}{SUFFIX}"


def _plain(kernel: str) -> str:
    return re.sub(r"[^\w.]", "", kernel)


@dataclass
class CodeFolders:
    """Folders of machine code, in the order in which they are looked into.

    Attributes
    ----------
    shipped
        For any processor, and never written; None if there is none.
    own
        For this processor: the first that can be written keeps new code.
    used
        Where all code that is found is copied to, None for nowhere: so that a package ships what its commands use.
    """

    shipped: Path | None
    own: tuple[Path, ...]
    used: Path | None = None
    _names: frozenset[str] | None = field(default=None, init=False, repr=False)

    def find_shipped(self, name: CodeName) -> bytes | None:
        """Return the machine code of that name that came with the package."""
        if self.shipped is None or name.file not in self._shipped_names():
            return None
        return read_code(self.shipped / name.file)

    def find_own(self, name: CodeName) -> bytes | None:
        """Return the machine code of that name that was kept here."""
        for folder in self.own:
            content = read_code(folder / name.file)
            if content is not None:
                if self.used is not None:
                    write_code(self.used / name.file, content)
                return content
        return None

    def keep(self, name: CodeName, content: bytes) -> bool:
        """Keep machine code in the first folder that can be written; tell whether there is one."""
        for folder in self.own:
            if write_code(folder / name.file, content):
                _forget_old(folder, name)
                return True
        return False

    def has_any(self, name: CodeName) -> bool:
        """Return whether there is machine code of a kernel for any signature."""
        if any(file.startswith(name.prefix) for file in self._shipped_names()):
            return True
        return any(file.startswith(name.prefix) for folder in self.own for file in _listed(folder))

    def _shipped_names(self) -> frozenset[str]:
        if self._names is None:
            self._names = frozenset(() if self.shipped is None else _listed(self.shipped))
        return self._names


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _forget_old(folder: Path, name: CodeName) -> None:
    """Remove the oldest versions of a kernel where there are many: its source has changed since."""
    with suppress(OSError):
        versions = sorted(folder.glob(name.versions), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in versions[_KEPT_VERSIONS:]:
            path.unlink()
