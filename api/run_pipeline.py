"""Runs of the stages of a model as a pipeline: measured times against predicted ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.model import MAX_INPUT_BYTES
from mtpp.api.observer import Observer, listener
from mtpp.api.options.running import Pipelining, Workers
from mtpp.api.output import ShownResult
from mtpp.api.parameters import path_text
from mtpp.errors import InputError, Interrupted, LimitReached
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.runtime.pipeline.measuring import RunRequest
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    from mtpp.api.inputs.described_machine import MachineFile
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.formats.measured.measured_stages import MeasuredStages
    from mtpp.runtime.pipeline.comparison import Comparison, HandOvers, StageComparison
    from mtpp.runtime.pipeline.crew import RunLimits
    from mtpp.views.terminal import Medium

__all__ = ["ComparedRun", "PipelineRun", "RunRequest", "compare_run", "run_pipeline", "run_stages"]

_MOST_BYTES = 1 << 28
"""Of the document of a run."""

_OTHER_MACHINE = 3
"""Times as slow or as fast as predicted: beyond, the prediction was for another machine."""


@dataclass(frozen=True, repr=False)
class PipelineRun(ShownResult):
    """A pipeline measured, beside its prediction.

    Attributes
    ----------
    comparison
        Every figure, with the bottleneck, throughput and speed-up as measured and as predicted.
    """

    comparison: Comparison
    _name_of: Callable[[str], str] = str

    def told(self, name_of: Callable[[str], str]) -> PipelineRun:
        """Return the same with the names that another front end has for parameters."""
        return replace(self, _name_of=name_of)

    @property
    def agrees(self) -> bool:
        """Whether no output of the pipeline was found to be wrong."""
        return self.comparison.measured.agrees

    @property
    def stopped(self) -> StopReason:
        """``"finished"``, ``"time-limit"`` or ``"interrupted"``; figures are of the batches done by then."""
        return self.comparison.measured.pipeline.stopped

    @property
    def batches(self) -> int:
        """Number of batches that all stages did."""
        return self.comparison.measured.pipeline.batches

    @property
    def stages(self) -> tuple[StageComparison, ...]:
        """The stages in the order of the pipeline, with their times in seconds."""
        return self.comparison.stages

    @property
    def hand_overs(self) -> HandOvers:
        """Tensors that stages hand to each other, and the line of latency and bandwidth that messages follow."""
        return self.comparison.hand_overs

    @property
    def pays(self) -> bool | None:
        """Whether a full pipeline does more in a second than the unsplit model; None after a single batch."""
        return self.comparison.pays

    @cached_property
    def machine(self) -> MachineFile:
        """The machine at hand, for plans: a device for each process with cores of its own, hand-overs as measured.

        Raises
        ------
        InputError
            If no hand-over was measured, or stages ran on GPUs.
        """
        from mtpp.api.inputs.described_machine import machine_of_run

        return machine_of_run(self.comparison)

    def write_machine(self, path: str | os.PathLike[str]) -> None:
        """Write :attr:`machine` as a machine file, whole or not at all, and over no other file.

        Raises
        ------
        InputError
            If there is none, a file is there already, or it cannot be written.
        """
        self.machine.save(path)

    def against(self, plan: PartitionPlan) -> ComparedRun:
        """Hold the run against a plan of the same stages, for any machine and with any costs.

        Raises
        ------
        InputError
            If the plan has other stages, or its costs have no unit of time.
        """
        return compare_run(plan, self)

    @property
    def throughput_per_s(self) -> float:
        """Batches per second, the filling and the emptying of the pipeline included."""
        return self.comparison.throughput

    @property
    def speedup(self) -> float:
        """Throughput of the pipeline over that of the unsplit model."""
        return self.comparison.speedup

    def _said(self) -> dict[str, Any]:
        from mtpp.formats.results.pipeline_run import run_document

        return run_document(self.comparison)

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.run import run_text

        return run_text(self.comparison, medium, self._name_of)


def run_pipeline(
    folder: str | os.PathLike[str] | Any,
    *,
    model: Any = None,
    batches: int | None = None,
    warmup: int | None = None,
    queue_depth: int = 2,
    threads: int = 1,
    optimise: bool = False,
    from_format: str | None = None,
    pin: Sequence[int] | str | None = None,
    inputs: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    seed: int = 0,
    imports: Iterable[str] = (),
    time_limit_s: float | None = None,
    observer: Observer | None = None,
) -> PipelineRun:
    """Run the stages of a model as a pipeline: a process for each stage.

    Keywords that are not listed are fields of :class:`mtpp.api.options.running.Pipelining` and
    :class:`mtpp.api.options.running.Workers`.

    Measured first, with nothing else running: the unsplit model, or all stages in turn in one process. Inputs are
    random, and so are weights whose files are absent. Outputs of the pipeline are compared with those of the stages in
    turn, and those with the unsplit model's. Needs ``mtpp[run]``.

    Parameters
    ----------
    folder
        Folder that :func:`mtpp.api.split.split` wrote, or what that returned.
    model
        The unsplit model, to compare with: path of its file, one as read, a ``torch.export.ExportedProgram``, or
        ``"package.module:function"`` (*from_format* ``"torch"``).
    observer
        Listener to what is being done, and to warnings of what makes the figures other than one may think.

    Returns
    -------
    What was measured beside what was predicted; after Ctrl-C or the time limit, of the batches done by then.

    Raises
    ------
    InputError
        If a parameter is of the wrong type, the folder or a model cannot be used, or there is too little memory.
    MtppError
        If a worker dies.
    LimitReached
        If the time is up before every stage has done a batch.
    Interrupted
        If Ctrl-C ended the work before that.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import mtpp
    >>> model = mtpp.datasets.sample_path("resnet50")
    >>> plan = mtpp.partition(model, 2)
    >>> with TemporaryDirectory() as folder:
    ...     parts = mtpp.split(model, plan, f"{folder}/stages")
    ...     run = mtpp.run_pipeline(parts, batches=2, warmup=0)
    >>> run.agrees, run.batches, len(run.stages)
    (True, 2, 2)
    """
    written = getattr(folder, "folder", None)
    workers = Workers(threads=threads, seed=seed, imports=imports, time_limit_s=time_limit_s)
    deadline = Deadline(workers.time_limit_s)
    asked = Pipelining(
        batches=batches,
        warmup=warmup,
        pin=pin,
        queue_depth=queue_depth,
        inputs=inputs,
        optimise=optimise,
        from_format=from_format,
    )
    place = Path(path_text(folder if written is None else written, "folder"))
    with run_request(place, model, asked, workers) as request:
        return run_stages(request, deadline, listener(observer))


@contextmanager
def run_request(folder: Path, model: Any, asked: Pipelining, workers: Workers) -> Iterator[RunRequest]:
    """Yield the terms of a run, with the contents of its inputs; the model that a function builds is there meanwhile.

    Raises
    ------
    InputError
        If there is no such model, or it is in no file.
    """
    from mtpp.api.inputs.python_models import runnable_model
    from mtpp.api.parameters import given_arrays
    from mtpp.formats.io.source import Source

    values: dict[str, Any] = {**asked.values_of(RunRequest), **workers.values_of(RunRequest)}
    request = RunRequest(folder, **{**values, "inputs": given_arrays(values["inputs"])})
    if model is None:
        if asked.from_format is not None:
            raise InputError("goes with a function as ‹model›", parameter="from_format", remedy="leave it out")
        yield request
        return
    with runnable_model(model, asked.from_format, MAX_INPUT_BYTES) as found:
        if isinstance(found, Source) and found.weighted is not None:
            yield replace(request, model=found.weighted.path, called=found.display)
        else:
            yield replace(request, model=Path(_model_path(found)))


def run_stages(request: RunRequest, deadline: Deadline, observer: Observer) -> PipelineRun:
    """Measure the stages of a folder, and warn of what makes the figures other than one may think."""
    from mtpp.formats.io.folder import model_at
    from mtpp.runtime.pipeline.comparison import Comparison
    from mtpp.runtime.pipeline.measuring import measure

    if request.model is not None:
        request = replace(request, model=Path(model_at(str(request.model))))
    early = "before every stage had done a batch"
    with limited_run(deadline, observer, early, early, "give it more") as limits:
        run = PipelineRun(Comparison(measure(request, limits, observer.note, observer.steps)))
    _warn_of_limits(run.comparison, observer)
    return run


@contextmanager
def limited_run(
    deadline: Deadline, observer: Observer, interrupted: str, late: str, remedy: str
) -> Iterator[RunLimits]:
    """Give the limits of worker processes, and say what ended them early: the user, the time, or one that died."""
    from mtpp.host.ending import EndedEarly
    from mtpp.host.interruption import Interruption
    from mtpp.runtime.pipeline.crew import RunLimits
    from mtpp.runtime.pipeline.worker_process import WorkerDied

    with Interruption() as interruption:
        try:
            yield RunLimits(deadline, lambda: interruption.requested)
        except EndedEarly as end:
            if end.stopped == StopReason.INTERRUPTED:
                raise Interrupted(f"the run was interrupted {interrupted}") from None
            problem = f"{deadline.limit_s:g} s were up {late}"
            raise LimitReached(problem, parameter="time_limit_s", remedy=remedy) from None
        except WorkerDied as death:
            for line in death.last_lines:
                observer.quote(death.source or "", line)
            raise


def _warn_of_limits(comparison: Comparison, observer: Observer) -> None:
    measured = comparison.measured
    run, request = measured.pipeline, measured.request
    if run.stopped != StopReason.FINISHED:
        done = f"after {run.batches:,} of {measured.length.batches:,} batches"
        if run.stopped == StopReason.TIME_LIMIT:
            observer.warn(f"the time was up {done}")
        else:
            observer.warn_interrupted(done)
    threads, cores = len(comparison.stages) * request.threads, comparison.cores
    if threads > cores:
        observer.warn(
            f"{threads} threads of {len(comparison.stages)} workers share {cores} "
            f"core{'s' if cores > 1 else ''}: the speed-up is at most {cores} over one thread"
            if request.threads == 1
            else f"{threads} threads of {len(comparison.stages)} workers share {cores} core{'s' if cores > 1 else ''}"
        )
    if comparison.disturbed:
        observer.warn(
            f"other programs had the cores for {comparison.disturbance:.0%} of the time: measure again when they rest"
        )
    ratio = comparison.bottleneck_ratio
    if ratio is not None and not 1 / _OTHER_MACHINE < ratio < _OTHER_MACHINE:
        observer.warn("the prediction is of another machine: partition what `mtpp profile` measured on this one")


def _model_path(model: Any) -> str:
    from mtpp.api.inputs.model_path import model_file

    file, _ = model_file(model)
    if not isinstance(file, str):
        raise InputError("is in no file", parameter="model", remedy="give the path of its file")
    return file


@dataclass(frozen=True, eq=False, repr=False)
class ComparedRun(ShownResult):
    """A plan's predicted times beside those of a run; *assumptions* are what the predicted ones rest on."""

    stages: MeasuredStages
    assumptions: Sequence[str]

    def _said(self) -> dict[str, Any]:
        return self.stages.to_document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.measured_stages import measured_text

        return measured_text(self.stages, medium, self.assumptions)


def compare_run(plan: PartitionPlan, run: Any) -> ComparedRun:
    """Hold what a plan says of its stages against a run of them.

    Parameters
    ----------
    plan
        A plan with its model, as :func:`mtpp.partition` and :func:`mtpp.evaluate` return it.
    run
        What :func:`mtpp.run_pipeline` returned, or a file of it, as ``mtpp run -o FILE`` writes it.

    Raises
    ------
    InputError
        If there is no run in the file, it is of other stages, or the plan's costs have no unit of time.
    """
    from mtpp.api.inputs.document_source import document_source
    from mtpp.formats.io.json_text import parse_json
    from mtpp.formats.io.source import read_source
    from mtpp.formats.measured.measured_stages import MeasuredRun, MeasuredStages
    from mtpp.views.shown_plan import shown_plan

    record = plan.record
    if record is None:
        raise InputError("was read without its model", parameter="plan", remedy="score it: mtpp.evaluate(model, plan)")
    if plan.replicated:
        raise InputError("stages on several devices do not run as a pipeline of processes", parameter="plan")
    unit = PICOSECONDS.get(record.instance.time_unit)
    if unit is None:
        raise InputError("the costs have no unit of time", parameter="plan", remedy="give a model with times: ‹costs›")
    found, _ = document_source(run, "run")
    source = (
        read_source(found, max_bytes=_MOST_BYTES, expected="a run of `mtpp run`") if isinstance(found, str) else found
    )
    tick = Fraction(unit, PICOSECONDS["s"] * record.instance.ticks_per_unit)
    rows = [row for row in record.stage_rows() if row["ops"]]
    shown = shown_plan(record, plan.assumptions)
    alone = shown.one_stage if shown.one_stage_known else None
    measured = MeasuredRun.of(parse_json(source.data, source.display), source.display)
    if measured.model_ops != record.graph.op_count:
        problem = f"is of a model of {measured.model_ops:,} ops, not of one of {record.graph.op_count:,}"
        raise InputError(problem, source=source.display)
    try:
        stages = MeasuredStages(
            measured,
            {row["index"]: row["ops"] for row in rows},
            {row["index"]: row["cost"] * tick for row in rows},
            None if alone is None else alone * tick,
        )
    except InputError as error:
        raise InputError(error.problem, source=source.display, remedy=error.remedy) from None
    return ComparedRun(stages, plan.assumptions)
