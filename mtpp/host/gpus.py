"""GPUs of the machine that mtpp runs on, as its driver lists them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from mtpp.errors import InputError

_PROGRAM = "nvidia-smi"
_TIMEOUT_S = 30


def listed_gpus(arguments: Sequence[str]) -> str | None:
    """Return the output of nvidia-smi; None where there is no such program.

    Raises
    ------
    InputError
        If it fails: there is a driver, and no answer of it.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"takes more than {_TIMEOUT_S} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
        raise InputError(f"cannot be asked: {problem}", source=_PROGRAM) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise InputError(f"fails with exit code {done.returncode}: {said[0] if said else ''}", source=_PROGRAM)
    return done.stdout
