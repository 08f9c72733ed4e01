"""Strict JSON: what is refused and where, and what is written."""

from __future__ import annotations

import gc
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from mtpp.document_shape import pointer
from mtpp.errors import InputError
from mtpp.formats.io.json_text import DEEPEST, decimal_text, dump_json, dump_lines, parse_json

FAULTS = [
    ('{"a": [1, NaN]}', "x: /a/1 (line 1, column 11): NaN is not a number that JSON allows"),
    ('{"a": -Infinity}', "x: /a (line 1, column 7): -Infinity is not a number that JSON allows"),
    ('{"a": 1,\n "b": {"c": 1, "c": 2}}', "x: /b/c (line 2, column 16): duplicate key 'c'; give it once"),
    ('[{"a/b": {"~": 1e999}}]', "x: /0/a~1b/~0 (line 1, column 16): 1e999 is out of range"),
    ('[[], {}, ["\\ud800"]]', "x: /2/0 (line 1, column 11): half a surrogate pair is no character"),
    ("[" + "9" * 5000 + "]", "x: /0 (line 1, column 2): 99999999999999999999… has 5000 digits"),
    ('{"a" 1}', "x: line 1, column 6: not valid JSON: expecting ':' delimiter"),
    ("{} {}", "x: line 1, column 4: not valid JSON: extra data"),
    ('{"a":\n', "x: line 2, column 1: not valid JSON: expecting value; the text ends too early: is the file complete?"),
    ("\t\n", "x: line 2, column 1: not valid JSON: expecting value; the text ends too early: is the file complete?"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[message[3:40] for _, message in FAULTS])
def test_faults_are_placed(text: str, message: str) -> None:
    """Each message holds the pointer, the line and the column."""
    assert str(refusal(parse_json, text.encode(), "x")) == message


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_an_error_not_a_crash(opening: str) -> None:
    """A million levels take no stack, and the message says at which level reading stopped."""
    with pytest.raises(InputError, match=f"nested more than {DEEPEST} levels deep"):
        parse_json(opening.encode() * 10**6, "x")


def test_other_encodings_are_refused() -> None:
    """Latin-1 and UTF-16 are named as what they are not; a byte order mark does no harm."""
    assert parse_json(b"\xef\xbb\xbf[1]", "x") == [1]
    for data in ('["é"]'.encode("latin-1"), "[1]".encode("utf-16")):
        with pytest.raises(InputError, match="not UTF-8 text"):
            parse_json(data, "x")


def test_the_garbage_collector_is_switched_on_again() -> None:
    """Reading, successful or not, leaves the interpreter as it was."""
    assert gc.isenabled()
    parse_json(b"[1]", "x")
    with pytest.raises(InputError):
        parse_json(b"[1", "x")
    assert gc.isenabled()


def test_pairs_of_surrogates_are_one_character() -> None:
    """Only halves are refused."""
    assert parse_json(b'["\\ud83d\\ude00"]', "x") == ["\U0001f600"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.decimals(-(10**9), 10**9, places=6).map(Fraction) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_round_trip(value: Any) -> None:
    """What is written on one line is read back as it was, and other programs read it too."""
    text = dump_json(value)
    assert "\n" not in text
    assert text.isascii()
    assert parse_json(text.encode(), "x") == value
    json.loads(text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back(value: float) -> None:
    """A float is written as the shortest decimal that stands for it."""
    assert float(parse_json(dump_json([value]).encode(), "x")[0]) == value


@given(st.integers(-(10**30), 10**30), st.integers(0, 60))
def test_decimals_keep_all_their_digits(numerator: int, places: int) -> None:
    """Any finite decimal is written as itself, tiny ones with an exponent."""
    value = Fraction(numerator, 10**places)
    assert Fraction(decimal_text(value)) == value
    assert parse_json(decimal_text(value).encode(), "x") == value


@pytest.mark.parametrize(
    ("value", "text"), [(Fraction(-1, 8), "-0.125"), (Fraction(25, 2), "12.5"), (Fraction(1, 10**40), "1e-40")]
)
def test_decimal_text(value: Fraction, text: str) -> None:
    """Short decimals read as people write them."""
    assert decimal_text(value) == text


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), float("nan"), float("inf"), {"a": {1, 2}}, {"a": [Fraction(1, 2), b"x"]}, object()]
)
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    """The writer never rounds, and never writes what its reader refuses."""
    with pytest.raises(InputError, match="cannot be written as JSON"):
        dump_json(value)


def test_lines() -> None:
    """One key per line, one item per line below the keys named, nested objects included."""
    document = {"a": [1, 2], "b": {"x": 1}, "c": {"rows": [{"k": 1}, {"k": 2}], "d": []}, "rows": []}
    text = dump_lines(document, ("a", "b", "rows", "c.rows"))
    assert text.splitlines() == [
        "{",
        ' "a": [',
        "  1,",
        "  2",
        " ],",
        ' "b": {',
        '  "x": 1',
        " },",
        ' "c": {',
        '  "rows": [',
        '   {"k": 1},',
        '   {"k": 2}',
        "  ],",
        '  "d": []',
        " },",
        ' "rows": []',
        "}",
    ]
    assert parse_json(text.encode(), "x") == document


PIECES = st.sampled_from(["a", "}, {", ', "', '"', "\\", ", ", "é", "\n"])
NAMES = st.lists(PIECES, max_size=3).map("".join)
ROWS = st.recursive(
    st.integers() | NAMES | st.just(Fraction(1, 2)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(ROWS, max_size=4), st.dictionaries(NAMES, ROWS, max_size=4))
def test_every_row_has_a_line_of_its_own(items: list[Any], members: dict[str, Any]) -> None:
    """Whatever rows look like, each stands on one line, as it does alone."""
    lines = dump_lines({"items": items, "members": members}, ("items", "members")).splitlines()
    due = [f"  {dump_json(item)}" for item in items]
    due += [f"  {dump_json(name)}: {dump_json(item)}" for name, item in members.items()]
    assert [line.removesuffix(",") for line in lines if line.startswith("  ")] == due


def test_long_lists_are_written_whole() -> None:
    """Rows are written many at once; where one stretch ends and the next begins does not show."""
    document = {"items": [{"n": i} for i in range(2500)], "members": {f"m{i}": i for i in range(2500)}}
    text = dump_lines(document, ("items", "members"))
    assert parse_json(text.encode(), "x") == document
    assert text.count("\n") == 5006 - 1
    with pytest.raises(InputError, match="key 1 is no string"):
        dump_lines({"members": {"a": 1, 1: 2}}, ("members",))


def test_pointers_are_escaped() -> None:
    """Slashes and tildes in names follow RFC 6901."""
    assert pointer("ops", 3, "a/b~c") == "/ops/3/a~1b~0c"
