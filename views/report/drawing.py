"""Charts as Bokeh draws them: the only importer of Bokeh.

A colour that follows the reader's scheme is a name of :mod:`mtpp.views.report.colours`. It is put on a model as a tag,
``property=name``, and the page's script sets the property to what the name stands for. No chart has code of its own, so
that the page's security policy can allow none: what charts do, the page's script does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtpp.terminal_safe import terminal_safe
from mtpp.views.report.colours import GRID, INK, LINE, SOFT, SURFACE

if TYPE_CHECKING:
    from bokeh.models import GlyphRenderer

Columns = dict[str, Any]
"""Columns of a source: equally long, numbers, texts or lists of numbers."""

_SCHEMED = {INK, SOFT, LINE, GRID, SURFACE, "accent"}
_FONT = "system-ui, sans-serif"
_LONGEST_NAME = 34
"""Characters of a row's or a column's name, at most."""

_IDENTIFIER = re.compile(r"p\d+")


def script() -> str:
    """Return the part of BokehJS that charts need, as text of a script."""
    from bokeh.resources import Resources

    text: str = Resources(mode="inline", components=["bokeh"]).js_raw[0]
    return text


class Drawing:
    """A chart: boxes, lines and texts over two numeric axes.

    Parameters
    ----------
    name
        Of the element of the page that it is drawn in.
    height
        In pixels; the width is that of the page.
    x, y
        First and last number of each axis; an axis from a larger to a smaller one runs backwards.
    x_label
        Below the x axis.
    rows, columns
        Names at 0, 1, … of an axis in place of numbers.
    ticks
        Places on the y axis and their labels, in place of rows.
    axes
        Whether there are axes and a grid at all.
    sparse
        Whether names of columns and rows that would overlap are left out.
    zoom
        Directions in which a reader zooms and pans: ``""``, ``"x"`` or ``"both"``.
    """

    def __init__(
        self,
        name: str,
        *,
        height: int,
        x: tuple[float, float],
        y: tuple[float, float],
        x_label: str = "",
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        ticks: Sequence[tuple[float, str]] | None = None,
        axes: bool = True,
        sparse: bool = False,
        zoom: str = "",
    ) -> None:
        from bokeh.models import Range1d
        from bokeh.plotting import figure

        self.name = name
        self._figure = figure(
            name=name,
            height=height,
            sizing_mode="stretch_width",
            x_range=Range1d(*x, name="x"),
            y_range=Range1d(*y, name="y"),
            tools=[],
            toolbar_location=None,
            background_fill_color=None,
            border_fill_color=None,
            outline_line_color=None,
            min_border_left=16,
            min_border_right=16,
            output_backend="canvas",
        )
        if not axes:
            self._figure.axis.visible = False
            self._figure.grid.visible = False
        self._label_axes(x_label, rows, columns)
        if ticks is not None:
            self._mark_rows(ticks)
        if sparse:
            self._leave_out_overlapping()
        if zoom:
            self._zoom(zoom)

    def _label_axes(self, x_label: str, rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
        from bokeh.models import FixedTicker, NoOverlap, NumeralTickFormatter, PlainText

        for axis, names in ((self._figure.xaxis, columns), (self._figure.yaxis, rows)):
            axis.axis_label_text_font = axis.major_label_text_font = _FONT
            axis.axis_label_text_font_style = "normal"
            axis.major_label_text_font_size = "12px"
            axis.axis_label_text_font_size = "12px"
            axis.minor_tick_line_color = None
            for one in axis:
                one.tags = [f"axis_label_text_color={SOFT}", f"major_label_text_color={INK}", f"axis_line_color={LINE}"]
                one.tags += [f"major_tick_line_color={LINE}"]
            if names is not None:
                axis.ticker = FixedTicker(ticks=list(range(len(names))), minor_ticks=[])
                axis.major_label_overrides = {
                    i: PlainText(text=_shortened(terminal_safe(one))) for i, one in enumerate(names)
                }
                axis.major_tick_line_color = None
                for one in axis:
                    one.tags.remove(f"major_tick_line_color={LINE}")
            else:
                axis.formatter = NumeralTickFormatter(format="0,0.[000]")
        self._figure.xaxis.axis_label = x_label or None
        if columns is None:
            self._figure.xaxis.major_label_policy = NoOverlap(min_distance=8)
        for grid, names in ((self._figure.xgrid, columns), (self._figure.ygrid, rows)):
            grid.tags = [f"grid_line_color={GRID}"]
            if names is not None:
                grid.visible = False

    def _mark_rows(self, ticks: Sequence[tuple[float, str]]) -> None:
        from bokeh.models import FixedTicker, PlainText

        axis = self._figure.yaxis
        axis.ticker = FixedTicker(ticks=[place for place, _ in ticks], minor_ticks=[])
        axis.major_label_overrides = {place: PlainText(text=text) for place, text in ticks}
        axis.major_label_text_font_size = "11px"

    def _leave_out_overlapping(self) -> None:
        from bokeh.models import NoOverlap

        self._figure.axis.major_label_policy = NoOverlap(min_distance=8)

    def _zoom(self, directions: str) -> None:
        from bokeh.models import PanTool, WheelZoomTool

        dimensions = "both" if directions == "both" else "width"
        pan = PanTool(dimensions=dimensions)
        wheel = WheelZoomTool(dimensions=dimensions, modifiers={"ctrl": True})
        self._figure.add_tools(pan, wheel)
        self._figure.toolbar.active_drag = pan
        self._figure.toolbar.active_scroll = wheel

    def boxes(
        self,
        columns: Columns,
        *,
        name: str,
        fill: str = "fill",
        edge: str = SURFACE,
        edge_width: float = 0.6,
        tips: Sequence[tuple[str, str]] = (),
        clicked: bool = False,
    ) -> None:
        """Draw boxes from ``left``, ``top`` to ``right``, ``bottom``.

        Parameters
        ----------
        fill
            A colour, or the name of a column of colours.
        tips
            What is shown of a box that the pointer is on: names, and columns with texts.
        clicked
            Whether clicks on boxes are for the page's script.
        """
        glyph = self._figure.quad(
            left="left", right="right", top="top", bottom="bottom", source=self._source(columns, name), name=name
        )
        self._paint(glyph, "fill_color", fill, columns)
        self._paint(glyph, "line_color", edge, columns)
        glyph.glyph.line_width = edge_width
        self._listen(glyph, tips, clicked=clicked)

    def texts(
        self,
        columns: Columns,
        *,
        name: str,
        colour: str = INK,
        size: int = 12,
        align: str = "left",
        baseline: str = "middle",
        bold: bool = False,
        dx: float = 0,
        dy: float = 0,
        covering: bool = False,
    ) -> None:
        """Write ``text`` at ``x``, ``y``, moved by so many pixels; as text, whatever it holds.

        Texts are turned by ``angle`` where there is that column.

        Parameters
        ----------
        covering
            Whether it hides what is drawn behind it.
        """
        glyph = self._figure.text(
            x="x", y="y", text="text", source=self._source(columns, name), name=name,
            text_font={"value": _FONT}, text_font_size=f"{size}px", text_align=align, text_baseline=baseline,
            text_font_style="bold" if bold else "normal", x_offset=dx, y_offset=dy,
            angle="angle" if "angle" in columns else 0,
        )  # fmt: skip
        self._paint(glyph, "text_color", colour, columns)
        if covering:
            self._paint(glyph, "background_fill_color", SURFACE, columns)

    def lines(
        self,
        columns: Columns,
        *,
        name: str,
        colour: str = LINE,
        width: float | str = 1.2,
        dash: str = "solid",
        alpha: float | str = 1,
        tips: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Draw lines through the points of ``xs``, ``ys``, a list of each for every line.

        Parameters
        ----------
        width, alpha
            Pixels and opacity, or names of columns.
        """
        glyph = self._figure.multi_line(xs="xs", ys="ys", source=self._source(columns, name), name=name)
        self._paint(glyph, "line_color", colour, columns)
        glyph.glyph.line_width, glyph.glyph.line_dash, glyph.glyph.line_alpha = width, dash, alpha
        glyph.glyph.line_join = "round"
        self._listen(glyph, tips, clicked=False)

    def curves(
        self, columns: Columns, *, name: str, colour: str = LINE, width: float | str = 1.2, alpha: float | str = 1
    ) -> None:
        """Draw cubic curves from ``x0``, ``y0`` to ``x1``, ``y1`` with control points ``cx0`` … ``cy1``."""
        places = {key: key for key in ("x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1")}
        glyph = self._figure.bezier(**places, source=self._source(columns, name), name=name)
        self._paint(glyph, "line_color", colour, columns)
        glyph.glyph.line_width, glyph.glyph.line_alpha = width, alpha

    def item(self) -> dict[str, Any]:
        """Return what BokehJS draws, as JSON takes it: the same for the same chart."""
        from bokeh.embed import json_item

        item: dict[str, Any] = json_item(self._figure, self.name)
        return _renumbered(item)

    def _source(self, columns: Columns, name: str) -> Any:
        from bokeh.models import ColumnDataSource

        safe = {key: [terminal_safe(v) if isinstance(v, str) else v for v in values] for key, values in columns.items()}
        return ColumnDataSource(data=safe, name=name)

    def _paint(self, glyph: GlyphRenderer, key: str, value: str, columns: Columns) -> None:
        """Set a colour of a glyph, and tag it where that follows the scheme."""
        shape = glyph.glyph
        if value in _SCHEMED:
            shape.tags = [*shape.tags, f"{key}={value}"]
        else:
            setattr(shape, key, {"field": value} if value in columns else value)

    def _listen(self, glyph: GlyphRenderer, tips: Sequence[tuple[str, str]], *, clicked: bool) -> None:
        from bokeh.models import HoverTool, TapTool

        if tips:
            shown = [(name, f"@{{{column}}}") for name, column in tips]
            self._figure.add_tools(HoverTool(tooltips=shown, renderers=[glyph], visible=False))
        glyph.nonselection_glyph = None
        glyph.selection_glyph = None
        if clicked:
            self._figure.add_tools(TapTool(renderers=[glyph], visible=False))


def _shortened(name: str) -> str:
    """Leave out the middle of a name that would leave no room for the chart."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME // 2]}…{name[1 - _LONGEST_NAME // 2 :]}"


def _renumbered(item: dict[str, Any]) -> dict[str, Any]:
    """Return a chart whose models are numbered from 1: Bokeh counts them through the whole process."""
    numbers: dict[str, str] = {}

    def new(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: named(one) if key in ("id", "root_id") else new(one) for key, one in value.items()}
        return [new(one) for one in value] if isinstance(value, list | tuple) else value

    def named(value: Any) -> Any:
        if isinstance(value, str) and _IDENTIFIER.fullmatch(value):
            return numbers.setdefault(value, f"p{len(numbers) + 1}")
        return new(value)

    renumbered: dict[str, Any] = new(item)
    return renumbered
