"""Every failure a user can cause or meet, each with the exit code that the command line gives it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mtpp.terminal_safe import terminal_safe

_LONGEST = 900
"""Characters of a message: names in a graph may be of any length."""

_PARAMETER = re.compile("‹([a-z_]+)›")


class MtppError(Exception):
    """Base of all errors that are reported in one line instead of a traceback.

    Parameters
    ----------
    problem
        What is wrong, in a few words, without a trailing full stop.
    source
        The file (or ``-`` for standard input, or the option) that is at fault.
    where
        The place inside it: a JSON pointer, a tensor's name, a line number.
    remedy
        What the reader can do about it.
    parameter
        Name of the parameter that is at fault, where *source* would stand.

    Notes
    -----
    Texts name other parameters as ``‹time_limit›``: a front end such as the command line has names of its own for them;
    see :meth:`told`.
    """

    exit_code = 2

    longest = _LONGEST
    """Characters of the message; the middle of a longer one is left out."""

    def __init__(
        self,
        problem: str,
        *,
        source: str | None = None,
        where: str | None = None,
        remedy: str | None = None,
        parameter: str | None = None,
    ) -> None:
        self.problem = problem
        self.source = f"‹{parameter}›" if parameter is not None else source
        self.where = where
        self.remedy = remedy
        super().__init__(problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process whole, whatever parameters a class of errors takes."""
        return _restored, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        """Return ``source: where: problem; remedy`` on one line that is safe to show, leaving out what is unknown."""
        return self.told(str)

    @property
    def parameter(self) -> str | None:
        """The name of the parameter at fault, None if it is none."""
        match = _PARAMETER.fullmatch(self.source or "")
        return match and match[1]

    def told(self, name_of: Callable[[str], str]) -> str:
        """Return the same line with the names that another front end has for parameters."""
        place = [part for part in (self.source, self.where) if part]
        text = ": ".join([*place, self.problem])
        if self.remedy:
            text = f"{text}; {self.remedy}"
        text = terminal_safe(" ".join(renamed(text, name_of).split()))
        return text if len(text) <= self.longest else f"{text[: self.longest * 2 // 3]} … {text[-self.longest // 3 :]}"


def _restored(kind: type[MtppError], args: tuple[Any, ...], state: dict[str, Any]) -> MtppError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def renamed(text: str, name_of: Callable[[str], str] = str) -> str:
    """Return a message with the parameters that it names as ``‹time_limit›`` called what *name_of* says."""
    return _PARAMETER.sub(lambda match: name_of(match[1]), text)


class InputError(MtppError, ValueError):
    """A file, a graph or a parameter that cannot be used as it is (exit code 2)."""


class UnrecognisedInput(InputError):
    """A file whose content is in no format that is read (exit code 2)."""


class InvalidPartition(InputError):
    """An assignment of ops to stages whose quotient graph has a cycle, or that misses ops (exit code 1).

    The library says by which parameter or file it came.
    """

    exit_code = 1


class Deadlock(InputError):
    """Passes of a training pipeline that wait for each other, so that none of them ever starts (exit code 1).

    The library says by which parameter or file they came.
    """

    exit_code = 1


class FalseClaim(InputError):
    """A document that claims what is not so (exit code 1).

    The library says by which parameter or file it came.
    """

    exit_code = 1


class Infeasible(MtppError):
    """No partition meets the limits asked for, or none was found; the text says which (exit code 1)."""

    exit_code = 1


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the work before there was any result; a KeyboardInterrupt, so that loops around it end too."""


class LimitReached(MtppError):
    """A limit on time or memory ended the work before there was any result (exit code 1)."""

    exit_code = 1


class InconsistentResult(MtppError):
    """Two results of this program that contradict each other: a bug in it, never the user's fault (exit code 70).

    Parameters
    ----------
    problem
        Both of them.
    """

    exit_code = 70

    def __init__(self, problem: str) -> None:
        super().__init__(problem, remedy="this is a bug in mtpp, please report it with the model")


class InconsistentBound(InconsistentResult):
    """A lower bound above an upper bound (exit code 70)."""
