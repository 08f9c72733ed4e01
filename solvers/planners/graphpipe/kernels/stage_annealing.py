"""Annealing of stage graphs: layers move between stages and stages change their replicas, for the least bound J."""

from __future__ import annotations

import math

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import inlined, kernel, subroutine
from mtpp.solvers.planners.graphpipe.kernels.pipeline_cost import IMPOSSIBLE, AnnealedModel, pipeline_cost, workspace

_LAYER, _OPTION, _SPLIT, _MERGE = 0.55, 0.75, 0.88, 0.96
"""Parts of the moves, cumulated: layers, replicas and sizes, new stages, stages that become one; the rest are
configurations."""

_NEAR_LAYER, _NEAR_STAGE = 0.85, 0.7
"""Probabilities that a layer goes to the stage of a neighbour, and that a stage joins that of one; else to any."""

_ALONE = 0.2
"""Probability that a new stage has a single layer, in place of all of its stage that it follows or that follow it."""


@inlined
def _mark_side(model: AnnealedModel, stage: Int64Array, layer: int, down: bool, marked: Int64Array) -> None:
    """Mark a layer and all of its stage that follow from it, or that it follows from."""
    marked[:] = 0
    marked[layer] = 1
    changed = True
    while changed:
        changed = False
        for e in range(len(model.edges)):
            near, far = model.edges[e, 0], model.edges[e, 1]
            if not down:
                near, far = far, near
            if marked[near] and not marked[far] and stage[far] == stage[layer]:
                marked[far] = 1
                changed = True


@inlined
def _neighbour_stage(model: AnnealedModel, stage: Int64Array, layer: int, near: float) -> int:
    """Return the stage of a neighbour of a layer with probability *near*, else that of any layer."""
    first, last = model.neighbour_start[layer], model.neighbour_start[layer + 1]
    if last > first and np.random.random() < near:
        return int(stage[model.neighbours[np.random.randint(first, last)]])
    return int(stage[np.random.randint(len(stage))])


@subroutine
def _copy(
    stage: Int64Array,
    option: Int64Array,
    choice: Int64Array,
    to_stage: Int64Array,
    to_option: Int64Array,
    to_choice: Int64Array,
) -> None:
    """Copy a pipeline."""
    for s in range(len(option)):
        to_option[s] = option[s]
    for v in range(len(stage)):
        to_stage[v] = stage[v]
        to_choice[v] = choice[v]


@kernel
def anneal_stages(
    model: AnnealedModel,
    stage: Int64Array,
    option: Int64Array,
    choice: Int64Array,
    stages: int,
    steps: int,
    seed: int,
    hot: float,
    cold: float,
) -> tuple[float, int]:
    """Anneal a pipeline in place; return the least cost and how many stages it has.

    Parameters
    ----------
    stage, option, choice
        Stage of each layer, option of each stage with room for two more than there may be, configuration of each layer,
        int64; on return those of the least cost, stages being numbered in a topological order.
    hot, cold
        Temperatures at the beginning and at the end, as parts of the cost.

    Notes
    -----
    Layers, options, splits, merges and configurations are changed at random; a pipeline that costs more is accepted
    with probability exp(−Δ / temperature), which falls geometrically (Kirkpatrick et al. 1983). O(layers + edges +
    stages) a step, and O(edges · layers of a path in a stage) at worst where what follows a layer moves with it.
    """
    np.random.seed(seed)
    layers, most = len(stage), len(option) - 2
    options = len(model.options)
    work = workspace(len(option), len(model.edges))
    marked = np.zeros(layers, dtype=np.int64)
    number = np.zeros(len(option), dtype=np.int64)
    best_stage, best_option, best_choice, best_stages = stage.copy(), option.copy(), choice.copy(), stages
    old_stage, old_option, old_choice, old_stages = stage.copy(), option.copy(), choice.copy(), stages
    best_order = work.order.copy()
    cost = best = np.inf
    # The first turn rates the pipeline as it came: the function that rates it is long, and compiled into each call.
    for step in range(-1, steps):
        if step >= 0:
            _copy(stage, option, choice, old_stage, old_option, old_choice)
            old_stages = stages
            v = np.random.randint(layers)
            kind = np.random.random()
            own = stage[v]
            if kind < _LAYER:
                other = _neighbour_stage(model, stage, v, _NEAR_LAYER)
                if other == own:
                    continue
                if np.random.random() < 0.5:
                    stage[v] = other
                else:
                    _mark_side(model, stage, v, np.random.random() < 0.5, marked)
                    for u in range(layers):
                        if marked[u]:
                            stage[u] = other
            elif kind < _OPTION:
                option[own] = np.random.randint(options)
                if np.random.random() < 0.5:
                    option[stage[np.random.randint(layers)]] = np.random.randint(options)
            elif kind < _SPLIT:
                if stages >= most:
                    continue
                _mark_side(model, stage, v, np.random.random() < 0.5, marked)
                if np.random.random() < _ALONE:
                    marked[:] = 0
                    marked[v] = 1
                for u in range(layers):
                    if marked[u]:
                        stage[u] = stages
                option[stages] = np.random.randint(options) if np.random.random() < 0.5 else 0
                if option[own] > 0 and np.random.random() < 0.5:
                    option[own] -= 1
                stages += 1
            elif kind < _MERGE:
                other = _neighbour_stage(model, stage, v, _NEAR_STAGE)
                if other == own:
                    continue
                for u in range(layers):
                    if stage[u] == own:
                        stage[u] = other
                if np.random.random() < 0.5:
                    option[other] = np.random.randint(options)
            else:
                c = np.random.randint(model.choices[v])
                if np.random.random() < 0.5:
                    for u in range(layers):
                        if stage[u] == own and c < model.choices[u]:
                            choice[u] = c
                else:
                    choice[v] = c
            number[:stages] = 0
            for u in range(layers):
                number[stage[u]] = 1
            left = 0
            for s in range(stages):
                if number[s]:
                    number[s] = left
                    option[left] = option[s]
                    left += 1
            if left < stages:
                for u in range(layers):
                    stage[u] = number[stage[u]]
                stages = left
        new = pipeline_cost(model, stage, option, choice, stages, work)
        temperature = cost * hot * (cold / hot) ** (step / steps)
        if step < 0 or new <= cost or np.random.random() < math.exp((cost - new) / temperature):
            cost = new
            if cost < best:
                _copy(stage, option, choice, best_stage, best_option, best_choice)
                best_stages, best = stages, cost
                for i in range(stages):
                    best_order[i] = work.order[i]
        else:
            _copy(old_stage, old_option, old_choice, stage, option, choice)
            stages = old_stages
    if best >= IMPOSSIBLE:
        return best, best_stages
    for i in range(best_stages):
        number[best_order[i]] = i
    for u in range(layers):
        stage[u] = number[best_stage[u]]
        choice[u] = best_choice[u]
    for s in range(best_stages):
        option[number[s]] = best_option[s]
    return best, best_stages
