"""A plan trained by PyTorch, and held against the model that was not split and against the plan's own times."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mtpp.errors import InputError, MtppError
from mtpp.formats.training.pass_schedule import write_schedule_csv
from mtpp.formats.training.training_folder import TrainingFolder
from mtpp.runtime.pipeline.crew import Crew, RunLimits
from mtpp.runtime.pipeline.worker_process import Job
from mtpp.runtime.pytorch.flat_program import called, random_steps
from mtpp.runtime.pytorch.library import first_line, pytorch
from mtpp.runtime.pytorch.pipelining import loss_of
from mtpp.runtime.training.comparison import Compared, first_compared, losses_compared
from mtpp.runtime.training.results import BUFFER, GRADIENT, FirstStep, Key, TrainedStages, TrainingTerms
from mtpp.runtime.training.stages_job import StagesJob, answer, descend, digests, forget_gradients, names_of, tensors_of
from mtpp.runtime.training.trained_model import TrainedModel, micro_batches
from mtpp.training.pfeife.schedule import PassSchedule
from mtpp.units import PICOSECONDS

PASSES = "passes.csv"
"""File that PyTorch's runtime reads the passes from."""


@dataclass(frozen=True)
class ComparedRuns:
    """A pipeline beside the unsplit model.

    Attributes
    ----------
    losses, gradients, buffers
        Comparisons; losses are of all steps, the others of the first one.
    unsplit_s
        Seconds of each step of the unsplit model.
    """

    losses: Compared
    gradients: Compared
    buffers: Compared
    unsplit_s: Sequence[float]

    @property
    def agrees(self) -> bool:
        """Whether the pipeline trained as the unsplit model did."""
        return self.losses.holds and self.gradients.holds and self.buffers.holds


@dataclass(frozen=True)
class TrainingRun:
    """What a run came to.

    Attributes
    ----------
    compared
        With the unsplit model; None where that was left out.
    step_s
        Seconds of each step.
    pass_s
        Median seconds of passes by stage and kind, as measured while the pipeline ran.
    handover_s
        Median seconds from each stage to the next one, measured alone; 0 on the same device.
    """

    terms: TrainingTerms
    compared: ComparedRuns | None
    last_losses: Sequence[float]
    step_s: Sequence[float]
    pass_s: Mapping[tuple[int, str], float]
    handover_s: Sequence[float]

    @property
    def agrees(self) -> bool | None:
        """Whether the pipeline trained as the unsplit model did; None if that was left out."""
        return None if self.compared is None else self.compared.agrees


def train(
    model: TrainedModel,
    terms: TrainingTerms,
    schedule: PassSchedule,
    limits: RunLimits,
    *,
    tell: Callable[[str], None] = lambda text: None,
) -> TrainingRun:
    """Train the unsplit model, then its stages as processes, from the same weights on the same inputs.

    The unsplit model is left out where the terms say so.

    Parameters
    ----------
    schedule
        Passes of each device. What PyTorch's runtime reads is written anew: the plan's own file may change meanwhile.
    tell
        Is told what is being done.
    """
    with _folder_with(PASSES, write_schedule_csv(schedule)) as folder, Crew(limits) as unsplit:
        expected: Any = None
        if terms.compare:
            tell("the unsplit model: its first step")
            unsplit.start("the unsplit model", UnsplitJob(model, terms))
            (expected,) = unsplit.gather("first")
        with Crew(unsplit) as crew:
            for rank in range(terms.devices):
                job = StagesJob(model, terms, rank, folder / "meeting", folder / PASSES, schedule.halves)
                crew.start(f"device {rank}", job)
            tell("the pipeline: starting its processes")
            crew.gather("ready")
            tell("the pipeline: its first step")
            crew.tell_all("train")
            said = crew.gather("first")
            first = first_compared(expected, said, _Asking(unsplit, crew)) if terms.compare else {}
            crew.tell_all(None)
            tell(f"the pipeline: {terms.steps:,} steps")
            crew.tell_all("go on")
            found = crew.gather("done")
        losses = _losses(terms, found)
        if not terms.compare:
            return _measured(terms, found, losses, None)
        tell("the unsplit model: all steps")
        unsplit.tell_all(None)
        (whole,) = unsplit.gather("done")
        return _measured(terms, found, losses, _compared(whole, losses, first))


@contextmanager
def _folder_with(name: str, text: str) -> Iterator[Path]:
    """Make a folder for what the processes of a run share, with a file in it; in the end remove it with all."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="mtpp-training-"))
    except OSError as error:
        raise _no_folder(error) from None
    try:
        try:
            (folder / name).write_text(text)
        except OSError as error:
            raise _no_folder(error) from None
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _no_folder(error: OSError) -> MtppError:
    return MtppError(
        f"no temporary files can be written: {error.strerror or error}",
        remedy="set TMPDIR to a folder with room that you may write to",
    )


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


def _losses(terms: TrainingTerms, found: Sequence[TrainedStages]) -> Sequence[Sequence[float]]:
    """Return the losses of each step, as the process of the last stage has them."""
    losses = next((one.losses for one in found if any(one.losses)), [])
    if len(losses) != terms.steps or any(len(row) != terms.micro_batches for row in losses):
        raise MtppError("the pipeline did not say the losses of all micro-batches", remedy="run again")
    return losses


def _compared(whole: TrainedStages, losses: Sequence[Sequence[float]], first: Mapping[str, Compared]) -> ComparedRuns:
    return ComparedRuns(
        losses_compared(whole.losses, losses, first[GRADIENT]),
        first[GRADIENT],
        first[BUFFER],
        [ended - begun for begun, ended in zip(whole.begun, whole.ended, strict=True)],
    )


def _measured(
    terms: TrainingTerms,
    found: Sequence[TrainedStages],
    losses: Sequence[Sequence[float]],
    compared: ComparedRuns | None,
) -> TrainingRun:
    steps = range(terms.steps)
    return TrainingRun(
        terms,
        compared,
        losses[-1],
        [max(one.ended[i] for one in found) - min(one.begun[i] for one in found) for i in steps],
        {key: statistics.median(seconds) for one in found for key, seconds in one.passes.items()},
        _handovers(found),
    )


def _handovers(found: Sequence[TrainedStages]) -> list[float]:
    known = {stage: seconds for one in found for stage, seconds in one.handovers.items()}
    stages = 1 + max(stage for one in found for stage, _ in one.passes)
    return [known.get(stage, 0.0) for stage in range(stages - 1)]


@dataclass(frozen=True)
class UnsplitJob(Job):
    """A model to be trained whole, in one process."""

    model: TrainedModel
    terms: TrainingTerms

    def run(self, parent: Connection) -> None:
        """Do it: say ``first`` with digests after the first step, answer questions, and say ``done`` at the end."""
        torch = pytorch()
        torch.set_num_threads(self.terms.threads)
        loaded = self.model.load()
        random = next(random_steps(loaded.flat), None)
        if random is not None:
            raise InputError(
                f"it draws random numbers, in {loaded.op_of(random)!r} first: stages and whole cannot be compared",
                source=str(self.model.path),
                remedy="export it without dropout, or leave the comparison out: ‹compare›",
            )
        split = loaded.split()
        batches = micro_batches(split.inputs, self.terms.micro_batches, self.model.seed)
        module = loaded.flat.module
        names = [one.name for one in split.inputs]
        before = digests((key, None if key[0] == GRADIENT else one) for key, one in tensors_of(module))
        losses, begun, ended = [], [], []
        for step in range(self.terms.steps):
            forget_gradients(module)
            begun.append(time.monotonic())
            losses.append(
                [self._trained(module, dict(zip(names, tensors, strict=True)), split.positions) for tensors in batches]
            )
            ended.append(time.monotonic())
            if step == 0:
                found = dict(tensors_of(module))
                after = digests(found.items())
                changed = [keys for keys in names_of(module) if after[keys[0]] != before[keys[0]]]
                parent.send(("first", FirstStep(after, changed=changed)))
                answer(parent, found)
            descend(module.parameters(), self.terms.learning_rate)
        parent.send(("done", TrainedStages(losses, begun, ended)))

    def _trained(self, module: Any, tensors: dict[str, Any], positions: Any) -> float:
        """Run a micro-batch forward and back; return its loss."""
        try:
            made = called(module, {name: one.clone() for name, one in tensors.items()})
            loss = loss_of(tuple(made[place] for place in positions))
            if not loss.requires_grad:
                raise InputError("no gradient comes to a parameter of it", remedy="leave a parameter free to change")
            loss.backward()
        except InputError as error:
            raise InputError(error.problem, source=str(self.model.path), remedy=error.remedy) from None
        except Exception as error:  # whatever its ops raise
            raise InputError(f"PyTorch cannot train it: {first_line(error)}", source=str(self.model.path)) from None
        return float(loss.detach())


@dataclass(frozen=True)
class Trained:
    """A run and what it is compared with.

    Attributes
    ----------
    predicted_s
        Of a step, simulated with what was measured.
    cores
        That the processes share.
    """

    folder: TrainingFolder
    run: TrainingRun
    predicted_s: float
    cores: int

    @property
    def step_s(self) -> float:
        """Median seconds of a step but the first one, where there are more."""
        return _median(self.run.step_s)

    @property
    def unsplit_s(self) -> float | None:
        """The same of the unsplit model; None where it was left out."""
        return None if self.run.compared is None else _median(self.run.compared.unsplit_s)

    @property
    def tick_s(self) -> float | None:
        """Seconds of a tick of the plan, None where its costs have no unit of time."""
        unit = PICOSECONDS.get(self.folder.timed.time_unit)
        return None if unit is None else unit * 1e-12 / self.folder.timed.ticks_per_unit

    @property
    def planned_s(self) -> float | None:
        """Seconds of a step as planned."""
        return None if self.tick_s is None else self.folder.iteration_ticks * self.tick_s


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds[1:] or seconds)
