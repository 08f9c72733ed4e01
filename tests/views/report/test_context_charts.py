"""Charts of tokens per second and sequences against the context, in a browser."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path

import pytest
from headless import Browser

from mtpp.views.report.context_section import ContextCurve, ContextPoint, context_section
from mtpp.views.report.page import Made, Page, PageVerdict, page_html

CONTEXTS = [*(2**i for i in range(10, 18)), 100_000]


def curve() -> ContextCurve:
    """Return figures of stages that hold their sequences up to 32k, planned for 30,000."""
    points = [
        ContextPoint(context, 10**6 / context, 0, 1, context, 2**15, context <= 2**15, 2**18 // context, 2e6 / context)
        for context in sorted(CONTEXTS)
    ]
    points[-1] = replace(points[-1], best_tokens_per_s=None, sequences=0)
    return ContextCurve("decode", 2**15, 8, 2, 2**15 + 100, points, searched=True)


def page_of(path: Path, shown: ContextCurve) -> None:
    """Write a page with the section alone."""
    charts: dict[str, object] = {}
    section = context_section(shown, charts)
    page = Page("model", "plan", PageVerdict("ok", "h", "s"), [], [section], charts)
    path.write_text(page_html(page, Made("2026-01-01 00:00 UTC", "mtpp report")))


@pytest.mark.parametrize("width", [1280, 400])
def test_lines_and_marks(browser: Browser, tmp_path: Path, width: int) -> None:
    """Lines go through all points, dashed from the last that fits; both marks have names on lines of their own."""
    shown = curve()
    page_of(tmp_path / "page.html", shown)
    browser.open(tmp_path / "page.html", width=width)
    fitting = [point for point in shown.points if point.fits]
    rates = [point.tokens_per_s for point in shown.points]
    assert browser.columns("tokens", "stages")["ys"] == [rates[: len(fitting)]]
    assert browser.columns("tokens", "beyond")["ys"] == [rates[len(fitting) - 1 :]]
    assert browser.columns("tokens", "best")["ys"] == [[2 * rate for rate in rates[:-1]]]
    assert browser.columns("tokens", "stages")["xs"][0] == [log2(point.context) - 10 for point in fitting]
    assert browser.columns("sequences", "stages")["ys"] == [[log2(p.sequences) for p in shown.points if p.sequences]]
    assert browser.columns("tokens", "largest")["xs"][0][0] == pytest.approx(log2(2**15 + 100) - 10)
    offsets = browser.run(
        "const root = Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === 'tokens');"
        "return ['planned-name', 'largest-name'].map((name) =>"
        " root.renderers.find((one) => one.name === name).glyph.y_offset)"
    )
    first, second = (one["value"] if isinstance(one, dict) else one for one in offsets)
    assert second - first >= 14
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert (browser.complaints(), browser.hosts()) == ([], [])


def test_nothing_to_limit(tmp_path: Path) -> None:
    """Without limits there is no chart of sequences and no mark, and the text says so."""
    points = [replace(point, sequences=None, limit=None, fits=True) for point in curve().points]
    page_of(tmp_path / "page.html", replace(curve(), largest=None, points=points))
    text = (tmp_path / "page.html").read_text()
    assert 'id="sequences"' not in text
    assert "No context fills a device." in text


def test_nothing_fits(tmp_path: Path) -> None:
    """Stages that do not hold their sequences at any context say so."""
    points = [replace(point, sequences=0, fits=False) for point in curve().points]
    page_of(tmp_path / "page.html", replace(curve(), largest=0, points=points))
    assert "They do not hold 8 sequences of any context." in (tmp_path / "page.html").read_text()
