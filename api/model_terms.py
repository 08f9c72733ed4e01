"""Sizes of dimensions, and systems, as parameters of use cases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.api.parameters import path_text, quantity, shortened, whole
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.inference.system import System

_LARGEST_SIZE = 10**18


def sizes(value: Any, parameter: str = "dims") -> dict[str, int]:
    """Return sizes of dimensions by name, each above zero; none of them for None.

    Raises
    ------
    InputError
        If it is no such mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InputError(f"{shortened(value)} is no mapping from names to sizes", parameter=parameter)
    return {name: whole(size, parameter, most=_LARGEST_SIZE) for name, size in value.items()}


def bytes_or_none(value: Any, parameter: str) -> int | None:
    """Return a size in bytes, given as such or as a text such as ``"2GiB"``; None for None.

    Raises
    ------
    InputError
        If it is neither.
    """
    from mtpp.units import parse_bytes

    return quantity(value, parameter, parse_bytes)


def system_from(value: Any, parameter: str = "system") -> System:
    """Return a system: one, the name of a preset, or what a TOML file describes; None for the preset ``reference``.

    Raises
    ------
    InputError
        If it is none of these.
    """
    from mtpp.inference.system import DEFAULT_PRESET, System, load_system

    if isinstance(value, System):
        return value
    if value is None or isinstance(value, str | os.PathLike):
        return load_system(DEFAULT_PRESET if value is None else path_text(value, parameter))
    raise InputError(f"{shortened(value)} is no system", parameter=parameter, remedy="give a preset's name or a file")
