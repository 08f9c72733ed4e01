"""Machine code that a package ships: compiled while it is built, for every processor of the architecture."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from mtpp.solvers.machine_code.code_folders import SHIPPED, SUFFIX
from mtpp.solvers.machine_code.shipped import write_note

_COMPILE = (
    "import gc, sys; gc.set_threshold(200_000, 20, 20); "  # compiling makes millions of objects and little garbage
    "from mtpp.solvers.warming import COMMANDS, load_for; "
    "load_for(COMMANDS, rare=False, backwards=sys.argv[1] == 'backwards')"
)
_COLLECT = (
    "import sys; from pathlib import Path; from mtpp.solvers.machine_code.kernel_cache import code_folders; "
    "from mtpp.solvers.warming import COMMANDS, load_for; "
    "code_folders().used = Path(sys.argv[1]); load_for(COMMANDS, rare=False)"
)

_ANY_PROCESSOR = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_DISABLE_INTEL_SVML": "1",  # a library that is not everywhere
}


def ship(package_path: str) -> int:
    """Compile the kernels of all commands into the folder of a package; return the number of files.

    Parameters
    ----------
    package_path
        Folder to import the package from, whose folder :data:`SHIPPED` is written.

    Raises
    ------
    RuntimeError
        If compiling fails, with the last line of what it said.

    Notes
    -----
    Two processes compile, from both ends of the list until they meet. Kernels that call others contain them. So once
    all are compiled, a process with that code at hand calls them once more, and only what it had to load is shipped.
    That shows as well that the code can be loaded.

    ``NUMBA_CACHE_DIR`` names a folder that keeps the code for later builds, which then compile what has changed.
    """
    with tempfile.TemporaryDirectory() as empty:
        folder = os.environ.get("NUMBA_CACHE_DIR") or empty
        settings = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        settings |= {**_ANY_PROCESSOR, "NUMBA_CACHE_DIR": os.path.abspath(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        settings["PYTHONPATH"] = os.pathsep.join([package_path, *filter(None, sys.path)])
        _run_all([[_COMPILE, direction] for direction in ("forwards", "backwards")], settings)
        _run_all([[_COLLECT, str(SHIPPED)]], settings)
    write_note(SHIPPED)
    return len(list(SHIPPED.glob(f"*{SUFFIX}")))


def _run_all(programs: Sequence[Sequence[str]], settings: dict[str, str]) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", *program],
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for program in programs
    ]
    ended = [(process, process.communicate()[1]) for process in processes]
    for process, said in ended:
        if process.returncode:
            *_, last = said.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
            raise RuntimeError(last)


def main(package_path: str) -> None:
    """Do what :func:`ship` does; where that fails, end the process with one line that says why."""
    try:
        ship(package_path)
    except RuntimeError as error:
        sys.exit(str(error))
