"""How a table of certificates looks: the cells, and what they come to for each k."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.certificate_table import CertificateRow


def certificates_text(
    rows: Sequence[CertificateRow],
    output_format: str,
    *,
    as_fraction: bool = False,
    with_upper: bool = True,
    notes: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the table as ``table``, ``markdown`` or ``csv``.

    Parameters
    ----------
    rows
        Model by model, each with its k in order; at least one.
    as_fraction
        Bounds as fractions of the best partition (at most 1) in place of approximation ratios (at least 1).
    with_upper
        Whether there are partitions: ``certify``. Without, bounds alone: ``bound``.
    notes
        More lines of a name and a text for people, below the tables: limits, what was left out.
    """
    raise NotImplementedError


def certificates_json(rows: Sequence[CertificateRow]) -> str:
    """Return the ``mtpp-certificates`` document, version 1, a line per row and k."""
    raise NotImplementedError


def unmet_ratio(rows: Sequence[CertificateRow], ratio: Fraction | float) -> list[str]:
    """Return a line for each cell whose proven ratio is not at most *ratio*, compared exactly."""
    raise NotImplementedError
