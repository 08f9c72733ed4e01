"""Documents that callers have in files or in memory: plans, tables and assignments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source

_METHODS = ("document", "to_document")
"""Methods by which results give their documents."""


def document_source(given: Any, parameter: str) -> tuple[str | Source, bool]:
    """Return the path of a document, or its text, and whether it is in memory as objects already.

    Parameters
    ----------
    given
        A path, bytes, a parsed document, or an object whose method ``document()`` or ``to_document()`` returns one.
    parameter
        Name by which the caller knows it; messages call a document by that which is in no file.
    """
    import hashlib

    from mtpp.api.parameters import path_text
    from mtpp.formats.io.json_text import dump_json
    from mtpp.formats.io.source import Source

    if isinstance(given, str | os.PathLike):
        return path_text(given, parameter), False
    in_memory = not isinstance(given, bytes | bytearray)
    if in_memory:
        try:
            data = dump_json(dict(_parsed(given))).encode()
        except InputError as error:
            raise InputError(error.problem, parameter=parameter, remedy=error.remedy) from None
    else:
        data = bytes(given)
    return Source(f"‹{parameter}›", data, hashlib.sha256(data).hexdigest()), in_memory


def _parsed(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, type):
        made = (getattr(given, method, None) for method in _METHODS)
        given = next((method() for method in made if callable(method)), given)
    if not isinstance(given, Mapping):
        remedy = "give a path, bytes, a parsed document, or what a function of mtpp returned"
        raise InputError(f"is no document, but a {type(given).__name__}", remedy=remedy)
    return given
