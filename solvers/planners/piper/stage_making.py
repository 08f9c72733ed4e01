"""The stage between two downsets as a plan has it: with the configurations that a knapsack chooses for its layers."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.solvers.planners.piper.arrays import ChoiceArrays
from mtpp.solvers.planners.piper.kernels.saving_classes import UNDECIDED
from mtpp.solvers.planners.piper.kernels.stage_choices import (
    ANY,
    BANG_PER_BUCK,
    LEAST,
    NOTHING_FITS,
    UNBOUNDED,
    least_cost,
)
from mtpp.solvers.planners.piper.kernels.stage_options import Demand, KnapsackScratch, StageLayers, gather_members
from mtpp.solvers.planners.piper.layer_downsets import LayerBits
from mtpp.training.plan import LayerStage
from mtpp.training.problem import PlanningProblem


def make_stage(
    problem: PlanningProblem,
    arrays: ChoiceArrays,
    outer: LayerBits,
    inner: LayerBits,
    d: int,
    j: int,
    in_flight: int,
    wanted: int,
    scratch: KnapsackScratch,
    within: int = UNBOUNDED,
) -> LayerStage:
    """Return the stage of the layers of *outer* without those of *inner*.

    Parameters
    ----------
    outer, inner
        Downsets, as bits of their layers; shape (⌈n / 64⌉,).
    d, j
        Its degree of data parallelism, and the position of that of tensor parallelism among the problem's.
    in_flight
        Micro-batches whose activations it keeps.
    wanted
        Which choices are meant, see :func:`~mtpp.solvers.planners.piper.kernels.stage_choices.least_cost`. Where that
        search is ended before it is done: those of the least compute, or any *within* the budget, or else those of bang
        per buck.
    within
        What the stage's time times its common denominator, d times what gradients are spread over, may come to.
    """
    n = len(problem.model.layers)
    count = gather_members(n, outer, inner, scratch)
    spread, stage = problem.spread(d), StageLayers(count, outer, inner)

    def chosen_for(scale_p: int, scale_w: int, budget: int, wanted: int) -> int:
        demand = Demand(j, scale_p, scale_w, in_flight, problem.memory_bytes, budget, wanted)
        return least_cost(stage, demand, arrays, scratch)

    cost = chosen_for(spread, d - 1, UNBOUNDED, wanted)
    if cost == UNDECIDED and arrays.plain[j]:
        cost = chosen_for(1, 0, UNBOUNDED, LEAST)
    if cost == UNDECIDED:
        cost = chosen_for(
            spread, d - 1, within - spread * _edges(problem, arrays, j, scratch.members[:count].tolist()), ANY
        )
    if cost in (NOTHING_FITS, UNDECIDED):
        cost = chosen_for(spread, d - 1, UNBOUNDED, BANG_PER_BUCK)
    if cost in (NOTHING_FITS, UNDECIDED):
        raise AssertionError("a stage that fitted does not fit")
    layers = scratch.members[:count]
    chosen = scratch.chosen[:count] - arrays.start[j * n + layers]
    return LayerStage(layers.tolist(), d, problem.degrees[j], chosen.tolist())


def _edges(problem: PlanningProblem, arrays: ChoiceArrays, j: int, layers: Sequence[int]) -> int:
    """Return the least that a stage of these layers pays for its edges to other stages, in ticks."""
    members, ends = set(layers), problem.model.ends
    into = (e for v in layers for e in problem.edges_in[v] if ends[e][0] not in members)
    out = (e for v in layers for e in problem.edges_out[v] if ends[e][1] not in members)
    return sum(int(arrays.pays_in[j, e]) for e in into) + sum(int(arrays.pays_out[j, e]) for e in out)
