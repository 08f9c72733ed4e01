"""Machine code for a checkout, from the package that is installed beside its tests."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

COMPILED = Path("solvers", "compiled")


def take_shipped_code(checkout: Path) -> None:
    """Copy the machine code of an installed wheel into a checkout, which comes without and is what tests import.

    Files are named by what a kernel does. So none is ever out of date, and what was edited since is compiled.
    """
    target = checkout / COMPILED
    with suppress(OSError):  # a checkout that cannot be written is tested all the same
        for entry in sys.path:
            for source in Path(entry, "mtpp", COMPILED).glob("*"):
                if not (target / source.name).exists():
                    target.mkdir(exist_ok=True)
                    part = target / f"{uuid4().hex}.part"
                    part.write_bytes(source.read_bytes())
                    os.replace(part, target / source.name)
