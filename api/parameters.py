"""Parameters of use cases: values of the wrong kind are refused at the door, by the parameter's name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.array_types import Array


def whole(value: Any, parameter: str, *, least: int = 1, most: int | None = None) -> int:
    """Return a whole number from *least* to *most*; NumPy's are taken, truth values are not."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None:
        raise InputError(f"{shortened(value)} is not a whole number", parameter=parameter)
    if number < least or (most is not None and number > most):
        allowed = f"at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InputError(f"{number} is out of range", parameter=parameter, remedy=f"it must be {allowed}")
    return number


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, NumPy's, fractions and decimals included; truth values are none."""
    from decimal import Decimal
    from numbers import Real

    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def real(value: Any) -> float | None:
    """Return a number as a float, None for all that is no number, or is too large."""
    try:
        return float(value) if is_number(value) else None
    except (ValueError, OverflowError):
        return None


def text(value: Any, parameter: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise InputError(f"{shortened(value)} is not a text", parameter=parameter)
    return value


def choice(value: Any, parameter: str, known: Sequence[str], noun: str | None = None) -> str:
    """Return one of a few texts."""
    if not isinstance(value, str) or value not in known:
        problem = f"{shortened(value)} is unknown" if noun is None else f"unknown {noun} {shortened(value)}"
        remedy = did_you_mean(value, known, f"use one of {', '.join(known)}")
        raise InputError(problem, parameter=parameter, remedy=remedy)
    return value


def flag(value: Any, parameter: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise InputError(f"{shortened(value)} is neither True nor False", parameter=parameter)
    return value


def path_text(value: Any, parameter: str) -> str:
    """Return a path as text."""
    try:
        given = os.fspath(value)
    except TypeError:
        given = b""
    if not isinstance(given, str):
        raise InputError(f"{shortened(value)} is not a path", parameter=parameter)
    if not given:
        raise InputError("is empty", parameter=parameter, remedy="give the path of a file")
    return "./-" if given == "-" and not isinstance(value, str) else given


def names(value: Any, parameter: str) -> tuple[str, ...]:
    """Return names: of a sequence of them, or of one text with commas between them."""
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise InputError(f"{shortened(value)} is not a list of names", parameter=parameter)
    return tuple(text(name, parameter) for name in value)


def shortened(value: Any) -> str:
    """Return a value as messages show it."""
    shown = repr(value) if isinstance(value, str | bytes | int | float | None) else f"a {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


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
