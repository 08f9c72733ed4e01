"""A plan trained by PyTorch, and held against the model that was not split."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtpp.errors import MtppError
from mtpp.runtime.pipeline.crew import Crew, RunLimits
from mtpp.runtime.training.results import BUFFER, GRADIENT, Key, TrainedStages, TrainingTerms
from mtpp.runtime.training.stages_job import StagesJob
from mtpp.runtime.training.trained_model import TrainedModel
from mtpp.runtime.training.unsplit_job import UnsplitJob

CLOSE = 1e-6
"""Largest difference of gradients that are added up in another order, over the largest value."""


@dataclass(frozen=True)
class Compared:
    """Tensors of one kind, pipeline against unsplit model.

    Attributes
    ----------
    count, exact
        All, and those that are equal bit for bit.
    largest
        Difference of the others, over the largest value of its tensor.
    worst
        Name of the tensor that differs most, None where all are equal.
    """

    count: int
    exact: int
    largest: float
    worst: str | None

    @property
    def holds(self) -> bool:
        """Whether none differs by more than the order of additions explains."""
        return self.largest <= CLOSE


@dataclass(frozen=True)
class TrainingRun:
    """What a run came to.

    Attributes
    ----------
    losses, gradients, buffers
        Comparisons; losses are of all steps, the others of the first one.
    step_s, unsplit_s
        Seconds of each step, of the pipeline and of the unsplit model.
    pass_s
        Median seconds of passes by stage and kind, as measured while the pipeline ran.
    handover_s
        Median seconds from each stage to the next one, measured alone; 0 on the same device.
    """

    terms: TrainingTerms
    losses: Compared
    gradients: Compared
    buffers: Compared
    last_losses: Sequence[float]
    step_s: Sequence[float]
    unsplit_s: Sequence[float]
    pass_s: Mapping[tuple[int, str], float]
    handover_s: Sequence[float]

    @property
    def agrees(self) -> bool:
        """Whether the pipeline trained as the unsplit model did."""
        return self.losses.holds and self.gradients.holds and self.buffers.holds


def train(
    model: TrainedModel,
    terms: TrainingTerms,
    passes: Path,
    limits: RunLimits,
    *,
    halves: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> TrainingRun:
    """Train the unsplit model, then its stages as processes, from the same weights on the same inputs.

    Parameters
    ----------
    passes
        File with the passes of each device, as PyTorch's runtime reads them.
    halves
        Whether backward passes in it come in halves.
    tell
        Is told what is being done.

    Raises
    ------
    InputError
        If PyTorch is not installed, or cannot load, cut or train the program.
    WorkerDied
        If a process dies; the others end with it.
    Stopped
        If the time is up, or the user has enough.
    """
    with Crew(limits) as unsplit, tempfile.TemporaryDirectory(prefix="mtpp-training-") as folder:
        tell("the unsplit model: its first step")
        unsplit.start("the unsplit model", UnsplitJob(model, terms))
        (expected,) = unsplit.gather("first")
        with Crew(limits) as crew:
            for rank in range(terms.devices):
                job = StagesJob(model, terms, rank, Path(folder) / "meeting", passes, halves)
                crew.start(f"device {rank}", job)
            tell("the pipeline: starting its processes")
            crew.gather("ready")
            tell("the pipeline: its first step")
            crew.tell_all("train")
            first = _first_compared(expected, crew.gather("first"), _Asking(unsplit, crew))
            crew.tell_all(None)
            tell(f"the pipeline: {terms.steps:,} steps")
            crew.tell_all("go on")
            found = crew.gather("done")
        tell("the unsplit model: all steps")
        unsplit.tell_all(None)
        (whole,) = unsplit.gather("done")
        return _compared(terms, whole, found, first)


class _Asking:
    """Contents of tensors, asked of the processes that hold them."""

    def __init__(self, unsplit: Crew, crew: Crew) -> None:
        self._unsplit, self._crew = unsplit, crew

    def pairs(self, keys: Sequence[Key]) -> list[tuple[Key, Any, Any]]:
        """Return what the unsplit model and each process have for these keys."""
        sides = []
        for crew in (self._unsplit, self._crew):
            crew.tell_all(list(keys))
            sides.append(crew.gather("arrays"))
        (own,), others = sides
        return [(key, own[key], other[key]) for other in others for key in keys if key in other]


def _first_compared(
    expected: Mapping[Key, str], found: Sequence[Mapping[Key, str]], asking: _Asking
) -> dict[str, Compared]:
    """Compare gradients and buffers after the first step, before which all weights are the same."""
    different: list[Key] = []
    counts = {GRADIENT: [0, 0], BUFFER: [0, 0]}
    for digests in found:
        for key, digest in digests.items():
            counts[key[0]][0] += 1
            if expected.get(key) == digest:
                counts[key[0]][1] += 1
            else:
                different.append(key)
    largest: dict[str, tuple[float, str | None]] = {GRADIENT: (0.0, None), BUFFER: (0.0, None)}
    for (kind, name), own, other in asking.pairs(sorted(set(different))) if different else ():
        largest[kind] = max(largest[kind], (_difference(own, other), name), key=lambda pair: pair[0])
    return {
        kind: Compared(count, exact, difference, worst)
        for kind, (count, exact) in counts.items()
        for difference, worst in [largest[kind]]
    }


def _compared(
    terms: TrainingTerms, whole: TrainedStages, found: Sequence[TrainedStages], first: Mapping[str, Compared]
) -> TrainingRun:
    losses = next((one.losses for one in found if any(one.losses)), [])
    if len(losses) != len(whole.losses) or any(len(row) != terms.micro_batches for row in losses):
        raise MtppError("the pipeline did not say the losses of all micro-batches", remedy="run again")
    steps = range(terms.steps)
    return TrainingRun(
        terms,
        _losses_compared(whole.losses, losses),
        first[GRADIENT],
        first[BUFFER],
        losses[-1],
        [max(one.ended[i] for one in found) - min(one.begun[i] for one in found) for i in steps],
        [whole.ended[i] - whole.begun[i] for i in steps],
        {key: statistics.median(seconds) for one in found for key, seconds in one.passes.items()},
        _handovers(found),
    )


def _handovers(found: Sequence[TrainedStages]) -> list[float]:
    known = {stage: seconds for one in found for stage, seconds in one.handovers.items()}
    stages = 1 + max(stage for one in found for stage, _ in one.passes)
    return [known.get(stage, 0.0) for stage in range(stages - 1)]


def _losses_compared(expected: Sequence[Sequence[float]], found: Sequence[Sequence[float]]) -> Compared:
    pairs = [
        (a, b, f"step {step}, micro-batch {m}")
        for step, rows in enumerate(zip(expected, found, strict=True))
        for m, (a, b) in enumerate(zip(*rows, strict=True))
    ]
    worst = max(pairs, key=lambda pair: _difference(np.array(pair[0]), np.array(pair[1])))
    largest = _difference(np.array(worst[0]), np.array(worst[1]))
    exact = sum(_difference(np.array(a), np.array(b)) == 0 for a, b, _ in pairs)
    return Compared(len(pairs), exact, largest, worst[2] if largest else None)


def _difference(own: Any, other: Any) -> float:
    """Return the largest difference over the largest value; infinite where only one is there or is finite."""
    if own is None or other is None:
        return 0.0 if own is other else float("inf")
    a, b = np.asarray(own, dtype=np.float64), np.asarray(other, dtype=np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    gap = float(np.abs(a[~same] - b[~same]).max())
    scale = float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) or 1.0
    return gap / scale if np.isfinite(gap) else float("inf")
