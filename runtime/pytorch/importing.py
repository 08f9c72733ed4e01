"""Python modules of users, imported where they ask for it: functions that build models, operators of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module, invalidate_caches
from typing import Any

from mtpp.errors import InputError
from mtpp.runtime.pytorch.library import first_line, pytorch

_ELSEWHERE = "run mtpp in the folder that it is in, or install it"


def import_registering(modules: Iterable[str]) -> None:
    """Import modules that register operators with PyTorch.

    Raises
    ------
    InputError
        If there is no such module, or importing it fails.
    """
    with searching():
        for name in modules:
            pytorch()
            try:
                imported(name, "", name.removesuffix(".py"))
            except InputError as error:
                raise InputError(
                    error.problem, parameter="imports", where=name, remedy=error.remedy
                ) from error.__cause__


def nothing_to_register(source: str) -> InputError:
    """Return the error of modules that are given for models that PyTorch does not run."""
    problem = f"registers operators with PyTorch, which does not run {source}"
    return InputError(problem, parameter="imports", remedy="leave it out")


def imported(module: str, source: str, without_suffix: str) -> Any:
    """Import a module; *without_suffix* is to be written in place of the name of its file."""
    invalidate_caches()
    try:
        return import_module(module)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        if not isinstance(error, ModuleNotFoundError) or error.name is None:
            raise failure("importing it", error, source) from error
        if not f"{module}.".startswith(f"{error.name}."):
            problem = f"it imports {error.name!r}, which is not installed"
            raise InputError(problem, source=source, remedy="install that, or run mtpp where it is") from None
        remedy = f"write {without_suffix}" if module.endswith(".py") else _ELSEWHERE
        raise InputError(f"there is no module {module!r}", source=source, remedy=remedy) from None


def failure(what: str, error: BaseException, source: str) -> InputError:
    """Return in one line that code of the user's failed."""
    text, kind = first_line(error), type(error).__name__
    problem = f"{what} raised {kind}" + ("" if text == kind else f": {text}")
    return InputError(problem, source=source, remedy="call it in Python to see where")


@contextmanager
def searching() -> Iterator[None]:
    """Search the current folder for modules, and keep standard output free of what is printed."""
    sys.path.insert(0, "")
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if "" in sys.path:
            sys.path.remove("")
