"""Profiles of models: kinds of ops and the most expensive ops, measured against modelled."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.units import PICOSECONDS, Exact, format_bytes, format_picoseconds, format_share
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.runtime.profiling.profiled_graph import BackwardTimes, MeasuredProfile
    from mtpp.views.terminal import Medium

_MOST_SHOWN = 10
_NOTICED = Fraction(1, 2000)
_PS = PICOSECONDS["us"]


@view
def profile_text(profile: MeasuredProfile, medium: Medium) -> Iterable[Table]:
    """Return a table of kinds of ops and one of the most expensive ops; as CSV every op, in microseconds."""
    if medium.form == "csv":
        return [_every_op(profile)]
    title = "most expensive ops" if medium.form == "html" else ""
    kinds = Table(profile.graph.name, *_kinds(profile), _figures(profile), layout="above")
    return [kinds, Table(title, *_most_expensive(profile), layout="above")]


def _figures(profile: MeasuredProfile) -> list[tuple[str, str]]:
    graph, said = profile.graph, profile.graph.metadata["profile"]
    quarter, median, three_quarters = profile.ops.wall
    modelled = sum(_each_modelled(profile.modelled), Fraction(0))
    apart = "node by node" if "pytorch" in said else "with the profiler"
    lines = [
        ("model", f"{graph.name}: {graph.op_count:,} ops, {graph.tensor_count:,} tensors"),
        ("machine", _machine(said)),
        ("one run", f"{_time(median)} (quartiles {_time(quarter)} and {_time(three_quarters)}, {said['repeats']} runs "
                    f"after {said['warm_up']} to warm up); {apart} {_time(profile.ops.profiled_wall[1])}"),
        ("ops" if "pytorch" in said else "kernels", f"{_time(profile.ops.kernels)}, {_kernels(profile)}"),
        ("modelled", f"{_time(modelled)}: measured is {_times(sum(graph.work), modelled)} that"),
    ]  # fmt: skip
    if profile.ops.backward is not None:
        lines.insert(4, ("backward", _backward(profile.ops.backward)))
    if said.get("pieces", 1) > 1:
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


def _machine(said: Mapping[str, Any]) -> str:
    machine = said["machine"]
    host = f"{machine['cpu']}, {machine['cores']} cores"
    threads = _count(said["threads"], "thread")
    if "pytorch" in said:
        return f"{host}; PyTorch {said['pytorch']} on {said['device']}, {threads}"
    optimised = "optimised" if said["optimise"] else "not optimised"
    return f"{host}; ONNX Runtime {said['onnxruntime']}, {threads}, {optimised}{_beside(said['beside'])}"


def _backward(backward: BackwardTimes) -> str:
    quarter, median, three_quarters = backward.wall
    ops = sum(backward.cost, Fraction(0))
    return (
        f"{_time(median)} (quartiles {_time(quarter)} and {_time(three_quarters)}); ops {_time(ops)}, "
        f"{_times(ops, median)} that"
    )


def _kernels(profile: MeasuredProfile) -> str:
    if "pytorch" in profile.graph.metadata["profile"]:
        return f"{_times(profile.ops.kernels, profile.ops.wall[1])} one run"
    rest, ops = profile.ops.between_kernels, profile.graph.op_count
    if rest >= 0:
        return f"and {_time(rest)} between them: {_time(rest / ops)} added to each op"
    shrunk = 1 - sum(profile.graph.work, Fraction(0)) / (profile.ops.kernels or 1)
    if shrunk < _NOTICED:
        return "and between them no time that the profiler does not take itself"
    return f"slowed down by the profiler: each op shrunk by {float(shrunk):.1%}"


def _kinds(profile: MeasuredProfile) -> tuple[list[Column], list[list[Any]]]:
    graph = profile.graph
    rows: dict[str, list[Fraction]] = {}
    counts: dict[str, int] = {}
    back = _each_backward(profile) or [Fraction(0)] * graph.op_count
    for kind, *costs in zip(graph.op_kinds, graph.work, _each_modelled(profile.modelled), back, strict=True):
        row = rows.setdefault(kind, [Fraction(0)] * len(costs))
        row[:] = map(operator.add, row, costs)
        counts[kind] = counts.get(kind, 0) + 1
    total = sum(graph.work) or 1
    columns = [
        Column("kind", left=True),
        Column("ops", "{:,}".format),
        Column("measured", _time),
        Column("share"),
        Column("modelled", _time),
        Column("ratio"),
        *([] if profile.ops.backward is None else [Column("backward", _time)]),
    ]
    return columns, [
        [kind or None, counts[kind], cost, format_share(float(cost), float(total)), modelled, _times(cost, modelled),
         backward][: len(columns)]
        for kind, (cost, modelled, backward) in sorted(rows.items(), key=lambda item: -item[1][0])
    ]  # fmt: skip


def _most_expensive(profile: MeasuredProfile) -> tuple[list[Column], list[list[Any]]]:
    graph = profile.graph
    total = sum(graph.work) or 1
    modelled = _each_modelled(profile.modelled)
    shown = sorted(range(graph.op_count), key=lambda op: -graph.work[op])[:_MOST_SHOWN]
    back = _each_backward(profile)
    columns = [
        Column("op", left=True),
        Column("kind", left=True),
        Column("measured", _time),
        Column("share"),
        Column("quartiles"),
        Column("modelled", _time),
        Column("ratio"),
        *([Column("backward", _time)] if back else []),
    ]
    return columns, [
        [graph.op_names[op], graph.op_kinds[op] or None, graph.work[op],
         format_share(float(graph.work[op]), float(total)),
         f"{_time(profile.ops.quartiles[op][0])} – {_time(profile.ops.quartiles[op][2])}", modelled[op],
         _times(graph.work[op], modelled[op]), *back[op : op + 1]]
        for op in shown
    ]  # fmt: skip


def _every_op(profile: MeasuredProfile) -> Table:
    graph = profile.graph
    header = ["op", "kind", "work_us", "kernel_us", "first_quartile_us", "median_us", "third_quartile_us"]
    header += ["modelled_us", *(["backward_us"] if profile.ops.backward else [])]
    back = [[cost] for cost in _each_backward(profile)] or [[] for _ in graph.op_names]
    rows = [
        [name, kind, *map(_microseconds, (cost, kernel, *figures, modelled, *backward))]
        for name, kind, cost, kernel, figures, modelled, backward in zip(
            graph.op_names,
            graph.op_kinds,
            graph.work,
            profile.ops.kernel,
            profile.ops.quartiles,
            _each_modelled(profile.modelled),
            back,
            strict=True,
        )
    ]
    return Table(columns=list(map(Column, header)), rows=rows)


def _each_modelled(graph: CostGraph) -> list[Fraction]:
    """Return the modelled costs in microseconds."""
    unit = Fraction(PICOSECONDS[graph.time_unit], _PS)
    return [work * unit for work in graph.work]


def _each_backward(profile: MeasuredProfile) -> list[Fraction]:
    """Return the times of backward passes in microseconds, nothing where they were not measured."""
    return [] if profile.ops.backward is None else [Fraction(cost) for cost in profile.ops.backward.cost]


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
