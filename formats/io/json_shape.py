"""Rules of documents in the words of readers: every complaint carries a JSON pointer (RFC 6901).

Rules of :mod:`mtpp.document_shape` are followed by :func:`shaped`; here are those of values that only readers take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from typing import Any

from mtpp.document_shape import (
    Path,
    Rule,
    WrongKeys,
    WrongKind,
    anything,
    array,
    pointer,
    record,
    refuse,
    text,
    whatever,
)
from mtpp.errors import InputError, UnrecognisedInput
from mtpp.units import Exact, ceil_ratio
from mtpp.wording import did_you_mean

__all__ = [
    "SIZE_LIMIT",
    "at_least",
    "attributed",
    "check_header",
    "cost_number",
    "degree",
    "exact_number",
    "headed",
    "kind_of",
    "names",
    "pointer",
    "refuse_other_format",
    "shaped",
    "shown",
    "size_number",
    "table",
    "whole_bytes",
    "whole_key",
    "whole_number",
    "whole_size",
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
        said = repr(value)
        return said if len(said) <= _LONGEST_SHOWN else f"{said[:_LONGEST_SHOWN]}…"
    return kind_of(value)


def shaped(rule: Rule, value: Any, *path: str | int) -> Any:
    """Return *value*, which stands at *path*, if it follows a rule.

    Raises
    ------
    InputError
        If it does not: in the words of readers, which know similar keys and remedies.
    """
    try:
        rule(value, path)
    except WrongKind as fault:
        problem = f"must be {fault.expected}, not {kind_of(fault.value)}"
        raise InputError(problem, where=pointer(*fault.path) or "/") from None
    except WrongKeys as fault:
        raise _wrong_keys(fault) from None
    return value


def _wrong_keys(fault: WrongKeys) -> InputError:
    where = pointer(*fault.path) or "/"
    if fault.missing:
        return InputError(f"missing key {fault.missing[0]!r}", where=where, remedy="add it")
    key, known = fault.unknown[0], fault.known
    remedy = did_you_mean(key, known, f"known keys: {', '.join(known)}")
    return InputError(f"unknown key {shown(key)}", where=where, remedy=remedy)


def table(required: dict[str, Rule], optional: dict[str, Rule] | None = None, *, closed: bool = True) -> Rule:
    """Make the rule of an array of records, as :func:`mtpp.document_shape.record` makes them.

    A hundred thousand rows are looked at column by column, far faster than one by one, which finds the first fault.
    """
    each, rules = array(record(required, optional, closed=closed)), {**required, **(optional or {})}

    def check(value: Any, path: Path) -> None:
        if not (
            _have_keys(value, required, rules if closed else None)
            and all(_follows(value, *one) for one in rules.items())
        ):
            each(value, path)

    return check


def _have_keys(rows: Any, required: Collection[str], known: Collection[str] | None) -> bool:
    """Tell whether all rows are objects with all of the required keys, and none that is not known."""
    if not isinstance(rows, list) or not set(map(type, rows)) <= {dict}:
        return False
    shapes = set(map(tuple, rows))  # few: a program that writes graphs writes its keys in one order
    return all(set(keys).issuperset(required) and (known is None or set(keys).issubset(known)) for keys in shapes)


def _follows(rows: list[dict[str, Any]], key: str, rule: Rule) -> bool:
    """Tell whether a column follows a rule; types of values are looked at all at once, where they are enough."""
    types = _TYPES.get(rule)
    if types is not None:
        if not {type(row[key]) for row in rows if key in row} <= types:
            return False
        return rule is not names or set(map(type, chain.from_iterable(row[key] for row in rows if key in row))) <= {str}
    try:
        for row in rows:
            if key in row:
                rule(row[key], ())
    except InputError:
        return False
    return True


names = array(text)
"""Rule of an array of strings."""


def _module_name(value: Any, path: Path) -> None:
    text(value, path)
    if not all(part.isidentifier() for part in value.split(".")):
        refuse(f"{shown(value)} is no name of a Python module", path)


module_names = array(_module_name)
"""Names of Python modules, which no reader imports unless asked to."""


def exact_number(value: Any, path: Path) -> None:
    """Take a number as :func:`mtpp.formats.io.json_text.parse_json` makes them."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        remedy = "write it without quotes" if isinstance(value, str) else None
        refuse(f"must be a number, not {kind_of(value)}", path, remedy)


def whole_number(value: Any, path: Path) -> None:
    """Take a whole number (``8e3`` is)."""
    exact_number(value, path)
    if not isinstance(value, int):
        refuse("must be a whole number", path, "round it")


_TYPES: dict[Rule, set[type]] = {text: {str}, exact_number: {int, Fraction}, whole_number: {int}, names: {list}}
"""Types of all values that a rule takes; of an array if it takes its items."""


def at_least(least: int, below: int | None = None) -> Rule:
    """Make the rule of a whole number from *least* up to *below*, a power of two."""

    def check(value: Any, path: Path) -> None:
        whole_number(value, path)
        if value < least:
            refuse(f"must be at least {least}", path)
        if below is not None and value >= below:
            refuse(f"must be below 2^{below.bit_length() - 1}", path)

    return check


def cost_number(value: Any, path: Path) -> None:
    """Take a number that is not negative."""
    exact_number(value, path)
    if value < 0:
        refuse("a cost cannot be negative", path)


def whole_bytes(value: Exact) -> int:
    """Return a number of bytes that other programs may write with a fraction, rounded up."""
    return ceil_ratio(*value.as_integer_ratio())


def size_number(value: Any, path: Path) -> None:
    """Take a number of which :func:`whole_bytes` is a size."""
    exact_number(value, path)
    if not 0 <= whole_bytes(value) < SIZE_LIMIT:
        refuse("a size must be at least 0 and below 2^62 bytes", path)


def whole_size(value: Any, path: Path) -> None:
    """Take a whole number of bytes."""
    whole_number(value, path)
    size_number(value, path)


def whole_key(what: str, least: int | None = None) -> Rule:
    """Make the rule of a key that spells a whole number in the only way there is: ``"1"``, never ``"01"``."""

    def check(key: Any, path: Path) -> None:
        digits = key.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < _KEY_DIGITS) or str(int(key)) != key:
            refuse(f"{shown(key)} is not {what}", path, "write it as a whole number in quotes")
        if least is not None and int(key) < least:
            refuse(f"{what} must be at least {least}", path)

    return check


degree = whole_key("a degree of tensor parallelism", least=1)
"""Rule of a key that is a degree of tensor parallelism."""


def headed(name: str, version: int, required: dict[str, Rule], optional: dict[str, Rule] | None = None) -> Rule:
    """Make the rule of a document of a format and a version with these keys beside; those two are looked at first."""
    rule = record({"format": whatever, "version": whatever, **required}, optional)

    def check(value: Any, path: Path) -> None:
        check_header(value, name, version)
        rule(value, path)

    return check


def refuse_other_format(document: Any, name: str, expected: str) -> None:
    """Refuse a document that says that it is in another format than the one of that name."""
    found = document.get("format") if isinstance(document, dict) else None
    if isinstance(found, str) and found != name:
        raise UnrecognisedInput(f"the format is {shown(found)}", where="/format", remedy=f"give {expected}")


def check_header(document: Any, name: str, *versions: int) -> dict[str, Any]:
    """Check that a document is an object with the given ``format`` and one of the versions as its ``version``."""
    header: dict[str, Any] = shaped(anything, document)
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
