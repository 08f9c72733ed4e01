"""Costs of the stages of a training pipeline: Tarnawski et al. (2021), sections 3.5 and 4, in exact fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mtpp.checker.training.model import LayerOption, TickModel


@dataclass(frozen=True)
class PipelineStage:
    """Layers by position with the way each is run, and d."""

    runs_as: Mapping[int, LayerOption]
    data_parallel: int


@dataclass(frozen=True)
class TrainingFigures:
    """What a stage takes per sample, in ticks, and its bytes on each device."""

    compute: Fraction
    edges: Fraction
    gradients: Fraction
    in_flight: int
    memory_bytes: int

    @property
    def communication(self) -> Fraction:
        """Return what is neither of the layers: edges and gradients."""
        return self.edges + self.gradients

    @property
    def time(self) -> Fraction:
        """Return the stage's Time-Per-Sample."""
        return self.compute + self.communication

    def divided(self, around: int) -> TrainingFigures:
        """Return the same for a stage that *around* devices of outer levels share."""
        return replace(
            self, compute=self.compute / around, edges=self.edges / around, gradients=self.gradients / around
        )


def gradient_share(convention: str, d: int, micro_batches: int) -> Fraction:
    """Return the part of 4·w/B that synchronising gradients takes per sample.

    (d - 1) / d² in the paper, section 3.4: 4·(d - 1)/d · w bytes for each device, per d micro-batches. (d - 1) / (d·N)
    in the published program, which does it once in a batch.
    """
    return Fraction(d - 1, d * (d if convention == "paper" else micro_batches))


def pipeline_figures(
    model: TickModel, stages: Sequence[PipelineStage], convention: str, micro_batches: int
) -> list[TrainingFigures]:
    """Return what each stage of a pipeline takes; O(stages · edges + layers)."""
    return [
        stage_figures(model, stage, sum(later.data_parallel for later in stages[i:]), convention, micro_batches)
        for i, stage in enumerate(stages)
    ]


def stage_figures(
    model: TickModel, stage: PipelineStage, s: int, convention: str, micro_batches: int
) -> TrainingFigures:
    """Return what a stage takes, *s* being the sum of the degrees of this and all later stages; O(edges + layers)."""
    d, runs_as = stage.data_parallel, stage.runs_as
    in_flight = -(-s // d)
    edges = 0
    for u, v, ticks in model.edges:
        if u not in runs_as and v in runs_as:
            edges += ticks + runs_as[v].sync_in.get(u, 0)
        elif u in runs_as and v not in runs_as:
            edges += ticks + runs_as[u].sync_out.get(v, 0)
    weights = sum(option.weights for option in runs_as.values())
    return TrainingFigures(
        compute=Fraction(sum(option.compute for option in runs_as.values()), d),
        edges=Fraction(edges, d),
        gradients=gradient_share(convention, d, micro_batches) * weights,
        in_flight=in_flight,
        memory_bytes=sum(option.a * in_flight + option.b for option in runs_as.values()),
    )
