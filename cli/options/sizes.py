"""Options for what a model leaves open: sizes by ``--dim`` and ``--dims auto``, trips of loops by ``--trips``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from mtpp.cli.options.values import OneOf
from mtpp.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_AUTO = "auto"
_OTHERS = "*"
_DIM_DIGITS = 19
_TRIPS = ":trips"
"""Behind the name of a loop: the key of its trips among the sizes."""


def size_options(dim: str, auto: str) -> Callable[[F], F]:
    """Add ``--dim``, ``--dims auto`` and ``--trips``; *dim* and *auto* are the help of the first two."""

    def apply(function: F) -> F:
        proposed = click.option("--dims", "auto_dims", type=OneOf([_AUTO]), help=auto)
        given = click.option("--dim", "dims", multiple=True, metavar="NAME=VALUE", help=dim)
        counted = click.option(
            "--trips",
            "trips",
            multiple=True,
            metavar="NODE=VALUE",
            help="Trips of a loop of an ONNX model that neither it nor its sizes tell; costs count as many.",
        )
        return given(proposed(counted(function)))

    return apply


def sizes_of(options: Mapping[str, Any]) -> dict[str, int | str]:
    """Read ``--dim NAME=VALUE``, ``--dim '*=VALUE'``, ``--dims auto`` and ``--trips NODE=VALUE``.

    Raises
    ------
    InputError
        If one is malformed, given twice, its value is no whole number above zero, or all others are set as well as
        proposed.
    """
    sizes: dict[str, int | str] = {}
    for text in options["dims"]:
        name, size = _pair(text, "--dim", "NAME", "batch=1")
        _set(sizes, name, name, size, "--dim")
    for text in options["trips"]:
        loop, count = _pair(text, "--trips", "NODE", "while_loop=64")
        _set(sizes, f"{loop}{_TRIPS}", loop, count, "--trips")
    if options["auto_dims"] is not None:
        if _OTHERS in sizes:
            raise InputError(
                f"auto proposes what --dim {_OTHERS}={sizes[_OTHERS]} sets already",
                source="--dims",
                remedy="leave one of them out",
            )
        sizes[_OTHERS] = _AUTO
    return sizes


def _pair(text: str, flag: str, metavar: str, example: str) -> tuple[str, int]:
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value.strip().isdecimal() or not value.strip().strip("0"):
        raise InputError(
            f"{text!r} is not {metavar}=VALUE with a whole number above zero", source=flag, remedy=f"write {example}"
        )
    if len(value) >= _DIM_DIGITS:
        raise InputError(f"the value of {name!r} is too large", source=flag)
    return name, int(value)


def _set(sizes: dict[str, int | str], key: str, name: str, size: int, flag: str) -> None:
    if key in sizes:
        raise InputError(f"{name!r} is set twice", source=flag)
    sizes[key] = size
