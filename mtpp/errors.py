"""Every failure a user can cause or meet, each with the exit code that the command line gives it."""

from __future__ import annotations

from mtpp.terminal_safe import visible

_LONGEST = 900
"""Characters of a message: names in a graph may be of any length."""


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
    """

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        source: str | None = None,
        where: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.source = source
        self.where = where
        self.remedy = remedy
        super().__init__(problem)

    def __str__(self) -> str:
        """Return ``source: where: problem; remedy`` on one line that is safe to show, leaving out what is unknown."""
        place = [part for part in (self.source, self.where) if part]
        text = ": ".join([*place, self.problem])
        if self.remedy:
            text = f"{text}; {self.remedy}"
        text = visible(" ".join(text.split()))
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST * 2 // 3]} … {text[-_LONGEST // 3 :]}"


class InputError(MtppError):
    """A file, a graph or an option that cannot be used as it is (exit code 2)."""


class UnrecognisedInput(InputError):
    """A file whose content is in no format that is read (exit code 2)."""


class InvalidPartition(MtppError):
    """An assignment of ops to stages whose quotient graph has a cycle, or that misses ops (exit code 1)."""

    exit_code = 1


class Infeasible(MtppError):
    """No partition meets the limits asked for, or none was found; the text says which (exit code 1)."""

    exit_code = 1


class LimitReached(MtppError):
    """A limit on time or memory ended the work before there was any result (exit code 1)."""

    exit_code = 1


class InconsistentBound(MtppError):
    """A lower bound above an upper bound: a bug in this program, never the user's fault (exit code 1)."""

    exit_code = 1
