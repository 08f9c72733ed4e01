"""Options for the sizes that a model leaves open: ``--dim`` and ``--dims auto``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

import click

from mtpp.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_AUTO = "auto"
_OTHERS = "*"
_DIM_DIGITS = 19


class SizeOptions(TypedDict):
    """Values of :func:`size_options`."""

    dims: tuple[str, ...]
    auto_dims: str | None


def size_options(dim: str, auto: str) -> Callable[[F], F]:
    """Add ``--dim`` and ``--dims auto``; *dim* and *auto* are their help."""

    def apply(function: F) -> F:
        proposed = click.option("--dims", "auto_dims", type=click.Choice([_AUTO]), help=auto)
        given = click.option("--dim", "dims", multiple=True, metavar="NAME=VALUE", help=dim)
        return given(proposed(function))

    return apply


def sizes_of(options: Mapping[str, Any]) -> dict[str, int | str]:
    """Read ``--dim NAME=VALUE``, ``--dim '*=VALUE'`` and ``--dims auto``.

    Raises
    ------
    InputError
        If one is malformed, given twice, its value is no whole number above zero, or all others are set as well as
        proposed.
    """
    sizes: dict[str, int | str] = {}
    for text in options["dims"]:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value.strip().isdecimal() or not value.strip().strip("0"):
            raise InputError(
                f"{text!r} is not NAME=VALUE with a whole number above zero", source="--dim", remedy="write batch=1"
            )
        if name in sizes:
            raise InputError(f"{name!r} is set twice", source="--dim")
        if len(value) >= _DIM_DIGITS:
            raise InputError(f"the value of {name!r} is too large", source="--dim")
        sizes[name] = int(value)
    if options["auto_dims"] is not None:
        if _OTHERS in sizes:
            raise InputError(
                f"auto proposes what --dim {_OTHERS}={sizes[_OTHERS]} sets already",
                source="--dims",
                remedy="leave one of them out",
            )
        sizes[_OTHERS] = _AUTO
    return sizes
