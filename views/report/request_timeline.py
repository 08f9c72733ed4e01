"""Requests in the pipeline of a plan over time: the first ones fill it, then one leaves every bottleneck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mtpp.colours import stage_colour
from mtpp.inference.cost_columns import CostColumns
from mtpp.views.report.colours import ACCENT, INK, LINE, PARTS, SOFT, by_ink
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Chart, Section
from mtpp.views.report.stage_bars import NAMES
from mtpp.views.report.stated import StatedPlan, cost_text, page_costs
from mtpp.views.shown_plan import each_cost

NAME = "requests"
"""Of the chart."""

_ORDER = ("input", "work", "overflow", "output")
"""Parts of a visit in the order of time."""

_THICKNESS = {"input": 0.22, "work": 0.36, "overflow": 0.36, "output": 0.22}
_PERIODS = 2
"""Bottlenecks that are drawn behind the end of the first request."""

_MOST_ROWS, _MOST_VISITS = 48, 4_000
_ROW, _LEAST_ROW, _ROOM, _HEAD = 30, 17, 60, 46
"""Pixels of a row, at most and at least, of the axis, and of the two lines of text above all rows."""

_MOST_HIGH = 760


class Visit(NamedTuple):
    """Time of a request on a device of a stage, in ticks; stages and their devices are numbered from 0."""

    request: int
    stage: int
    device: int
    start: int
    end: int


def visits(costs: Sequence[Sequence[int]], period: int, requests: int) -> list[Visit]:
    """Send requests through a pipeline, one every *period*.

    Parameters
    ----------
    costs
        Of each stage in the order of the pipeline the ticks that it takes on each of its devices: f_j(S), in which
        tensors come in first and go out last.
    period
        Ticks between requests that enter.

    Returns
    -------
    Visits stage by stage, in the order of the requests, which no stage changes. A request enters a stage when it has
    left the one before and a device is idle: the slowest one, of several the one idle for longest. So the first
    request meets the slowest device of each stage, as in the plan's latency.

    Notes
    -----
    Where no stage has several unequal devices and no cost of a stage exceeds the period, no request waits. O(requests
    · devices).
    """
    ready = [request * period for request in range(requests)]
    found = []
    for stage, ticks in enumerate(costs):
        free, at = [0] * len(ticks), 0
        for request in range(requests):
            at = max(at, ready[request])
            idle = [device for device, since in enumerate(free) if since <= at]
            if idle:
                device = min(idle, key=lambda one: (-ticks[one], free[one], one))
            else:
                device = min(range(len(free)), key=lambda one: (free[one], one))
                at = free[device]
            ready[request] = free[device] = at + ticks[device]
            found.append(Visit(request, stage, device, at, ready[request]))
    return found


def request_section(shown: StatedPlan, charts: dict[str, Any], data: dict[str, Any]) -> Section | None:
    """Return the section, and add its chart to *charts*; None where one stage does it all, or stages are too many."""
    stages = [row for row in shown.stages if row["ops"]]
    costs = [each_cost(row) for row in stages]
    period, latency, rows = shown.bottleneck, sum(map(max, costs)), sum(map(len, costs))
    count = latency // period + _PERIODS + 1 if period > 0 else 0
    if len(stages) < 2 or rows > _MOST_ROWS or not 0 < count * rows <= _MOST_VISITS or latency == 0:
        return None
    drawing, fitting = _drawing(shown, stages, visits(costs, period, count), latency)
    charts[NAME] = drawing.item()
    data.setdefault("fitting", []).extend(fitting)
    streams = any(row["overflow"] for row in stages)
    legend = [(PARTS[part], NAMES[part]) for part in ("input", "overflow", "output") if streams or part != "overflow"]
    caption = (
        "Requests, numbered from 0, in the pipeline as the plan has it: a stage takes its tensors in, works in its "
        "colour, and hands its tensors on. A request enters every "
        f"{shown.describe(period)}, the bottleneck; the first leaves after {shown.describe(latency)}, the latency. "
        f"Then {_in_flight(latency, period)} in the pipeline at once"
    )
    if any(len(set(ticks)) > 1 for ticks in costs):
        caption += ". Where the devices of a stage differ, requests wait for each other, and leave in their order"
    return Section("requests-part", "Requests in the pipeline", [Chart(NAME, f"{caption}.", _height(rows), legend)])


def _in_flight(latency: int, period: int) -> str:
    least, most = latency // period, -(-latency // period)
    if most == 1:
        return "one request is"
    return f"{most:,} requests are" if least == most else f"{least:,} to {most:,} requests are"


def _height(rows: int) -> int:
    return _ROOM + _HEAD + max(_LEAST_ROW * rows, min(_ROW * rows, _MOST_HIGH))


def _drawing(
    shown: StatedPlan, stages: Sequence[Mapping[str, Any]], found: Sequence[Visit], latency: int
) -> tuple[Drawing, list[dict[str, Any]]]:
    """Return the chart, and the numbers of requests that its script writes where there is room."""
    period = shown.bottleneck
    end = latency + _PERIODS * period
    costs = page_costs(shown, [latency])
    scale = float(costs.ticks)
    labels, first = _labels(stages)
    height = _height(len(labels))
    top = -0.5 - _HEAD * len(labels) / (height - _ROOM - _HEAD)
    drawing = Drawing(
        NAME,
        height=height,
        x=(0, end / scale),
        y=(len(labels) - 0.5, top),
        x_label=f"time ({costs.unit})" if shown.timed else costs.unit or "cost",
        rows=labels,
        zoom="x",
    )
    drawn = [one for one in found if one.start < end]
    _join(drawing, drawn, first, scale)
    for part in _ORDER:
        _boxes(drawing, costs, stages, drawn, part, first)
    line, differ = (top - 0.5) / 2, any(len(set(each_cost(row))) > 1 for row in stages)
    ends = [latency, *([] if differ else [latency + period])]
    drawing.lines(
        {"xs": [[at / scale, at / scale] for at in ends], "ys": [[line, len(labels)]] * len(ends)},
        name="ends", colour=ACCENT, width=1.5, dash="dashed",
    )  # fmt: skip
    drawing.lines({"xs": [[0, ends[-1] / scale]], "ys": [[line, line]]}, name="spans", colour=ACCENT, width=2)
    following = f"then one every {shown.describe(period)}{' on average' if differ else ''}"
    for name, at, text, align, dy in (
        ("first", 0, f"request 0 leaves after {shown.describe(latency)}", "left", -3),
        ("next", latency + period, following, "right", 17),
    ):
        drawing.texts(
            {"x": [at / scale], "y": [line], "text": [text]},
            name=f"{name}-text", colour=INK, align=align, baseline="bottom", dx=4 if align == "left" else -4, dy=dy,
            covering=True,
        )  # fmt: skip
    work = [(one, *_spans(stages[one.stage], one)["work"]) for one in drawn]
    places: dict[str, Any] = {
        "x": [(start + stop) / 2 / scale for _, start, stop in work],
        "y": [first[one.stage] + one.device for one, _, _ in work],
        "text": [str(one.request) for one, _, _ in work],
    }
    fills = [stage_colour(stages[one.stage]["index"]) for one, _, _ in work]
    fitting = []
    for ending, ink, own in by_ink(places | {"widths": [(stop - start) / scale for _, start, stop in work]}, fills):
        widths = own.pop("widths")
        drawing.texts(own, name=f"numbers{ending}", colour=ink, size=11, align="center")
        fitting.append({"chart": NAME, "part": f"numbers{ending}", **own, "widths": widths})
    return drawing, fitting


def _labels(stages: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[int]]:
    """Return the names of the rows, one for each device of a stage, and the first row of each stage."""
    labels: list[str] = []
    first = []
    for row in stages:
        first.append(len(labels))
        devices = row.get("devices", [row["device"]] if "device" in row else [])
        names = [one["name"] for one in devices]
        for one in devices:
            number = f" {one['index']}" if names.count(one["name"]) > 1 else ""
            labels.append(f"stage {row['index']}: {one['name']}{number}")
        if not devices:
            labels.append(f"stage {row['index']}")
    return labels, first


def _spans(row: Mapping[str, Any], visit: Visit) -> dict[str, tuple[float, float]]:
    """Return start and end of each part of a visit; on a further device of a stage in the first one's proportions."""
    sizes = [row[part] for part in _ORDER]
    whole, at, spans = sum(sizes) or 1, 0, {}
    for part, size in zip(_ORDER, sizes, strict=True):
        length = visit.end - visit.start
        spans[part] = (visit.start + length * at / whole, visit.start + length * (at + size) / whole)
        at += size
    return spans


def _boxes(
    drawing: Drawing,
    costs: CostColumns,
    stages: Sequence[Mapping[str, Any]],
    drawn: Sequence[Visit],
    part: str,
    first: Sequence[int],
) -> None:
    """Draw a part of all visits that have it."""
    scale = float(costs.ticks)
    columns: dict[str, list[Any]] = {
        key: [] for key in ("left", "right", "top", "bottom", "fill", "request", "part", "time")
    }
    for one in drawn:
        row = stages[one.stage]
        start, end = _spans(row, one)[part]
        if end <= start:
            continue
        y, half = first[one.stage] + one.device, _THICKNESS[part]
        fill = stage_colour(row["index"]) if part == "work" else PARTS[part]
        columns["left"].append(start / scale)
        columns["right"].append(end / scale)
        columns["top"].append(y - half)
        columns["bottom"].append(y + half)
        columns["fill"].append(fill)
        columns["request"].append(f"request {one.request} in stage {row['index']}")
        columns["part"].append(NAMES[part])
        columns["time"].append(f"{costs.text(round(start))} to {cost_text(round(end), costs)}")
    tips = (("", "request"), ("", "part"), ("", "time"))
    drawing.boxes(columns, name=f"visits-{part}", edge=LINE if part == "work" else "fill", tips=tips)


def _join(drawing: Drawing, drawn: Sequence[Visit], first: Sequence[int], scale: float) -> None:
    """Draw a line from where a request leaves a stage to where it enters the next one."""
    entered = {(one.request, one.stage): one for one in drawn}
    xs, ys = [], []
    for one in drawn:
        following = entered.get((one.request, one.stage + 1))
        if following is not None:
            xs.append([one.end / scale, following.start / scale])
            ys.append([float(first[one.stage] + one.device), float(first[following.stage] + following.device)])
    drawing.lines({"xs": xs, "ys": ys}, name="hand-overs", colour=SOFT, width=1.2)
