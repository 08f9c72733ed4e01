"""Machine code that a package ships: of all that commands on samples call, compiled while it is built."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import NamedTemporaryFile, TemporaryDirectory


def ship() -> tuple[int, int]:
    """Put the kernels of commands into the folder of this package, for the processor that numba is set to.

    What is compiled is kept in a folder of the user's, from which later builds take it. A list beside it says what a
    package shipped; while the solvers and the graphs that they work on are as they were then, no command is run again.

    Returns
    -------
    Number of files, and how many of them were compiled.

    Raises
    ------
    MtppError
        If a command fails.
    """
    from mtpp.formats.io.sink import write_text_atomically
    from mtpp.solvers.kernel_cache import SHIPPED

    with _folder() as folder:
        listing = folder / f"shipped-{_sources()}.txt"
        known = set(_files(folder))
        names = listing.read_text(encoding="utf-8").split() if listing.exists() else []
        if not names or not known.issuperset(names):
            names = _used_by_commands(folder)
            write_text_atomically(listing, "\n".join(names))
        SHIPPED.mkdir()
        for name in names:
            copyfile(folder / name, SHIPPED / name)
    return len(names), len(set(names) - known)


@contextmanager
def _folder() -> Iterator[Path]:
    """Give a folder of the user's for code of builds by this compiler; where that cannot be written, one that goes."""
    from mtpp.solvers.kernel_cache import compiler, digest, own_folders

    folder = own_folders()[0] / f"builds-{digest(compiler())}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        NamedTemporaryFile(dir=folder).close()
    except OSError:
        with TemporaryDirectory() as temporary:
            yield Path(temporary)
    else:
        yield folder


def _sources() -> str:
    """Return a digest of all that decides which kernels commands call, and with which types."""
    import mtpp
    from mtpp.api.warmup import COMMANDS, IN_WHEELS
    from mtpp.solvers import __file__ as solvers
    from mtpp.solvers.kernel_cache import digest

    folders = (Path(mtpp.__file__).parent / "inference", Path(mtpp.__file__).parent / "training", Path(solvers).parent)
    contents = [path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.py"))]
    return digest(contents, [COMMANDS[name] for name in IN_WHEELS])


def _files(folder: Path) -> list[str]:
    from mtpp.solvers.kernel_cache import SUFFIX

    return [path.name for path in folder.glob(f"*{SUFFIX}")]


def _used_by_commands(folder: Path) -> list[str]:
    """Run all command lines; return the names of the files of code that they took or made."""
    from mtpp.api.warmup import IN_WHEELS, warmup

    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    with NamedTemporaryFile(dir=folder) as begin:
        warmup(IN_WHEELS)
        since = Path(begin.name).stat().st_mtime_ns
        return sorted(name for name in _files(folder) if (folder / name).stat().st_mtime_ns >= since)


def main() -> None:
    """Do what :func:`ship` does; the last line on standard error says how that went."""
    from mtpp.errors import MtppError

    try:
        total, compiled = ship()
    except MtppError as error:
        sys.exit(str(error))
    print(f"{total} inner loops are compiled ahead, {compiled} of them now", file=sys.stderr)
