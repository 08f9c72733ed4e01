"""The limit on the memory of a whole command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def memory_limit_option(more: str = "") -> Callable[[F], F]:
    """Add ``--memory-limit``, which holds for the whole process from here on; *more* ends its help."""
    return click.option(
        "--memory-limit", metavar="SIZE", callback=limit_memory,
        help=f"Of all processes together, at least 512MiB{more}.",
    )  # fmt: skip


def limit_memory(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Hold the process to a limit on memory from here on."""
    from mtpp.cli.options.values import bytes_option
    from mtpp.errors import InputError
    from mtpp.host.memory_limit import LEAST_BYTES, memory_limited

    if text is None or ctx.resilient_parsing:
        return text
    size = bytes_option("--memory-limit", text)
    assert size is not None
    if size < LEAST_BYTES:
        raise InputError(f"{text} is too little to work with", source="--memory-limit", remedy="give at least 512MiB")
    ctx.with_resource(memory_limited(size))
    return text
