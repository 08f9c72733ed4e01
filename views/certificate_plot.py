"""Seconds of each method against the number of ops, as a picture and as CSV: the papers' Figures 4 and 5."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.io.csv_text import csv_text
from mtpp.views.certificate_texts import model_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mtpp.inference.certificate_table import CertificateRow

_FORMATS = ("png", "svg", "pdf")
_PARTITION = "partition"
_NOT_DRAWN = ("simple",)
"""Bounds that take no time worth a point: a maximum and a division."""

_STYLES = (
    ("#000000", "o"), ("#E69F00", "s"), ("#0072B2", "^"), ("#009E73", "D"), ("#D55E00", "v"), ("#56B4E9", "P"),
    ("#CC79A7", "X"), ("#7F7F7F", "<"), ("#332288", ">"), ("#882255", "p"), ("#999933", "h"), ("#661100", "*"),
    ("#44AA99", "d"), ("#AA4499", "8"),
)  # fmt: skip
"""Colours that the colour-blind tell apart (Okabe and Ito, 2008; then Tol, 2021), and a shape for each method."""

_LEAST_SECONDS = 1e-4
_ACROSS = 3
_INCHES = (3.4, 3.0)
_LEGEND_INCHES = 1.9
_AREA = 26
_DOTS_PER_INCH = 160


@dataclass(frozen=True)
class _Point:
    model: str
    ops: int
    k: int
    method: str
    seconds: float
    solved: bool


def check_plot(path: str) -> None:
    """Check that a picture can be drawn and written to *path*, with a CSV beside it, before the work.

    Raises
    ------
    InputError
        If the ending is none of ``.png``, ``.svg`` and ``.pdf``, matplotlib is missing, or the folder is not writable.
    """
    from mtpp.formats.io.sink import check_output

    if _format(path) not in _FORMATS:
        raise InputError(
            "is no kind of picture that can be drawn",
            source=f"--plot {path}",
            remedy="let the name end in " + " or ".join(f".{name}" for name in _FORMATS),
        )
    check_output(path)
    check_output(csv_path(path))
    _require_matplotlib()


def write_plot(path: str, rows: Sequence[CertificateRow], time_limit_s: float | None = None) -> None:
    """Draw the picture, and write what it shows as CSV beside it, each whole or not at all.

    Parameters
    ----------
    time_limit_s
        Per cell: a line in each panel.

    Notes
    -----
    Archer et al. (2024), Figures 4 and 5: a panel for each k, a point for each run, both axes logarithmic and the
    same everywhere. A bound that ended by itself is a full point, one that was stopped a hollow one. The simple bound
    is in the CSV only.
    """
    from mtpp.formats.io.sink import write_text_atomically

    points = list(_points(rows))
    lines = [[one.model, one.ops, one.k, one.method, round(one.seconds, 6), str(one.solved).lower()] for one in points]
    write_text_atomically(csv_path(path), csv_text(("model", "ops", "k", "method", "seconds", "solved"), lines))
    drawn = [one for one in points if one.method not in _NOT_DRAWN]
    write_text_atomically(path, _picture(drawn, time_limit_s, _format(path)))


def _format(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")


def csv_path(path: str) -> str:
    """Return where the CSV of a picture goes."""
    return str(Path(path).with_suffix(".csv"))


def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except (ImportError, ValueError) as error:  # missing, or it does not like its own settings
        raise InputError(
            f"needs matplotlib ({error})", parameter="plot", remedy="run: pip install 'mtpp[plot]'"
        ) from None


def _points(rows: Sequence[CertificateRow]) -> Iterator[_Point]:
    """Yield what each row has runs of: its search for a partition, and its bounds in the order tried."""
    labels = model_labels(rows)
    for row in rows:
        if row.upper is not None:
            yield _Point(labels[row.path], row.ops, row.k, _PARTITION, row.partition_seconds, True)
        for name, figure in row.bounds.items():
            yield _Point(labels[row.path], row.ops, row.k, name, figure.seconds, figure.solved)


def _picture(points: Sequence[_Point], time_limit_s: float | None, picture_format: str) -> bytes:
    """Return the picture as a file of that format; no display is needed and none of matplotlib's state is touched."""
    import matplotlib
    from matplotlib.figure import Figure

    methods = _methods(points)
    counts = sorted({one.k for one in points})
    panels_asked = max(len(counts), 1)
    across = panels_asked if panels_asked <= _ACROSS else 2 if panels_asked == 4 else _ACROSS
    down = -(-panels_asked // across)
    width, height = (inches * (1.5 if panels_asked == 1 else 1) for inches in _INCHES)
    columns = max(int(across * width / _LEGEND_INCHES), 1)
    legend_lines = -(-(len(methods) + 2) // columns)
    size = (across * width + 0.4, down * height + 0.22 * legend_lines + 0.45)
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for panel, k in zip(panels, counts, strict=False):
        _draw(panel, [one for one in points if one.k == k], methods, time_limit_s)
        panel.set_title(f"k = {k}", fontsize=10)
    ops = [one.ops for one in points]
    for i, panel in enumerate(panels):
        _label(panel, ops, left=i % across == 0, bottom=i + across >= len(counts))
        panel.set_visible(i < len(counts) or not counts)
    figure.legend(
        handles=_legend(methods, time_limit_s, points),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )
    graphs = len({one.model for one in points})
    over = points[0].model if graphs == 1 else f"{graphs:,} graphs"
    figure.suptitle(f"Time of each method against the number of ops: {over}", fontsize=11)
    buffer = io.BytesIO()
    unstamped = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(picture_format)
    with matplotlib.rc_context({"svg.hashsalt": "mtpp"}):
        figure.savefig(buffer, format=picture_format, dpi=_DOTS_PER_INCH, metadata=unstamped)
    return buffer.getvalue()


def _methods(points: Sequence[_Point]) -> dict[str, tuple[str, str]]:
    """Return the colour and the shape of each method, in the order of the ladder."""
    from mtpp.solvers.bounds.registry import BOUNDS

    present = dict.fromkeys(one.method for one in points)
    names = [name for name in dict.fromkeys([_PARTITION, *BOUNDS, *present]) if name not in _NOT_DRAWN]
    return {name: _STYLES[i % len(_STYLES)] for i, name in enumerate(names) if name in present}


def _draw(
    panel: Axes, points: Sequence[_Point], methods: dict[str, tuple[str, str]], time_limit_s: float | None
) -> None:
    if time_limit_s is not None:
        panel.axhline(time_limit_s, color="#7F7F7F", linestyle="--", linewidth=1, zorder=1)
    for name, (colour, marker) in methods.items():
        for solved in (True, False):
            own = [one for one in points if one.method == name and one.solved == solved]
            panel.scatter(
                [one.ops for one in own],
                [max(one.seconds, _LEAST_SECONDS) for one in own],
                s=_AREA * (2 if name == _PARTITION else 1),  # a bound may come with the partition, and take as long
                marker=marker,
                facecolors=colour if solved else "none",
                edgecolors=colour,
                linewidths=1.1,
                alpha=0.85,
                zorder=2,
            )


def _label(panel: Axes, ops: Sequence[int], *, left: bool, bottom: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_xscale("log")
    panel.set_yscale("log")
    if len(set(ops)) == 1:
        panel.set_xlim(ops[0] / 2, ops[0] * 2)
    decade = bool(ops) and max(ops) >= 10 * min(ops)
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decade else (1, 1.5, 2, 3, 5, 7)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    panel.tick_params(labelsize=8)
    panel.grid(which="major", color="#E3E3E3", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    if left:
        panel.set_ylabel("time (s)", fontsize=9)
    if bottom:
        panel.set_xlabel("ops", fontsize=9)
        panel.tick_params(labelbottom=True)


def _legend(methods: dict[str, tuple[str, str]], time_limit_s: float | None, points: Sequence[_Point]) -> list[Any]:
    from matplotlib.lines import Line2D

    def point(name: str, colour: str, marker: str, filling: str) -> Line2D:
        return Line2D(
            [], [], color=colour, marker=marker, linestyle="none", markersize=6, markerfacecolor=filling, label=name
        )

    entries = [point(name, colour, marker, colour) for name, (colour, marker) in methods.items()]
    if not all(one.solved for one in points):
        entries.append(point("hollow: stopped", "#4D4D4D", "o", "none"))
    if time_limit_s is not None:
        line = Line2D([], [], color="#7F7F7F", linestyle="--", linewidth=1, label=f"limit per cell, {time_limit_s:g} s")
        entries.append(line)
    return entries
