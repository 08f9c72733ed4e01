"""Plans of language models on devices that may run a stage at several degrees of tensor parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mtpp.api.options.goal import parse_cost
from mtpp.errors import InputError
from mtpp.names import AUTO, DOWNSET, PIPER

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.options.search import Partitioning
    from mtpp.inference.instance import Instance
    from mtpp.inference.plan import Plan
    from mtpp.solvers.layer_chains.solve import DegreeProblem

_SEARCHES = (AUTO, DOWNSET, PIPER)


def refuse_beside_degrees(asked: Partitioning) -> None:
    """Raise InputError for options that do not go with degrees of tensor parallelism."""
    if asked.algorithm not in _SEARCHES:
        problem = "does not know of degrees of tensor parallelism"
        raise InputError(f"{asked.algorithm} {problem}", parameter="algorithm", remedy="leave it out")
    for given, name in ((asked.frontier, "frontier"), (asked.replicas, "replicas")):
        if given:
            raise InputError("does not go with degrees of tensor parallelism", parameter=name, remedy="leave it out")


def search_with_degrees(
    model: Model,
    instance: Instance,
    asked: Partitioning,
    together: Sequence[Sequence[str]],
    prompts: Model | None = None,
) -> Plan:
    """Return the best plan whose stages are intervals of the layers, each at one of the degrees of its device.

    Layers form a chain of little more than a hundred ops, all of whose intervals are looked at: no limit on time or
    memory is of use, and all other searches know of one graph alone.

    Parameters
    ----------
    instance
        Of the whole model.
    prompts
        The model for the prefill, where the time to the first token counts: the limit on the latency is its.

    Raises
    ------
    Infeasible
        Proven.
    """
    from mtpp.api.inputs.degrees import degree_instances
    from mtpp.api.language_models.both_phases import prompt_graphs
    from mtpp.inference.goal import Goal
    from mtpp.ranges import MOST_CUTOFF
    from mtpp.solvers.layer_chains.solve import Prefill, solve_fewest_devices, solve_with_degrees

    goal, prefill, whole = asked.goal(instance), None, asked.layers_only
    if prompts is not None:
        instances = degree_instances(prompts, instance.most_used)
        prefill, goal = Prefill(instances, goal.limit, prompts.dims, prompt_graphs(prompts)), Goal()
    problem = replace(
        _problem(model, instance), together=together, goal=goal, one_degree=whole, even=whole, prefill=prefill
    )
    if asked.max_bottleneck is not None and not goal.of_latency:
        if prompts is not None:
            raise InputError("goes with one phase", parameter="max_bottleneck", remedy="leave it out")
        allowed = parse_cost(asked.max_bottleneck, model.graph.time_unit, "max_bottleneck")
        limit = min(int(allowed * instance.ticks_per_unit), MOST_CUTOFF - 1)
        return solve_fewest_devices(problem, limit, algorithm=asked.algorithm, seed=asked.seed)
    return solve_with_degrees(problem, algorithm=asked.algorithm, seed=asked.seed)


def scored_with_degrees(
    model: Model,
    labels: Sequence[int],
    k: int | None,
    devices: Sequence[int] | None = None,
    degrees: Sequence[int] | None = None,
) -> Plan:
    """Score stages of layers that were brought along, as :func:`mtpp.api.evaluate.plan_of_labels` does.

    Parameters
    ----------
    degrees
        Of each stage; None: the fastest for each.

    Returns
    -------
    A plan whose lower bound is the least bottleneck of any plan.
    """
    from mtpp.solvers.layer_chains.score import score_with_degrees

    return score_with_degrees(_problem(model, model.whole_instance(k)), labels, devices, degrees)


def _problem(model: Model, instance: Instance) -> DegreeProblem:
    from mtpp.api.inputs.degrees import degree_instances, degrees_of_classes
    from mtpp.solvers.layer_chains.solve import DegreeProblem

    instances = degree_instances(model, instance.most_used)
    return DegreeProblem(model.graph, instance, instances, degrees_of_classes(model))
