"""Plain-Python oracles of training plans: every pipeline tried, from the definitions in section 3 of Piper's paper.

They take a :class:`mtpp.training.problem.PlanningProblem` and read nothing of it but the model and the plain numbers
(devices, memory, bandwidth, micro-batches, convention, schemes), never what it made of them. Layers are numbers in file
order. Times are exact, in ticks: 1 tick = 1 ps; the time of a configuration, 2·c(u, v)/B of an edge, 2·c/B of a sync
and 4·w/B of the parameters are each rounded up to whole ticks before anything is added up or divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

from mtpp.training.model import Configuration
from mtpp.training.plan import LayerStage
from mtpp.training.problem import PlanningProblem

PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


class OracleStage(NamedTuple):
    """Layers, d, t, and for each layer the position of its configuration among those that the schemes leave for t."""

    layers: tuple[int, ...]
    data_parallel: int
    tensor_parallel: int
    chosen: tuple[int, ...]


class StageParts(NamedTuple):
    """What a stage takes, in ticks per sample, and its bytes on each device."""

    compute: Fraction
    edges: Fraction
    gradients: Fraction
    memory: int

    @property
    def time(self) -> Fraction:
        """Return the stage's Time-Per-Sample."""
        return self.compute + self.edges + self.gradients


def ceil_divided(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def configurations(problem: PlanningProblem, layer: int, t: int) -> list[Configuration]:
    """Return what a layer may run as on t devices; nothing where the schemes forbid t."""
    if t > 1 and not problem.schemes.tensor_parallel:
        return []
    found = problem.model.layers[layer].configurations.get(t, ())
    return [one for one in found if problem.schemes.recompute or not one.recomputes]


def data_degrees(problem: PlanningProblem) -> list[int]:
    """Return the degrees of data parallelism that a stage may have."""
    most = min(problem.devices, problem.micro_batches) if problem.schemes.data_parallel else 1
    divide = problem.convention == "program"
    return [d for d in range(1, most + 1) if not divide or problem.micro_batches % d == 0]


def tensor_degrees(problem: PlanningProblem) -> list[int]:
    """Return the degrees of tensor parallelism that any layer has a configuration for."""
    return [
        t for t in range(1, problem.devices + 1) if any(t in layer.configurations for layer in problem.model.layers)
    ]


def stage_parts(problem: PlanningProblem, stage: OracleStage | LayerStage, s: int) -> StageParts:
    """Return what a stage takes, s being the sum of degrees of data parallelism of this and all later stages."""
    model, d = problem.model, stage.data_parallel
    runs_as = {
        model.layers[v].id: configurations(problem, v, stage.tensor_parallel)[c]
        for v, c in zip(stage.layers, stage.chosen, strict=True)
    }

    def transfer(size: int) -> int:
        return ceil_divided(size * 10**12, problem.link.bandwidth_bytes_per_s)

    unit = PICOSECONDS[model.time_unit]
    times = [one.time_per_sample for one in runs_as.values()]
    compute = sum(ceil_divided(time.numerator * unit, time.denominator) for time in times)
    edges = 0
    for edge in model.edges:
        if edge.source not in runs_as and edge.target in runs_as:
            sync = runs_as[edge.target].forward_sync_bytes.get(edge.source, 0)
            edges += transfer(2 * edge.communication_bytes) + transfer(2 * sync)
        if edge.source in runs_as and edge.target not in runs_as:
            sync = runs_as[edge.source].backward_sync_bytes.get(edge.target, 0)
            edges += transfer(2 * edge.communication_bytes) + transfer(2 * sync)
    weights = sum(transfer(4 * trained_bytes(one)) for one in runs_as.values())
    spread = d if problem.convention == "paper" else problem.micro_batches
    memory = sum(one.memory_a * ceil_divided(s, d) + one.memory_b for one in runs_as.values())
    return StageParts(Fraction(compute, d), Fraction(edges, d), Fraction((d - 1) * weights, d * spread), memory)


def trained_bytes(one: Configuration) -> int:
    """Return the bytes of gradients on each device."""
    return one.parameter_bytes if one.trainable_bytes is None else min(one.parameter_bytes, one.trainable_bytes)


def pipeline_parts(problem: PlanningProblem, stages: Sequence[OracleStage | LayerStage]) -> list[StageParts]:
    """Return what each stage of a pipeline takes, in its order."""
    degrees = [stage.data_parallel for stage in stages]
    return [stage_parts(problem, stage, sum(degrees[i:])) for i, stage in enumerate(stages)]


def time_of(problem: PlanningProblem, stages: Sequence[OracleStage | LayerStage]) -> Fraction:
    """Return the time per sample of a pipeline."""
    return max(part.time for part in pipeline_parts(problem, stages))


def is_plan(problem: PlanningProblem, stages: Sequence[OracleStage | LayerStage]) -> bool:
    """Tell whether every layer is in one stage, edges lead on, and devices, micro-batches and memory are enough."""
    degrees = [stage.data_parallel for stage in stages]
    place = {problem.model.layers[v].id: i for i, stage in enumerate(stages) for v in stage.layers}
    return (
        sorted(v for stage in stages for v in stage.layers) == list(range(len(problem.model.layers)))
        and all(place[edge.source] <= place[edge.target] for edge in problem.model.edges)
        and set(degrees) <= set(data_degrees(problem))
        and sum(d * stage.tensor_parallel for d, stage in zip(degrees, stages, strict=True)) <= problem.devices
        and sum(degrees) <= problem.micro_batches
        and (sum(degrees) == problem.micro_batches or not problem.exact_micro_batches)
        and all(part.memory <= problem.memory_bytes for part in pipeline_parts(problem, stages))
    )


def best_time(problem: PlanningProblem) -> Fraction | None:
    """Return the least Time-Per-Sample of any plan, None if there is no plan."""
    best = best_plan(problem)
    return None if best is None else best[0]


def best_plan(problem: PlanningProblem) -> tuple[Fraction, list[OracleStage]] | None:
    """Return the least Time-Per-Sample of any plan, and the stages of one that reaches it; None if there is no plan.

    For at most 7 layers and 6 devices.
    """

    @cache
    def fastest(layers: tuple[int, ...], d: int, t: int, in_flight: int) -> tuple[Fraction, OracleStage] | None:
        found = []
        for stage in _stages(problem, layers, d, t):
            parts = stage_parts(problem, stage, in_flight * d)  # any s with this ⌈s / d⌉
            if parts.memory <= problem.memory_bytes:
                found.append((parts.time, stage))
        return min(found, default=None)

    return _least_bottleneck(problem, fastest)


def least_memory(problem: PlanningProblem) -> int | None:
    """Return the least memory of a device with which there is a plan, or None if no amount helps."""

    @cache
    def leanest(layers: tuple[int, ...], d: int, t: int, in_flight: int) -> tuple[int, OracleStage] | None:
        choices = [configurations(problem, v, t) for v in layers]
        if not all(choices):
            return None
        sizes = [[one.memory_a * in_flight + one.memory_b for one in ways] for ways in choices]
        chosen = tuple(ways.index(min(ways)) for ways in sizes)
        return sum(min(ways) for ways in sizes), OracleStage(layers, d, t, chosen)

    found = _least_bottleneck(problem, leanest)
    return None if found is None else found[0]


def _stages(problem: PlanningProblem, layers: tuple[int, ...], d: int, t: int) -> Iterator[OracleStage]:
    """Yield a stage for every way to choose configurations."""
    for chosen in product(*(range(len(configurations(problem, v, t))) for v in layers)):
        yield OracleStage(layers, d, t, chosen)


def last_stages(problem: PlanningProblem, rest: frozenset[int]) -> list[frozenset[int]]:
    """Return every set of layers that can be the last stage of *rest*: nothing in it is needed by the others."""
    index = {layer.id: v for v, layer in enumerate(problem.model.layers)}
    edges = [(index[edge.source], index[edge.target]) for edge in problem.model.edges]
    found = []
    for inside in product((False, True), repeat=len(rest)):
        stage = frozenset(v for v, chosen in zip(sorted(rest), inside, strict=True) if chosen)
        if stage and not any(u in stage and v in rest and v not in stage for u, v in edges):
            found.append(stage)
    return found


def _least_bottleneck(
    problem: PlanningProblem, cheapest: Callable[[tuple[int, ...], int, int, int], tuple[Any, OracleStage] | None]
) -> tuple[Any, list[OracleStage]] | None:
    """Try every pipeline and return the least that its worst stage can come to, with its stages.

    Pipelines are put together from their last stage to the first, so that s is known. The only ones that are not
    gone through to the end are those that have a stage as bad as the whole of the best one so far.
    """
    ends = lru_cache(maxsize=None)(lambda rest: last_stages(problem, rest))
    degrees = list(product(data_degrees(problem), tensor_degrees(problem)))
    best: tuple[Any, list[OracleStage]] | None = None

    def extend(rest: frozenset[int], devices: int, s: int, worst: Any, later: list[OracleStage]) -> None:
        nonlocal best
        if best is not None and worst >= best[0]:
            return
        if not rest:
            if s == problem.micro_batches or not problem.exact_micro_batches:
                best = worst, later
            return
        for members in ends(rest):
            for d, t in degrees:
                if d * t > devices or s + d > problem.micro_batches:
                    continue
                found = cheapest(tuple(sorted(members)), d, t, ceil_divided(s + d, d))
                if found is not None:
                    extend(rest - members, devices - d * t, s + d, max(worst, found[0]), [found[1], *later])

    extend(frozenset(range(len(problem.model.layers))), problem.devices, 0, 0, [])
    return best
