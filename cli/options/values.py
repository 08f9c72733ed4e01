"""Values of options that are texts with units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtpp.errors import InputError


def input_limit(text: str) -> int:
    """Read ``--max-input-size``, in bytes."""
    from mtpp.units import parse_bytes

    limit: int = option_value("--max-input-size", parse_bytes, text)
    return limit


def bytes_option(option: str, text: str | None) -> int | None:
    """Read an option that is a size, in bytes; None if it is not given."""
    from mtpp.units import parse_bytes

    size: int | None = option_value(option, parse_bytes, text)
    return size


def option_value(option: str, parse: Callable[[str], Any], text: str | None) -> Any:
    """Read an option's value; what is wrong with it is said of the option. None if it is not given."""
    if text is None:
        return None
    try:
        return parse(text)
    except InputError as error:
        place = ": ".join(part for part in (error.source, error.where) if part)
        raise InputError(error.problem, source=option, where=place or None, remedy=error.remedy) from None
