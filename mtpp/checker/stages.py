"""The figures of each stage, re-derived from the graph in ticks and the definition of a stage's cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from mtpp.checker.graph import TICKS_PER_S, TickGraph
from mtpp.checker.machine import STAGE_TIMES, overflow_ticks

PlacedStages: TypeAlias = Sequence[tuple[TickGraph, Mapping[str, Any]]]
"""For each stage the graph in ticks of its device, and that device."""

Between: TypeAlias = Callable[[int, int], Sequence[int]]
"""Ticks of each tensor at the boundary of two stages."""


@dataclass
class StageFigures:
    """Figures of one stage; the field names are the plan's."""

    ops: int = 0
    first: str | None = None
    last: str | None = None
    work: int = 0
    input: int = 0
    output: int = 0
    overflow: int = 0
    cost: int = 0
    param_bytes: int = 0
    peak_bytes: int = 0
    state_bytes: int = 0
    live: list[int] = field(default_factory=list)
    """Change of the bytes live at each step of the stage, and after the last."""


def stage_figures(
    graph: TickGraph,
    stage_of: list[int],
    system: dict[str, Any],
    placed: PlacedStages | None = None,
    between: Between | None = None,
) -> dict[int, StageFigures]:
    """Return the figures of every stage that has ops (Archer et al. 2024, eq. 1 to 3).

    Parameters
    ----------
    placed
        Ticks and device of each stage, in place of those of *graph* and *system*; None: all stages are on equal ones.
    between
        Ticks of each tensor between two stages, with transport by neighbours; None: transport is direct.
    """
    equal = {"link_speed": "1", **system}
    placed = placed or [(graph, equal)] * (max(stage_of) + 1)
    stages: defaultdict[int, StageFigures] = defaultdict(StageFigures)
    step = [0] * graph.op_count
    for v in graph.order:
        stage = stages[stage_of[v]]
        step[v] = stage.ops
        stage.first = graph.op_names[v] if stage.ops == 0 else stage.first
        stage.last = graph.op_names[v]
        stage.ops += 1
        stage.work += placed[stage_of[v]][0].work[v]
        stage.param_bytes += graph.own_bytes[v]
    for _, size, readers in graph.weights:
        for s in {stage_of[v] for v in readers}:
            stages[s].param_bytes += size
    for _, size, readers in graph.states:
        for s in {stage_of[v] for v in readers}:
            stages[s].state_bytes += size * system.get("sequences", 1)
    for stage in stages.values():
        stage.live = [0] * (stage.ops + 1)

    for t, readers in enumerate(graph.consumers):
        maker = graph.producer[t]
        home = stage_of[maker]
        uses: defaultdict[int, list[int]] = defaultdict(list)
        for v in readers:
            uses[stage_of[v]].append(step[v])
        # Steps during which the tensor is live, by stage: where it is made, to its last use there or, if it is
        # wanted elsewhere or a result, to the end; where it is read, from its first use to its last.
        spans = {s: (min(steps), max(steps)) for s, steps in uses.items() if s != home}
        for s in spans if between is None else ():
            stages[s].input += placed[s][0].transfer[t]
        last = max(uses.get(home, [step[maker]]))
        if spans and between is None:
            stages[home].output += placed[home][0].transfer[t]
        if spans or t in graph.results:
            last = stages[home].ops - 1
        spans[home] = (step[maker], last)
        for s, (begin, end) in spans.items():
            stages[s].live[begin] += graph.tensor_bytes[t] or 0
            stages[s].live[end + 1] -= graph.tensor_bytes[t] or 0

    for _, size, readers in graph.live_inputs:
        for s in {stage_of[v] for v in readers}:
            steps = [step[v] for v in readers if stage_of[v] == s]
            stages[s].live[min(steps)] += size
            stages[s].live[max(steps) + 1] -= size

    if between is not None:
        _add_boundaries(graph, stage_of, stages, between)
    for s, stage in stages.items():
        device = placed[s][1]
        stage.peak_bytes = device["activation_reserve_bytes"] if device["peak"] == "reserve" else _peak(stage.live)
        if device["fast_memory_bytes"] is not None:
            excess = max(0, stage.param_bytes + stage.peak_bytes - device["fast_memory_bytes"])
            stage.overflow = overflow_ticks(excess, device, TICKS_PER_S)
        times = device.get(STAGE_TIMES)
        if times is not None:
            stage.work = times[min(stage.ops, len(times)) - 1]
        stage.cost = stage.work + stage.input + stage.output + stage.overflow
    return dict(stages)


def _add_boundaries(
    graph: TickGraph, stage_of: list[int], stages: Mapping[int, StageFigures], between: Between
) -> None:
    """Add what stages pay for tensors at the boundaries between consecutive ones that have ops."""
    passing: dict[tuple[int, int], list[int]] = {pair: [] for pair in pairwise(sorted(stages))}
    place = {s: i for i, s in enumerate(sorted(stages))}
    pairs = list(passing)
    for t, readers in enumerate(graph.consumers):
        touched = [place[stage_of[v]] for v in (graph.producer[t], *readers)]
        for i in range(min(touched), max(touched)):
            passing[pairs[i]].append(t)
    for (one, other), tensors in passing.items():
        ticks = between(one, other)
        paid = sum(ticks[t] for t in tensors)
        stages[one].output += paid
        stages[other].input += paid


def shared_cost(ticks: Sequence[int]) -> int:
    """Return what a stage costs on devices that take so many ticks each."""
    if not all(ticks):
        return 0
    rate = sum(Fraction(1, one) for one in ticks)
    return -(-rate.denominator // rate.numerator)


def _peak(changes: list[int]) -> int:
    peak = live = 0
    for change in changes:
        live += change
        peak = max(peak, live)
    return peak
