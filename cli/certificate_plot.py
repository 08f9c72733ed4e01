"""Seconds of each method against the number of ops, as a picture and as CSV: the papers' Figures 4 and 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.certificate_table import CertificateRow


def check_plot(path: str) -> None:
    """Check that a picture can be drawn and written to *path*, with a CSV beside it, before the work.

    Raises
    ------
    InputError
        If the ending is none of ``.png``, ``.svg`` and ``.pdf``, matplotlib is missing, or the folder is not writable.
    """
    raise NotImplementedError


def write_plot(path: str, rows: Sequence[CertificateRow], time_limit_s: float | None = None) -> None:
    """Draw the picture, and write what it shows as CSV beside it, each whole or not at all."""
    raise NotImplementedError
