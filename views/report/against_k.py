"""Throughput, latency and bottleneck against the number of stages, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.colours import GREY
from mtpp.formats.results.plan_range import RangePoint, gains
from mtpp.inference.cost_columns import Ticks
from mtpp.views.partition_plan import rate_text
from mtpp.views.report.colours import ACCENT, INK, LINE, PARTS, SURFACE
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Block, Chart, Prose
from mtpp.views.report.stated import page_costs

_HEIGHT = 210
_HEADROOM = 1.45
"""Height of a chart over its highest bar: names of what it shows, and of the mark, lie above all bars."""

_MOST_BARS = 64


@dataclass(frozen=True)
class Bars:
    """Values of one quantity, a bar for each number of stages.

    Attributes
    ----------
    name, title
        Of the chart's element, and of the quantity with its unit.
    values, texts
        In the unit of the axis, and for people.
    bounds
        Lower bounds on the values; None where there is none, or the value is that bound.
    """

    name: str
    title: str
    values: Sequence[float]
    texts: Sequence[str]
    bounds: Sequence[float | None] = ()


def against_k(
    points: Sequence[RangePoint],
    lower: Sequence[int],
    told: Ticks,
    charts: dict[str, Any],
    data: dict[str, Any],
    *,
    figures: Sequence[str],
    objective: str,
    knee: int | None,
    rate: str = "inferences/s",
    prefix: str = "k",
    label: str = "",
) -> list[Block]:
    """Return the charts, which are added to *charts*; nothing for one number of stages alone.

    Parameters
    ----------
    points
        In increasing number of stages.
    lower
        Lower bounds on the *objective*, ``bottleneck`` or ``latency``, in ticks.
    told
        Unit of the ticks.
    figures
        Quantities that are known: ``throughput``, which takes a unit of time, ``latency`` and ``bottleneck``.
    knee
        Number of stages after which no further device brings a tenth of throughput; None: it is not among them.
    rate
        Unit of the throughput.
    prefix, label
        Of the names of the charts, and of what they show.
    """
    if not 1 < len(points) <= _MOST_BARS:
        return []
    shown = []
    for name in figures:
        if name != "throughput":
            ticks = [one.latency if name == "latency" else one.bottleneck for one in points]
            bounds = lower if name == objective else ticks
            shown.append(_costs(f"{prefix}-{name}", f"{label}{name}", ticks, told, bounds))
        elif all(one.throughput_per_s is not None for one in points):
            rates = [one.throughput_per_s or 0.0 for one in points]
            title = f"{label}throughput ({rate})"
            shown.append(Bars(f"{prefix}-throughput", title, rates, [rate_text(one) for one in rates]))
    steps = [None if gain is None else f"{float(gain):+.1%}" for gain in gains(points)]
    counts = [one.k for one in points]
    blocks: list[Block] = []
    for one in shown:
        charts[one.name], fitting = _chart(one, counts, steps, knee)
        data.setdefault("fitting", []).append(fitting)
        blocks.append(Chart(one.name, _caption(one, counts), _HEIGHT))
    if knee is not None:
        text = (
            f"{label}{'after' if label else 'After'} k = {knee} a further device brings less than a tenth of throughput"
        )
        blocks.append(Prose(f"{text}: the dashed line, and grey bars.", quiet=True))
    return blocks


def _costs(name: str, title: str, ticks: Sequence[int], told: Ticks, lower: Sequence[int]) -> Bars:
    """Return bars of ticks in a unit that suits the largest."""
    costs = page_costs(told, ticks)
    bounds = [
        float(Fraction(bound) / costs.ticks) if bound < own else None for own, bound in zip(ticks, lower, strict=True)
    ]
    values = [float(Fraction(one) / costs.ticks) for one in ticks]
    unit = f" ({costs.unit})" if costs.unit else ""
    return Bars(name, f"{title}{unit}", values, [costs.text(one) for one in ticks], bounds)


def _caption(bars: Bars, counts: Sequence[int]) -> str:
    first, last = (f"{bars.texts[i]} at k = {counts[i]}" for i in (0, -1))
    bound = "; lines inside bars are lower bounds" if any(one is not None for one in bars.bounds) else ""
    title = bars.title if ": " in bars.title else f"{bars.title[0].upper()}{bars.title[1:]}"
    return f"{title} by number of stages, from {first} to {last}{bound}"


def _chart(
    bars: Bars, counts: Sequence[int], steps: Sequence[str | None], knee: int | None
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the chart, and texts that its script writes over bars that have room for them."""
    top = (max(bars.values) or 1) * _HEADROOM
    drawing = Drawing(
        bars.name,
        height=_HEIGHT,
        x=(-0.5, len(counts) - 0.5),
        y=(0, top),
        x_label="k",
        columns=[str(k) for k in counts],
        sparse=True,
    )
    after = [knee is not None and k > knee for k in counts]
    columns: dict[str, Any] = {
        "left": [i - 0.38 for i in range(len(counts))],
        "right": [i + 0.38 for i in range(len(counts))],
        "top": list(bars.values),
        "bottom": [0.0] * len(counts),
        "fill": [GREY if one else PARTS["work"] for one in after],
        "k": [f"k = {k}" for k in counts],
        "told": list(bars.texts),
        "gain": [step or "–" for step in steps],
    }
    tips = [("", "k"), (bars.title, "told"), ("throughput gained per further device", "gain")]
    drawing.boxes(columns, name="bars", edge=SURFACE, tips=tips)
    bounds = [(i, one) for i, one in enumerate(bars.bounds) if one is not None]
    drawing.lines(
        {"xs": [[i - 0.38, i + 0.38] for i, _ in bounds], "ys": [[one, one] for _, one in bounds]},
        name="bounds", colour=SURFACE, width=2.5,
    )  # fmt: skip
    if knee is not None and knee in counts:
        at = counts.index(knee) + 0.5
        drawing.lines({"xs": [[at, at]], "ys": [[0, top]]}, name="knee", colour=ACCENT, width=2, dash="dashed")
        left = at < len(counts) / 2 - 0.5
        drawing.texts(
            {"x": [at], "y": [top], "text": ["below 10% per device" if left else "10% per device and more"]},
            name="knee-name", colour=ACCENT, baseline="top", align="left" if left else "right",
            dx=5 if left else -5, dy=19, covering=True,
        )  # fmt: skip
    drawing.lines({"xs": [[-0.5, len(counts) - 0.5]], "ys": [[0, 0]]}, name="floor", colour=LINE, width=1)
    drawing.texts(
        {"x": [-0.5], "y": [top], "text": [bars.title]},
        name="title", colour=INK, baseline="top", dx=4, dy=2, bold=True, covering=True,
    )  # fmt: skip
    places: dict[str, Any] = {"x": list(range(len(counts))), "y": list(bars.values), "text": list(bars.texts)}
    drawing.texts(places, name="values", colour=INK, size=11, align="center", baseline="bottom", dy=-2)
    return drawing.item(), {"chart": bars.name, "part": "values", **places, "widths": [0.96] * len(counts)}
