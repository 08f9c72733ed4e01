"""Checked access into a parsed JSON document; every complaint carries a JSON pointer (RFC 6901)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from mtpp.document_shape import pointer
from mtpp.errors import InputError
from mtpp.units import Exact, ceil_ratio

__all__ = [
    "SIZE_LIMIT",
    "attributed",
    "check_header",
    "check_keys",
    "kind_of",
    "pointer",
    "require_cost",
    "require_degree",
    "require_list",
    "require_number",
    "require_object",
    "require_size",
    "require_text",
    "require_whole",
    "require_whole_key",
    "shown",
]

SIZE_LIMIT = 2**62
"""No tensor and no op's parameters have as many bytes."""

_LONGEST_SHOWN = 60
_KEY_DIGITS = 19


@contextmanager
def attributed(source: str) -> Iterator[None]:
    """Add the name of the file to errors that only know the place inside it."""
    try:
        yield
    except InputError as error:
        error.source = error.source or source
        raise


def kind_of(value: Any) -> str:
    """Return what JSON calls a value: ``a string``, ``null``, and so on."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    for kinds, name in (((str,), "a string"), ((list,), "an array"), ((dict,), "an object")):
        if isinstance(value, kinds):
            return name
    return "a number"


def shown(value: Any) -> str:
    """Return a value for a message: strings and whole numbers as they are, the rest by kind."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        text = repr(value)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return kind_of(value)


def require_object(value: Any, where: str) -> dict[str, Any]:
    """Return *value* if it is an object."""
    if not isinstance(value, dict):
        raise InputError(f"must be an object, not {kind_of(value)}", where=where or "/")
    return value


def require_list(value: Any, where: str) -> list[Any]:
    """Return *value* if it is an array."""
    if not isinstance(value, list):
        raise InputError(f"must be an array, not {kind_of(value)}", where=where)
    return value


def require_text(value: Any, where: str) -> str:
    """Return *value* if it is a string."""
    if not isinstance(value, str):
        raise InputError(f"must be a string, not {kind_of(value)}", where=where)
    return value


def require_number(value: Any, where: str) -> Exact:
    """Return *value* if it is a number as :func:`mtpp.formats.io.json_text.parse_json` makes them."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        remedy = "write it without quotes" if isinstance(value, str) else None
        raise InputError(f"must be a number, not {kind_of(value)}", where=where, remedy=remedy)
    return value


def require_whole(value: Any, where: str) -> int:
    """Return *value* if it is a whole number (``8e3`` is)."""
    number = require_number(value, where)
    if not isinstance(number, int):
        raise InputError("must be a whole number", where=where, remedy="round it")
    return number


def require_cost(value: Any, where: str) -> Exact:
    """Return *value* if it is a number that is not negative."""
    number = require_number(value, where)
    if number < 0:
        raise InputError("a cost cannot be negative", where=where)
    return number


def require_size(value: Any, where: str) -> int:
    """Return *value*, a number of bytes that other programs may write with a fraction, rounded up."""
    size = ceil_ratio(*require_number(value, where).as_integer_ratio())
    if not 0 <= size < SIZE_LIMIT:
        raise InputError("a size must be at least 0 and below 2^62 bytes", where=where)
    return size


def require_whole_key(key: str, where: str, what: str) -> int:
    """Return the whole number that a key of an object spells in the only way there is: ``"1"``, never ``"01"``."""
    digits = key.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < _KEY_DIGITS) or str(int(key)) != key:
        raise InputError(f"{shown(key)} is not {what}", where=where, remedy="write it as a whole number in quotes")
    return int(key)


def require_degree(key: str, where: str) -> int:
    """Return the degree of tensor parallelism that a key spells: a whole number above zero."""
    what = "a degree of tensor parallelism"
    degree = require_whole_key(key, where, what)
    if degree < 1:
        raise InputError(f"{what} must be at least 1", where=where)
    return degree


def check_keys(row: Mapping[str, Any], where: str, required: Collection[str], optional: Collection[str] = ()) -> None:
    """Check that *row* has all required keys and no unknown ones."""
    for key in required:
        if key not in row:
            raise InputError(f"missing key {key!r}", where=where or "/", remedy="add it")
    known = [*required, *optional]
    for key in row:
        if key not in known:
            near = get_close_matches(key[:_LONGEST_SHOWN], known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            raise InputError(f"unknown key {shown(key)}", where=where or "/", remedy=remedy)


def check_header(document: Any, name: str, *versions: int) -> dict[str, Any]:
    """Check that a document is an object with the given ``format`` and one of the versions as its ``version``."""
    header = require_object(document, "")
    if "format" not in header:
        raise InputError("missing key 'format'", where="/", remedy=f'it must be "{name}"')
    if header["format"] != name:
        raise InputError(f"the format is {shown(header['format'])}", where="/format", remedy=f'it must be "{name}"')
    listed = " and ".join(map(str, versions))
    remedy = f"this program reads version{'s' if len(versions) > 1 else ''} {listed}"
    if "version" not in header:
        raise InputError("missing key 'version'", where="/", remedy=remedy)
    found = header["version"]
    if isinstance(found, bool) or found not in versions:
        raise InputError(f"{name} version {shown(found)} is not supported", where="/version", remedy=remedy)
    return header
