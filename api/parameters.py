"""Parameters of use cases: values of the wrong kind are refused at the door, by the parameter's name."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.ranges import MOST_STAGES

if TYPE_CHECKING:
    from mtpp.units import Exact


def whole(value: Any, parameter: str, *, least: int = 1, most: int | None = None) -> int:
    """Return a whole number from *least* to *most*; NumPy's are taken, truth values are not.

    Raises
    ------
    InputError
        If it is none, or out of this range.
    """
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


def whole_or_none(value: Any, parameter: str, *, least: int = 1, most: int | None = None) -> int | None:
    """Return what :func:`whole` does, and None for None."""
    return None if value is None else whole(value, parameter, least=least, most=most)


def stage_count(value: Any) -> int:
    """Return a number of stages.

    Raises
    ------
    InputError
        If it is no whole number from 1 to :data:`MOST_STAGES`.
    """
    return whole(value, "k", most=MOST_STAGES)


def deadline_of(seconds: Any, parameter: str = "time_limit_s") -> Deadline:
    """Return the moment that is so many seconds from now; never for None.

    Raises
    ------
    InputError
        If it is no finite number above zero.
    """
    if seconds is None:
        return Deadline()
    number = real(seconds)
    if number is None or not math.isfinite(number):
        raise InputError(f"{shortened(seconds)} is not a number of seconds", parameter=parameter)
    if number <= 0:
        raise InputError(f"{number:g} is not above zero", parameter=parameter, remedy="leave it out for no limit")
    return Deadline(number)


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


def exact(value: Any, parameter: str) -> Exact:
    """Return a number as it is: an int, a fraction, a float as it prints, or a decimal text.

    Raises
    ------
    InputError
        If it is none of them.
    """
    from fractions import Fraction

    from mtpp.units import exact_decimal

    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return value
    try:
        return exact_decimal(str(value))
    except ValueError:
        raise InputError(f"{shortened(value)} is not a number", parameter=parameter) from None


def quantity(value: Any, parameter: str, parse: Callable[[str], int], *, least: int = 1) -> int | None:
    """Return a quantity in its base unit: a number of them, or a text with a unit that *parse* reads; None for None.

    Raises
    ------
    InputError
        If it is neither, or no whole number of base units from *least* on.
    """
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return parse(value)
        except InputError as error:
            raise InputError(error.problem, parameter=parameter, where=error.where, remedy=error.remedy) from None
    number = real(value)
    if number is None or not math.isfinite(number) or number != math.floor(number):
        raise InputError(f"{shortened(value)} is neither a whole number nor a text with a unit", parameter=parameter)
    return whole(int(value), parameter, least=least, most=2**63 - 1)


def text(value: Any, parameter: str) -> str:
    """Return a text.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(value, str):
        raise InputError(f"{shortened(value)} is not a text", parameter=parameter)
    return value


def choice(value: Any, parameter: str, known: Sequence[str], noun: str | None = None) -> str:
    """Return one of a few texts.

    Raises
    ------
    InputError
        If it is another one, with those that are known; *noun* is what messages call them.
    """
    if not isinstance(value, str) or value not in known:
        problem = f"{shortened(value)} is unknown" if noun is None else f"unknown {noun} {shortened(value)}"
        raise InputError(problem, parameter=parameter, remedy=f"use one of {', '.join(known)}")
    return value


def listed(value: Any, parameter: str, one: Callable[[Any], int]) -> Sequence[int]:
    """Return whole numbers that *one* reads, of anything that holds some but a text.

    Raises
    ------
    InputError
        If it is something else.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{shortened(value)} is no list of whole numbers", parameter=parameter)
    return tuple(map(one, value))


def flag(value: Any, parameter: str) -> bool:
    """Return a truth value.

    Raises
    ------
    InputError
        If it is another thing that is true or false, as nearly all things are.
    """
    if not isinstance(value, bool):
        raise InputError(f"{shortened(value)} is neither True nor False", parameter=parameter)
    return value


def path_text(value: Any, parameter: str) -> str:
    """Return a path as text.

    Raises
    ------
    InputError
        If it is no path.
    """
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
    """Return names: of a sequence of them, or of one text with commas between them.

    Raises
    ------
    InputError
        If there are other things among them.
    """
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise InputError(f"{shortened(value)} is not a list of names", parameter=parameter)
    return tuple(text(name, parameter) for name in value)


def shortened(value: Any) -> str:
    """Return a value as messages show it."""
    shown = repr(value) if isinstance(value, str | bytes | int | float | None) else f"a {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
