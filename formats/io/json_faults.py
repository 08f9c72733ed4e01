"""Place of a fault in a JSON document, which a fast parser does not tell: a slow second look."""

from __future__ import annotations

import json
import re

from mtpp.document_shape import pointer
from mtpp.errors import InputError
from mtpp.units import exact_decimal

DEEPEST = 500
"""Levels of nesting that are always read; no graph needs ten."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


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
