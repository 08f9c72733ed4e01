"""Report on a simulation: its figures, stages or devices, and its passes over time where they are known."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mtpp.checker.report import Report
from mtpp.training.timeline import Timeline
from mtpp.units import format_share
from mtpp.views.report.claims import claims_of, plan_verdict
from mtpp.views.report.colours import ITERATION
from mtpp.views.report.page import Chart, Page, Prose, Section, TableBlock
from mtpp.views.report.stage_bars import BarPart, bars, bars_height
from mtpp.views.report.training.memory_peaks import peaks_section, simulated_peaks
from mtpp.views.report.training.scales import rate_text
from mtpp.views.report.training.schedule import timeline_sections
from mtpp.views.report.training_stages import TrainingTimes
from mtpp.views.table import NONE, Column, Table
from mtpp.wording import counted

_BUSY, _SYNCHRONISATION, _WAITING = ITERATION["busy"], ITERATION["gradients"], ITERATION["idle"]
_SHOWN = (
    "first_forward_start_ticks",
    "first_backward_start_ticks",
    "last_forward_end_ticks",
    "last_backward_end_ticks",
)
_MOST_CHANNELS, _MOST_ON_PATH = 64, 200


def simulation_page(document: Mapping[str, Any], report: Report, timeline: Timeline | None, proven: str) -> Page:
    """Return the report on a well-formed simulation.

    Parameters
    ----------
    report
        What was found when the pipeline was simulated again.
    timeline
        Its passes; None where no pipeline is at hand.
    proven
        What is said first if every claim holds.
    """
    charts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    times = _times(document)
    by_device = "devices" in document
    sections: list[Section] = []
    if timeline is None:
        said = (
            "Not drawn: a simulation's file holds figures, no passes. They are drawn on a page that is made with the "
            "pipeline, and with the model of a plan."
        )
        sections.append(Section("gantt-part", "Schedule over time", [Prose(said)]))
    else:
        schedule, over_time = timeline_sections(timeline, charts, data)
        peaks = [peaks_section(simulated_peaks(timeline), "simulated")] if timeline.memory else []
        sections += [schedule, *peaks, over_time]
    sections += _rows_sections(document, times, charts, by_device=by_device)
    if by_device:
        sections.append(_path(document))
    if document["channels"]:
        sections.append(_channels(document, times))
    return Page(
        title=document["name"],
        kind="simulated training iteration",
        verdict=plan_verdict(report, proven),
        figures=_figures(document, times, by_device=by_device),
        sections=sections,
        claims=claims_of(report.checks),
        charts=charts,
        data=data,
    )


def _times(document: Mapping[str, Any]) -> TrainingTimes:
    upper = Fraction(document["iteration_ticks"])
    return TrainingTimes("Iteration", "", upper, document["ticks_per_unit"], document["time_unit"] != "1")


def _figures(document: Mapping[str, Any], times: TrainingTimes, *, by_device: bool) -> list[tuple[str, str, str]]:
    if by_device:
        of_what = f"{counted(document['micro_batches'], 'micro-batch')}, {counted(document['stages'], 'stage')}"
    else:
        of_what = f"{counted(document['mini_batch'], 'sample')}, {counted(document['depth'], 'stage')} deep"
    figures = [("Iteration", times.describe(document["iteration_ticks"]), of_what)]
    if document.get("samples_per_s") is not None:
        figures.append(("Throughput", f"{rate_text(document['samples_per_s'])}/s", "samples"))
    rows = "devices" if by_device else "stages"
    figures.append(("Bubbles", f"{float(document['bubble_share']):.1%}", f"of the iteration, on average over {rows}"))
    for key, name in (("warm_up_ticks", "Warm-up"), ("steady_ticks", "Steady"), ("cool_down_ticks", "Cool-down")):
        figures.append((name, times.describe(document[key]), ""))
    return figures


def _rows_sections(
    document: Mapping[str, Any], times: TrainingTimes, charts: dict[str, Any], *, by_device: bool
) -> list[Section]:
    noun = "device" if by_device else "stage"
    rows = document["devices" if by_device else "stages"]
    parts = [BarPart("busy", "busy", _BUSY)]
    if not by_device:
        parts.append(BarPart("synchronisation", "synchronisation", _SYNCHRONISATION))
    parts.append(BarPart("bubble", "waiting", _WAITING))
    values = [[row[f"{part.key}_ticks"] for part in parts] for row in rows]
    scale = times.scale
    charts["stages"] = bars(
        "stages",
        [f"{noun} {row['index']}" for row in rows],
        parts,
        [[scale.value(ticks) for ticks in row] for row in values],
        [[scale.text(ticks) for ticks in row] for row in values],
        x_label=scale.label,
        first=("iteration", scale.value(document["iteration_ticks"])),
    ).item()
    caption = f"What each {noun} does in the iteration"
    legend = [(part.colour, part.title) for part in parts]
    chart = Chart("stages", caption, bars_height(len(rows)), legend)
    columns = [
        Column(noun),
        *([] if by_device else [Column("name", left=True)]),
        *(
            Column(scale.headed(name), scale.number)
            for name in ("first F", "first B", "last F ends", "last B ends", "busy")
        ),
        Column("waiting", lambda ticks: format_share(ticks, document["iteration_ticks"])),
        Column("in flight", "{:,}".format),
    ]
    lines = [
        [
            *(row["index"], *([] if by_device else [row["name"] or NONE]), *(row[key] for key in _SHOWN)),
            *(row["busy_ticks"], row["bubble_ticks"], row["peak_in_flight"]),
        ]
        for row in rows
    ]
    said = f"Each {noun}, as the file says: F forward and B backward passes"
    marks = [{noun: str(row["index"])} for row in rows]
    table = TableBlock("stage-table", Table(said, columns, lines), marks, sortable=True)
    plural = "Devices" if by_device else "Stages"
    return [Section("stages-part", f"Time of each {noun}", [chart]), Section("stage-figures", plural, [table])]


def _path(document: Mapping[str, Any]) -> Section:
    path = document["critical_path"]
    listed = " ".join(path[:_MOST_ON_PATH])
    more = f" … {len(path) - _MOST_ON_PATH:,} more" if len(path) > _MOST_ON_PATH else ""
    said = f"{len(path):,} passes and hand-overs, each of which begins when the one before it ends:"
    return Section("path", "Critical path", [Prose(said, quiet=True), Prose(f"{listed}{more}")], folded=True)


def _channels(document: Mapping[str, Any], times: TrainingTimes) -> Section:
    busiest = sorted(document["channels"], key=lambda one: -one["busy_ticks"])[:_MOST_CHANNELS]
    lines = [
        [f"{one['source']} → {one['target']}", one["messages"], one["busy_ticks"], one["busy_ticks"]] for one in busiest
    ]
    caption = "Channels, the busiest first"
    if len(busiest) < len(document["channels"]):
        caption += f"; {len(document['channels']) - len(busiest):,} more are not listed"
    columns = [
        Column("from, to", left=True),
        Column("messages", "{:,}".format),
        Column(times.scale.headed("busy"), times.scale.number),
        Column("share of the iteration", lambda ticks: format_share(ticks, document["iteration_ticks"])),
    ]
    return Section("channels-part", "Channels", [TableBlock("channels", Table(caption, columns, lines), sortable=True)])
