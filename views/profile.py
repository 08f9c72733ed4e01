"""Profiles of models: kinds of ops and the most expensive ops, measured against modelled."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.terminal_safe import terminal_safe
from mtpp.units import PICOSECONDS, format_bytes, format_picoseconds, format_share
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_text, rendered, result_terminal, safe_text

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.runtime.profiling.profile_model import MeasuredProfile
    from mtpp.units import Exact

_MOST_SHOWN = 10
_NOTICED = Fraction(1, 2000)
_PS = PICOSECONDS["us"]


def profile_text(profile: MeasuredProfile, output_format: str) -> str:
    """Return a profile as ``table``, ``markdown``, ``html`` or ``csv``: every op, in microseconds."""
    if output_format == "csv":
        return csv_text(*_every_op(profile))
    figures = _figures(profile)
    tables = [_kinds(profile), _most_expensive(profile)]
    if output_format == "html":
        kinds, ops = tables
        return html_text(profile.graph.name, *kinds, figures, left=(0,)) + html_text(
            "most expensive ops", *ops, left=(0, 1)
        )
    if output_format == "markdown":
        lines = "\n".join(f"- **{name}**: {value}" for name, value in figures)
        parts = [markdown_text(header, rows) for header, rows in tables]
        return (
            "\n\n".join([f"### {terminal_safe(profile.graph.name)}", lines, *(part.rstrip() for part in parts)]) + "\n"
        )
    from rich.table import Table

    shown: list[Any] = [figures_grid(figures)]
    for header, rows in tables:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for i, name in enumerate(header):
            table.add_column(name, justify="left" if i == 0 or name == "kind" else "right", overflow="fold")
        for row in rows:
            table.add_row(*(safe_text(str(cell)) for cell in row))
        shown += ["", table]
    return rendered(result_terminal(), *shown)


def _figures(profile: MeasuredProfile) -> list[tuple[str, str]]:
    graph, said = profile.graph, profile.graph.metadata["profile"]
    machine = said["machine"]
    quarter, median, three_quarters = profile.ops.wall
    modelled = _modelled(profile.modelled)
    lines = [
        ("model", f"{graph.name}: {graph.op_count:,} ops, {graph.tensor_count:,} tensors"),
        ("machine", f"{machine['cpu']}, {machine['cores']} cores; ONNX Runtime {said['onnxruntime']}, "
                    f"{_count(said['threads'], 'thread')}, {'optimised' if said['optimise'] else 'not optimised'}"
                    f"{_beside(said['beside'])}"),
        ("one run", f"{_time(median)} (quartiles {_time(quarter)} and {_time(three_quarters)}, {said['repeats']} runs "
                    f"after {said['warm_up']} to warm up); with the profiler {_time(profile.ops.profiled_wall[1])}"),
        ("kernels", f"{_time(profile.ops.kernels)}, {_kernels(profile)}"),
        ("modelled", f"{_time(modelled)}: measured is {_times(sum(graph.work), modelled)} that"),
    ]  # fmt: skip
    if said["pieces"] > 1:
        lines.append(("pieces", f"{said['pieces']}, one after the other: the whole model does not fit into memory"))
    made_up = []
    if profile.random_weight_bytes:
        made_up.append(f"{format_bytes(profile.random_weight_bytes)} of weights whose files are absent")
    if profile.random_inputs:
        shown = ", ".join(profile.random_inputs[:4]) + (", …" if len(profile.random_inputs) > 4 else "")
        made_up.append(f"inputs {shown}")
    if made_up:
        lines.append(("random", "; ".join(made_up)))
    return lines


def _kernels(profile: MeasuredProfile) -> str:
    rest, ops = profile.ops.between_kernels, profile.graph.op_count
    if rest >= 0:
        return f"and {_time(rest)} between them: {_time(rest / ops)} added to each op"
    shrunk = 1 - sum(profile.graph.work, Fraction(0)) / (profile.ops.kernels or 1)
    if shrunk < _NOTICED:
        return "and between them no time that the profiler does not take itself"
    return f"slowed down by the profiler: each op shrunk by {float(shrunk):.1%}"


def _kinds(profile: MeasuredProfile) -> tuple[list[str], list[list[str]]]:
    graph = profile.graph
    rows: dict[str, list[Fraction]] = {}
    counts: dict[str, int] = {}
    for kind, cost, modelled in zip(graph.op_kinds, graph.work, _each_modelled(profile.modelled), strict=True):
        row = rows.setdefault(kind, [Fraction(0), Fraction(0)])
        row[0] += cost
        row[1] += modelled
        counts[kind] = counts.get(kind, 0) + 1
    total = sum(graph.work) or 1
    return ["kind", "ops", "measured", "share", "modelled", "ratio"], [
        [kind or "–", f"{counts[kind]:,}", _time(cost), format_share(float(cost), float(total)), _time(modelled),
         _times(cost, modelled)]
        for kind, (cost, modelled) in sorted(rows.items(), key=lambda item: -item[1][0])
    ]  # fmt: skip


def _most_expensive(profile: MeasuredProfile) -> tuple[list[str], list[list[str]]]:
    graph = profile.graph
    total = sum(graph.work) or 1
    modelled = _each_modelled(profile.modelled)
    shown = sorted(range(graph.op_count), key=lambda op: -graph.work[op])[:_MOST_SHOWN]
    return ["op", "kind", "measured", "share", "quartiles", "modelled", "ratio"], [
        [graph.op_names[op], graph.op_kinds[op] or "–", _time(graph.work[op]),
         format_share(float(graph.work[op]), float(total)),
         f"{_time(profile.ops.quartiles[op][0])} – {_time(profile.ops.quartiles[op][2])}", _time(modelled[op]),
         _times(graph.work[op], modelled[op])]
        for op in shown
    ]  # fmt: skip


def _every_op(profile: MeasuredProfile) -> tuple[list[str], list[list[Any]]]:
    graph = profile.graph
    header = ["op", "kind", "work_us", "kernel_us", "first_quartile_us", "median_us", "third_quartile_us"]
    return [*header, "modelled_us"], [
        [name, kind, *(_microseconds(figure) for figure in (cost, kernel, *figures, modelled))]
        for name, kind, cost, kernel, figures, modelled in zip(
            graph.op_names,
            graph.op_kinds,
            graph.work,
            profile.ops.kernel,
            profile.ops.quartiles,
            _each_modelled(profile.modelled),
            strict=True,
        )
    ]


def _each_modelled(graph: CostGraph) -> list[Fraction]:
    """Return the modelled costs in microseconds."""
    unit = Fraction(PICOSECONDS[graph.time_unit], _PS)
    return [work * unit for work in graph.work]


def _modelled(graph: CostGraph) -> Fraction:
    return sum(_each_modelled(graph), Fraction(0))


def _time(microseconds: Exact) -> str:
    return format_picoseconds(round(microseconds * _PS))


def _times(measured: Exact, modelled: Exact) -> str:
    return f"{float(Fraction(measured) / modelled):,.3g}×" if modelled else "–"


def _beside(others: int) -> str:
    return f"; {_count(others, 'other')} beside it" if others else ""


def _microseconds(figure: Exact) -> str:
    value = float(figure)
    return f"{value:.3f}" if value >= 1 or not value else f"{value:.4g}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
