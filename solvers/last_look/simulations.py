"""Last look at simulations: starts of passes, derived again from the ends of passes and messages before them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.errors import InconsistentResult
from mtpp.solvers.last_look.replayed_schedule import MOST_REPLAYED, replayed_iteration
from mtpp.training.pfeife.schedule_run import ScheduleRun
from mtpp.training.simulation import Simulation
from mtpp.training.stage_graph import PipelineStage, StageTransfer, pass_name


def look_at_simulation(found: Simulation) -> None:
    """Derive the start of each pass of a stage graph from the passes and messages that it waits for.

    Notes
    -----
    O(passes + messages) on arrays. Passes that wait for each other have no starts of this kind, if they take time.
    """
    graph = found.graph
    places = [_places(stage) for stage in graph.stages]
    starts = [found.start[found.passes_of(s)] for s in range(len(graph.stages))]
    ends = [start + _ticks(stage) for start, stage in zip(starts, graph.stages, strict=True)]
    due = [np.concatenate([[0], end[:-1]]) for end in ends]
    for s, (ahead, back) in enumerate(places):
        due[s][back] = np.maximum(due[s][back], ends[s][ahead])
    for one in graph.transfers:
        for source, target, ticks, way in _ways(one):
            begins, awaited = places[source][way], places[target][way]
            sent = np.argsort(begins)
            arrival = np.empty_like(begins)
            arrival[sent] = _arrivals(ends[source][begins[sent]], ticks)
            size, other = graph.stages[target].micro_batch, graph.stages[source].micro_batch
            needed = -(-np.arange(1, len(awaited) + 1) * size // other) - 1
            due[target][awaited] = np.maximum(due[target][awaited], np.maximum.accumulate(arrival)[needed])
    for s, stage in enumerate(graph.stages):
        wrong = np.flatnonzero(due[s] != starts[s])
        if len(wrong):
            at = int(wrong[0])
            name = pass_name(int(stage.order[at]))
            said = f"{name} of stage {s} is simulated to start at {int(starts[s][at])} ticks"
            raise InconsistentResult(f"{said}, and it can start at {int(due[s][at])}")
    last = max(int(end[-1]) + stage.synchronisation_ticks for end, stage in zip(ends, graph.stages, strict=True))
    if last != found.iteration:
        raise InconsistentResult(f"the iteration is {found.iteration} ticks, and its last pass ends at {last}")


def _places(stage: PipelineStage) -> tuple[Int64Array, Int64Array]:
    """Return places in a stage's order of its forward passes, and of its backward passes, by micro-batch."""
    ahead, back = np.flatnonzero(stage.order > 0), np.flatnonzero(stage.order < 0)
    return ahead[np.argsort(stage.order[ahead])], back[np.argsort(-stage.order[back])]


def _ticks(stage: PipelineStage) -> Int64Array:
    return np.where(stage.order > 0, stage.forward_ticks, stage.backward_ticks)


def _ways(one: StageTransfer) -> Sequence[tuple[int, int, int, int]]:
    return (one.source, one.target, one.forward_ticks, 0), (one.target, one.source, one.backward_ticks, 1)


def _arrivals(ends: Int64Array, ticks: int) -> Int64Array:
    """Return when messages arrive that a channel takes one after the other, given when each is ready."""
    turns = np.arange(len(ends)) * ticks
    return np.maximum.accumulate(ends - turns) + turns + ticks


def look_at_schedule_run(found: ScheduleRun) -> None:
    """Replay the passes of a timed schedule, up to :data:`MOST_REPLAYED` of them, and compare the iteration."""
    timed = found.timed
    if len(found.start) > MOST_REPLAYED:
        return
    passes = list(zip(timed.forward_ticks, timed.backward_ticks, strict=True))
    handovers = [(one.source, one.target, one.ticks) for one in timed.handovers]
    iteration = replayed_iteration(timed.schedule, passes, handovers)
    if iteration != found.iteration:
        taken = "never ends" if iteration is None else f"takes {iteration}"
        raise InconsistentResult(f"the iteration is simulated to take {found.iteration} ticks, and replayed it {taken}")
