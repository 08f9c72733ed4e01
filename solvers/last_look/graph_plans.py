"""Last look at plans of stages that form a graph: the iteration is simulated once more from its stages."""

from __future__ import annotations

from mtpp.errors import Deadlock, InconsistentResult, InputError
from mtpp.solvers.last_look.layers import look_at_layers, look_at_least_memory, look_at_memory
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem


def look_at_graph_plan(problem: GraphProblem, found: GraphPlan | NoGraphPlan) -> None:
    """Derive a plan's iteration and memory from its stages, and hold it to its problem.

    Raises
    ------
    InconsistentResult
        If anything is otherwise.

    Notes
    -----
    O(layers + edges + passes).
    """
    if isinstance(found, NoGraphPlan):
        look_at_least_memory(found.memory.value, found.least_memory_bytes, problem.memory_bytes)
        return
    look_at_layers(problem.model, [stage.configurations for stage in found.stages], ordered=problem.rules.sequential)
    for s, stage in enumerate(found.stages):
        if stage.data_parallel < 1 or stage.micro_batch % stage.data_parallel:
            shared = f"{stage.micro_batch} samples over {stage.data_parallel} devices"
            raise InconsistentResult(f"stage {s} of the plan shares {shared}")
        for layer, one in stage.configurations.items():
            listed = not one.micro_batches or stage.samples in one.micro_batches
            if one not in problem.choices[layer] or not listed:
                name = problem.model.layers[layer].name
                text = f"layer {name!r} runs as {one.id!r} with {stage.samples} samples a device"
                raise InconsistentResult(f"{text} in stage {s} of the plan, which the model does not list")
    if found.devices_used > problem.devices:
        raise InconsistentResult(f"the plan uses {found.devices_used} devices, and there are {problem.devices}")
    look_at_memory(found.memory_bytes, [problem.memory_bytes] * len(found.stages), "stage")
    try:
        iteration = simulate(found.graph).iteration
    except (Deadlock, InputError) as error:
        raise InconsistentResult(f"the plan cannot be simulated: {error.problem}") from None
    if iteration != found.iteration:
        raise InconsistentResult(f"the plan's iteration is {found.iteration} ticks, and simulated it takes {iteration}")
