"""Compilation of inner loops ahead of their use."""

from __future__ import annotations

from collections.abc import Sequence


def warmup(commands: str | Sequence[str] | None = None) -> tuple[str, ...]:
    """Compile inner loops now, so that later calls start at once.

    An installed package has most of them compiled already, for the versions of Python and numba that it was built with.
    What is missing is compiled for this processor, and kept beside the package, or in the user's cache folder where
    that cannot be written. Without any that is a minute's work the first time, and seconds after that.

    Parameters
    ----------
    commands
        Names of commands such as ``["partition", "verify"]``, or ``"partition,verify"``; those that have inner loops
        by default.

    Returns
    -------
    The commands whose inner loops are ready.

    Raises
    ------
    InputError
        If there is no such command, or it has no inner loops.

    Examples
    --------
    >>> warmup("simulate")
    ('simulate',)
    """
    from mtpp.solvers.warming import load_for

    names = names_of_commands() if commands is None else _commands(commands)
    load_for(names)
    return names


def names_of_commands() -> tuple[str, ...]:
    """Return the names of the commands that have inner loops."""
    from mtpp.solvers.warming import COMMANDS

    return tuple(COMMANDS)


def warm_up_behind(commands: str | Sequence[str]) -> bool:
    """Start to compile what *commands* may need in a process that goes on after this one; tell whether it was started.

    It is not where the package came with all of it, or where no process can be started.

    Raises
    ------
    InputError
        As :func:`warmup`.
    """
    from mtpp.host.child_process import start_detached
    from mtpp.solvers.machine_code.shipped import ships_code

    names = _commands(commands)
    if ships_code():
        return False
    try:
        start_detached("mtpp.api.warmup", "_warm_up", *names)
    except OSError:
        return False
    return True


def _warm_up(*commands: str) -> None:
    warmup(commands)


def _commands(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of commands, each once.

    Raises
    ------
    InputError
        If there is no such command, or none.
    """
    from mtpp.api import parameters
    from mtpp.errors import InputError

    known = names_of_commands()
    remedy = f"use some of {', '.join(known)}"
    names = tuple(dict.fromkeys(parameters.names(given, "commands")))
    if not names:
        raise InputError("names no command", parameter="commands", remedy=remedy)
    for name in names:
        if name not in known:
            shown = parameters.shortened(name)
            raise InputError(f"{shown} is no command that compiles anything", parameter="commands", remedy=remedy)
    return names
