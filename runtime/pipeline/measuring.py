"""A folder of stages measured: first without a pipeline and with nothing else running, then as one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.results.stage_records import CPU
from mtpp.runtime.checking.agreement import Agreement, types_between
from mtpp.runtime.checking.draws import check_names, fitting
from mtpp.runtime.element_types import Contents, cast, element_type, is_whole
from mtpp.runtime.pipeline.crew import Crew, Limits, RunLimits
from mtpp.runtime.pipeline.memory import Layout, OpenTensor, Ring, Shape, View, arrays, put
from mtpp.runtime.pipeline.model_file import ModelFile, OpenedModel
from mtpp.runtime.pipeline.pipeline import PipelineChoices, PipelineTimes, model_of, run_pipeline, stage_models
from mtpp.runtime.pipeline.program_file import ProgramFile
from mtpp.runtime.pipeline.stage_job import keep_to
from mtpp.runtime.pipeline.tokens import SPIN_S
from mtpp.runtime.pipeline.wiring import Wiring, read_wiring
from mtpp.runtime.pytorch.importing import nothing_to_register
from mtpp.runtime.random_values import drawn_input
from mtpp.runtime.session import SessionChoices

_MOST_SETS = 4
_SETS_BYTES = 64 << 20
"""Batches get different inputs in turn, so that mixing them up would show: as many sets as fit, at least one."""

_MOST_REPEATS = 50
_BUDGET_S = 10.0
"""Of the runs without a pipeline: rounds, and seconds of them."""


@dataclass(frozen=True)
class RunRequest:
    """Terms of a run.

    Attributes
    ----------
    folder
        Of the stages and their manifest.
    model
        The model that was split, None if it is not at hand.
    batches, warmup
        To be timed, and before.
    queue_depth
        Batches that may wait between two stages.
    threads, optimise
        Of each worker; also of the model without a pipeline.
    pin
        Cores to spread the workers over, None to leave that to the system; empty for all that may be used.
    seed
        Of what is made up.
    inputs
        Contents of the model's inputs by name; others are random.
    imports
        Python modules that register operators with PyTorch.
    """

    folder: Path
    model: Path | None = None
    batches: int = 200
    warmup: int = 10
    queue_depth: int = 2
    threads: int = 1
    optimise: bool = False
    pin: tuple[int, ...] | None = None
    seed: int = 0
    inputs: Mapping[str, Array] = field(default_factory=dict)
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """A folder of stages, measured.

    Attributes
    ----------
    alone
        Seconds of each stage with nothing else running, one after the other, shape (rounds, stages).
    alone_cpu_share
        Part of those seconds in which they were running: less than 1 where other programs were, too.
    whole
        Seconds of the model that was split, shape (rounds,), and how its outputs agree with the stages'; None if it was
        not at hand.
    pipeline
        The run as a pipeline.
    cores
        Of each worker, as pinned.
    available_cores
        How many this process may use.
    repeatable
        Whether the model gives the same twice; if not, no outputs were compared.
    """

    request: RunRequest
    wiring: Wiring
    alone: NDArray[np.float64]
    alone_cpu_share: float
    whole: tuple[NDArray[np.float64], Agreement] | None
    pipeline: PipelineTimes
    cores: tuple[tuple[int, ...], ...] | None
    available_cores: int
    repeatable: bool

    @property
    def agrees(self) -> bool:
        """Whether no output was found to be wrong."""
        return self.pipeline.agreement.holds and (self.whole is None or self.whole[1].holds)


def measure(request: RunRequest, limits: RunLimits, tell: Callable[[str], None] = lambda text: None) -> Measured:
    """Measure the stages one after the other, the whole model if it is at hand, and then the pipeline.

    Parameters
    ----------
    tell
        Is told what is being done.
    """
    texts = {name: _text(array) for name, array in request.inputs.items() if array.dtype.kind in "OSU"}
    request = replace(request, inputs={**request.inputs, **texts})
    wiring = read_wiring(request.folder, request.queue_depth, whole=request.model is not None, given=request.inputs)
    check_names(wiring.manifest, request.inputs)
    for tensor in wiring.manifest.inputs:
        if tensor.name in request.inputs:
            fitting(tensor, request.inputs[tensor.name])
    if request.model is not None and not request.model.is_file():
        raise InputError("no such file", source=str(request.model), remedy="give the model that was split")
    available = usable_cores()
    cores = None if request.pin is None else spread(request.pin, wiring.count, request.threads, available)
    session = SessionChoices(threads=request.threads, optimise=request.optimise, spin=False, imports=request.imports)
    models = stage_models(wiring, request.seed)
    own_model = None if request.model is None else _whole_model(wiring, request.model, request.seed)
    if request.imports and not any(isinstance(model, ProgramFile) for model in models):
        raise nothing_to_register(str(request.folder))
    for model in models if own_model is None else (*models, own_model):
        model.check_place()
        model.check_declared()
    sets = _sets(wiring, request.batches)
    with ExitStack() as stack:

        def ring(layout_of: str) -> Ring:
            made = Ring.make(getattr(wiring, layout_of), sets, f"the model's {layout_of}")
            stack.callback(made.close)
            return made

        inputs = ring("inputs")
        _fill(wiring, inputs, request)
        if wiring.is_open:
            wiring = wiring.with_rooms(rooms(SizesJob(models, session, inputs), limits, tell))
        outputs = ring("outputs")

        def reference(label: str, files: tuple[ModelFile, ...], into: Ring) -> Reference:
            tell(f"{label}: measuring without a pipeline")
            job = ReferenceJob(
                files,
                session,
                inputs,
                into,
                None if cores is None else cores[0],
                warmup=min(request.warmup, _MOST_REPEATS),
                repeats=min(request.batches, _MOST_REPEATS),
                budget_s=_BUDGET_S,
            )
            with Crew(limits) as crew:
                crew.start(label, job)
                (found,) = crew.gather("measured")
            assert isinstance(found, Reference)
            return found

        whole = None
        alone = reference("the stages in turn", models, outputs)
        if own_model is not None:
            own = ring("outputs")
            unsplit = reference("the unsplit model", (own_model,), own)
            agreement = Agreement(between=types_between(wiring.manifest))
            for views, others in zip(outputs.views(), own.views(), strict=True) if alone.repeatable else ():
                agreement.add(arrays(views), arrays(others))
            whole = unsplit.seconds[:, 0], agreement
        in_use = len(available) if cores is None else len({core for each in cores for core in each})
        spin_s = SPIN_S if wiring.count * request.threads <= in_use else 0.0
        choices = PipelineChoices(request.batches, request.warmup, session, cores, request.seed, spin_s)
        expected = outputs if alone.repeatable else None
        times = run_pipeline(wiring, choices, inputs, expected, limits, tell)
    return Measured(
        request, wiring, alone.seconds, alone.cpu_share, whole, times, cores, len(available), alone.repeatable
    )


def _text(array: NDArray[Any]) -> NDArray[np.str_]:
    """Return texts as numpy's own, those in bytes decoded."""
    texts = [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in array.reshape(-1)]
    return np.array(texts, np.str_).reshape(array.shape)


def usable_cores() -> tuple[int, ...]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def spread(pin: tuple[int, ...], workers: int, threads: int, available: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the cores of each worker: as many as it has threads, in turn."""
    if not hasattr(os, "sched_setaffinity"):
        raise InputError("this system cannot keep processes to cores", parameter="pin", remedy="leave it out")
    for core in pin:
        if core not in available:
            listed = ", ".join(map(str, available))
            raise InputError(f"core {core} is not to be had", parameter="pin", remedy=f"choose among {listed}")
    cores = pin or available
    return tuple(
        tuple(sorted({cores[(worker * threads + thread) % len(cores)] for thread in range(threads)}))
        for worker in range(workers)
    )


def _sets(wiring: Wiring, batches: int) -> int:
    size = wiring.inputs.slot_bytes + wiring.outputs.slot_bytes
    return max(1, min(_MOST_SETS, batches, _SETS_BYTES // size))


def _fill(wiring: Wiring, inputs: Ring, request: RunRequest) -> None:
    """Write contents into all sets of inputs: those that are given, and random ones."""
    described = {tensor.name: tensor for tensor in wiring.manifest.inputs}
    for number, views in enumerate(inputs.views()):
        for name, view in views.items():
            one = described[name]
            if name in request.inputs:
                put(view, fitting(one, request.inputs[name]))
                continue
            shape = arrays({name: view})[name].shape
            values = drawn_input(name, shape, request.seed + number, whole=is_whole(one.dtype), limits=one.limits)
            put(view, cast(values, element_type(one.dtype) or values.dtype))


def _whole_model(wiring: Wiring, path: Path, seed: int) -> ModelFile:
    expected = {
        key: tuple((region.name, region.dtype, region.shape) for region in layout.regions)
        for key, layout in (("inputs", wiring.inputs), ("outputs", wiring.outputs))
    }
    numbers = {tensor.name: tensor.fixed for tensor in wiring.manifest.inputs if tensor.fixed is not None}
    inputs, outputs = expected["inputs"], expected["outputs"]
    one = wiring.manifest.one_device
    place = CPU if one is None else one.place
    return model_of(
        path, inputs, outputs, seed,
        whole=True, spare=wiring.spare, numbers=numbers, place=place, recorded=wiring.manifest.imports,
    )  # fmt: skip


class InTurn:
    """The models of a pipeline, opened, each run on the outputs of the ones before it in one process."""

    def __init__(self, models: Sequence[ModelFile], choices: SessionChoices) -> None:
        self._models = models
        self._opened = [model.open(choices) for model in models]
        self._last_use = {name: i for i, model in enumerate(models) for name, _, _ in model.inputs}

    def shared(self, views: Mapping[str, Contents]) -> dict[str, Any]:
        """Return inputs as values on the same memory."""
        return self._opened[0].shared(views)

    def run(
        self, inputs: Mapping[str, Any], keep: Callable[[str, Contents], None] = lambda name, array: None
    ) -> NDArray[np.float64]:
        """Run each model once; return the seconds of each.

        Parameters
        ----------
        keep
            Is given each output of a model, right after it was made.
        """
        values = dict(inputs)
        seconds = np.zeros(len(self._opened))
        for i, (model, opened) in enumerate(zip(self._models, self._opened, strict=True)):
            feeds = {name: values[name] for name, _, _ in model.inputs}
            start = time.monotonic()
            made = opened.run(feeds)
            seconds[i] = time.monotonic() - start
            self._take(model, opened, made, keep)
            values |= {name: made[name] for name, _, _ in model.outputs if name in self._last_use}
            for name in [name for name in values if self._last_use.get(name, i) <= i]:
                del values[name]
        return seconds

    def prepared(self) -> Callable[[Mapping[str, Any]], NDArray[np.float64]]:
        """Return :meth:`run` as a pipeline runs its stages, with outputs in memory that is there beforehand.

        Where an output is no array on the same memory in each run, it is :meth:`run`.
        """
        rooms = []
        for model, opened in zip(self._models, self._opened, strict=True):
            room = Ring.make(Layout.of(model.outputs), 1, f"the outputs of {model.path.name}")
            views = room.views()[0]
            room.close()
            if any(isinstance(view, OpenTensor) for view in views.values()):
                return self.run
            rooms.append(opened.shared(arrays(views)))

        def run(inputs: Mapping[str, Any]) -> NDArray[np.float64]:
            values = dict(inputs)
            seconds = np.zeros(len(rooms))
            for i, (model, opened, room) in enumerate(zip(self._models, self._opened, rooms, strict=True)):
                feeds = {name: values[name] for name, _, _ in model.inputs}
                start = time.monotonic()
                opened.run_into(feeds, room)
                seconds[i] = time.monotonic() - start
                values |= room
            return seconds

        return run

    def _take(
        self, model: ModelFile, opened: OpenedModel, made: Mapping[str, Any], keep: Callable[[str, Contents], None]
    ) -> None:
        for name, dtype, shape in model.outputs:
            array = opened.array(made[name])
            if not _fits(array.shape, shape):
                raise InputError(
                    f"its shape is {list(array.shape)}, not {list(shape)} as the manifest says ({dtype})",
                    source=str(model.path),
                    where=f"output {name!r}",
                    remedy="split the model again, with the sizes that it has",
                )
            keep(name, array)


def _fits(found: tuple[int, ...], expected: Shape) -> bool:
    return len(found) == len(expected) and all(
        wanted in (None, size) for size, wanted in zip(found, expected, strict=True)
    )


FEWEST = 3
"""Runs that a time needs to be more than chance."""


@dataclass(frozen=True)
class Reference:
    """What came of it.

    Attributes
    ----------
    seconds
        Of each round and model, shape (rounds, models).
    cpu_share
        Part of those seconds in which the process was running, by as many threads as it had.
    repeatable
        Whether the same inputs gave the same outputs twice; models that draw random numbers do not.
    """

    seconds: NDArray[np.float64]
    cpu_share: float
    repeatable: bool


@dataclass(frozen=True)
class ReferenceJob:
    """Models to be run in turn in one process: the stages of a folder, or the whole model alone.

    Attributes
    ----------
    inputs
        Of the whole model, a slot per set of them.
    outputs
        Where the outputs for each set go; a slot per set.
    warmup, repeats
        Rounds before the clock starts, and after; at least one per set of inputs is run before.
    budget_s
        No round starts when as much has gone since the clock started, except the first few.
    """

    models: tuple[ModelFile, ...]
    choices: SessionChoices
    inputs: Ring
    outputs: Ring
    cores: tuple[int, ...] | None
    warmup: int
    repeats: int
    budget_s: float

    def descriptors(self) -> tuple[int, ...]:
        """Return those that the process must inherit."""
        return (self.inputs.descriptor, self.outputs.descriptor)

    def run(self, parent: Connection) -> None:
        """Do it, and say ``measured`` with a :class:`Reference`."""
        keep_to(self.cores)
        models = InTurn(self.models, self.choices)
        inputs = [models.shared(arrays(views)) for views in self.inputs.views()]
        outputs = self.outputs.views()
        for values, views in zip(inputs, outputs, strict=True):
            models.run(values, _into(views))
        first = {name: array.copy() for name, array in arrays(outputs[0]).items()}
        models.run(inputs[0], _into(outputs[0]))
        repeatable = all(_same(array, first[name]) for name, array in arrays(outputs[0]).items())
        run = models.prepared()
        for warmup in range(self.warmup):
            run(inputs[warmup % len(inputs)])
        rounds: list[NDArray[np.float64]] = []
        start, cpu = time.monotonic(), time.process_time()
        while len(rounds) < self.repeats and (len(rounds) < FEWEST or time.monotonic() - start < self.budget_s):
            rounds.append(run(inputs[len(rounds) % len(inputs)]))
        share = (time.process_time() - cpu) / (time.monotonic() - start)
        parent.send(("measured", Reference(np.array(rounds), share, repeatable)))


def _into(views: Mapping[str, View]) -> Callable[[str, Contents], None]:
    """Return a function that writes an output where it belongs."""

    def keep(name: str, array: Contents) -> None:
        view = views.get(name)
        if view is not None:
            put(view, array)

    return keep


def _same(a: Contents, b: Contents) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


_SPARE_FACTOR, _SPARE_BYTES = 2, 1 << 16
"""More than was measured: a model that draws random numbers may make more the next time."""


@dataclass(frozen=True)
class SizesJob:
    """Stages to be run in turn, once for each set of inputs, in a process of its own."""

    models: tuple[ModelFile, ...]
    choices: SessionChoices
    inputs: Ring

    def descriptors(self) -> tuple[int, ...]:
        """Return those that the process must inherit."""
        return (self.inputs.descriptor,)

    def run(self, parent: Connection) -> None:
        """Do it, and say ``sized`` with the largest number of bytes of each output of a stage."""
        stages = InTurn(self.models, self.choices)
        largest: dict[str, int] = {}

        def note(name: str, array: Contents) -> None:
            largest[name] = max(array.nbytes, largest.get(name, 0))

        for views in self.inputs.views():
            stages.run(stages.shared(arrays(views)), note)
        parent.send(("sized", largest))


def rooms(job: SizesJob, limits: Limits, tell: Callable[[str], None]) -> dict[str, int]:
    """Return the bytes to set aside for each output of a stage."""
    label = "the stages in turn"
    tell(f"{label}: looking how large tensors become")
    with Crew(limits) as crew:
        crew.start(label, job)
        (largest,) = crew.gather("sized")
    return {name: _SPARE_FACTOR * size + _SPARE_BYTES for name, size in largest.items()}
