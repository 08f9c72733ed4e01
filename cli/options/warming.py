"""``--warm-up-behind``: compilation that goes on after a command, for those who ask for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from mtpp.host.interrupts import INTERRUPTED

F = TypeVar("F", bound=Callable[..., Any])


def warm_up_behind_option(command: str) -> Callable[[F], F]:
    """Add ``--warm-up-behind`` to the function of a command, which does not see it: put it next to ``pass_context``."""

    def decorate(function: F) -> F:
        @wraps(function)
        def run(*arguments: Any, warm_up_behind: bool, **options: Any) -> Any:
            try:
                result = function(*arguments, **options)
            except click.exceptions.Exit as end:
                if warm_up_behind and end.exit_code != INTERRUPTED:
                    _start(command)
                raise
            if warm_up_behind:
                _start(command)
            return result

        return cast(F, option(run))

    option = click.option(
        "--warm-up-behind", is_flag=True, help="When done, compile in the background what later runs may need."
    )
    return decorate


def _start(command: str) -> None:
    from mtpp.api.warmup import warm_up_behind

    warm_up_behind([command])
