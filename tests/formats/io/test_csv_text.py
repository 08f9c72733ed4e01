"""CSV: no cell is a formula, and every text comes back."""

from __future__ import annotations

import csv
import io
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.formats.io.csv_text import csv_rows, csv_text, escaped, unescaped

TEXTS = st.text() | st.text(alphabet="=+-@'\t\r\n ＝＋－＠\u00a0\u200b\ufeff\",;a1", max_size=6)


@pytest.mark.parametrize(
    "text",
    [
        *("=1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=2", " =1", "  -x", "\u00a0=1", "\u3000=1", "\u200b=1"),
        *(
            "＝1",
            "＋1",
            "－1",
            "＠x",
            " ＝1",
            "﹣1",
            "\ufeff=1",
            "\tplain",
            "\rplain",
            " \n plain",
            "\x00a",
            "-",
            "'",
            "'a",
        ),
    ],
)
def test_what_would_run_has_an_apostrophe(text: str) -> None:
    """Formulas, behind blanks too, and what is hidden behind control characters."""
    assert escaped(text) == "'" + text
    assert unescaped(escaped(text)) == text


@pytest.mark.parametrize("text", ["", "a", "a=1", "1-2", "/layer/Conv", "|x", " a", "”=", "é", "–", "−1", "a'b", " 'a"])
def test_other_texts_stay(text: str) -> None:
    """Nothing is escaped that need not be."""
    assert escaped(text) == text == unescaped(text)


def test_numbers_stay() -> None:
    """Only texts are escaped."""
    text = csv_text(("a", "b", "c", "d"), [(-1.5, -2, None, Decimal("-0.5")), ("-1.5", True, "", "x")])
    assert text == "a,b,c,d\n-1.5,-2,,-0.5\n'-1.5,True,,x\n"


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=3), max_size=4))
def test_every_text_comes_back(rows: list[list[str]]) -> None:
    """Through a file, whatever is in the cells."""
    text = csv_text(("a", "b"), rows)
    assert list(csv_rows(text)) == [["a", "b"], *rows]
    for row in list(csv.reader(io.StringIO(text, newline="")))[1:]:
        for cell in row:
            seen = cell.lstrip().lstrip("\u200b\ufeff").lstrip()
            assert unicodedata.normalize("NFKC", seen)[:1] not in ("=", "+", "-", "@") or seen == ""


def test_a_quoted_cell_that_does_not_end() -> None:
    """It is no CSV."""
    with pytest.raises(ValueError, match="unexpected end of data"):
        list(csv_rows('a,b\n"x'))
