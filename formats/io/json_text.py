"""JSON read strictly and written exactly: decimals stay decimals, and a doubtful document is refused at its fault."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Any

from mtpp.document_shape import pointer
from mtpp.errors import InputError
from mtpp.units import Exact, exact_decimal

DEEPEST = 500
"""Levels of nesting that are always read; no graph needs ten."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LARGEST_PLAIN_SCALE = 30
_SHORT_LITERAL = 30
_LINES_AT_ONCE = 1000
"""Lines that are written by one call of the standard encoder, which is much faster than one call for each."""

_POWERS = tuple(10**exponent for exponent in range(_SHORT_LITERAL))


def json_fault(error: ValueError | RecursionError) -> str:
    """Return what a text is that the standard decoder refused: ``no JSON: …``, or ``nested too deeply``."""
    return "nested too deeply" if isinstance(error, RecursionError) else f"no JSON: {str(error)[:200]}"


def parse_json(text: bytes, source: str) -> Any:
    """Parse a JSON document (RFC 8259) into dict, list, str, bool, None, int and Fraction, exactly.

    Parameters
    ----------
    text
        UTF-8; a byte order mark is skipped.
    source
        What messages call the document.

    Returns
    -------
    The document; a number is an ``int`` where it is whole (``1e3`` is), else a ``Fraction``, never a ``float``.

    Raises
    ------
    InputError
        On anything but UTF-8, a syntax error, a duplicate key, NaN or Infinity, a number beyond 10^±400 or
        of thousands of digits, half a surrogate pair, nesting deeper than the interpreter allows (about 900).

    Notes
    -----
    O(length) time. The place of an error is looked up only once there is one.
    """
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 text (byte {error.start} is 0x{text[error.start]:02x})",
            source=source,
            remedy="save it as UTF-8",
        ) from None
    try:
        with no_garbage_collection():
            document = _DECODER.decode(decoded)
    except json.JSONDecodeError as error:
        complete = error.pos < len(decoded.rstrip())
        raise InputError(
            f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}",
            source=source,
            where=line_and_column(decoded, error.pos),
            remedy=None if complete else "the text ends too early: is the file complete?",
        ) from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise first_fault(decoded, source) or InputError(f"not valid JSON: {error}", source=source) from None
    if _SURROGATE_ESCAPE.search(decoded) and (fault := first_fault(decoded, source)):
        raise fault
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate key")
    return result


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _decimal(literal: str) -> Exact:
    # Twice as fast as exact_decimal, for what nearly all decimals in graph files look like.
    whole, _, digits = literal.partition(".")
    if len(literal) > _SHORT_LITERAL or not digits.isdigit():
        return exact_decimal(literal)
    numerator, denominator = int(whole + digits), _POWERS[len(digits)]
    return Fraction(numerator, denominator) if numerator % denominator else numerator // denominator


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_decimal, parse_constant=_constant)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Switch the cycle collector off: reading makes millions of containers and no cycle, and it walks them all."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _NotPlain(Exception):
    """A value holds something that the standard encoder cannot write."""


def _not_plain(value: Any) -> Any:
    raise _NotPlain


_ENCODER = json.JSONEncoder(allow_nan=False, default=_not_plain)


def dump_json(value: Any) -> str:
    """Write a value on one line, ASCII only, keys in the order given; the inverse of :func:`parse_json`.

    A ``Fraction`` or ``Decimal`` is written as the decimal that it is; a ``float`` as the shortest decimal that reads
    back to it.

    Raises
    ------
    InputError
        On a fraction that is no finite decimal (1/3), on NaN or infinity, and on what JSON has no form for.
    """
    try:
        try:
            return _ENCODER.encode(value)
        except _NotPlain:
            return _dump_exactly(value)
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"cannot be written as JSON: {error}") from None
    except RecursionError:
        raise InputError("cannot be written as JSON: nested too deeply") from None


def _dump_exactly(value: Any) -> str:
    # Exact types first: graphs have millions of them, and isinstance on Fraction is slow.
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is int:
        return str(value)
    if kind is Fraction or kind is Decimal:
        return decimal_text(Fraction(value))
    if kind is dict:
        return "{" + ", ".join([f"{_key(key)}: {_dump_exactly(item)}" for key, item in value.items()]) + "}"
    if kind is list or kind is tuple:
        return "[" + ", ".join([_dump_exactly(item) for item in value]) + "]"
    try:
        return _ENCODER.encode(value)
    except _NotPlain:
        raise InputError(f"cannot be written as JSON: {value!r} is a {kind.__name__}") from None


def _key(key: Any) -> str:
    if type(key) is not str:
        raise InputError(f"cannot be written as JSON: the key {key!r} is no string")
    return encode_basestring_ascii(key)


def plain_number(value: Exact) -> int | float | Fraction:
    """Return a number as ``json.dumps`` takes it; a decimal of more digits than a float has stays a fraction."""
    if isinstance(value, int):
        return value
    try:
        shortest = float(value)
    except OverflowError:
        return value
    return shortest if Fraction(repr(shortest)) == value else value


def decimal_text(value: Fraction) -> str:
    """Write a fraction as a decimal literal without rounding: 25/2 is ``12.5``."""
    scale = _decimals(value.denominator)
    if scale is None:
        raise InputError(f"cannot be written as JSON: {value} is no finite decimal", remedy="use ticks")
    digits = value.numerator * 10**scale // value.denominator
    if scale > _LARGEST_PLAIN_SCALE:
        return f"{digits}e-{scale}"
    sign = "-" if digits < 0 else ""
    text = str(abs(digits)).rjust(scale + 1, "0")
    return f"{sign}{text[:-scale]}.{text[-scale:]}" if scale else f"{sign}{text}"


@lru_cache(maxsize=256)
def _decimals(denominator: int) -> int | None:
    scale, power = 0, 1
    while power % denominator:
        scale, power = scale + 1, power * 10
        # 2^a·5^b divides 10^max(a, b), and has more than max(a, b) binary digits.
        if scale > denominator.bit_length():
            return None
    return scale


def dump_lines(document: Mapping[str, Any], rows: Collection[str], indent: int = 0) -> str:
    """Write an object with one key per line, and one item per line under the keys in *rows*, for readable diffs.

    A value under *rows* that is an object whose own values are lists or objects to be spread in the same way (a
    graph inside a plan) is named by a key that contains the names of its rows: ``"graph"`` and ``"graph.ops"``.
    """
    pad = " " * (indent + 1)
    lines = []
    for key, value in document.items():
        inner = [row.removeprefix(f"{key}.") for row in rows if row.startswith(f"{key}.")]
        if inner and isinstance(value, Mapping):
            text = dump_lines(value, inner, indent + 1)
        elif key in rows and value and isinstance(value, Mapping):
            text = "{\n" + ",\n".join(_members_by_line(value, pad + " ")) + f"\n{pad}}}"
        elif key in rows and value and isinstance(value, list):
            text = "[\n" + ",\n".join(_items_by_line(value, pad + " ")) + f"\n{pad}]"
        else:
            text = dump_json(value)
        lines.append(f"{pad}{_key(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def _items_by_line(items: list[Any], pad: str) -> Iterator[str]:
    for begin in range(0, len(items), _LINES_AT_ONCE):
        some = items[begin : begin + _LINES_AT_ONCE]
        text = dump_json(some)[1:-1] if set(map(type, some)) == {dict} else ""
        if text and text.count("}, {") == len(some) - 1:  # between the objects, and nowhere else
            yield pad + text.replace("}, {", f"}},\n{pad}{{")
        else:
            yield from (pad + dump_json(item) for item in some)


def _members_by_line(value: Mapping[str, Any], pad: str) -> Iterator[str]:
    members = iter(value.items())
    while some := dict(islice(members, _LINES_AT_ONCE)):
        text = dump_json(some)[1:-1] if set(map(type, some)) == {str} else ""
        if text and text.count(', "') == len(some) - 1:
            yield pad + text.replace(', "', f',\n{pad}"')
        else:
            yield from (f"{pad}{_key(name)}: {dump_json(item)}" for name, item in some.items())


def line_and_column(text: str, offset: int) -> str:
    """Return where *offset* is for someone with an editor, counted from 1."""
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)}"


class _Level:
    """One object or array on the way from the root to the current token."""

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.keys: set[str] = set()
        self.place: str | int = 0
        self.expects_key = is_object


def first_fault(text: str, source: str) -> InputError | None:
    """Return the first duplicate key, bad number, half surrogate pair or excess nesting, with its place.

    Parameters
    ----------
    text
        Correct JSON up to that fault (the parser came that far).

    Notes
    -----
    O(length) time, and no recursion: nesting ten million deep is fine.
    """
    levels: list[_Level] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        problem, remedy = None, None
        if token in "{[":
            levels.append(_Level(is_object=token == "{"))
            if len(levels) > DEEPEST:
                problem, remedy = f"nested more than {DEEPEST} levels deep", "flatten it"
        elif token in "}]":
            levels.pop()
        elif token == ",":
            level = levels[-1]
            level.expects_key = level.is_object
            if isinstance(level.place, int):
                level.place += 1
        elif token == ":":
            levels[-1].expects_key = False
        elif token[0] == '"':
            value = json.loads(token, strict=False)
            problem = _string_problem(value)
            if levels and levels[-1].expects_key:
                levels[-1].place = value
                if value in levels[-1].keys:
                    problem, remedy = f"duplicate key {value!r}", "give it once"
                levels[-1].keys.add(value)
        elif token not in ("true", "false", "null"):
            problem = _number_problem(token)
        if problem:
            path = pointer(*(level.place for level in levels[:8]))
            where = f"{path} ({line_and_column(text, match.start())})"
            return InputError(problem, source=source, where=where, remedy=remedy)
    return None


def _string_problem(value: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return "half a surrogate pair is no character"
    return None


def _number_problem(token: str) -> str | None:
    if token in ("NaN", "Infinity", "-Infinity"):
        return f"{token} is not a number that JSON allows"
    try:
        if token.lstrip("-").isdigit():
            int(token)
        else:
            exact_decimal(token)
    except ValueError as error:
        return f"{token[:20]}… has {len(token)} digits" if len(token) > 60 else str(error)
    return None
