"""Contents of inputs as callers give them: arrays by name, or a file of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.array_types import Array


def read_arrays(path: str) -> dict[str, Array]:
    """Read arrays by name; none that would have to be unpickled."""
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("one array without a name")
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"no arrays by name can be read: {error}", source=path, remedy="write it with numpy.savez(FILE, NAME=array)"
        ) from None


def given_arrays(inputs: str | Mapping[str, Array] | None) -> dict[str, Array]:
    """Return contents of inputs by name, read from their file if they are in one."""
    return read_arrays(inputs) if isinstance(inputs, str) else dict(inputs or {})
