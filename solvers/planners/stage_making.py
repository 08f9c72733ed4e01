"""The stage between two downsets as a plan has it: with the configurations that a knapsack chooses for its layers."""

from __future__ import annotations

from mtpp.planning_problem import PlanningProblem
from mtpp.solvers.kernels.saving_classes import UNDECIDED
from mtpp.solvers.kernels.stage_choices import BANG_PER_BUCK, UNBOUNDED, least_cost
from mtpp.solvers.kernels.stage_options import KnapsackScratch, gather_members
from mtpp.solvers.planners.layer_downsets import LayerBits
from mtpp.solvers.planners.piper_arrays import ChoiceArrays
from mtpp.training_plan import Stage


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
) -> Stage:
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
        Which choices are meant, see :func:`~mtpp.solvers.kernels.stage_choices.least_cost`. Where that search is ended
        before it is done, bang per buck chooses.

    Raises
    ------
    AssertionError
        If no choices fit into the memory, which the search that found the stage has to rule out.
    """
    n = len(problem.model.layers)
    count = gather_members(n, outer, inner, scratch)
    question = (count, j, problem.spread(d), d - 1, in_flight, problem.memory_bytes, UNBOUNDED)
    cost = least_cost(*question, wanted, arrays, outer, inner, scratch)
    if cost == UNDECIDED:
        cost = least_cost(*question, BANG_PER_BUCK, arrays, outer, inner, scratch)
    if cost < 0:
        raise AssertionError("a stage that fitted does not fit")
    layers = scratch.members[:count]
    chosen = scratch.chosen[:count] - arrays.start[j * n + layers]
    return Stage(layers.tolist(), d, problem.degrees[j], chosen.tolist())
