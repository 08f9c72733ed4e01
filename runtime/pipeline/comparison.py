"""Measured times of a pipeline against predicted ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.runtime.pipeline.hand_over_line import HandOverLine
from mtpp.runtime.pipeline.measuring import Measured
from mtpp.units import PICOSECONDS

_CONTENTION = 1.1
"""Times as long as alone: beyond, stages are in each other's way."""

_LINE = 2
_DISTURBED = 0.1
"""Part of the time that others may take before it is worth telling."""

_SATURATED = 0.9
"""Part of the time that the slowest stage is busy: from there on, it is what limits the pipeline."""


@dataclass(frozen=True)
class StageComparison:
    """One stage; times are medians over batches, in seconds, but for those of waiting, which are means.

    A stage often waits long for a few batches and not at all for most: the median would be nothing.

    Attributes
    ----------
    index, file, ops
        As in the manifest.
    predicted_s
        None where costs have no unit of time.
    alone_s
        With nothing else running.
    busy_s, cpu_s
        In the pipeline, by the clock on the wall and of its processor.
    hand_over_s
        Of taking inputs that are there, saying that outputs are, and giving memory back.
    wait_in_s, wait_out_s
        For inputs, the filling of the pipeline included, and for room for the outputs.
    share
        Of the whole run's time in which it had a batch.
    """

    index: int
    file: str
    ops: int
    predicted_ticks: int
    predicted_s: float | None
    alone_s: float
    busy_s: float
    cpu_s: float
    hand_over_s: float
    wait_in_s: float
    wait_out_s: float
    share: float

    @property
    def held_s(self) -> float:
        """Seconds for which the stage has a batch: all but waiting."""
        return self.busy_s + self.hand_over_s

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        return self.held_s / self.predicted_s if self.predicted_s else None


@dataclass(frozen=True)
class HandOvers:
    """Tensors that stages hand to each other in each batch.

    Attributes
    ----------
    tensors, messages
        How many cross, and how often: once for each stage that reads one.
    bytes
        Of all messages, of sizes that are the same in each batch.
    line
        Time that a stage has a message in hand, against its bytes; None where none was measured.
    """

    tensors: int
    messages: int
    bytes: int
    line: HandOverLine | None


@dataclass(frozen=True)
class Comparison:
    """A measured pipeline beside its prediction."""

    measured: Measured

    @cached_property
    def tick_s(self) -> float | None:
        """Seconds of a tick, None where costs have no unit of time."""
        manifest = self.measured.wiring.manifest
        unit = PICOSECONDS.get(manifest.time_unit)
        return None if unit is None else unit * 1e-12 / manifest.ticks_per_unit

    @cached_property
    def stages(self) -> tuple[StageComparison, ...]:
        """Return the stages in the order of the pipeline."""
        run = self.measured.pipeline
        alone = np.median(self.measured.alone, axis=0)
        return tuple(
            StageComparison(
                index=stage.index,
                file=stage.file,
                ops=stage.ops,
                predicted_ticks=stage.cost,
                predicted_s=None if self.tick_s is None else stage.cost * self.tick_s,
                alone_s=float(alone[i]),
                busy_s=float(np.median(times.busy)),
                cpu_s=float(np.median(times.cpu)),
                hand_over_s=float(np.median(times.hand_over)),
                wait_in_s=float(np.mean(times.wait_in)),
                wait_out_s=float(np.mean(times.wait_out)),
                share=float(times.held.sum()) / run.elapsed_s,
            )
            for i, (stage, times) in enumerate(zip(self.measured.wiring.manifest.stages, run.stages, strict=True))
        )

    @cached_property
    def hand_overs(self) -> HandOvers:
        """Return what stages hand to each other."""
        wiring = self.measured.wiring
        crossing = [one for stage in wiring.manifest.stages for one in stage.outputs if one.readers]
        rooms = {
            region.name: 0 if None in region.shape else region.room
            for layout in wiring.layouts
            for region in layout.regions
        }
        return HandOvers(
            len(crossing),
            sum(len(one.readers) for one in crossing),
            sum(len(one.readers) * rooms[one.name] for one in crossing),
            self.measured.pipeline.line,
        )

    @property
    def slowest(self) -> StageComparison:
        """Return the stage that had a batch for longest."""
        return max(self.stages, key=lambda stage: stage.held_s)

    @property
    def predicted_slowest(self) -> StageComparison:
        """Return the stage that was to be the slowest."""
        return max(self.stages, key=lambda stage: stage.predicted_ticks)

    @property
    def predicted_bottleneck_s(self) -> float | None:
        """Return what the plan says of the slowest stage."""
        return None if self.tick_s is None else self.measured.wiring.manifest.bottleneck * self.tick_s

    @property
    def bottleneck_ratio(self) -> float | None:
        """Measured over predicted, whichever stages they are of."""
        predicted = self.predicted_bottleneck_s
        return self.slowest.held_s / predicted if predicted else None

    @property
    def throughput(self) -> float:
        """Batches per second over the whole run, the filling and the emptying of the pipeline included."""
        return self.measured.pipeline.batches / self.measured.pipeline.elapsed_s

    @property
    def predicted_throughput(self) -> float | None:
        """Batches per second of a pipeline that is full."""
        bottleneck = self.predicted_bottleneck_s
        return 1 / bottleneck if bottleneck else None

    @property
    def unsplit_s(self) -> float:
        """Return the median time of the whole model where it was measured, else of all stages in turn."""
        whole = self.measured.whole
        rounds = self.measured.alone.sum(axis=1) if whole is None else whole[0]
        return float(np.median(rounds))

    @property
    def predicted_unsplit_s(self) -> float | None:
        """Return the time of the whole model in one stage, on the fastest device that holds it."""
        ticks = self.measured.wiring.manifest.whole_ticks
        return None if self.tick_s is None or ticks is None else ticks * self.tick_s

    @property
    def speedup(self) -> float:
        """Throughput of the pipeline over that of the unsplit model."""
        return self.unsplit_s * self.throughput

    @property
    def period_s(self) -> float | None:
        """Seconds from one result to the next once the pipeline is full, on average; None after a single batch."""
        ends = max((times.ended for times in self.measured.pipeline.stages), key=lambda ended: float(ended[-1]))
        return float(ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else None

    @property
    def pays(self) -> bool | None:
        """Whether a full pipeline does more in a second than the unsplit model; None after a single batch."""
        return None if self.period_s is None else self.period_s < self.unsplit_s

    @property
    def predicted_speedup(self) -> float | None:
        """Return the ticks of the whole model in one stage over those of the slowest stage."""
        manifest = self.measured.wiring.manifest
        ticks = manifest.whole_ticks
        return ticks / manifest.bottleneck if manifest.bottleneck and ticks is not None else None

    @cached_property
    def correlation(self) -> float | None:
        """Pearson's, of predicted with measured times of stages; None for constants.

        And for fewer than three stages: two points always lie on a line.
        """
        if len(self.stages) <= _LINE:
            return None
        predicted = np.array([stage.predicted_ticks for stage in self.stages], dtype=np.float64)
        measured = np.array([stage.busy_s for stage in self.stages])
        predicted, measured = predicted - predicted.mean(), measured - measured.mean()
        scale = float(np.sqrt((predicted**2).sum() * (measured**2).sum()))
        return float((predicted * measured).sum()) / scale if scale > 0 else None

    @property
    def predicted_spread(self) -> float:
        """Return by which part of the largest the predicted times of stages differ."""
        ticks = [stage.predicted_ticks for stage in self.stages]
        return 1 - min(ticks) / max(ticks) if max(ticks) else 0.0

    @property
    def contention(self) -> float:
        """Return how many times as long stages take beside each other as alone."""
        return sum(stage.busy_s for stage in self.stages) / sum(stage.alone_s for stage in self.stages)

    @property
    def disturbance(self) -> float:
        """Return the part of the measured time in which other programs had the cores, 0 where it cannot be told.

        It cannot where stages share cores with each other, or have several threads, which wait for each other.
        """
        if self.measured.request.threads > 1 or len(self.stages) > self.cores:
            return 0.0
        busy = sum(float(times.busy.sum()) for times in self.measured.pipeline.stages)
        cpu = sum(float(times.cpu.sum()) for times in self.measured.pipeline.stages)
        return max(0.0, 1 - cpu / busy, 1 - self.measured.alone_cpu_share)

    @property
    def disturbed(self) -> bool:
        """Whether other programs took enough to spoil the figures."""
        return self.disturbance > _DISTURBED

    @property
    def cores(self) -> int:
        """Return how many cores the workers share."""
        if self.measured.cores is None:
            return self.measured.available_cores
        return len({core for own in self.measured.cores for core in own})

    def limits(self) -> list[str]:
        """Say what the speed-up is limited by, for people."""
        found = []
        running, cores = len(self.stages) * self.measured.request.threads, self.cores
        if running > cores:
            found.append(f"{running} threads share {cores} core{'s' if cores > 1 else ''}")
        if self.disturbed:
            found.append(f"other programs, which had the cores for {self.disturbance:.0%} of the time")
        elif self.contention > _CONTENTION:
            found.append(f"stages take {self.contention:.2f}× as long beside each other as alone")
        slowest = self.slowest
        if slowest.share >= _SATURATED:
            found.append(f"stage {slowest.index}, busy {slowest.share:.0%} of the time")
        elif not found:
            found.append(f"waiting: even the slowest stage is busy only {slowest.share:.0%} of the time")
        return found
