"""Sizes of dimensions and of memory as parameters of use cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.api.parameters import quantity, shortened, text, whole
from mtpp.errors import InputError
from mtpp.formats.modelled.size_terms import AUTO, OTHERS

_LARGEST_SIZE = 10**18


def sizes(value: Any, parameter: str = "dims") -> dict[str, int | str]:
    """Return sizes of dimensions by name, each above zero; none of them for None.

    ``"auto"`` is the same as ``{"*": "auto"}``: all that is not named is proposed. ``{"*": 1}`` sets all of it.

    Raises
    ------
    InputError
        If it is no such mapping.
    """
    if value is None:
        return {}
    if isinstance(value, str) and value == AUTO:
        return {OTHERS: AUTO}
    if not isinstance(value, Mapping):
        raise InputError(
            f"{shortened(value)} is not a mapping", parameter=parameter, remedy='write {"batch": 1}, or "auto"'
        )
    return {
        text(name, parameter): AUTO
        if name == OTHERS and isinstance(size, str) and size == AUTO
        else whole(size, parameter, most=_LARGEST_SIZE)
        for name, size in value.items()
    }


def given_size(value: Any, parameter: str = "max_input_size") -> int:
    """Return a size in bytes, which has to be given.

    Raises
    ------
    InputError
        If it is none.
    """
    size = bytes_or_none(value, parameter)
    if size is None:
        raise InputError("None is no size", parameter=parameter, remedy='write "2GiB"')
    return size


def bytes_or_none(value: Any, parameter: str) -> int | None:
    """Return a size in bytes, given as such or as a text such as ``"2GiB"``; None for None.

    Raises
    ------
    InputError
        If it is neither.
    """
    from mtpp.units import parse_bytes

    return quantity(value, parameter, parse_bytes)
