"""Completion of values in a shell, without an import of a solver or a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem[Any]]]


def names_completion(names: Iterable[str] | Callable[[], Iterable[str]]) -> Completion:
    """Return what completes a value to one of *names*, which may be asked for when a shell does."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        return items(names() if callable(names) else names, incomplete)

    return complete


def list_completion(names: Iterable[str]) -> Completion:
    """Return what completes the last of several names with commas between them; those before it are not offered."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [_item(f"{before}{comma}{name}") for name in names if name.startswith(last) and name not in taken]

    return complete


def items(names: Iterable[str], incomplete: str) -> list[CompletionItem[Any]]:
    """Return the names that begin like *incomplete*."""
    return [_item(name) for name in names if name.startswith(incomplete)]


def paths(incomplete: str) -> list[CompletionItem[Any]]:
    """Leave the word to the shell, which knows the files."""
    return [_item(incomplete, "file")]


def _item(value: str, kind: str = "plain") -> CompletionItem[Any]:
    from click.shell_completion import CompletionItem

    return CompletionItem(value, kind)
