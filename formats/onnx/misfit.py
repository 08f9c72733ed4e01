"""Operands that do not fit their operator: with other sizes they may, which no broken file offers."""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.formats.modelled.open_sizes import UnknownSize


class Misfit(InputError):
    """A node that cannot run with the sizes of the model (exit code 2)."""


def is_misfit(error: InputError) -> bool:
    """Say whether an error is about operands that do not fit."""
    return isinstance(error, Misfit) or (isinstance(error, UnknownSize) and error.misfit)
