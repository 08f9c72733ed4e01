"""The paper's heuristic choice of configurations, on the stages of a plan, to tell where it would have been slower.

Tarnawski et al. (2021), section 4: every layer starts with its fastest configuration; as long as the stage needs too
much memory, the change that frees most of it per time that it costs is made.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from mtpp.training.plan import LayerStage, stage_figures
from mtpp.training.problem import Choice, PlanningProblem


def slower_by_bang_per_buck(
    problem: PlanningProblem, stages: Sequence[LayerStage], in_flight: Sequence[int]
) -> list[int]:
    """Return the stages whose layers the heuristic would have run longer in all, or not have fitted into the memory.

    *in_flight* is how many micro-batches each stage keeps. O(c² · log n) for n layers with up to c configurations each,
    plus their edges.
    """
    differing = []
    for i, (stage, kept) in enumerate(zip(stages, in_flight, strict=True)):
        chosen = bang_per_buck(problem, stage, kept)
        if chosen is None or _stage_time(problem, replace(stage, chosen=chosen)) > _stage_time(problem, stage):
            differing.append(i)
    return differing


def _stage_time(problem: PlanningProblem, stage: LayerStage) -> Fraction:
    return stage_figures(problem, [stage])[0].time


def bang_per_buck(problem: PlanningProblem, stage: LayerStage, in_flight: int) -> list[int] | None:
    """Return which configuration the heuristic chooses for each layer of a stage; None if none of its choices fits.

    Ties go to less memory at the start, then to the earlier layer and to its earlier configuration.
    """
    by_layer = problem.choices[problem.degrees.index(stage.tensor_parallel)]
    members = set(stage.layers)
    options = [
        [
            (_time(problem, stage, layer, choice, members), choice.memory_a * in_flight + choice.memory_b)
            for choice in by_layer[layer]
        ]
        for layer in stage.layers
    ]
    chosen = [min(range(len(own)), key=own.__getitem__) for own in options]
    memory = sum(own[c][1] for own, c in zip(options, chosen, strict=True))
    changes = [change for i in range(len(options)) for change in _best_change(options[i], i, chosen[i])]
    heapq.heapify(changes)
    while memory > problem.memory_bytes and changes:
        _, i, c = heapq.heappop(changes)
        memory -= options[i][chosen[i]][1] - options[i][c][1]
        chosen[i] = c
        for change in _best_change(options[i], i, c):
            heapq.heappush(changes, change)
    return None if memory > problem.memory_bytes else chosen


def _best_change(own: Sequence[tuple[Fraction, int]], layer: int, current: int) -> list[tuple[Fraction, int, int]]:
    """Return the layer's change with most bang per buck, smallest first for a heap: (time per byte, layer, choice)."""
    time, memory = own[current]
    changes = [
        ((other_time - time) / (memory - other_memory), layer, c)
        for c, (other_time, other_memory) in enumerate(own)
        if other_memory < memory
    ]
    return [min(changes)] if changes else []


def _time(problem: PlanningProblem, stage: LayerStage, layer: int, choice: Choice, members: set[int]) -> Fraction:
    ends = problem.model.ends
    ticks = choice.compute_ticks
    ticks += sum(
        sync for e, sync in zip(problem.edges_in[layer], choice.sync_in_ticks, strict=True) if ends[e][0] not in members
    )
    ticks += sum(
        sync
        for e, sync in zip(problem.edges_out[layer], choice.sync_out_ticks, strict=True)
        if ends[e][1] not in members
    )
    return problem.stage_time(ticks, choice.weight_ticks, stage.data_parallel)
