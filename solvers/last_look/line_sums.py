"""Memory and times of stages in a line, summed up from the layers of the model, without sums of a planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from mtpp.errors import InconsistentResult
from mtpp.training.model import Configuration
from mtpp.training.nested_plan import Superstage
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import LayerStage
from mtpp.training.problem import PlanningProblem
from mtpp.units import PICOSECONDS, Exact

_SECOND = PICOSECONDS["s"]


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
    rate = problem.device_tree.levels[above].bandwidth_bytes_per_s
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
        problem, rate = self._problem, self._problem.bandwidth_bytes_per_s
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
