"""Tables of simulated pipelines and schedules: stages or devices, the figures below them, and a chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_picoseconds, format_share
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table, table_of_columns, table_of_records
from mtpp.views.training.gantt import chart
from mtpp.views.training.timeline_texts import busiest_channels, time_text
from mtpp.views.training.training_texts import throughput, unit_of
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.training.pfeife.schedule_run import PathPart, ScheduleRun
    from mtpp.training.simulation import Simulation
    from mtpp.training.timeline import Timeline
    from mtpp.views.terminal import Medium

_CSV = (
    "index", "name", "micro_batch", "micro_batches", "first_forward_start_ticks", "first_backward_start_ticks",
    "last_forward_end_ticks", "last_backward_end_ticks", "busy_ticks", "synchronisation_ticks", "bubble_ticks",
    "peak_in_flight",
)  # fmt: skip

_DEVICES_CSV = (
    "index", "stages", "passes", "first_start_ticks", "last_end_ticks", "first_forward_start_ticks",
    "first_backward_start_ticks", "last_forward_end_ticks", "last_backward_end_ticks", "busy_ticks", "bubble_ticks",
    "peak_in_flight",
)  # fmt: skip

_MOST_NAMED = 12
"""Passes and hand-overs of a critical path that are shown; JSON has all."""


@view
def simulation_text(simulation: Simulation, medium: Medium) -> Iterable[Table | str]:
    """Return a table of the stages, and in a terminal a chart below it."""
    if medium.form == "csv":
        from mtpp.formats.results.simulation import simulation_document

        return [table_of_records(simulation_document(simulation)["stages"], _CSV)]
    table = table_of_columns(_title(simulation), _columns(simulation), _figures(simulation))
    return [table, *chart(simulation.timeline, medium)]


def _title(simulation: Simulation) -> str:
    graph = simulation.graph
    unit, _ = unit_of(Fraction(simulation.iteration))
    stages = f"{counted(len(graph.stages), 'stage')}, {graph.depth:,} deep"
    return (
        f"{terminal_safe(graph.name)}: {stages}, mini-batch of {counted(graph.mini_batch, 'sample')} (times in {unit})"
    )


def _columns(simulation: Simulation) -> Iterator[tuple[Column, Sequence[Any]]]:
    unit, ticks = unit_of(Fraction(simulation.iteration))
    time = CostColumns(unit, Fraction(ticks), 0 if ticks == 1 else 3).text
    stages, runs = simulation.graph.stages, simulation.stages

    def share(part: int) -> str:
        return format_share(part, simulation.iteration)

    yield Column("stage"), range(len(stages))
    if any(stage.name != f"stage {s}" for s, stage in enumerate(stages)):
        yield Column("name", terminal_safe, left=True, names=True), [stage.name for stage in stages]
    yield Column("passes", "{:,}".format, spare=2), [2 * stage.micro_batches for stage in stages]
    yield Column("of samples", "{:,}".format, spare=3), [stage.micro_batch for stage in stages]
    yield Column("first F", time, spare=4), [one.first_forward_start for one in runs]
    yield Column("first B", time, spare=5), [one.first_backward_start for one in runs]
    yield Column("last F ends", time, spare=6), [one.last_forward_end for one in runs]
    yield Column("last B ends", time, spare=7), [one.last_backward_end for one in runs]
    yield Column("busy", share), [one.busy for one in runs]
    yield Column("waits", share), [one.bubble for one in runs]
    if any(one.synchronisation for one in runs):
        yield Column("gradients", time, spare=1), [one.synchronisation for one in runs]
    yield Column("in flight"), [one.peak_in_flight for one in runs]


def _figures(simulation: Simulation) -> list[tuple[str, str]]:
    graph, phases, whole = simulation.graph, simulation.phases, simulation.iteration
    figures = [("iteration", format_picoseconds(whole))]
    if whole:
        figures.append(("throughput", f"{throughput(Fraction(whole, graph.mini_batch))} samples/s"))
    parts = (("warm-up", phases.warm_up), ("steady", phases.steady), ("cool-down", phases.cool_down))
    figures.append(("phases", ", ".join(f"{name} {format_picoseconds(ticks)}" for name, ticks in parts)))
    figures.append(("bubbles", f"{simulation.bubble_share:.1%} of the iteration on average over stages"))
    kept = [stage.micro_batch * one.peak_in_flight for stage, one in zip(graph.stages, simulation.stages, strict=True)]
    figures.append(("in flight", f"at most {counted(max(kept), 'sample')} (stage {kept.index(max(kept))})"))
    channels = busiest_channels([(one.source, one.target, one.busy) for one in simulation.channels], whole)
    if channels:
        figures.append(("channels", channels))
    return figures


@view
def schedule_simulation_text(run: ScheduleRun, medium: Medium) -> Iterable[Table | str]:
    """Return a table of the devices, and in a terminal a chart below it."""
    if medium.form == "csv":
        from mtpp.formats.results.simulation import schedule_simulation_document

        rows = schedule_simulation_document(run)["devices"]
        return [table_of_records([{**row, "stages": " ".join(map(str, row["stages"]))} for row in rows], _DEVICES_CSV)]
    title, unit = _schedule_title(run), _unit(run)
    if unit.unit:
        title += f" (times in {unit.unit})"
    return [
        table_of_columns(title, _schedule_columns(run, unit), _schedule_figures(run, run.timeline)),
        *chart(run.timeline, medium),
    ]


def _schedule_title(run: ScheduleRun) -> str:
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


def _schedule_columns(run: ScheduleRun, times: CostColumns) -> Iterator[tuple[Column, Sequence[Any]]]:
    devices = run.devices

    def share(part: int) -> str:
        return format_share(part, run.iteration)

    yield Column("device"), range(len(devices))
    yield Column("stages", _stages, left=True), [one.stages for one in devices]
    yield Column("passes", "{:,}".format, spare=1), list(map(len, run.timed.schedule.rows))
    yield Column("first F", times.text, spare=2), [one.first_forward_start for one in devices]
    yield Column("first B", times.text, spare=3), [one.first_backward_start for one in devices]
    yield Column("last F ends", times.text, spare=4), [one.last_forward_end for one in devices]
    yield Column("last B ends", times.text, spare=5), [one.last_backward_end for one in devices]
    yield Column("busy", share), [one.busy for one in devices]
    yield Column("idle", share), [one.bubble for one in devices]
    yield Column("in flight", "{:,}".format), [one.peak_in_flight for one in devices]


def _stages(stages: Sequence[int]) -> str:
    if len(stages) <= 4:
        return ", ".join(map(str, stages))
    return f"{stages[0]}, {stages[1]}, …, {stages[-1]}"


def _schedule_figures(run: ScheduleRun, timeline: Timeline) -> list[tuple[str, str]]:
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
