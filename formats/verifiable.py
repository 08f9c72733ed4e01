"""Documents that can be verified: plans, tables of certificates, and plans for training."""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.formats import plan
from mtpp.formats.json_shape import attributed, check_header
from mtpp.formats.json_text import parse_json
from mtpp.training_plan import FORMAT as TRAINING_PLAN
from mtpp.training_plan import VERSION as TRAINING_PLAN_VERSION

CERTIFICATES = "mtpp-certificates"
VERSION = 1


def read_verifiable(data: bytes, source: str) -> dict[str, Any]:
    """Parse a plan of either kind or a table of certificates and check that it says it is one, nothing else.

    Returns
    -------
    The document, as :func:`mtpp.formats.plan.read_plan` returns it; its ``format`` says which it is.

    Raises
    ------
    InputError
        If it is not strict JSON, or none of the three in version 1.
    """
    if b"{" not in data[:64]:
        remedy = "give what partition -o FILE, certify -o FILE or plan -o FILE wrote"
        raise InputError("neither a plan nor a table of certificates: no JSON object", source=source, remedy=remedy)
    document = parse_json(data, source)
    if isinstance(document, dict) and document.get("format") == CERTIFICATES:
        with attributed(source):
            return check_header(document, CERTIFICATES, VERSION)
    if is_training_plan(document):
        with attributed(source):
            return check_header(document, TRAINING_PLAN, TRAINING_PLAN_VERSION)
    return plan.as_plan(document, source)


def is_training_plan(document: Any) -> bool:
    """Tell whether it is a training plan."""
    return isinstance(document, dict) and document.get("format") == TRAINING_PLAN


def is_table(document: dict[str, Any]) -> bool:
    """Tell whether it is a table of certificates."""
    return bool(document["format"] == CERTIFICATES)
