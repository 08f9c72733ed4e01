"""Tables of certificates, ``mtpp-certificates`` version 1, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.inference.certificate_table import CertificateRow

FORMAT = "mtpp-certificates"
VERSION = 1


def table_document(rows: Sequence[CertificateRow], summary: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a table of certificates as JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "rows": [row.to_document() for row in rows],
        "summary": [dict(entry) for entry in summary],
    }
