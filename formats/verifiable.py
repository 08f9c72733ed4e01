"""Documents that can be verified: plans, and tables of certificates."""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.formats import plan
from mtpp.formats.json_shape import attributed, check_header
from mtpp.formats.json_text import parse_json

CERTIFICATES = "mtpp-certificates"
VERSION = 1


def read_verifiable(data: bytes, source: str) -> dict[str, Any]:
    """Parse a plan or a table of certificates and check that it says it is one, nothing else.

    Returns
    -------
    The document, as :func:`mtpp.formats.plan.read_plan` returns it; its ``format`` says which it is.

    Raises
    ------
    InputError
        If it is not strict JSON, or neither of the two in version 1.
    """
    if b"{" not in data[:64]:
        remedy = "give what partition -o FILE or certify -o FILE wrote"
        raise InputError("neither a plan nor a table of certificates: no JSON object", source=source, remedy=remedy)
    document = parse_json(data, source)
    if isinstance(document, dict) and document.get("format") == CERTIFICATES:
        with attributed(source):
            return check_header(document, CERTIFICATES, VERSION)
    return plan.as_plan(document, source)


def is_table(document: dict[str, Any]) -> bool:
    """Tell whether it is a table of certificates."""
    return bool(document["format"] == CERTIFICATES)
