"""Table of a simulated pipeline, its stages and the figures below them, for terminals, Markdown, CSV and HTML."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from mtpp.inference.cost_columns import CostColumns
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_picoseconds, format_share
from mtpp.views.tables import csv_text
from mtpp.views.training.simulation_table import SimulationTable, busiest_channels, table_text
from mtpp.views.training.stage_columns import StageColumn
from mtpp.views.training.training_texts import throughput, unit_of
from mtpp.wording import counted

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from mtpp.training.simulation import Simulation

_CSV = (
    "index", "name", "micro_batch", "micro_batches", "first_forward_start_ticks", "first_backward_start_ticks",
    "last_forward_end_ticks", "last_backward_end_ticks", "busy_ticks", "synchronisation_ticks", "bubble_ticks",
    "peak_in_flight",
)  # fmt: skip


def simulation_text(simulation: Simulation, output_format: str, terminal: RichConsole | None = None) -> str:
    """Return a simulated pipeline as ``table`` with a chart below it, ``markdown``, ``csv`` or ``html``.

    Parameters
    ----------
    terminal
        The one that a table is for; None: standard output.
    """
    if output_format == "csv":
        from mtpp.formats.results.simulation import simulation_document

        return csv_text(_CSV, [[row[key] for key in _CSV] for row in simulation_document(simulation)["stages"]])
    table = SimulationTable(_title(simulation), _columns(simulation), _figures(simulation))
    return table_text(table, simulation.timeline, output_format, terminal)


def _title(simulation: Simulation) -> str:
    graph = simulation.graph
    unit, _ = unit_of(Fraction(simulation.iteration))
    stages = f"{counted(len(graph.stages), 'stage')}, {graph.depth:,} deep"
    return (
        f"{terminal_safe(graph.name)}: {stages}, mini-batch of {counted(graph.mini_batch, 'sample')} (times in {unit})"
    )


def _columns(simulation: Simulation) -> list[StageColumn]:
    unit, ticks = unit_of(Fraction(simulation.iteration))
    whole = simulation.iteration
    times = CostColumns(unit, Fraction(ticks), 0 if ticks == 1 else 3)
    stages, runs = simulation.graph.stages, simulation.stages
    columns = [
        StageColumn("stage", [str(s) for s in range(len(stages))]),
        StageColumn("name", [terminal_safe(stage.name) for stage in stages], left=True),
        StageColumn("passes", [f"{2 * stage.micro_batches:,}" for stage in stages], 2),
        StageColumn("of samples", [f"{stage.micro_batch:,}" for stage in stages], 3),
        StageColumn("first F", [times.text(one.first_forward_start) for one in runs], 4),
        StageColumn("first B", [times.text(one.first_backward_start) for one in runs], 5),
        StageColumn("last F ends", [times.text(one.last_forward_end) for one in runs], 6),
        StageColumn("last B ends", [times.text(one.last_backward_end) for one in runs], 7),
        StageColumn("busy", [format_share(one.busy, whole) for one in runs]),
        StageColumn("waits", [format_share(one.bubble, whole) for one in runs]),
        StageColumn("gradients", [times.text(one.synchronisation) for one in runs], 1),
        StageColumn("in flight", [str(one.peak_in_flight) for one in runs]),
    ]
    dropped = set()
    if all(stage.name == f"stage {s}" for s, stage in enumerate(stages)):
        dropped.add("name")
    if not any(one.synchronisation for one in runs):
        dropped.add("gradients")
    return [column for column in columns if column.name not in dropped]


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
