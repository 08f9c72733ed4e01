"""Training plans for devices within devices: whether superstages are what they should be, and what they take.

Appendix E of Tarnawski et al. (2021): K₁ devices joined by a network of bandwidth B₁ make a device of level 2, and so
on. A superstage of level ℓ ≥ 2 is a run of stages that d devices of level ℓ share, each of which splits it further.
Such a device communicates

    (1/d)·[4·(d - 1)/d·Σ w_v + 2·Σ c(u, v)] / B_ℓ,

over the edges that cross the superstage, at its own level whatever crosses others. All that happens inside takes 1/d of
what it would take alone. w_v are the parameters of a layer: of all its configurations, the least t·X.w. Both 4·w_v/B_ℓ
and 2·c/B_ℓ are rounded up to ticks. Let s be the micro-batches in flight from a superstage on, within the device around
it; then ⌈s/d⌉ are in flight inside, from its first part on, and less by the degrees of each part that is passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.checker.report import Check
from mtpp.checker.training.model import TickModel, transfer_ticks
from mtpp.checker.training.stages import PipelineStage, TrainingFigures, stage_figures

_NAME = "superstages"


@dataclass(frozen=True)
class SuperstageFigures:
    """What a superstage communicates per sample, in ticks, as the device around it sees it."""

    edges: Fraction
    gradients: Fraction

    @property
    def time(self) -> Fraction:
        """Return both together."""
        return self.edges + self.gradients


def all_superstages(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield superstages and those inside, outer ones first."""
    for row in rows:
        yield row
        yield from all_superstages(row["superstages"])


def check_superstages(plan: dict[str, Any]) -> Check:
    """Check that superstages are runs of stages at every level, and take no more devices than there are at each."""
    levels = plan["system"]["topology"]
    fault = _fault(plan, plan["superstages"], len(levels), range(len(plan["stages"])), 1)
    if fault is not None:
        return Check(_NAME, False, fault)
    count = sum(1 for _ in all_superstages(plan["superstages"]))
    return Check(_NAME, True, f"{count} at {len(levels) - 1} outer levels")


def _fault(
    plan: dict[str, Any], rows: Sequence[dict[str, Any]], level: int, stages: Sequence[int], around: int
) -> str | None:
    """Return what is wrong with a split of *stages* at *level*, inside superstages of degree *around* in all."""
    most = plan["system"]["topology"][level - 1]["devices"]
    if level == 1:
        if rows:
            return f"there are some inside stage {stages[0] if stages else 0}"
        taken = 0
        for i in stages:
            stage = plan["stages"][i]
            taken += stage["data_parallel"] * stage["tensor_parallel"]
            if stage["replicas"] != around * stage["data_parallel"]:
                due = around * stage["data_parallel"]
                return f"stage {i}: the plan says {stage['replicas']} replicas, it is {due}"
    else:
        taken = sum(row["data_parallel"] for row in rows)
        if [i for row in rows for i in row["stages"]] != list(stages):
            return (
                f"those of level {level} do not make up stages {stages[0]} to {stages[-1]}" if stages else "no stages"
            )
        for row in rows:
            if row["level"] != level:
                return f"one inside level {level + 1} says level {row['level']}"
            if not row["stages"]:
                return f"one of level {level} has no stages"
            if row["data_parallel"] > 1 and not plan["system"]["data_parallel"]:
                return f"one of level {level} has a degree of {row['data_parallel']}, without data parallelism"
            fault = _fault(plan, row["superstages"], level - 1, row["stages"], around * row["data_parallel"])
            if fault is not None:
                return fault
    return f"{taken} devices of level {level} are taken, there are {most}" if taken > most else None


class LevelFigures:
    """What the stages and superstages of a plan take; the plan passed all checks of its shape as a pipeline.

    Attributes
    ----------
    stages
        In their order.
    superstages
        In the order of :func:`all_superstages`.
    """

    def __init__(self, plan: dict[str, Any], stages: Sequence[PipelineStage], ticks: TickModel):
        self._plan = plan
        self._pipeline = stages
        self._ticks = ticks
        self._levels = plan["system"]["topology"]
        self.stages: list[TrainingFigures] = []
        self.superstages: list[SuperstageFigures] = []
        in_flight = sum(stage["replicas"] for stage in plan["stages"])
        self._split(plan["superstages"], len(self._levels), range(len(stages)), in_flight, 1)

    def _split(
        self, rows: Sequence[dict[str, Any]], level: int, stages: Sequence[int], in_flight: int, around: int
    ) -> None:
        system = self._plan["system"]
        if level == 1:
            for i in stages:
                stage = self._pipeline[i]
                alone = stage_figures(self._ticks, stage, in_flight, system["convention"], system["max_micro_batches"])
                self.stages.append(alone.divided(around))
                in_flight -= stage.data_parallel
            return
        for row in rows:
            d = row["data_parallel"]
            self.superstages.append(self._communication(row, level, around))
            self._split(row["superstages"], level - 1, row["stages"], -(-in_flight // d), around * d)
            in_flight -= sum(self._plan["stages"][i]["replicas"] for i in row["stages"]) // around

    def _communication(self, row: dict[str, Any], level: int, around: int) -> SuperstageFigures:
        bandwidth, d, ticks = self._levels[level - 1]["bandwidth_bytes_per_s"], row["data_parallel"], self._ticks
        inside = {v for i in row["stages"] for v in self._pipeline[i].runs_as}
        edges = sum(
            transfer_ticks(2 * size, bandwidth)
            for (u, v, _), size in zip(ticks.edges, ticks.edge_bytes, strict=True)
            if (u in inside) != (v in inside)
        )
        weights = sum(transfer_ticks(4 * ticks.weight_bytes[v], bandwidth) for v in inside)
        return SuperstageFigures(Fraction(edges, d * around), Fraction((d - 1) * weights, d * d * around))
