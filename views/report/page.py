"""A report as a page: blocks of text, tables and charts, put into HTML by Jinja, of which this is the only importer.

Whatever comes out of a file is text: Jinja escapes it in the page, JSON escapes it in the page's data, and the page's
security policy runs no script but the two whose hashes it holds, and lets nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple

from mtpp import __version__
from mtpp.errors import InputError
from mtpp.terminal_safe import terminal_safe
from mtpp.views.report.diagram import Diagram
from mtpp.views.report.drawing import script
from mtpp.views.table import Table

_LIBRARIES = {"Jinja": "jinja2", "Bokeh": "bokeh.embed", "igraph": "igraph"}
"""Name → module that is there if it is installed; Bokeh needs Jinja as well, so that comes first."""

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that could end a script, or a line of one."""

_SCRIPTS, _STYLES = ("page.js", "saving.js", "schedule.js"), ("page.css", "training.css")

MARKS = {"ok": "✓", "false": "✗", "unchecked": "?"}


@dataclass(frozen=True)
class Cell:
    """A value of a table that is not written by the form of its column.

    Attributes
    ----------
    key
        What it is sorted by, and for figures the exact number; None: the text.
    state
        Verdict that the text is: ``ok``, ``false`` or ``unchecked``.
    """

    text: str
    key: str | int | float | None = None
    state: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TableBlock:
    """A table whose title is a caption; *marks* are attributes by which the page's script and style know its rows."""

    block: ClassVar[str] = "table"
    name: str
    table: Table
    marks: Sequence[Mapping[str, str]] = ()
    sortable: bool = False

    @property
    def rows(self) -> Iterator[tuple[Mapping[str, str], list[Cell]]]:
        """Marks and cells of each row; texts are sorted by themselves, what is missing comes before all numbers."""
        for marks, values, texts in zip_longest(self.marks, self.table.rows, self.table.cells):
            yield marks or {}, [_cell(*pair) for pair in zip(values, texts, strict=True)]


def _cell(value: Any, text: str) -> Cell:
    if isinstance(value, Cell):
        return value
    return Cell(text, None if isinstance(value, str) else -1 if value is None else value)


@dataclass(frozen=True)
class Prose:
    """A paragraph; the page's script changes the text of one with a name."""

    block: ClassVar[str] = "prose"
    text: str
    quiet: bool = False
    name: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart, which the page's data holds under the same name; *legend* are colours and what they stand for."""

    block: ClassVar[str] = "chart"
    name: str
    caption: str
    height: int
    legend: Sequence[tuple[str, str]] = ()


class MemoryPiece(NamedTuple):
    """A piece of a bar: its kind, which styles know, its width in percent of the widest bar, and its hint."""

    kind: str
    percent: float
    told: str


@dataclass(frozen=True)
class MemoryBar:
    """A bar with two lines of text above it.

    Attributes
    ----------
    told
        How much it holds.
    limit
        Place of a mark, in percent of the widest bar; None: there is none.
    over
        Whether it holds more than it may.
    """

    name: str
    detail: str
    told: str
    pieces: Sequence[MemoryPiece]
    limit: float | None = None
    over: bool = False


@dataclass(frozen=True)
class MemoryBars:
    """Bars of pieces below each other, which need no script; *legend* are kinds of pieces and names of them."""

    block: ClassVar[str] = "memory"
    name: str
    caption: str
    legend: Sequence[tuple[str, str]]
    bars: Sequence[MemoryBar]


@dataclass(frozen=True)
class Switch:
    """A choice of one of several states of a chart and a table, each with a title."""

    block: ClassVar[str] = "switch"
    name: str
    legend: str
    choices: Sequence[tuple[str, str]]
    chosen: int
    note: str = ""


@dataclass(frozen=True)
class GraphLevel:
    """One way to draw a graph; *name* is that of its chart."""

    name: str
    title: str
    count: str


@dataclass(frozen=True)
class GraphView:
    """The graph, drawn in several ways, with a search and details of what is clicked."""

    block: ClassVar[str] = "graph"
    levels: Sequence[GraphLevel]
    chosen: int
    height: int
    legend: Sequence[tuple[str, str]]
    note: str


Block = TableBlock | Prose | Chart | MemoryBars | Switch | GraphView | Diagram

_PICTURES = (Chart, MemoryBars, GraphView, Diagram)


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading.

    Attributes
    ----------
    folded
        Whether it is a detail, of which the heading alone is shown until somebody opens it.
    """

    name: str
    title: str
    blocks: Sequence[Block]
    folded: bool = False

    @property
    def rank(self) -> int:
        """Place on a page: 0 with pictures, 1 with tables alone, 2 of details."""
        return 2 if self.folded else 0 if any(isinstance(one, _PICTURES) for one in self.blocks) else 1


@dataclass(frozen=True)
class PageVerdict:
    """Headline: a state of ``ok``, ``false`` or ``unchecked``, in words, and what it rests on.

    Attributes
    ----------
    sign
        Of results that hold; ``✓`` is that of proven optima alone.
    """

    state: str
    headline: str
    sentence: str
    reasons: Sequence[str] = ()
    sign: str = MARKS["ok"]

    @property
    def mark(self) -> str:
        """A sign for the state."""
        return self.sign if self.state == "ok" else MARKS[self.state]

    @property
    def kind(self) -> str:
        """State, ``held`` being that of results that hold without being optimal."""
        return "held" if self.mark not in MARKS.values() else self.state


@dataclass(frozen=True)
class Claims:
    """Line on all claims of a result, which opens; one that says of a false claim is open."""

    line: str
    blocks: Sequence[Block]
    open: bool = False


@dataclass(frozen=True)
class Made:
    """Origin of a page: date and time, command, and version of mtpp."""

    at: str
    command: str
    version: str = __version__


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes
    ----------
    figures
        The most important ones: name, value and what explains it.
    charts
        Charts by name, as BokehJS draws them.
    data
        What else the page's script takes.
    claims
        Claims of the result, with a verdict on each.
    """

    title: str
    kind: str
    verdict: PageVerdict
    figures: Sequence[tuple[str, str, str]]
    sections: Sequence[Section]
    charts: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    claims: Claims | None = None

    @property
    def in_order(self) -> list[Section]:
        """Sections with pictures, then those with tables, then details."""
        return sorted(self.sections, key=lambda section: section.rank)


def page_html(page: Page, made: Made) -> str:
    """Return the text of the HTML file: the same for the same page, made at the same time by the same command."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    # A line that ends in a carriage return would read as another text, and so have another hash.
    scripts = [script().replace("\r\n", "\n").replace("\r", "\n"), "".join(map(_own, _SCRIPTS))]
    environment = Environment(
        loader=FunctionLoader(_own), autoescape=True, undefined=StrictUndefined, finalize=_shown, trim_blocks=False
    )
    text = environment.get_template("page.html.jinja").render(
        page=page,
        made=made,
        style=Markup("".join(map(_own, _STYLES))),
        data=Markup(json_for_script({**page.data, "charts": page.charts})),
        library=Markup(scripts[0]),
        script=Markup(scripts[1]),
        script_sources=Markup(" ".join(map(_source_of, scripts))),
    )
    return f"{text}\n"


def json_for_script(value: Any) -> str:
    """Return JSON that may stand in a script of a page, whatever its texts hold."""
    text = json.dumps(_shown_texts(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _shown(value: Any) -> Any:
    """Return what an expression of the template shows: names with signs that would reorder a line are spelt out."""
    return terminal_safe(value) if type(value) is str else value


def _shown_texts(value: Any) -> Any:
    """Return data whose texts are as the template would show them."""
    if isinstance(value, str):
        return terminal_safe(value)
    if isinstance(value, dict):
        return {key: _shown_texts(one) for key, one in value.items()}
    return [_shown_texts(one) for one in value] if isinstance(value, list | tuple) else value


def _own(name: str) -> str:
    return files("mtpp.views.report").joinpath(name).read_text(encoding="utf-8")


def _source_of(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def require_libraries() -> None:
    """Check that all libraries of the extra are installed.

    Raises
    ------
    InputError
        If one is not.
    """
    for name, module in _LIBRARIES.items():
        try:
            import_module(module)
        except ImportError as error:
            raise InputError(f"a report needs {name} ({error})", remedy="run: pip install 'mtpp[report]'") from None
