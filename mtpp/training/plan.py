"""A training plan: stages with their degrees and configurations, what each takes, and what is proven about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier, approximation_ratio, refuse_above
from mtpp.training.problem import Choice, PlanningProblem

FORMAT = "mtpp-training-plan"
VERSION = 1


@dataclass(frozen=True)
class LayerStage:
    """Layers that share their devices.

    Attributes
    ----------
    layers
        Positions of the layers in the model.
    data_parallel, tensor_parallel
        d and t: the stage runs on d · t devices.
    chosen
        For each of *layers*, the position of its configuration among the problem's choices for t.
    """

    layers: Sequence[int]
    data_parallel: int
    tensor_parallel: int
    chosen: Sequence[int]


@dataclass(frozen=True)
class LayerStageFigures:
    """What a stage takes, on each of its devices.

    Attributes
    ----------
    time
        Time-Per-Sample in ticks, exact: *compute* + *edges* + *gradients*.
    compute, edges, gradients
        Its parts per sample, in ticks, exact: layers; tensors from and to other stages; synchronisation of gradients.
    in_flight
        ⌈s / d⌉ micro-batches whose activations are kept; s is the sum of degrees of this and all later stages.
    memory_bytes
        a · ⌈s / d⌉ + b, section 3.5 of the paper.
    """

    time: Fraction
    compute: Fraction
    edges: Fraction
    gradients: Fraction
    in_flight: int
    memory_bytes: int


@dataclass(frozen=True)
class TimeBound:
    """A time that no plan beats: *value* in exact ticks; the rest as in :mod:`mtpp.inference.certificate`."""

    value: Fraction
    method: str
    tier: Tier
    proof: Mapping[str, Any] = field(default_factory=dict)


class BoundedPlan(ABC):
    """What plans for one level of devices and for several have in common: a time, and what is proven about it.

    Raises
    ------
    InconsistentBound
        If *lower* is above what the plan takes, which no correct program can produce.
    """

    lower: TimeBound

    def __post_init__(self) -> None:
        time = self.time_per_sample
        refuse_above(self.lower.value, self.lower.method, f"the plan's {time}", time)

    @property
    @abstractmethod
    def time_per_sample(self) -> Fraction:
        """The longest that any part of the pipeline takes, in ticks."""

    @property
    def optimal(self) -> bool:
        """Whether plan and bound meet, exactly."""
        return self.lower.value == self.time_per_sample

    @property
    def ratio(self) -> float | None:
        """Time per sample / lower bound; None where only the bound is 0."""
        return time_ratio(self.time_per_sample, self.lower.value)


def time_ratio(time: Fraction, lower: Fraction) -> float | None:
    """Return *time* / *lower*, correctly rounded; 1.0 where both are 0 and None where only the bound is."""
    return approximation_ratio(time.numerator * lower.denominator, lower.numerator * time.denominator)


@dataclass(frozen=True, eq=False)
class TrainingPlan(BoundedPlan):
    """Stages in pipeline order, from the model's sources to its sinks."""

    problem: PlanningProblem
    planner: str
    stages: Sequence[LayerStage]
    lower: TimeBound
    stopped: StopReason
    notes: Sequence[str] = ()

    @cached_property
    def figures(self) -> Sequence[LayerStageFigures]:
        """What each stage takes."""
        return stage_figures(self.problem, self.stages)

    @cached_property
    def time_per_sample(self) -> Fraction:
        """The slowest stage's, in ticks."""
        return max(figures.time for figures in self.figures)

    @property
    def devices_used(self) -> int:
        """Σ d · t."""
        return sum(stage.data_parallel * stage.tensor_parallel for stage in self.stages)

    @property
    def degrees_sum(self) -> int:
        """Σ d, the micro-batches in flight."""
        return sum(stage.data_parallel for stage in self.stages)


def chosen_of(problem: PlanningProblem, stage: LayerStage) -> list[Choice]:
    """Return what each layer of a stage runs as, in the order of its layers."""
    by_layer = problem.choices[problem.degrees.index(stage.tensor_parallel)]
    return [by_layer[layer][c] for layer, c in zip(stage.layers, stage.chosen, strict=True)]


def stage_figures(
    problem: PlanningProblem, stages: Sequence[LayerStage], in_flight: int | None = None
) -> list[LayerStageFigures]:
    """Return what each stage of a pipeline takes: sections 3.5 and 4 of the paper, the one definition.

    Stages are in pipeline order. *in_flight* is s at the first one, the sum of all degrees; it is given for parts of a
    pipeline, where later parts count as well. O(layers + edges).
    """
    figures = []
    later = sum(stage.data_parallel for stage in stages) if in_flight is None else in_flight
    for stage in stages:
        members = set(stage.layers)
        d = stage.data_parallel
        kept = -(-later // d)
        later -= d
        compute = edges = weights = memory = 0
        for layer, choice in zip(stage.layers, chosen_of(problem, stage), strict=True):
            compute += choice.compute_ticks
            weights += choice.weight_ticks
            memory += choice.memory_a * kept + choice.memory_b
            for e, sync in zip(problem.edges_in[layer], choice.sync_in_ticks, strict=True):
                if problem.model.ends[e][0] not in members:
                    edges += problem.edge_ticks[e] + sync
            for e, sync in zip(problem.edges_out[layer], choice.sync_out_ticks, strict=True):
                if problem.model.ends[e][1] not in members:
                    edges += problem.edge_ticks[e] + sync
        time = problem.stage_time(compute + edges, weights, d)
        parts = Fraction(compute, d), Fraction(edges, d)
        figures.append(LayerStageFigures(time, *parts, time - sum(parts), kept, memory))
    return figures


@dataclass(frozen=True, eq=False)
class NoPlan:
    """No plan came out.

    Attributes
    ----------
    proven
        Whether there is none: every possibility was looked at. False: none was found before the search had to end, or
        the planner only looks at some.
    least_memory_bytes
        The least memory of a device with which the planner finds a plan, the rest being as it is; None where no amount
        of memory helps, or where it is not known.
    stopped
        Why it ended.
    reason
        What stands in the way, for people.
    """

    problem: PlanningProblem
    planner: str
    proven: bool
    least_memory_bytes: int | None
    stopped: StopReason
    reason: str


@dataclass(frozen=True)
class SweepCell:
    """What is known for at most so many devices and a sum of degrees of at most so much.

    Attributes
    ----------
    time
        The best plan's time per sample in ticks, None if there is none.
    lower
        No plan takes less; equal to *time* once that is proven to be the least.
    stages
        Number of stages of that plan.
    """

    time: Fraction | None
    lower: Fraction
    stages: int | None
