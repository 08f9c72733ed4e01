"""Sizes that a model leaves open: what each stands for, what would fit, and the error that lists them all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.modelled.size_roles import Role
from mtpp.terminal_safe import shell_word
from mtpp.wording import first_of

FLAG = "‹dims›"
AUTO_FLAG = "‹auto_dims›"

_PLACES_SHOWN = 2
_ESTIMATES_SHOWN = 4


@dataclass(frozen=True)
class OpenSize:
    """A size that neither the model nor the caller says.

    Attributes
    ----------
    key
        What a caller names it by.
    places
        Tensors and axes that have it.
    proposal
        A size that fits; None where none is known.
    note
        What else is known of sizes that fit, such as ``in steps of 32``.
    """

    key: str
    places: tuple[tuple[str, int], ...]
    role: Role
    proposal: int | None = None
    note: str = ""

    def told(self) -> str:
        """Return its name and what it stands for, for people."""
        return f"{self.key!r} ({self.meaning()})"

    def meaning(self) -> str:
        """Return what it stands for, for people."""
        own = {f"{tensor}:{axis}" for tensor, axis in self.places}
        texts = [str(self.role)]
        if self.places and own != {self.key}:
            places = [f"axis {axis} of {tensor!r}" for tensor, axis in self.places[:_PLACES_SHOWN]]
            more = len(self.places) - len(places)
            texts.append(" and ".join(places) + (f" and {more} more" if more else ""))
        if self.note:
            texts.append(self.note)
        return ", ".join(texts)


class Basis(StrEnum):
    """Source of a size that the operators of a model do not settle."""

    ESTIMATED = "estimated, since only a run tells"
    DECLARED = "as the file declares"
    GIVEN = "as given"
    PROPOSED = "estimated, as proposed"


@dataclass(frozen=True)
class OpenedSize:
    """A size of a tensor inside a model that may differ from run to run, as costs count it.

    Attributes
    ----------
    key
        Name under which the caller gives it; empty if he does not.
    """

    size: int
    basis: Basis
    key: str = ""


class UnknownSize(InputError):
    """A tensor's size that neither the model nor the user says: running the model tells it (exit code 2).

    Attributes
    ----------
    misfit
        Whether the operands that are known do not fit the operator, so that no size of this tensor would help.
    inputs
        Inputs of the model as its file declares them: ``name``, ``shape`` with names of open sizes, and ``dtype``.
    """

    inputs: Sequence[Mapping[str, Any]] = ()

    def __init__(
        self,
        problem: str,
        *,
        source: str | None = None,
        where: str | None = None,
        remedy: str | None = None,
        misfit: bool = False,
    ) -> None:
        super().__init__(problem, source=source, where=where, remedy=remedy)
        self.misfit = misfit


class OpenSizes(UnknownSize):
    """Every size that a model leaves open, with what would fit (exit code 2).

    Parameters
    ----------
    why_none
        What stood in the way where nothing that was tried fits.
    beside
        What has to be told as well, of a tensor whose shape follows from none of these sizes.

    Attributes
    ----------
    obstacle
        Whatever stands in the way of proposals; empty where nothing does.
    """

    longest = 100_000
    """Characters of the message: it holds a command line, which must be whole."""

    def __init__(
        self, sizes: Sequence[OpenSize], source: str, *, why_none: str = "", beside: UnknownSize | None = None
    ) -> None:
        self.sizes = tuple(sizes)
        self._beside = "" if beside is None else beside.remedy or ""
        self.obstacle = why_none if beside is None else text_of(beside)
        count = "1 size is" if len(sizes) == 1 else f"{len(sizes)} sizes are"
        problem = f"{count} open: {', '.join(one.told() for one in sizes)}"
        if why_none:
            problem += f"; no sizes were found that fit ({why_none})"
        if beside is not None:
            problem += f"; beside that, {text_of(beside)}"
        super().__init__(problem, source=source, remedy=self._remedy("‹dims›"))

    def told(self, name_of: Callable[[str], str]) -> str:
        """Return the line with what to write, as the caller writes it: flags, or a parameter of Python."""
        self.remedy = self._remedy(name_of("dims"))
        return super().told(name_of)

    def _remedy(self, flag: str) -> str:
        fitting = {one.key: one.proposal for one in self.sizes if one.proposal is not None}
        complete = len(fitting) == len(self.sizes)
        if flag.startswith("-"):
            shown = [f"{flag} {shell_word(f'{one.key}={one.proposal or _ASK}')}" for one in self.sizes]
            remedy = f"set {'it' if len(shown) == 1 else 'them'}: {' '.join(shown)}"
            remedy += f", or take what is proposed: {AUTO_FLAG} auto" if complete else ""
        else:
            sizes = ", ".join(f"{one.key!r}: {one.proposal or _ASK}" for one in self.sizes)
            remedy = f"set {flag}={{{sizes}}}" + (f', or {flag}="auto"' if complete else "")
        return f"{remedy}; and {self._beside}" if self._beside else remedy


def told_estimates(sizes: Mapping[str, OpenedSize], proposed: Collection[str] = ()) -> list[str]:
    """Tell sizes that may differ from run to run, with those that costs rest on: a line for each basis of them.

    Parameters
    ----------
    sizes
        By ``TENSOR:AXIS``.
    proposed
        Keys of sizes that nobody gave.
    """
    names: dict[Basis, list[str]] = {}
    for place, one in sizes.items():
        basis = Basis.PROPOSED if one.key and one.key in proposed else one.basis
        names.setdefault(basis, []).append(f"{place} = {one.size}")
    return [f"{first_of(some, _ESTIMATES_SHOWN)}: {basis}; open in stages" for basis, some in names.items()]


def text_of(error: InputError) -> str:
    """Return where something is wrong, and what."""
    return ": ".join(part for part in (error.where, error.problem) if part)


_ASK = "…"


class Misfit(InputError):
    """A node that cannot run with the sizes of the model (exit code 2)."""


def is_misfit(error: InputError) -> bool:
    """Say whether an error is about operands that do not fit."""
    return isinstance(error, Misfit) or (isinstance(error, UnknownSize) and error.misfit)
