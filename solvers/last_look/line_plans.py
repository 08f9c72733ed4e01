"""Last look at plans of stages in a line, on one level of devices or several: what the time per sample is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from mtpp.errors import InconsistentResult
from mtpp.solvers.last_look.layers import look_at_equal, look_at_layers, look_at_least_memory, look_at_memory
from mtpp.training.model import Configuration
from mtpp.training.nested_plan import NestedPlan, Superstage, all_superstages
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import LayerStage, NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem
from mtpp.units import PICOSECONDS, Exact

_TAKES = "takes {} ticks for a sample"

_SECOND = PICOSECONDS["s"]


def look_at_line_plan(problem: PlanningProblem, found: TrainingPlan | NoPlan) -> None:
    """Hold a plan to the devices, micro-batches, memory and schemes of its problem; its times follow from its stages.

    Notes
    -----
    O(layers + edges).
    """
    if isinstance(found, NoPlan):
        look_at_least_memory(None, found.least_memory_bytes, problem.memory_bytes)
        return
    look_at_layers(problem.model, [stage.layers for stage in found.stages], ordered=True)
    _look_at_stages(problem, found.stages)
    _look_at_sums(problem, found.devices_used, problem.devices, found.degrees_sum)
    _look_at_figures(found, line_sums(problem, found.stages), problem.memory_bytes)


def look_at_nested_plan(problem: NestedProblem, found: NestedPlan | NoPlan) -> None:
    """Do the same for several levels of devices."""
    level_one = problem.level_one
    if isinstance(found, NoPlan):
        look_at_least_memory(None, found.least_memory_bytes, level_one.memory_bytes)
        return
    look_at_layers(problem.model, [stage.layers for stage in found.stages], ordered=True)
    _look_at_stages(level_one, found.stages)
    _look_at_level(problem, found.pipeline, len(problem.outer))
    _look_at_sums(level_one, found.devices_used, problem.devices, found.degrees_sum)
    sums = nested_sums(problem, found.pipeline)
    _look_at_figures(found, sums, level_one.memory_bytes)
    look_at_equal([one.time for one in all_superstages(found.superstages)], sums.superstages, "superstage", _TAKES)


def _look_at_figures(found: TrainingPlan | NestedPlan, sums: LineSums, limit: int) -> None:
    """Check memory and times of stages against what their layers sum up to."""
    memory = [one.memory_bytes for one in found.figures]
    look_at_equal(memory, sums.memory_bytes, "stage", "needs {} bytes")
    look_at_memory(memory, [limit] * len(found.stages), "stage")
    look_at_equal([one.time for one in found.figures], sums.stages, "stage", _TAKES)
    if found.time_per_sample != sums.time or sums.time < 0:
        said = f"the plan takes {found.time_per_sample} ticks for a sample"
        raise InconsistentResult(f"{said}, and its slowest stage, summed up from its layers, {sums.time}")


def _look_at_stages(problem: PlanningProblem, stages: Sequence[LayerStage]) -> None:
    for s, stage in enumerate(stages):
        if stage.data_parallel not in problem.data_degrees:
            raise InconsistentResult(f"stage {s} of the plan has {stage.data_parallel} replicas, which is not allowed")
        by_layer = problem.choices[problem.degrees.index(stage.tensor_parallel)]
        if len(stage.chosen) != len(stage.layers) or not all(
            0 <= c < len(by_layer[layer]) for layer, c in zip(stage.layers, stage.chosen, strict=False)
        ):
            raise InconsistentResult(f"a layer in stage {s} of the plan runs as a configuration that it has not")


def _look_at_sums(problem: PlanningProblem, used: int, devices: int, degrees: int) -> None:
    most = problem.micro_batches
    if used > devices:
        raise InconsistentResult(f"the plan uses {used} devices, and there are {devices}")
    if degrees > most or (problem.exact_micro_batches and degrees != most):
        raise InconsistentResult(f"degrees of data parallelism of the plan sum up to {degrees}, and N is {most}")


def _look_at_level(problem: NestedProblem, parts: Sequence[Superstage] | Sequence[LayerStage], above: int) -> None:
    """Check that a split uses no more devices of its level than there are, and those inside."""
    devices = problem.machine.levels[above].devices
    used = sum(part.data_parallel * (1 if isinstance(part, Superstage) else part.tensor_parallel) for part in parts)
    if used > devices:
        raise InconsistentResult(f"a split of the plan uses {used} devices of level {above + 1}, which has {devices}")
    for part in parts:
        if isinstance(part, Superstage):
            if part.data_parallel not in problem.data_degrees[above]:
                raise InconsistentResult(f"a superstage of the plan runs on {part.data_parallel} devices, not allowed")
            _look_at_level(problem, part.inside, above - 1)


@dataclass(frozen=True)
class LineSums:
    """Bytes of each device of each stage, and the times per sample of stages and of superstages, in ticks."""

    memory_bytes: Sequence[int]
    stages: Sequence[Fraction]
    superstages: Sequence[Fraction] = ()

    @property
    def time(self) -> Fraction:
        """That of the slowest."""
        return max([*self.stages, *self.superstages])


def line_sums(problem: PlanningProblem, stages: Sequence[LayerStage]) -> LineSums:
    """Sum up a pipeline on one level of devices: sections 3.5 and 4 of Tarnawski et al. (2021). O(layers + edges)."""
    walk = _Walk(problem)
    walk.split(stages, sum(stage.data_parallel for stage in stages), 1)
    return LineSums(walk.memory, walk.times)


def nested_sums(problem: NestedProblem, pipeline: Sequence[Superstage] | Sequence[LayerStage]) -> LineSums:
    """Do the same on several levels of devices: appendix E of that paper. O(levels · (layers + edges))."""
    walk = _Walk(problem.level_one)
    superstages: list[Fraction] = []
    _walk_level(walk, problem, pipeline, len(problem.outer), _degrees(pipeline), 1, superstages)
    return LineSums(walk.memory, walk.times, superstages)


def _walk_level(
    walk: _Walk,
    problem: NestedProblem,
    parts: Sequence[Superstage] | Sequence[LayerStage],
    above: int,
    in_flight: int,
    around: int,
    superstages: list[Fraction],
) -> None:
    stages = [part for part in parts if isinstance(part, LayerStage)]
    if stages:
        walk.split(stages, in_flight, around)
        return
    model = problem.model
    rate = problem.machine.levels[above].link.bandwidth_bytes_per_s
    for part in parts:
        assert isinstance(part, Superstage)
        d, inside = part.data_parallel, set(part.layers)
        crossing = sum(
            _over(2 * edge.communication_bytes, rate)
            for edge, (u, v) in zip(model.edges, model.ends, strict=True)
            if (u in inside) != (v in inside)
        )
        weights = sum(
            _over(4 * min(t * one.gradient_bytes for t, ones in of.configurations.items() for one in ones), rate)
            for of in (model.layers[v] for v in inside)
        )
        superstages.append((Fraction(crossing, d) + Fraction((d - 1) * weights, d * d)) / around)
        _walk_level(walk, problem, part.inside, above - 1, ceil(Fraction(in_flight, d)), around * d, superstages)
        in_flight -= d * _degrees(part.inside)


def _degrees(parts: Sequence[Superstage] | Sequence[LayerStage]) -> int:
    return sum(part.data_parallel * (_degrees(part.inside) if isinstance(part, Superstage) else 1) for part in parts)


class _Walk:
    """One pass over the stages of a plan, in pipeline order."""

    def __init__(self, problem: PlanningProblem) -> None:
        self._problem, self._model = problem, problem.model
        self._unit = PICOSECONDS[problem.model.time_unit]
        self.memory: list[int] = []
        self.times: list[Fraction] = []
        self._edges: list[list[tuple[int, int, bool]]] = [[] for _ in self._model.layers]
        for e, (u, v) in enumerate(self._model.ends):
            self._edges[v].append((e, u, True))
            self._edges[u].append((e, v, False))

    def split(self, stages: Sequence[LayerStage], in_flight: int, around: int) -> None:
        """Sum up stages of one level with so many micro-batches in flight at the first one."""
        problem, rate = self._problem, self._problem.link.bandwidth_bytes_per_s
        for stage in stages:
            d, inside = stage.data_parallel, set(stage.layers)
            kept, in_flight = ceil(Fraction(in_flight, d)), in_flight - d
            ticks = weights = held = 0
            for layer, one in zip(stage.layers, self._chosen(stage), strict=True):
                ticks += self._ticks(one.time_per_sample)
                weights += _over(4 * one.gradient_bytes, rate)
                held += one.memory_a * kept + one.memory_b
                for e, other, incoming in self._edges[layer]:
                    if other not in inside:
                        edge = self._model.edges[e]
                        more = (
                            one.forward_sync_bytes.get(edge.source, 0)
                            if incoming
                            else one.backward_sync_bytes.get(edge.target, 0)
                        )
                        ticks += _over(2 * edge.communication_bytes, rate) + _over(2 * more, rate)
            spread = d if problem.convention == "paper" else problem.micro_batches
            self.times.append((Fraction(ticks, d) + Fraction((d - 1) * weights, d * spread)) / around)
            self.memory.append(held)

    def _chosen(self, stage: LayerStage) -> list[Configuration]:
        problem, t = self._problem, stage.tensor_parallel
        found = []
        for layer, c in zip(stage.layers, stage.chosen, strict=True):
            one = problem.choices[problem.degrees.index(t)][layer][c].configuration
            of = self._model.layers[layer]
            if one not in of.configurations.get(t, ()):
                raise InconsistentResult(
                    f"the plan runs layer {of.name!r} as {one.id!r}, which it does not list for {t}"
                )
            found.append(one)
        return found

    def _ticks(self, time: Exact) -> int:
        return -(-time.numerator * self._unit // time.denominator)


def _over(size: int, rate: int) -> int:
    """Return the ticks of so many bytes over a link."""
    return -(-size * _SECOND // rate)
