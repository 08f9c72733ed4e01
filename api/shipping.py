"""Machine code that a package ships: of all that commands on samples call, compiled while it is built."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from pathlib import Path
from shutil import copyfile, rmtree
from tempfile import NamedTemporaryFile


def ship() -> tuple[int, int]:
    """Put the kernels of all commands into the folder of this package, for the processor that numba is set to.

    Code of earlier builds is taken from the folders that keep it, and what is compiled is kept there for later ones. A
    list beside it says what a package shipped; while all kernels are as they were then, no command is run again.

    Returns
    -------
    Number of files, and how many of them were compiled.
    """
    from mtpp.solvers.kernel_cache import BESIDE_SOURCE, SHIPPED, own_folders

    folder = next(filter(_can_be_written, own_folders()))
    listing = folder / f"shipped-{_all_kernels()}.txt"
    known = set(_files(folder))
    names = listing.read_text(encoding="utf-8").split() if listing.exists() else []
    if not names or not known.issuperset(names):
        names = _used_by_commands(folder)
        listing.write_text("\n".join(names), encoding="utf-8")
    SHIPPED.mkdir()
    for name in names:
        copyfile(folder / name, SHIPPED / name)
    rmtree(BESIDE_SOURCE, ignore_errors=True)
    return len(names), len(set(names) - known)


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        NamedTemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _all_kernels() -> str:
    """Return a digest of all kernels, of what compiles them, and of the command lines that call them."""
    from mtpp import solvers
    from mtpp.api.warmup import COMMANDS
    from mtpp.solvers.kernel_cache import compiler, digest
    from mtpp.solvers.kernel_stamp import kernel_stamp

    stamps = []
    for _, name, _ in pkgutil.walk_packages(solvers.__path__, f"{solvers.__name__}."):
        if ".kernels." in name:
            members = vars(import_module(name)).values()
            stamps += [kernel_stamp(one) for one in members if hasattr(one, "py_func") and one.__module__ == name]
    return digest(sorted(stamps), compiler(), COMMANDS)


def _files(folder: Path) -> list[str]:
    from mtpp.solvers.kernel_cache import SUFFIX

    return [path.name for path in folder.glob(f"*{SUFFIX}")]


def _used_by_commands(folder: Path) -> list[str]:
    """Run all command lines; return the names of the files of code that they took or made."""
    from mtpp.api.warmup import warmup

    with NamedTemporaryFile(dir=folder) as begin:
        warmup()
        since = Path(begin.name).stat().st_mtime_ns
        return sorted(name for name in _files(folder) if (folder / name).stat().st_mtime_ns >= since)


def main() -> None:
    """Do what :func:`ship` does; the last line on standard error says how that went."""
    try:
        total, compiled = ship()
    except RuntimeError as error:
        sys.exit(str(error))
    print(f"{total} inner loops are compiled ahead, {compiled} of them now", file=sys.stderr)
