"""Rules of documents, put together from rules of their parts: whatever is malformed is named by its JSON pointer.

Readers of formats and the independent verifier (:mod:`mtpp.checker`) each declare the shape of a document with them: so
this module imports errors alone.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from mtpp.errors import InputError

Path = tuple[str | int, ...]
Rule = Callable[[Any, Path], None]
"""Returns if a value is well-formed, raises InputError at its path if not."""

_SIGNED_LIMIT = 2**127
_MOST_DECIMALS = 1000


def pointer(*path: str | int) -> str:
    """Write a JSON pointer (RFC 6901): ``pointer("ops", 3)`` is ``/ops/3``; the whole document is the empty string."""
    text = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
    # JSON can hold lone surrogates, which no terminal takes.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def refuse(problem: str, path: Path, remedy: str | None = None) -> NoReturn:
    """Raise InputError at *path*."""
    raise InputError(problem, where=pointer(*path) or None, remedy=remedy)


def _shown(value: Any) -> str:
    # Never repr() of a container: it may be nested deeper than the interpreter's stack.
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    names = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return names[value]
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


class WrongKind(InputError):
    """A value of another kind than its rule takes: *expected*, such as ``an object``."""

    def __init__(self, expected: str, value: Any, path: Path) -> None:
        super().__init__(f"expected {expected}, found {_shown(value)}", where=pointer(*path) or None)
        self.expected, self.value, self.path = expected, value, path


class WrongKeys(InputError):
    """An object that lacks required keys, or has keys that are not known."""

    def __init__(self, value: dict[str, Any], path: Path, required: Collection[str], known: Collection[str]) -> None:
        self.unknown = [key for key in value if key not in known]
        self.missing = [key for key in required if key not in value]
        self.known, self.path = list(known), path
        at = pointer(*path, [*self.unknown, *self.missing][0])
        if self.unknown:
            super().__init__("unknown key", where=at, remedy=f"the keys are {', '.join(known)}")
        else:
            super().__init__("missing key", where=at)


def record(required: dict[str, Rule], optional: dict[str, Rule] | None = None, *, closed: bool = True) -> Rule:
    """Make the rule for an object with exactly these keys; others are passed over if it is not *closed*."""
    rules = {**required, **(optional or {})}

    def check(value: Any, path: Path) -> None:
        anything(value, path)
        if not (required.keys() <= value.keys() and (rules.keys() >= value.keys() or not closed)):
            raise WrongKeys(value, path, required, rules if closed else {**rules, **value})
        for key, item in value.items():
            if key in rules:
                rules[key](item, (*path, key))

    return check


def array(rule: Rule) -> Rule:
    """Make the rule for an array whose items all follow *rule*."""

    def check(value: Any, path: Path) -> None:
        any_array(value, path)
        for i, item in enumerate(value):
            rule(item, (*path, i))

    return check


def items(*rules: Rule) -> Rule:
    """Make the rule for an array of so many items, each with a rule of its own."""

    def check(value: Any, path: Path) -> None:
        any_array(value, path)
        if len(value) != len(rules):
            refuse(f"expected {len(rules)} items, found {len(value)}", path)
        for i, (rule, item) in enumerate(zip(rules, value, strict=True)):
            rule(item, (*path, i))

    return check


def mapping(rule: Rule, key_rule: Rule | None = None) -> Rule:
    """Make the rule for an object whose values all follow *rule*, and whose keys may be any or follow *key_rule*."""

    def check(value: Any, path: Path) -> None:
        anything(value, path)
        for key, item in value.items():
            if key_rule is not None:
                key_rule(key, (*path, key))
            rule(item, (*path, key))

    return check


def nullable(rule: Rule) -> Rule:
    """Make the rule that also takes null."""

    def check(value: Any, path: Path) -> None:
        if value is not None:
            rule(value, path)

    return check


def whole(minimum: int = 0, below: int = 2**63) -> Rule:
    """Make the rule for an integer from *minimum* up to *below*, a power of two, written as ``5``, not ``5.0``."""

    def check(value: Any, path: Path) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(f"expected a whole number, found {_shown(value)}", path)
        if not minimum <= value < below:
            refuse(
                f"{_shown(value)} is out of range",
                path,
                f"it must be at least {minimum} and below 2^{below.bit_length() - 1}",
            )

    return check


def signed(value: Any, path: Path) -> None:
    """Take an integer of up to 127 bits, of either sign, written as one."""
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(f"expected a whole number, found {_shown(value)}", path)
    if abs(value) >= _SIGNED_LIMIT:
        refuse(f"{_shown(value)} is out of range", path, "it must be below 2^127 in magnitude")


def signed_rows(value: Any, path: Path) -> None:
    """Take an array of arrays of :func:`signed` integers: proofs have millions of them, so paths are made when due."""
    any_array(value, path)
    for i, row in enumerate(value):
        plain = type(row) is list and all(type(item) is int and abs(item) < _SIGNED_LIMIT for item in row)
        if not plain:
            array(signed)(row, (*path, i))


def choice(*values: str) -> Rule:
    """Make the rule for one of a few strings."""

    def check(value: Any, path: Path) -> None:
        if not isinstance(value, str) or value not in values:
            refuse(f"unknown value {_shown(value)}", path, f"use one of {', '.join(values)}")

    return check


def text(value: Any, path: Path) -> None:
    """Take any string."""
    if not isinstance(value, str):
        raise WrongKind("a string", value, path)


def flag(value: Any, path: Path) -> None:
    """Take true or false."""
    if not isinstance(value, bool):
        raise WrongKind("true or false", value, path)


def whatever(_value: Any, _path: Path) -> None:
    """Take any value, to be looked at later."""


def anything(value: Any, path: Path) -> None:
    """Take an object with any content, which is not looked at."""
    if not isinstance(value, dict):
        raise WrongKind("an object", value, path)


def any_array(value: Any, path: Path) -> None:
    """Take an array with any content, which is not looked at."""
    if not isinstance(value, list | tuple):
        raise WrongKind("an array", value, path)


def number(value: Any, path: Path) -> None:
    """Take a finite number of any kind that is at least zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        refuse(f"expected a number, found {_shown(value)}", path)
    finite = value.is_finite() if isinstance(value, Decimal) else not isinstance(value, float) or math.isfinite(value)
    if not finite:
        refuse(f"{_shown(value)} is not finite", path)
    if value < 0:
        refuse(f"{_shown(value)} is negative", path)
    if value > sys.float_info.max:
        refuse(f"{_shown(value)} is out of range", path)


def exact_cost(value: Any, path: Path) -> None:
    """Take a number that stands for exactly one rational: an integer, Decimal or Fraction, at least zero."""
    number(value, path)
    if isinstance(value, float):
        refuse(f"{_shown(value)} has been rounded", path, "read JSON numbers as decimals")
    # The integers behind 1e-999999999 would fill the memory.
    if isinstance(value, Decimal) and int(value.as_tuple().exponent) < -_MOST_DECIMALS:
        refuse(f"{_shown(value)} has too many decimals", path)


def sha256(value: Any, path: Path) -> None:
    """Take a SHA-256 in lower-case hexadecimal."""
    if not isinstance(value, str) or re.fullmatch("[0-9a-f]{64}", value) is None:
        refuse(f"{_shown(value)} is no SHA-256 in 64 lower-case hexadecimal digits", path)


def tagged(format_name: str, required: dict[str, Rule], optional: dict[str, Rule] | None = None) -> Rule:
    """Make the rule of a document of version 1 with these keys beside format and version.

    It looks at format and version before anything else, so that a wrong file is called that.
    """
    rule = record({"format": _constant, "version": _constant, **required}, optional)

    def check(value: Any, path: Path) -> None:
        if not isinstance(value, dict) or value.get("format") != format_name:
            at = (*path, "format") if isinstance(value, dict) else path
            refuse(f"not an {format_name} document", at, f'its "format" must be "{format_name}"')
        version = value.get("version")
        if type(version) is not int or version != 1:
            found = _shown(version) if "version" in value else "none"
            refuse(f"unknown version: {found}", (*path, "version"), "this program reads version 1")
        rule(value, path)

    return check


def _constant(_value: Any, _path: Path) -> None:
    """Take what :func:`tagged` has looked at."""
