"""Files with measured times that a machine's devices name: each failure says file, device and machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.machine.machine import Machine


@contextmanager
def named_by(machine: Machine, costs: str, given: object) -> Iterator[None]:
    """Add the machine and the table of the first device that names a file to errors about the file.

    Parameters
    ----------
    costs
        Path of the file, as it was resolved.
    given
        Path of the machine file; a machine that was made otherwise is the parameter ``machine``.
    """
    try:
        yield
    except InputError as error:
        if not costs:
            raise
        name = next(name for name, one in zip(machine.names, machine.devices, strict=True) if one.costs == costs)
        place = f"/device/{list(dict.fromkeys(machine.names)).index(name)}/costs"
        own = ": ".join(part for part in (costs, error.where, error.problem) if part)
        at_fault = {"source": os.fspath(given)} if isinstance(given, str | os.PathLike) else {"parameter": "machine"}
        raise InputError(f"of {name!r}: {own}", where=place, remedy=error.remedy, **at_fault) from None
