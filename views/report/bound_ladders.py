"""Lower bounds of a cell as a ladder, in the order in which they were tried, against the bottleneck."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.inference.cost_columns import CostColumns
from mtpp.views.report.colours import ACCENT, INK
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Block, Chart, Prose
from mtpp.views.report.stated import ratio_text

if TYPE_CHECKING:
    from mtpp.views.report.stated import StatedRow

_BEST, _OTHER = "#3b9b6d", "#7f93ab"
_ROW, _ROOM = 36, 76


def bound_ladders(
    rows: Sequence[StatedRow],
    labels: Mapping[str, str],
    charts: dict[str, Any],
    data: dict[str, Any],
    unproven: Sequence[Collection[str]],
) -> list[Block]:
    """Return the chart, which goes to *charts*; *data* takes what it shows of each cell.

    Parameters
    ----------
    unproven
        Of each row, the bounds that nobody can check.
    """
    cells = [_cell(row, labels[row.path], bounds) for row, bounds in zip(rows, unproven, strict=True)]
    most = max(len(cell["names"]) for cell in cells)
    height = _ROOM + _ROW * most
    drawing = Drawing("ladder", height=height, x=(0, 1), y=(most - 0.4, -1.3), x_label="cost", rows=[])
    nothing: dict[str, list[Any]] = {key: [] for key in ("left", "right", "top", "bottom", "fill", "name", "told")}
    drawing.boxes(nothing, name="rungs", tips=(("bound", "name"), ("value", "told")))
    empty: dict[str, list[Any]] = {"x": [], "y": [], "text": []}
    drawing.texts(empty, name="rung-names", colour=INK, dx=4)
    drawing.lines({"xs": [], "ys": []}, name="upper", colour=ACCENT, width=2)
    drawing.texts(empty, name="upper-name", colour=ACCENT, align="right", dx=-6, bold=True)
    charts["ladder"] = drawing.item()
    data["cells"] = cells
    first = max(range(len(rows)), key=lambda i: rows[i].ratio or 0)
    data["first_cell"] = first
    caption = "Lower bounds of the chosen cell in the order tried; the best one in green"
    return [Prose(cells[first]["title"], name="ladder-title"), Chart("ladder", caption, height)]


def _cell(row: StatedRow, label: str, unproven: Collection[str]) -> dict[str, Any]:
    largest = max([row.upper or 0, row.lower, *(one.value or 0 for one in row.bounds.values())])
    costs = CostColumns.of(row, largest)
    names, values, texts, fills = [], [], [], []
    for name, figure in row.bounds.items():
        value = figure.value
        names.append(name)
        values.append(float((value or 0) / costs.ticks))
        text = "nothing proven" if value is None else row.describe(value)
        if value is not None and row.upper:
            text += f" ({value / row.upper:.1%})"
        text = text if figure.solved else f"{text}, cut short"
        texts.append(f"{text}, unchecked" if name in unproven and value is not None else text)
        fills.append(_BEST if name == row.method else _OTHER)
    title = f"{label}, k = {row.k}: ratio {ratio_text(row.ratio)}" if row.upper is not None else f"{label}, k = {row.k}"
    return {
        "title": title,
        "names": names,
        "values": values,
        "texts": texts,
        "fills": fills,
        "ticks": [None if one.value is None else str(one.value) for one in row.bounds.values()],
        "upper": None if row.upper is None else float(row.upper / costs.ticks),
        "upper_text": "" if row.upper is None else f"bottleneck {row.describe(row.upper)}",
        "unit": costs.unit or "cost",
    }
