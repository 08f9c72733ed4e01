"""Memory of the stages of a plan: weights, states and activations of each against the limit of its device, as bars."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.inference.graph import CostGraph
from mtpp.machine.machine import Machine
from mtpp.units import format_bytes
from mtpp.views.report.page import MemoryBar, MemoryBars, MemoryPiece, Section, TableBlock
from mtpp.views.report.stated import StatedPlan
from mtpp.views.shown_plan import devices_text
from mtpp.views.table import Column, Table
from mtpp.wording import counted

WEIGHTS, STATES, ACTIVATIONS, FREE = "weights", "states", "activations", "free"
"""Parts of a bar, in their order."""

_FAR = 10
"""Limits that are as many times the fullest stage are not drawn: bars would be too short to read."""

_MOST_PIECES = 400
"""Ops whose weights are drawn one by one, at most."""

_MOST_RUNS = 5
"""Runs of ops that a bar names, at most."""

_NUMBERED = re.compile(r"(.*?)(?<!\d)(0|[1-9]\d*)\Z", re.DOTALL)


@dataclass(frozen=True)
class StageMemory:
    """Bytes of a stage with ops.

    Attributes
    ----------
    ops
        Names of its ops, or of the first and the last.
    pieces
        Ops with weights and their bytes; empty where they are not known one by one.
    limit
        Of its device; None: without one.
    """

    name: str
    ops: str
    weights: int
    states: int
    activations: int
    limit: int | None
    pieces: Sequence[tuple[str, int]] = ()

    @property
    def held(self) -> int:
        """Bytes that count against the limit."""
        return self.weights + self.states + self.activations

    @property
    def free(self) -> int | None:
        """Bytes below the limit, negative above it."""
        return None if self.limit is None else self.limit - self.held


def says_memory(shown: StatedPlan) -> bool:
    """Whether a plan says anything of memory: limits, or states that stages keep."""
    return any(one.memory_bytes is not None for one in shown.devices) or any("state_bytes" in r for r in shown.stages)


def memory_sections(
    shown: StatedPlan,
    graph: CostGraph | None,
    stages: Sequence[int] | None,
    *,
    states: str = STATES,
    shares: Mapping[int, CostGraph] | None = None,
    peaks: Sequence[int] = (),
) -> list[Section]:
    """Return the sections with the bars of all stages and with their table.

    Parameters
    ----------
    graph, stages
        The graph, and the stage of each op; None where the assignment is no partition of it.
    states
        Name of the states: ``caches`` for language models.
    shares
        The graph as one of so many GPUs that share a stage has it, where several do.
    peaks
        Activations of each stage in another phase, of which the larger ones count; empty where there is one phase.
    """
    rows = _rows(shown, graph, stages, shares or {}, peaks or [0] * len(shown.stages))
    most = max((row.held for row in rows), default=0)
    limits = [row.limit for row in rows if row.limit is not None]
    near = [limit for limit in limits if limit <= _FAR * max(most, 1)]
    drawn = [row.limit in near for row in rows]
    widest = max([most, *near]) or 1
    titles = {WEIGHTS: WEIGHTS}
    titles |= {STATES: states} if any(row.states for row in rows) else {}
    titles |= {ACTIVATIONS: ACTIVATIONS} if any(row.activations for row in rows) else {}
    bars = [
        MemoryBar(
            row.name,
            row.ops,
            _told(row),
            [*_pieces(row, titles, widest, drawn=with_limit)],
            _percent(row.limit, widest) if with_limit and row.limit is not None else None,
            over=(row.free or 0) < 0,
        )
        for row, with_limit in zip(rows, drawn, strict=True)
    ]
    shared = any(row.get("tensor_parallel", 1) > 1 for row in shown.stages)
    legend = [*titles.items(), *([(FREE, "free below the limit")] if near else [])]
    chart = MemoryBars("memory-bars", _caption(rows, titles, drawn=len(near), shared=shared), legend, bars)
    table = _table(rows, titles)
    return [Section("memory-part", "Memory of each stage", [chart]), Section("memory-figures", "Memory", [table])]


def _rows(
    shown: StatedPlan,
    graph: CostGraph | None,
    stages: Sequence[int] | None,
    shares: Mapping[int, CostGraph],
    peaks: Sequence[int],
) -> list[StageMemory]:
    """Return the memory of each stage with ops, as the document says."""
    members: list[list[int]] = [[] for _ in shown.stages]
    if graph is not None and stages is not None:
        for v in graph.order.tolist():
            members[stages[v]].append(v)
    rows = []
    for row, device, ops, peak in zip(shown.stages, shown.devices, members, peaks, strict=True):
        if not row["ops"]:
            continue
        share = shares.get(row.get("tensor_parallel", 1), graph)
        own = _weights_of_ops(share, ops) if share is not None and share.op_count <= _MOST_PIECES else []
        ends = " … ".join(dict.fromkeys((str(row["first"]), str(row["last"]))))
        weights, states, activations = row["param_bytes"], row.get("state_bytes", 0), max(row["peak_bytes"], peak)
        rows.append(
            StageMemory(
                f"stage {row['index']}{_on(row, shown.machine)}",
                text_of_ops([graph.op_names[v] for v in ops]) if graph is not None and ops else ends,
                weights,
                states,
                activations,
                device.memory_bytes,
                own if sum(size for _, size in own) == weights else (),
            )
        )
    return rows


def _on(row: Mapping[str, Any], machine: Machine | None) -> str:
    """Return the device of a stage, with its place or number where others have its name, or its devices."""
    degree = row.get("tensor_parallel", 1)
    return f"{_device(row, machine)}{f', on {degree} GPUs' if degree > 1 else ''}"


def _device(row: Mapping[str, Any], machine: Machine | None) -> str:
    if "device" not in row or machine is None:
        return f" on {devices_text(row)}" if row.keys() & {"device", "devices"} else ""
    name, index = row["device"]["name"], row["device"]["index"]
    alike = [i for i, other in enumerate(machine.names) if other == name]
    if len(alike) < 2:
        return f" on {name}"
    places = [machine.places[i] for i in alike]
    own = machine.places[index]
    return f" on {name} ({own if places.count(own) == 1 else f'device {index}'})"


def _weights_of_ops(graph: CostGraph, ops: Sequence[int]) -> list[tuple[str, int]]:
    """Return the ops of a stage with their weights; what several of them read is at the first."""
    own = graph.param_bytes.tolist()
    sizes = {v: own[v] for v in ops}
    for size, readers in zip(graph.weights.bytes.tolist(), graph.weights.reader_lists(), strict=True):
        first = next((v for v in ops if v in readers), None)
        if first is not None:
            sizes[first] += size
    return [(graph.op_names[v], size) for v, size in sizes.items() if size]


def _pieces(row: StageMemory, titles: Mapping[str, str], widest: int, *, drawn: bool) -> Iterator[MemoryPiece]:
    """Yield the pieces of a bar, weights op by op where they are known."""
    for name, size in row.pieces or [("", row.weights)]:
        told = f"{format_bytes(size)} of {WEIGHTS}"
        yield MemoryPiece(WEIGHTS, _percent(size, widest), f"{name}: {told}" if name else told)
    for kind, size in ((STATES, row.states), (ACTIVATIONS, row.activations)):
        if size:
            yield MemoryPiece(kind, _percent(size, widest), f"{format_bytes(size)} of {titles[kind]}")
    if drawn and row.free is not None and row.free > 0:
        yield MemoryPiece(FREE, _percent(row.free, widest), f"{format_bytes(row.free)} {FREE}")


def _percent(size: int, widest: int) -> float:
    return round(100 * size / widest, 4)


def _told(row: StageMemory) -> str:
    """Write how much a stage holds, and of how much."""
    if row.limit is None:
        return format_bytes(row.held)
    text = f"{format_bytes(row.held)} of {format_bytes(row.limit)}"
    excess = row.held - row.limit
    return f"{text}, {format_bytes(excess)} too much" if excess > 0 else text


def _caption(rows: Sequence[StageMemory], titles: Mapping[str, str], *, drawn: int, shared: bool) -> str:
    """Say what bars show, *drawn* being the number of limits that are marked."""
    *first, last = titles.values()
    text = f"Memory of each stage as the plan says: {', '.join(first)} and {last}" if first else "Weights of each stage"
    if any(row.pieces for row in rows):
        text += f"; lines inside {WEIGHTS} separate ops"
    if shared:
        text += "; of one GPU where several share a stage"
    if drawn:
        text += "; the mark is the limit of the device"
        return text if drawn == sum(row.limit is not None for row in rows) else f"{text}, where that is near"
    if any(row.limit is not None for row in rows):
        return f"{text}; limits are too far beyond it to be drawn"
    return f"{text}; no device has a limit"


def text_of_ops(names: Sequence[str]) -> str:
    """Name a run of ops: consecutive numbers behind the same words as a range.

    Examples
    --------
    >>> text_of_ops(["embedding", "model.layers.0", "model.layers.1", "model.layers.2", "head"])
    'embedding, model.layers.0–2, head'
    """
    runs: list[tuple[str, int | None, int | None]] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        words, number = (name, None) if found is None else (found[1], int(found[2]))
        before, start, stop = runs[-1] if runs else ("", None, None)
        if number is not None and before == words and stop is not None and stop + 1 == number:
            runs[-1] = (words, start, number)
        else:
            runs.append((words, number, number))
    if len(runs) > _MOST_RUNS:
        return f"{names[0]} … {names[-1]} ({counted(len(names), 'op')})"
    return ", ".join(
        words if start is None else f"{words}{start}{'' if start == stop else f'–{stop}'}"
        for words, start, stop in runs
    )  # fmt: skip


def _table(rows: Sequence[StageMemory], titles: Mapping[str, str]) -> TableBlock:
    figures = [(titles[kind], kind) for kind in (WEIGHTS, STATES, ACTIVATIONS) if kind in titles]
    figures += [("held", "held"), ("limit", "limit"), (FREE, FREE)]
    columns = [Column("stage", left=True), Column("ops", left=True)]
    columns += [Column(title, _signed) for title, _ in figures]
    lines = [[row.name, row.ops, *(getattr(row, key) for _, key in figures)] for row in rows]
    return TableBlock("memory-table", Table("Memory of stages, as the plan says", columns, lines), sortable=True)


def _signed(size: int) -> str:
    return f"−{format_bytes(-size)}" if size < 0 else format_bytes(size)
