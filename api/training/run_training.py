"""Training runs: a plan's stages under PyTorch's pipelining, held against the model that was not split."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.options.running import Training, Workers
from mtpp.api.output import ShownResult
from mtpp.api.parameters import path_text
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.formats.training.training_folder import TrainingFolder
    from mtpp.runtime.training.training_run import Trained, TrainingRun
    from mtpp.views.terminal import Medium


@dataclass(frozen=True, repr=False)
class TrainedPipeline(ShownResult):
    """A training run, beside what was planned and what its own passes predict."""

    trained: Trained

    @property
    def agrees(self) -> bool | None:
        """Whether losses, gradients and buffers are those of the unsplit model; None if that was left out.

        Bit for bit, or within 1e-6 of the largest value: gradients of a parameter that several processes hold are added
        up in another order.
        """
        return self.trained.run.agrees

    @property
    def step_s(self) -> float:
        """Median seconds of a step, measured."""
        return self.trained.step_s

    @property
    def predicted_s(self) -> float:
        """Seconds of a step, simulated with the passes and hand-overs as measured."""
        return self.trained.predicted_s

    @property
    def planned_s(self) -> float | None:
        """Seconds of a step as planned; None where costs have no unit of time."""
        return self.trained.planned_s

    @property
    def losses(self) -> list[float]:
        """Losses of the last step, a micro-batch after the other."""
        return list(self.trained.run.last_losses)

    def _said(self) -> dict[str, Any]:
        from mtpp.formats.results.training_run import trained_document

        return trained_document(self.trained)

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.trained_pipeline import trained_text

        return trained_text(self.trained, medium)


def run_training(
    folder: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    steps: int = 5,
    compare: bool = True,
    threads: int = 1,
    seed: int = 0,
    imports: Iterable[str] = (),
    time_limit_s: float | None = None,
    observer: Observer | None = None,
) -> TrainedPipeline:
    """Train the stages of a plan with PyTorch's pipelining, and compare with the unsplit model.

    Keywords that are not listed are fields of :class:`mtpp.api.options.running.Training` and
    :class:`mtpp.api.options.running.Workers`.

    A process for each device, on this machine, talking over gloo. Inputs are random, and so are weights that the file
    has no values of. The loss is the program's result where that is one number, else the mean of the squares of all of
    its results; each step ends with one of stochastic gradient descent, with gradients of norm 1 at most. Needs
    ``mtpp[torch]``.

    Parameters
    ----------
    folder
        What ``mtpp plan MODEL --planner pfeife --emit torch-pipelining -o FOLDER`` wrote.
    model
        The exported program (``.pt2``) that was planned for.
    observer
        Listener to what is being done, and to warnings.

    Returns
    -------
    Losses, gradients and buffers compared, and measured times. Differences raise nothing: look at
    :attr:`TrainedPipeline.agrees`.

    Raises
    ------
    InputError
        If a parameter is of the wrong type, PyTorch is not installed, the folder or the model cannot be used or do not
        belong together, the program draws random numbers and is to be compared, or PyTorch cannot train it.
    MtppError
        If a process dies; the others end with it, and nothing is left behind.
    LimitReached
        If the time is up.
    Interrupted
        If Ctrl-C ended the run.
    """
    workers = Workers(threads=threads, seed=seed, imports=imports, time_limit_s=time_limit_s)
    deadline = Deadline(workers.time_limit_s)
    asked = Training(steps=steps, compare=compare)
    paths = Path(path_text(folder, "folder")), Path(path_text(model, "model"))
    return train_stages(*paths, asked, workers, deadline, listener(observer))


def train_stages(
    place: Path, file: Path, asked: Training, workers: Workers, deadline: Deadline, observer: Observer
) -> TrainedPipeline:
    """Train the stages of a folder as processes; *file* is that of the program that was planned for."""
    from mtpp.api.run_pipeline import limited_run
    from mtpp.runtime.pytorch.library import pytorch
    from mtpp.runtime.training.results import TrainingTerms
    from mtpp.runtime.training.training_run import Trained, train

    folder, model = read_trained(place, file, workers.seed, tuple(workers.imports))
    pytorch()  # says so at once if it is not there
    terms = TrainingTerms(
        folder.devices, folder.micro_batches, asked.steps, workers.threads, compare=asked.compare, seed=workers.seed
    )
    early = ("before its last step", "before the last step", "give it more, or fewer ‹steps›")
    with limited_run(deadline, observer, *early) as limits:
        run = train(model, terms, folder.timed.schedule, limits, tell=observer.note)
    if not all(map(math.isfinite, run.last_losses)):
        observer.warn("the losses have left the finite numbers: comparisons of them say little; try another ‹seed›")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if terms.devices * terms.threads > cores:
        observer.warn(
            f"{terms.devices * terms.threads} threads of {terms.devices} processes share {cores} "
            f"core{'s' if cores > 1 else ''}: a step takes longer than on devices of their own"
        )
    return TrainedPipeline(Trained(folder, run, predicted_step_s(folder, run), cores))


def read_trained(folder: Path, model: Path, seed: int, imports: Sequence[str] = ()) -> tuple[TrainingFolder, Any]:
    """Read a folder, and see that a program is the one that it was made for.

    Parameters
    ----------
    imports
        Python modules that processes import before they load the program.

    Raises
    ------
    InputError
        If one is broken, or they do not belong together.
    """
    from mtpp.api.inputs.model import MAX_INPUT_BYTES
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import read_source
    from mtpp.formats.torch_export import looks_like_archive
    from mtpp.formats.training.training_folder import read_training_folder
    from mtpp.runtime.training.trained_model import TrainedModel

    found = read_training_folder(folder)
    _check_planned_time(found)
    source = read_source(model_at(str(model)), max_bytes=MAX_INPUT_BYTES)
    if not looks_like_archive(source.data) or source.path is None:
        raise InputError(
            "not an exported PyTorch program", source=source.display, remedy="give the .pt2 file that was planned for"
        )
    if source.sha256 != found.model_sha256:
        raise InputError(
            f"the plan belongs to another model than {source.display}",
            source=str(folder),
            where="/model/sha256",
            remedy="give the model that it was made from, or plan anew",
        )
    about = (source.path, source.sha256, MAX_INPUT_BYTES, found.dims, found.stages, seed)
    return found, TrainedModel(*about, tuple(imports), found.imports)


def _check_planned_time(folder: TrainingFolder) -> None:
    """Check that a plan's time of an iteration is that of its passes: it is shown beside the measured one."""
    from mtpp.formats.training.torch_pipelining import PLAN
    from mtpp.solvers.planners.simulation.simulate import simulate_schedule

    iteration = simulate_schedule(folder.timed).iteration
    if iteration != folder.iteration_ticks:
        raise InputError(
            f"its passes take {iteration:,} ticks, not {folder.iteration_ticks:,}",
            source=str(folder.path / PLAN),
            where="/iteration_ticks",
            remedy="plan anew",
        )


def predicted_step_s(folder: TrainingFolder, run: TrainingRun) -> float:
    """Return the seconds of an iteration with passes and hand-overs as measured, simulated."""
    from mtpp.solvers.planners.simulation.simulate import simulate_schedule
    from mtpp.training.pfeife.timed_schedule import TimedSchedule, neighbour_handovers

    timed = folder.timed
    stages = range(timed.schedule.stages)

    def ticks(*kinds: str) -> list[int]:
        return [sum(round(run.pass_s.get((stage, kind), 0.0) * 1e12) for kind in kinds) for stage in stages]

    measured = replace(
        timed,
        time_unit="ps",
        ticks_per_unit=1,
        forward_ticks=ticks("F"),
        backward_ticks=ticks("B", "I", "W"),
        handovers=neighbour_handovers([round(seconds * 1e12) for seconds in run.handover_s]),
    )
    assert isinstance(measured, TimedSchedule)
    return simulate_schedule(measured).iteration * 1e-12
