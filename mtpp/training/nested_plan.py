"""A training plan for several levels of devices: superstages within superstages, with stages at the bottom.

As JSON (:mod:`mtpp.formats.results.training_plan` writes it) such a plan is that of one level with

* ``system.topology``: ``[{"devices": K₁, "bandwidth_bytes_per_s": B₁}, …]``, the innermost level first;
  ``system.devices`` is the product, ``system.bandwidth_bytes_per_s`` is B₁;
* ``stages``: the stages of level 1 in pipeline order; ``data_parallel`` is the degree at level 1, ``replicas`` the
  product with the degrees of the superstages around it, ``devices`` = ``replicas`` · t;
* ``superstages``: the superstages of level L in pipeline order (``[]`` if L = 1), each
  ``{"level": ℓ, "data_parallel": d, "stages": [first, …, last] (indices into stages), "time", "time_ticks", "edges",
  "gradients", "utilization", "superstages": [those of level ℓ - 1 inside; [] at level 2]}``.

All times are per sample, divided by the degrees around.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mtpp.host.stop_reason import StopReason
from mtpp.training.nested_problem import NestedProblem, OuterLevel
from mtpp.training.plan import BoundedPlan, LayerStage, LayerStageFigures, TimeBound, stage_figures


@dataclass(frozen=True)
class Superstage:
    """Layers that *data_parallel* devices of a level ≥ 2 share; *inside* is how each of them splits its work.

    Attributes
    ----------
    inside
        Superstages of the level below, or stages at level 2, in pipeline order; never empty.
    """

    data_parallel: int
    inside: Sequence[Superstage] | Sequence[LayerStage]

    @cached_property
    def layers(self) -> Sequence[int]:
        """Positions of its layers in the model, in the order of its stages."""
        return [layer for part in self.inside for layer in part.layers]


@dataclass(frozen=True)
class SuperstageFigures:
    """What a superstage takes, on each of its devices.

    Attributes
    ----------
    level
        ℓ ≥ 2.
    first, last
        Its stages, as positions among those of the plan, *last* included.
    replicas
        The product of its degree and those of the superstages around it.
    time, edges, gradients
        Communication per sample in ticks, exact: *time* is the sum of the others.
    inside
        Figures of the superstages inside, empty at level 2.
    """

    level: int
    data_parallel: int
    first: int
    last: int
    replicas: int
    time: Fraction
    edges: Fraction
    gradients: Fraction
    inside: Sequence[SuperstageFigures]


@dataclass(frozen=True, eq=False)
class NestedPlan(BoundedPlan):
    """A pipeline of superstages of level L, from the model's sources to its sinks; of stages if there is one level.

    The attributes that :class:`mtpp.training.plan.TrainingPlan` has as well mean the same.
    """

    problem: NestedProblem
    planner: str
    pipeline: Sequence[Superstage] | Sequence[LayerStage]
    lower: TimeBound
    stopped: StopReason
    notes: Sequence[str] = ()

    @cached_property
    def stages(self) -> Sequence[LayerStage]:
        """The stages of level 1, in pipeline order."""
        return list(_stages(self.pipeline))

    @cached_property
    def _walked(self) -> _Walk:
        walk = _Walk(self.problem)
        walk.level(self.pipeline, len(self.problem.outer), _degrees_sum(self.pipeline), 1)
        return walk

    @property
    def figures(self) -> Sequence[LayerStageFigures]:
        """What each of :attr:`stages` takes."""
        return self._walked.figures

    @property
    def superstages(self) -> Sequence[SuperstageFigures]:
        """What each superstage of level L takes, and those inside."""
        return self._walked.superstages

    @property
    def replicas(self) -> Sequence[int]:
        """For each of :attr:`stages`, the product of its degree and those of the superstages around it."""
        return self._walked.replicas

    @cached_property
    def time_per_sample(self) -> Fraction:
        """That of the slowest stage or superstage, in ticks."""
        times = [figures.time for figures in self.figures]
        return max(times + [figures.time for figures in all_superstages(self.superstages)])

    @property
    def devices_used(self) -> int:
        """Σ over stages of their degrees of all levels and t: devices that compute."""
        return sum(r * stage.tensor_parallel for r, stage in zip(self.replicas, self.stages, strict=True))

    @property
    def degrees_sum(self) -> int:
        """Σ over stages of the products of their degrees, the micro-batches in flight."""
        return sum(self.replicas)


def all_superstages(superstages: Sequence[SuperstageFigures]) -> Iterator[SuperstageFigures]:
    """Yield superstages and all those inside, outer ones first."""
    for one in superstages:
        yield one
        yield from all_superstages(one.inside)


def _stages(parts: Sequence[Superstage] | Sequence[LayerStage]) -> Iterator[LayerStage]:
    for part in parts:
        if isinstance(part, Superstage):
            yield from _stages(part.inside)
        else:
            yield part


def _degrees_sum(parts: Sequence[Superstage] | Sequence[LayerStage]) -> int:
    return sum(
        part.data_parallel * (_degrees_sum(part.inside) if isinstance(part, Superstage) else 1) for part in parts
    )


class _Walk:
    """One pass over a plan, from the outermost level to the stages: the one definition of what they take."""

    def __init__(self, problem: NestedProblem) -> None:
        self._problem = problem
        self.figures: list[LayerStageFigures] = []
        self.superstages: list[SuperstageFigures] = []
        self.replicas: list[int] = []

    def level(
        self, parts: Sequence[Superstage] | Sequence[LayerStage], above: int, in_flight: int, around: int
    ) -> list[SuperstageFigures]:
        """Work out a split.

        Parameters
        ----------
        above
            Levels ≥ 2 that are left: the split is one of level *above* + 1.
        in_flight
            s: micro-batches in flight from the split's first part on.
        around
            The product of the degrees of the superstages around it.
        """
        stages = [part for part in parts if isinstance(part, LayerStage)]
        if stages:
            for figures, stage in zip(stage_figures(self._problem.level_one, stages, in_flight), stages, strict=True):
                self.figures.append(_divided(figures, around))
                self.replicas.append(around * stage.data_parallel)
            return []
        found = []
        for part in parts:
            assert isinstance(part, Superstage)
            d = part.data_parallel
            first = len(self.figures)
            inside = self.level(part.inside, above - 1, -(-in_flight // d), around * d)
            in_flight -= d * _degrees_sum(part.inside)
            time, edges = _communication(self._problem.outer[above - 1], self._problem, part)
            found.append(
                SuperstageFigures(
                    above + 1,
                    d,
                    first,
                    len(self.figures) - 1,
                    around * d,
                    time / around,
                    edges / around,
                    (time - edges) / around,
                    inside,
                )
            )
        if above == len(self._problem.outer):
            self.superstages = found
        return found


def _divided(figures: LayerStageFigures, around: int) -> LayerStageFigures:
    return LayerStageFigures(
        figures.time / around,
        figures.compute / around,
        figures.edges / around,
        figures.gradients / around,
        figures.in_flight,
        figures.memory_bytes,
    )


def _communication(level: OuterLevel, problem: NestedProblem, part: Superstage) -> tuple[Fraction, Fraction]:
    """Return the time that a superstage communicates, and that of its edges; what is around it not counted."""
    members = set(part.layers)
    edges = sum(
        ticks
        for ticks, (source, target) in zip(level.edge_ticks, problem.model.ends, strict=True)
        if (source in members) != (target in members)
    )
    weights = sum(level.weight_ticks[layer] for layer in members)
    return level.superstage_time(edges, weights, part.data_parallel), Fraction(edges, part.data_parallel)
