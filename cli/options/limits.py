"""Limits of a whole command: the option for memory, and the share of it that a search may have."""

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


def search_memory(limit: object) -> int:
    """Return what an exhaustive search may keep in memory, in bytes: a share of what the limit leaves.

    Without a limit half of what is free.
    """
    from mtpp.host.free_memory import memory_budget
    from mtpp.host.memory_limit import memory_left, search_share

    left = memory_left() if limit is not None else None
    return memory_budget() if left is None else search_share(left)
