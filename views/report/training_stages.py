"""Stages of a training plan as bars and as a table, and the memory of each, for every planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.training.timeline import Timeline
from mtpp.units import format_picoseconds, format_share
from mtpp.views.report.colours import ITERATION
from mtpp.views.report.page import Chart, Section, TableBlock
from mtpp.views.report.stage_bars import BarPart, bars, bars_height
from mtpp.views.report.training.memory_peaks import each_limit, peaks_section, stated_peaks
from mtpp.views.report.training.plan_stages import figures_blocks, plan_sizes
from mtpp.views.report.training.scales import TimeScale
from mtpp.views.report.training.stage_flows import StageFlow
from mtpp.views.table import NONE, Column, Table


@dataclass(frozen=True)
class TrainingTimes:
    """What a plan is measured by, in ticks, and how times are written.

    Attributes
    ----------
    noun, of_what
        Name of the figure, and what explains it.
    """

    noun: str
    of_what: str
    upper: Fraction
    ticks_per_unit: int
    timed: bool

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> TrainingTimes:
        """Return what a document says."""
        timed = document["time_unit"] != "1"
        if document.get("iteration_ticks") is not None:
            batches = document.get("micro_batches", document.get("mini_batch"))
            what = "micro-batches" if "micro_batches" in document else "samples"
            upper = Fraction(document["iteration_ticks"])
            return cls("Iteration", f"{batches:,} {what}", upper, document["ticks_per_unit"], timed)
        stated = document.get("time_per_sample_ticks")
        upper = Fraction(*stated) if stated else Fraction(0)
        return cls("Time per micro-batch", "of the slowest stage", upper, document["ticks_per_unit"], timed)

    @property
    def scale(self) -> TimeScale:
        """Unit of all times of a page."""
        return TimeScale.of(self.upper, self.ticks_per_unit, timed=self.timed)

    def describe(self, ticks: Fraction | float) -> str:
        """Write a time for people."""
        if not ticks:
            return "0"
        return format_picoseconds(float(ticks)) if self.timed else f"{float(ticks) / self.ticks_per_unit:,.6g}"


def stages_sections(
    document: Mapping[str, Any], times: TrainingTimes, flows: Sequence[StageFlow] | None, charts: dict[str, Any]
) -> list[Section]:
    """Return the sections with the bars of stages or devices and with their tables; the chart goes to *charts*."""
    labels, parts, values, caption = _bars(document)
    scale = times.scale
    rows = [[scale.value(Fraction(ticks)) for ticks in row] for row in values]
    bound = document["lower_bound"]["value"]
    lower = Fraction(*bound) if isinstance(bound, Sequence) else Fraction(bound)
    charts["stages"] = bars(
        "stages",
        labels,
        parts,
        rows,
        [[scale.text(Fraction(ticks)) for ticks in row] for row in values],
        x_label=scale.label,
        first=(times.noun.lower(), scale.value(times.upper)),
        second=("lower bound", scale.value(lower)),
    ).item()
    legend = [(part.colour, part.title) for part in parts]
    noun = "device" if "devices" in document else "stage"
    chart = Chart("stages", caption, bars_height(len(labels)), legend)
    sections = [Section("stages-part", f"Time of each {noun}", [chart])]
    if "devices" in document:
        sections.append(Section("device-figures", "Devices", [_devices(document, scale)]))
    sections.append(Section("stage-figures", "Stages", figures_blocks(document, flows, scale)))
    if document.get("baselines"):
        sections.append(Section("baselines-part", "Even splits", [_baselines(document, scale)]))
    return sections


def memory_section(document: Mapping[str, Any], timeline: Timeline | None) -> Section | None:
    """Return the section on the memory of each device at most, against its limit; None where it is not known.

    Parameters
    ----------
    timeline
        Simulated iteration, which may say which part is held all the time.
    """
    if "devices" in document:
        held = {f"device {row['index']}": row["peak_bytes"] for row in document["devices"]}
    else:
        held = {f"stage {s}": row["memory_bytes"] for s, row in enumerate(document["stages"])}
    if not held or any(size is None for size in held.values()):
        return None
    limits = each_limit(document["system"]["memory_bytes"], len(held))
    memory = () if timeline is None else timeline.memory
    return peaks_section(stated_peaks(list(held), list(held.values()), limits, memory), "as the plan says")


def _bars(document: Mapping[str, Any]) -> tuple[list[str], list[BarPart], list[list[Any]], str]:
    """Return names, parts and values in ticks of the bars, and what they are."""
    stages = document["stages"]
    labels = [f"stage {s}" for s in range(len(stages))]
    if "devices" in document:
        parts = [BarPart("busy", "busy", ITERATION["busy"]), BarPart("idle", "idle", ITERATION["idle"])]
        devices = document["devices"]
        names = [f"device {row['index']}" for row in devices]
        return names, parts, [[row["busy_ticks"], row["idle_ticks"]] for row in devices], "Each device in an iteration"
    if "mini_batch" in document:
        parts = [
            BarPart("forward", "forward", ITERATION["forward"]),
            BarPart("backward", "backward", ITERATION["backward"]),
            BarPart("synchronisation", "synchronisation", ITERATION["gradients"]),
        ]
        values = []
        for row in stages:
            times = Fraction(document["mini_batch"], row["micro_batch"] or 1)
            passes = [row["forward_ticks"] * times, row["backward_ticks"] * times]
            values.append([*passes, row["synchronisation_ticks"]])
        return labels, parts, values, "What each stage computes in an iteration; the rest of it is waiting"
    parts = [
        BarPart("compute", "compute", ITERATION["busy"]),
        BarPart("edges", "tensors from and to other stages", ITERATION["edges"]),
        BarPart("gradients", "synchronisation of gradients", ITERATION["gradients"]),
    ]
    scale = document["ticks_per_unit"]
    values = [[Fraction(row[part.key]) * scale for part in parts] for row in stages]
    return labels, parts, values, "Time of each stage for one micro-batch"


def _devices(document: Mapping[str, Any], times: TimeScale) -> TableBlock:
    devices, whole = document["devices"], document["iteration_ticks"]
    keys = ("index", "busy_ticks", "idle_ticks", "idle_ticks", "in_flight", "peak_bytes")
    sizes = plan_sizes(document)
    columns = [
        Column("device"),
        Column(times.headed("busy"), times.number),
        Column(times.headed("idle"), times.number),
        Column("share idle", lambda ticks: format_share(ticks, whole)),
        Column("in flight", "{:,}".format),
        Column(sizes.headed("memory"), sizes.number),
    ]
    table = Table("Devices in an iteration, as the plan says", columns, [[row[key] for key in keys] for row in devices])
    return TableBlock("device-table", table, [{"device": str(row["index"])} for row in devices], sortable=True)


def _baselines(document: Mapping[str, Any], times: TimeScale) -> TableBlock:
    own = document["iteration_ticks"]
    rows = []
    for row in document["baselines"]:
        ticks = row["iteration_ticks"]
        over = None if ticks is None else f"{ticks / own:.3f}×" if own else NONE
        rows.append([str(row["name"]), ticks, over, "yes" if row["fits"] else "no"])
    columns = [Column("schedule", left=True), Column(times.headed("iteration"), times.number)]
    columns += map(Column, ("over the plan's", "fits into memory"))
    return TableBlock("baselines", Table("Even splits under known schedules, as the plan says", columns, rows))
