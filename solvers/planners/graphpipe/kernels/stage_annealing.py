"""Annealing of stage graphs: layers move between stages and stages change their replicas, for the least bound J."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import inlined, kernel

IMPOSSIBLE = 1e300
"""Cost of stages that make a cycle, or need more devices than there are."""

_SPARE = 0.05
"""Weight of the time that devices are busy, beside J: of two pipelines alike, the one with less work is better."""

_OVERFULL = 2.0
"""Times J that a pipeline costs at least which does not fit into memory."""

_LAYER, _REPLICAS, _SPLIT, _MERGE = 0.55, 0.75, 0.88, 0.96
"""Parts of the moves, cumulated: layers, replicas, new stages, stages that become one; the rest are configurations."""


class AnnealedModel(NamedTuple):
    """A model with micro-batches of one size, as the kernel takes it; times in ticks, sizes in bytes.

    Attributes
    ----------
    replicas
        d of each degree, int64, ascending.
    forward, backward, kept
        By degree, configuration and layer, int64: of a micro-batch; kept for each in flight.
    fixed, parameters
        By configuration and layer, int64.
    choices
        Configurations of each layer, int64.
    edges
        Source and target of each edge, int64, shape (edges, 2).
    moved
        Bytes of a micro-batch over each edge, int64.
    neighbour_start, neighbours
        Layers at the other ends of each layer's edges, CSR.
    limits
        Micro-batches of an iteration, devices, memory of each, bytes a second, ticks of latency, int64, shape (5,).
    """

    replicas: Int64Array
    forward: Int64Array
    backward: Int64Array
    kept: Int64Array
    fixed: Int64Array
    parameters: Int64Array
    choices: Int64Array
    edges: Int64Array
    moved: Int64Array
    neighbour_start: Int64Array
    neighbours: Int64Array
    limits: Int64Array


@inlined
def _cost(
    model: AnnealedModel,
    stage: Int64Array,
    degree: Int64Array,
    choice: Int64Array,
    stages: int,
    sums: Int64Array,
    crossing: Int64Array,
) -> float:
    """Return what a pipeline costs: about J, more where it does not fit into memory; see :data:`IMPOSSIBLE`."""
    batches, devices, memory = model.limits[0], model.limits[1], model.limits[2]
    bandwidth, latency = float(model.limits[3]), float(model.limits[4])
    used = 0
    for s in range(stages):
        used += model.replicas[degree[s]]
    if used > devices:
        return IMPOSSIBLE
    sums[:stages] = 0
    crossing[:stages, :stages] = -1
    for v in range(len(stage)):
        s, c = stage[v], choice[v]
        d = degree[s]
        sums[s, 0] += model.forward[d, c, v]
        sums[s, 1] += model.backward[d, c, v]
        sums[s, 2] += model.kept[d, c, v]
        sums[s, 3] += model.fixed[c, v]
        sums[s, 4] += model.parameters[c, v]
    waiting = np.zeros(stages, dtype=np.int64)
    for e in range(len(model.edges)):
        a, b = stage[model.edges[e, 0]], stage[model.edges[e, 1]]
        if a != b:
            if crossing[a, b] < 0:
                crossing[a, b] = 0
                waiting[b] += 1
            crossing[a, b] += model.moved[e]
    order = np.empty(stages, dtype=np.int64)
    ready = 0
    for s in range(stages):
        if waiting[s] == 0:
            order[ready] = s
            ready += 1
    both = np.zeros(stages)
    taken = np.zeros(stages)  # from the first forward to the last backward pass
    synchronised = np.zeros(stages)
    forward = np.zeros(stages)
    bound, busy = 0.0, 0.0
    at = 0
    while at < ready:
        x = order[at]
        at += 1
        d = model.replicas[degree[x]]
        load = float(batches * (sums[x, 0] + sums[x, 1]))
        gradients = 2e12 * (d - 1) * sums[x, 4] / (d * bandwidth)
        bound = max(bound, both[x] + load)
        taken[x], synchronised[x] = load, gradients
        busy += d * load
        for y in range(stages):
            if crossing[x, y] >= 0:
                moved = latency + 1e12 * crossing[x, y] / (bandwidth * min(d, model.replicas[degree[y]]))
                bound = max(bound, batches * moved)
                both[y] = max(both[y], both[x] + sums[x, 0] + sums[x, 1] + 2 * moved)
                forward[y] = max(forward[y], forward[x] + sums[x, 0] + moved)
                waiting[y] -= 1
                if waiting[y] == 0:
                    order[ready] = y
                    ready += 1
    if ready < stages:
        return IMPOSSIBLE
    over = 0.0
    in_flight = np.ones(stages, dtype=np.int64)
    for i in range(stages - 1, -1, -1):
        x = order[i]
        for y in range(stages):
            if crossing[x, y] >= 0:
                in_flight[x] = max(in_flight[x], min(in_flight[y] + 1, batches))
                width = min(model.replicas[degree[x]], model.replicas[degree[y]])
                moved = latency + 1e12 * crossing[x, y] / (bandwidth * width)
                taken[x] = max(taken[x], sums[x, 0] + sums[x, 1] + 2 * moved + taken[y])
        bound = max(bound, forward[x] + taken[x] + synchronised[x])
        over += max(0.0, (sums[x, 3] + float(in_flight[x]) * sums[x, 2]) / memory - 1)
    if over > 0:
        return float(bound * (_OVERFULL + over))
    return float(bound + _SPARE * busy / devices)


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


@kernel
def anneal_stages(
    model: AnnealedModel,
    stage: Int64Array,
    degree: Int64Array,
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
    stage, degree, choice
        Stage of each layer, degree of each stage with room for one more than there are devices, configuration of each
        layer, int64; on return those of the least cost.
    hot, cold
        Temperatures at the beginning and at the end, as parts of the cost.

    Notes
    -----
    O(layers + edges + stages²) a step.
    """
    np.random.seed(seed)
    layers, devices = len(stage), model.limits[1]
    degrees = len(model.replicas)
    sums = np.zeros((len(degree), 5), dtype=np.int64)
    crossing = np.zeros((len(degree), len(degree)), dtype=np.int64)
    marked = np.zeros(layers, dtype=np.int64)
    number = np.zeros(len(degree), dtype=np.int64)
    cost = _cost(model, stage, degree, choice, stages, sums, crossing)
    best_stage, best_degree, best_choice, best_stages, best = stage.copy(), degree.copy(), choice.copy(), stages, cost
    old_stage, old_degree, old_choice = stage.copy(), degree.copy(), choice.copy()
    for step in range(steps):
        temperature = cost * hot * (cold / hot) ** (step / steps)
        old_stage[:], old_degree[:], old_choice[:], old_stages = stage, degree, choice, stages
        v = np.random.randint(layers)
        kind = np.random.random()
        own = stage[v]
        if kind < _LAYER:
            other = _neighbour_stage(model, stage, v, 0.85)
            if other == own:
                continue
            if np.random.random() < 0.5:
                stage[v] = other
            else:
                _mark_side(model, stage, v, np.random.random() < 0.5, marked)
                for u in range(layers):
                    if marked[u]:
                        stage[u] = other
        elif kind < _REPLICAS:
            degree[own] = np.random.randint(degrees)
            if np.random.random() < 0.5:
                degree[stage[np.random.randint(layers)]] = np.random.randint(degrees)
        elif kind < _SPLIT:
            if stages >= devices:
                continue
            _mark_side(model, stage, v, np.random.random() < 0.5, marked)
            if np.random.random() < 0.2:
                marked[:] = 0
                marked[v] = 1
            for u in range(layers):
                if marked[u]:
                    stage[u] = stages
            degree[stages] = np.random.randint(degrees) if np.random.random() < 0.5 else 0
            if degree[own] > 0 and np.random.random() < 0.5:
                degree[own] -= 1
            stages += 1
        elif kind < _MERGE:
            other = _neighbour_stage(model, stage, v, 0.7)
            if other == own:
                continue
            for u in range(layers):
                if stage[u] == own:
                    stage[u] = other
            if np.random.random() < 0.5:
                degree[other] = np.random.randint(degrees)
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
                degree[left] = degree[s]
                left += 1
        if left < stages:
            for u in range(layers):
                stage[u] = number[stage[u]]
            stages = left
        new = _cost(model, stage, degree, choice, stages, sums, crossing)
        if new <= cost or np.random.random() < math.exp((cost - new) / temperature):
            cost = new
            if cost < best:
                best_stage[:], best_degree[:], best_choice[:], best_stages, best = stage, degree, choice, stages, cost
        else:
            stage[:], degree[:], choice[:], stages = old_stage, old_degree, old_choice, old_stages
    stage[:], degree[:], choice[:] = best_stage, best_degree, best_choice
    return best, best_stages
