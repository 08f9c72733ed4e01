"""Last look at plans of stages that form a graph: the iteration is simulated once more from its stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mtpp.errors import Deadlock, InconsistentResult, InputError
from mtpp.solvers.last_look.layers import look_at_equal, look_at_layers, look_at_least_memory, look_at_memory
from mtpp.solvers.last_look.simulations import look_at_simulation
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.model import Configuration
from mtpp.training.stage_costs import PipelineCosts, ScheduledStage
from mtpp.units import PICOSECONDS, Exact, ceil_ratio

_SECOND = PICOSECONDS["s"]


class StageSums(NamedTuple):
    """Ticks of both passes of a micro-batch and of synchronising gradients, and bytes that each device needs."""

    forward_ticks: int
    backward_ticks: int
    synchronisation_ticks: int
    memory_bytes: int


def stage_sums(costs: PipelineCosts, stage: ScheduledStage) -> StageSums:
    """Sum up a stage: costs of the samples on a device that its layers list, or in proportion. O(layers)."""
    forward = backward = kept = fixed = parameters = 0
    for one in stage.configurations.values():
        ticks = _passes(costs, one, stage.micro_batch // stage.data_parallel)
        forward, backward, kept = forward + ticks[0], backward + ticks[1], kept + ticks[2]
        fixed += one.memory_b
        parameters += one.parameter_bytes if one.trainable_bytes is None else one.trainable_bytes
    d = stage.data_parallel
    ring = ceil_ratio(2 * (d - 1) * parameters * _SECOND, d * costs.link.bandwidth_bytes_per_s)
    return StageSums(forward, backward, ring, fixed + stage.in_flight * kept)


def _passes(costs: PipelineCosts, one: Configuration, samples: int) -> tuple[int, int, int]:
    unit = PICOSECONDS[costs.model.time_unit]
    listed = one.micro_batches.get(samples)
    if listed is not None:
        return _scaled(listed.forward, unit, 1), _scaled(listed.backward, unit, 1), listed.memory_bytes
    third = 3 * costs.times_of
    return (
        _scaled(one.time_per_sample, unit * samples, third),
        _scaled(one.time_per_sample, 2 * unit * samples, third),
        ceil_ratio(one.memory_a * samples, costs.times_of),
    )


def transfer_sums(
    costs: PipelineCosts, stages: Sequence[ScheduledStage], *, line: bool
) -> dict[tuple[int, int], tuple[int, int]]:
    """Sum up what passes between stages there and back, in ticks, by source and target. O(edges).

    Parameters
    ----------
    line
        Whether each stage hands on to the next one, be it nothing.
    """
    model, of = costs.model, costs.times_of
    place = {layer: s for s, stage in enumerate(stages) for layer in stage.configurations}
    moved = {(s, s + 1): (0, 0) for s in range(len(stages) - 1)} if line else {}
    for edge, (u, v) in zip(model.edges, model.ends, strict=True):
        a, b = place[u], place[v]
        if a != b:
            there = edge.communication_bytes + stages[b].configurations[v].forward_sync_bytes.get(edge.source, 0)
            back = edge.communication_bytes + stages[a].configurations[u].backward_sync_bytes.get(edge.target, 0)
            before = moved.get((a, b), (0, 0))
            moved[a, b] = (
                before[0] + ceil_ratio(there * stages[a].micro_batch, of),
                before[1] + ceil_ratio(back * stages[b].micro_batch, of),
            )
    found = {}
    for (a, b), sizes in moved.items():
        rate = costs.link.bandwidth_bytes_per_s * min(stages[a].data_parallel, stages[b].data_parallel)
        there, back = (costs.link.latency_ps + ceil_ratio(size * _SECOND, rate) for size in sizes)
        found[a, b] = there, back
    return found


def _scaled(time: Exact, times: int, parts: int) -> int:
    return ceil_ratio(time.numerator * times, time.denominator * parts)


def look_at_graph_plan(problem: GraphProblem, found: GraphPlan | NoGraphPlan) -> None:
    """Derive a plan's iteration and memory from its stages, and hold it to its problem.

    Notes
    -----
    O(layers + edges + passes).
    """
    if isinstance(found, NoGraphPlan):
        look_at_least_memory(found.memory.value, found.least_memory_bytes, problem.memory_bytes)
        if found.fits:
            _look_at_stages(problem, found.fits)
            needed = max(stage_sums(problem.costs, one).memory_bytes for one in found.fits)
            if needed != found.least_memory_bytes:
                said = f"a plan is said to fit into {found.least_memory_bytes} bytes"
                raise InconsistentResult(f"{said}, and summed up from its layers needs {needed}")
        return
    _look_at_stages(problem, found.stages)
    sums = [stage_sums(problem.costs, one) for one in found.stages]
    look_at_equal(found.memory_bytes, [one.memory_bytes for one in sums], "stage", "needs {} bytes")
    look_at_memory(found.memory_bytes, [problem.memory_bytes] * len(found.stages), "stage")
    ticks = [(one.forward_ticks, one.backward_ticks, one.synchronisation_ticks) for one in found.graph.stages]
    look_at_equal(ticks, [tuple(one[:3]) for one in sums], "stage", "takes {} ticks of passes and synchronisation")
    moved = transfer_sums(problem.costs, found.stages, line=problem.rules.sequential)
    look_at_equal(
        [(one.source, one.target, one.forward_ticks, one.backward_ticks) for one in found.graph.transfers],
        [(*ends, *both) for ends, both in sorted(moved.items())],
        "transfer",
        "is {}",
    )
    try:
        simulated = simulate(found.graph)
    except (Deadlock, InputError) as error:
        raise InconsistentResult(f"the plan cannot be simulated: {error.problem}") from None
    look_at_simulation(simulated)
    if simulated.iteration != found.iteration:
        taken = f"simulated it takes {simulated.iteration}"
        raise InconsistentResult(f"the plan's iteration is {found.iteration} ticks, and {taken}")


def _look_at_stages(problem: GraphProblem, stages: Sequence[ScheduledStage]) -> None:
    """Check that each layer is in one stage, as a configuration that it lists, and that there are devices for all."""
    look_at_layers(problem.model, [stage.configurations for stage in stages], ordered=problem.rules.sequential)
    sizes = {stage.micro_batch for stage in stages}
    if not sizes <= {*problem.sizes} or (len(sizes) > 1 and not problem.rules.per_stage):
        raise InconsistentResult(f"the plan has micro-batches of {sorted(sizes)} samples, of {list(problem.sizes)}")
    for s, stage in enumerate(stages):
        if stage.interval not in problem.rules.intervals:
            said = f"stage {s} of the plan has k = {stage.interval}"
            raise InconsistentResult(f"{said}, which is none of {list(problem.rules.intervals)}")
        if stage.data_parallel < 1 or stage.micro_batch % stage.data_parallel:
            shared = f"{stage.micro_batch} samples over {stage.data_parallel} devices"
            raise InconsistentResult(f"stage {s} of the plan shares {shared}")
        for layer, one in stage.configurations.items():
            listed = not one.micro_batches or stage.samples in one.micro_batches
            if one not in problem.choices[layer] or not listed:
                name = problem.model.layers[layer].name
                text = f"layer {name!r} runs as {one.id!r} with {stage.samples} samples a device"
                raise InconsistentResult(f"{text} in stage {s} of the plan, which the model does not list")
    used = sum(stage.data_parallel for stage in stages)
    if used > problem.devices:
        raise InconsistentResult(f"the plan uses {used} devices, and there are {problem.devices}")
