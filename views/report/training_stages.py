"""Stages of a training plan as bars and as a table, and the memory of each, for every planner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.inference.cost_columns import CostColumns
from mtpp.units import format_bytes, format_picoseconds, format_share
from mtpp.views.report.colours import BLUE, ITERATION
from mtpp.views.report.page import Chart, Section, TableBlock
from mtpp.views.report.stage_bars import BarPart, bars, bars_height
from mtpp.views.table import NONE, Column, Table

_MIB = 2**20
_FOREVER = 4
"""A limit of memory that is as many times what is used is not drawn: bars would be too short to read."""


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

    def describe(self, ticks: Fraction | float) -> str:
        """Write a time for people."""
        if not ticks:
            return "0"
        return format_picoseconds(float(ticks)) if self.timed else f"{float(ticks) / self.ticks_per_unit:,.6g}"


def stages_sections(document: Mapping[str, Any], times: TrainingTimes, charts: dict[str, Any]) -> list[Section]:
    """Return the sections with the bars of stages or devices and with their tables; the chart goes to *charts*."""
    labels, parts, values, caption = _bars(document)
    costs = CostColumns.of(times, int(times.upper))
    rows = [[float(Fraction(ticks) / costs.ticks) for ticks in row] for row in values]
    bound = document["lower_bound"]["value"]
    lower = Fraction(*bound) if isinstance(bound, Sequence) else Fraction(bound)
    charts["stages"] = bars(
        "stages",
        labels,
        parts,
        rows,
        [[times.describe(ticks) for ticks in row] for row in values],
        x_label=f"time ({costs.unit})" if times.timed else "time in the unit of the file",
        first=(times.noun.lower(), float(times.upper / costs.ticks)),
        second=("lower bound", float(lower / costs.ticks)),
    ).item()
    legend = [(part.colour, part.title) for part in parts]
    noun = "device" if "devices" in document else "stage"
    chart = Chart("stages", caption, bars_height(len(labels)), legend)
    sections = [Section("stages-part", f"Time of each {noun}", [chart])]
    if "devices" in document:
        sections.append(Section("device-figures", "Devices", [_devices(document, times)]))
    sections.append(Section("stage-figures", "Stages", [_table(document, times)]))
    if document.get("baselines"):
        sections.append(Section("baselines-part", "Even splits", [_baselines(document, times)]))
    return sections


def memory_section(document: Mapping[str, Any], charts: dict[str, Any]) -> Section | None:
    """Return the section on the memory of each device at most, against its limit; None where it is not known."""
    if "devices" in document:
        held = {f"device {row['index']}": row["peak_bytes"] for row in document["devices"]}
    else:
        held = {f"stage {s}": row["memory_bytes"] for s, row in enumerate(document["stages"])}
    if not held or any(size is None for size in held.values()):
        return None
    limit = document["system"]["memory_bytes"]
    limits = limit if isinstance(limit, list | tuple) else [limit]
    drawn = limits[0] if len(set(limits)) == 1 and limits[0] is not None else None
    if drawn is not None and drawn > _FOREVER * max(held.values()):
        drawn = None
    charts["memory"] = bars(
        "memory",
        list(held),
        [BarPart("memory", "memory", BLUE)],
        [[size / _MIB] for size in held.values()],
        [[format_bytes(size)] for size in held.values()],
        x_label="memory (MiB)",
        first=None if drawn is None else ("limit", drawn / _MIB),
    ).item()
    allowed = ", ".join(format_bytes(one) for one in dict.fromkeys(limits) if one is not None)
    caption = (
        f"Memory of a device at most, as the plan says; {f'{allowed} allowed' if allowed else 'no limit was given'}"
    )
    return Section("peak-part", "Memory of each device", [Chart("memory", caption, bars_height(len(held)))])


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


_COLUMNS: Mapping[str, tuple[str, str]] = {
    "device": ("device", "count"),
    "data_parallel": ("replicas", "count"),
    "tensor_parallel": ("devices each", "count"),
    "devices": ("devices", "count"),
    "micro_batch": ("samples", "count"),
    "forwards_backwards": ("kFkB", "count"),
    "in_flight": ("in flight", "count"),
    "forward_ticks": ("forward", "ticks"),
    "backward_ticks": ("backward", "ticks"),
    "handover_ticks": ("hand-over", "ticks"),
    "synchronisation_ticks": ("synchronisation", "ticks"),
    "compute": ("compute", "units"),
    "communication": ("communication", "units"),
    "time_ticks": ("time", "fraction"),
    "memory_bytes": ("memory", "bytes"),
}
"""Keys of a stage, what its columns are called, and what they hold."""


def _table(document: Mapping[str, Any], times: TrainingTimes) -> TableBlock:
    stages = document["stages"]
    keys = [key for key in _COLUMNS if any(row.get(key) is not None for row in stages)]
    keys = [key for key in keys if key != "tensor_parallel" or any(row[key] != 1 for row in stages)]
    columns = [
        Column("stage"),
        Column("layers", "{:,}".format),
        Column("first layer", left=True),
        Column("last layer", left=True),
        *(Column(_COLUMNS[key][0], _form(_COLUMNS[key][1], times)) for key in keys),
    ]
    rows = []
    for s, row in enumerate(stages):
        layers = row["layers"]
        names = [str(layers[0]), str(layers[-1])] if layers else [NONE, NONE]
        rows.append([s, len(layers), *names, *(_value(row.get(key), _COLUMNS[key][1], document) for key in keys)])
    caption = "Stages, as the plan says; samples and times are of one micro-batch, memory of a device"
    marks = [{"stage": str(s)} for s in range(len(stages))]
    return TableBlock("stage-table", Table(caption, columns, rows), marks, sortable=True)


def _form(kind: str, times: TrainingTimes) -> Callable[[Any], str]:
    return {"count": "{:,}".format, "bytes": format_bytes}.get(kind, times.describe)


def _value(value: Any, kind: str, document: Mapping[str, Any]) -> Any:
    """Return the value of a column: of times the ticks."""
    if value is None or kind in ("count", "bytes", "ticks"):
        return value
    return float(Fraction(*value) if kind == "fraction" else Fraction(value) * document["ticks_per_unit"])


def _devices(document: Mapping[str, Any], times: TrainingTimes) -> TableBlock:
    devices = document["devices"]
    keys = ("index", "busy_ticks", "idle_ticks", "idle_ticks", "in_flight", "peak_bytes")
    columns = [
        Column("device"),
        Column("busy", times.describe),
        Column("idle", times.describe),
        Column("share idle", lambda ticks: format_share(ticks, float(times.upper))),
        Column("in flight", "{:,}".format),
        Column("memory", format_bytes),
    ]
    table = Table("Devices in an iteration, as the plan says", columns, [[row[key] for key in keys] for row in devices])
    return TableBlock("device-table", table, [{"device": str(row["index"])} for row in devices], sortable=True)


def _baselines(document: Mapping[str, Any], times: TrainingTimes) -> TableBlock:
    own = float(times.upper)
    rows = []
    for row in document["baselines"]:
        ticks = row["iteration_ticks"]
        over = None if ticks is None else f"{ticks / own:.3f}×" if own else NONE
        rows.append([str(row["name"]), ticks, over, "yes" if row["fits"] else "no"])
    columns = [Column("schedule", left=True), Column("iteration", times.describe)]
    columns += map(Column, ("over the plan's", "fits into memory"))
    return TableBlock("baselines", Table("Even splits under known schedules, as the plan says", columns, rows))
