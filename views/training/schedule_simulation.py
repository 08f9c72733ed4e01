"""Table of a simulated schedule, its devices and the figures below them, for terminals, Markdown, CSV and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_share
from mtpp.views.tables import csv_text
from mtpp.views.training.simulation_table import SimulationTable, busiest_channels, table_text
from mtpp.views.training.stage_columns import StageColumn
from mtpp.views.training.timeline_texts import time_text
from mtpp.views.training.training_texts import unit_of
from mtpp.wording import counted

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.training.pfeife.schedule_run import PathPart, ScheduleRun
    from mtpp.training.timeline import Timeline

_CSV = (
    "index", "stages", "passes", "first_start_ticks", "last_end_ticks", "first_forward_start_ticks",
    "first_backward_start_ticks", "last_forward_end_ticks", "last_backward_end_ticks", "busy_ticks", "bubble_ticks",
    "peak_in_flight",
)  # fmt: skip

_MOST_NAMED = 12
"""Passes and hand-overs of a critical path that are shown; JSON has all."""


def schedule_simulation_text(run: ScheduleRun, output_format: str, terminal: RichConsole | None = None) -> str:
    """Return a simulated schedule as ``table`` with a chart below it, ``markdown``, ``csv`` or ``html``.

    Parameters
    ----------
    terminal
        The one that a table is for; None: standard output.
    """
    if output_format == "csv":
        from mtpp.formats.results.schedule_simulation import schedule_simulation_document

        rows = schedule_simulation_document(run)["devices"]
        return csv_text(_CSV, [[" ".join(map(str, row[k])) if k == "stages" else row[k] for k in _CSV] for row in rows])
    timeline = run.timeline
    title, unit = _title(run), _unit(run)
    if unit.unit:
        title += f" (times in {unit.unit})"
    return table_text(
        SimulationTable(title, _columns(run, unit), _figures(run, timeline)), timeline, output_format, terminal
    )


def _title(run: ScheduleRun) -> str:
    schedule = run.timed.schedule
    devices = f"{counted(schedule.stages, 'stage')} on {counted(schedule.devices, 'device')}"
    batches = counted(schedule.micro_batches, "micro-batch")
    return f"{terminal_safe(run.timed.name)}: {devices}, {batches}"


def _unit(run: ScheduleRun) -> CostColumns:
    if not run.timed.timed:
        scale = run.timed.ticks_per_unit
        return CostColumns("", Fraction(scale), 0 if scale == 1 else 3)
    unit, ticks = unit_of(Fraction(run.iteration))
    return CostColumns(unit, Fraction(ticks), 0 if ticks == 1 else 3)


def _columns(run: ScheduleRun, times: CostColumns) -> list[StageColumn]:
    devices, rows = run.devices, run.timed.schedule.rows
    return [
        StageColumn("device", [str(d) for d in range(len(devices))]),
        StageColumn("stages", [_stages(one.stages) for one in devices], left=True),
        StageColumn("passes", [f"{len(row):,}" for row in rows], 1),
        StageColumn("first F", [times.text(one.first_forward_start) for one in devices], 2),
        StageColumn("first B", [times.text(one.first_backward_start) for one in devices], 3),
        StageColumn("last F ends", [times.text(one.last_forward_end) for one in devices], 4),
        StageColumn("last B ends", [times.text(one.last_backward_end) for one in devices], 5),
        StageColumn("busy", [format_share(one.busy, run.iteration) for one in devices]),
        StageColumn("idle", [format_share(one.bubble, run.iteration) for one in devices]),
        StageColumn("in flight", [f"{one.peak_in_flight:,}" for one in devices]),
    ]


def _stages(stages: Sequence[int]) -> str:
    if len(stages) <= 4:
        return ", ".join(map(str, stages))
    return f"{stages[0]}, {stages[1]}, …, {stages[-1]}"


def _figures(run: ScheduleRun, timeline: Timeline) -> list[tuple[str, str]]:
    phases = run.phases
    parts = (("warm-up", phases.warm_up), ("steady", phases.steady), ("cool-down", phases.cool_down))
    figures = [
        ("iteration", time_text(timeline, run.iteration)),
        ("phases", ", ".join(f"{name} {time_text(timeline, ticks)}" for name, ticks in parts)),
        ("bubbles", f"{run.bubble_share:.1%} of the iteration on average over devices"),
    ]
    peaks = [one.peak_in_flight for one in run.devices]
    figures.append(("in flight", f"at most {max(peaks):,} (device {peaks.index(max(peaks))})"))
    channels = busiest_channels([(one.source, one.target, one.busy) for one in run.channels], run.iteration)
    if channels:
        figures.append(("channels", channels))
    figures.append(("critical path", _path(run.critical_path, run.iteration)))
    return figures


def _path(path: Sequence[PathPart], whole: int) -> str:
    passes = [part for part in path if part.target is None]
    moved = [part for part in path if part.target is not None]
    text = f"{len(passes):,} pass{'' if len(passes) == 1 else 'es'}"
    if moved:
        share = format_share(sum(part.end - part.start for part in moved), whole)
        text += f" and {counted(len(moved), 'hand-over')} ({share} of the iteration)"
    names = [part.name for part in path]
    if len(names) > _MOST_NAMED:
        half = _MOST_NAMED // 2
        names = [*names[:half], f"… {len(names) - 2 * half:,} more …", *names[-half:]]
    return f"{text}: {' '.join(names)}"
