"""Search for a stage graph with a short iteration: equal cuts, annealed by their bound J, then simulated.

The bound J (:func:`mtpp.solvers.planners.graphpipe.kernels.path_bound.path_bound`) is what annealing makes least, for
each size of micro-batches; the pipelines of the least J are simulated with several numbers of micro-batches in flight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.inference.topological import first_come_order
from mtpp.solvers.planners.graphpipe.branches import equal_branches, layer_kinds
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.kernels.stage_annealing import IMPOSSIBLE, AnnealedModel, anneal_stages
from mtpp.solvers.planners.graphpipe.stage_options import StageOptions
from mtpp.training.graph_problem import GraphProblem
from mtpp.units import ceil_ratio

_STEPS = 10_000
_SEEDS = (1, 2)
_HOT, _COLD = 0.02, 5e-4
"""Temperatures, as parts of J: starts are good already."""

_SIMULATED = 8
"""Pipelines that are simulated, those of the least J."""


def search_stage_graphs(problem: GraphProblem) -> GraphPipeline | None:
    """Return the pipeline with the shortest iteration found, None if none fits into memory.

    Stages have one size of micro-batches and 1F1B order.

    Notes
    -----
    O(sizes · degrees · 10⁴ · (layers + edges + stages²)), and a few simulations. Nothing depends on the clock.
    """
    options = StageOptions(problem)
    found: dict[tuple[object, ...], PipelineCandidate] = {}
    for size in problem.sizes:
        for candidate in _annealed(problem, options, size):
            found.setdefault(tuple((one.layers, one.data_parallel, size) for one in candidate.stages), candidate)
    best: GraphPipeline | None = None
    for candidate in sorted(found.values(), key=lambda one: one.bound)[:_SIMULATED]:
        if best is not None and candidate.bound >= best.iteration:
            break
        timed = candidate.best_in_flight()
        if timed is not None and (best is None or timed.iteration < best.iteration):
            best = timed
    return best


def _annealed(problem: GraphProblem, options: StageOptions, size: int) -> Iterator[PipelineCandidate]:
    """Go through pipelines with micro-batches of one size: equal cuts, annealed."""
    degrees = problem.degrees(size)
    if not degrees:
        return
    model = _model(problem, size, degrees)
    order = [
        layer for group in equal_branches(problem.model, layer_kinds(problem)) for branch in group for layer in branch
    ]
    fastest = _fastest(model)
    for i, d in enumerate(degrees):
        cut = _cut(fastest[i], order, problem.devices // d)
        for seed in _SEEDS:
            stage, choice = cut.copy(), np.zeros(len(order), dtype=np.int64)
            degree = np.full(problem.devices + 2, i, dtype=np.int64)
            cost, count = anneal_stages(model, stage, degree, choice, int(cut.max()) + 1, _STEPS, seed, _HOT, _COLD)
            if cost >= IMPOSSIBLE:
                continue
            candidate = _candidate(problem, options, size, stage, degree[:count], choice, degrees)
            if candidate is not None and candidate.fits:
                yield candidate


def _candidate(
    problem: GraphProblem,
    options: StageOptions,
    size: int,
    stage: Int64Array,
    degree: Int64Array,
    choice: Int64Array,
    degrees: Sequence[int],
) -> PipelineCandidate | None:
    """Return stages as a candidate, in a topological order; None if one does not fit at all."""
    ends = {(int(stage[u]), int(stage[v])) for u, v in problem.model.ends if stage[u] != stage[v]}
    made = []
    for s in first_come_order(len(degree), ends):
        layers = tuple(layer for layer in problem.model.order if stage[layer] == s)
        chosen = tuple(int(choice[layer]) for layer in layers)
        option = options.chosen(layers, size, degrees[degree[s]], chosen)
        if option is None:
            return None
        made.append(option)
    return PipelineCandidate(problem, made)


def _model(problem: GraphProblem, size: int, degrees: Sequence[int]) -> AnnealedModel:
    """Return the arrays of a model; a configuration that has no costs of some samples takes for ever."""
    layers = len(problem.model.layers)
    most = max(map(len, problem.choices))
    costs = problem.costs
    passes = np.full((3, len(degrees), most, layers), _forever(problem), dtype=np.int64)
    held = np.zeros((2, most, layers), dtype=np.int64)
    for v, here in enumerate(problem.choices):
        for c, one in enumerate(here):
            held[:, c, v] = one.memory_b, one.parameter_bytes
            for i, d in enumerate(degrees):
                if not one.micro_batches or size // d in one.micro_batches:
                    known = costs.passes(one, size // d)
                    passes[:, i, c, v] = known.forward_ticks, known.backward_ticks, known.memory_bytes
    around: list[list[int]] = [[] for _ in range(layers)]
    for u, v in problem.model.ends:
        around[u].append(v)
        around[v].append(u)
    moved = [ceil_ratio(edge.communication_bytes * size, costs.times_of) for edge in problem.model.edges]
    limits = [
        problem.mini_batch // size,
        problem.devices,
        problem.memory_bytes,
        costs.bandwidth_bytes_per_s,
        costs.latency_ticks,
    ]
    forward, backward, kept = map(np.ascontiguousarray, passes)
    fixed, parameters = map(np.ascontiguousarray, held)
    return AnnealedModel(
        replicas=np.array(degrees, dtype=np.int64),
        forward=forward,
        backward=backward,
        kept=kept,
        fixed=fixed,
        parameters=parameters,
        choices=np.array([len(here) for here in problem.choices], dtype=np.int64),
        edges=np.array(problem.model.ends, dtype=np.int64).reshape(-1, 2),
        moved=np.array(moved, dtype=np.int64),
        neighbour_start=np.cumsum([0, *map(len, around)], dtype=np.int64),
        neighbours=np.array([v for here in around for v in here], dtype=np.int64),
        limits=np.array(limits, dtype=np.int64),
    )


def _forever(problem: GraphProblem) -> int:
    """Return ticks, and bytes, that all layers together could have without going beyond 64 bits."""
    return 2**61 // (problem.mini_batch * problem.devices * len(problem.model.layers))


def _fastest(model: AnnealedModel) -> Int64Array:
    """Return the time of each layer's fastest configuration, by degree."""
    return np.asarray((model.forward + model.backward).min(axis=1))


def _cut(times: Int64Array, order: Sequence[int], stages: int) -> Int64Array:
    """Cut an order of the layers into at most so many runs, the longest as short as can be; return each layer's run."""
    low, high = int(times.max()), int(times.sum())
    while low < high:
        middle = (low + high) // 2
        if _runs(times, order, middle).max() < stages:
            high = middle
        else:
            low = middle + 1
    return _runs(times, order, low)


def _runs(times: Int64Array, order: Sequence[int], most: int) -> Int64Array:
    run, filled = np.zeros(len(order), dtype=np.int64), 0
    number = 0
    for layer in order:
        filled += int(times[layer])
        if filled > most:
            number, filled = number + 1, int(times[layer])
        run[layer] = number
    return run
