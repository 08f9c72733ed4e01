"""A folder of stages measured: first without a pipeline and with nothing else running, then as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.results.stage_records import CPU
from mtpp.runtime.checking.agreement import Agreement, types_between
from mtpp.runtime.checking.draws import check_names, fitting
from mtpp.runtime.element_types import cast, element_type, is_whole
from mtpp.runtime.pipeline.crew import Crew, RunLimits
from mtpp.runtime.pipeline.in_turn import Reference, ReferenceJob, SizesJob, rooms
from mtpp.runtime.pipeline.memory import Ring, arrays, put
from mtpp.runtime.pipeline.model_file import ModelFile
from mtpp.runtime.pipeline.pipeline import PipelineChoices, PipelineTimes, model_of, run_pipeline, stage_models
from mtpp.runtime.pipeline.program_file import ProgramFile
from mtpp.runtime.pipeline.run_length import Progress, RunLength, Unheard, run_length
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
        To be timed, and before; None: as the time of a batch suggests (:mod:`.run_length`).
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
    called
        Name of the model in messages, where that is not its path.
    """

    folder: Path
    model: Path | None = None
    batches: int | None = None
    warmup: int | None = None
    queue_depth: int = 2
    threads: int = 1
    optimise: bool = False
    pin: tuple[int, ...] | None = None
    seed: int = 0
    inputs: Mapping[str, Array] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    called: str = ""


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
    length
        Batches of the pipeline as asked for, or as chosen.
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
    length: RunLength

    @property
    def agrees(self) -> bool:
        """Whether no output was found to be wrong."""
        return self.pipeline.agreement.holds and (self.whole is None or self.whole[1].holds)


def measure(
    request: RunRequest,
    limits: RunLimits,
    tell: Callable[[str], None] = lambda text: None,
    progress: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(Unheard()),
) -> Measured:
    """Measure the stages one after the other, the whole model if it is at hand, and then the pipeline.

    Parameters
    ----------
    tell
        Is told what is being done.
    progress
        Gives a listener to the batches of the pipeline.
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
    own_model = None if request.model is None else _whole_model(wiring, request.model, request)
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
                warmup=None if request.warmup is None else min(request.warmup, _MOST_REPEATS),
                repeats=_MOST_REPEATS if request.batches is None else min(request.batches, _MOST_REPEATS),
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
        at_a_time = max(1, min(wiring.count, in_use // request.threads))
        length = run_length(request.batches, request.warmup, alone.seconds, at_a_time)
        if length.told:
            tell(f"the pipeline: {length.told}")
        choices = PipelineChoices(length.batches, length.warmup, session, cores, request.seed, spin_s)
        expected = outputs if alone.repeatable else None
        with progress() as shown:
            times = run_pipeline(wiring, choices, inputs, expected, limits, tell, shown)
    return Measured(
        request, wiring, alone.seconds, alone.cpu_share, whole, times, cores, len(available), alone.repeatable, length
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


def _sets(wiring: Wiring, batches: int | None) -> int:
    size = wiring.inputs.slot_bytes + wiring.outputs.slot_bytes
    return max(1, min(_MOST_SETS, _MOST_SETS if batches is None else batches, _SETS_BYTES // size))


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


def _whole_model(wiring: Wiring, path: Path, request: RunRequest) -> ModelFile:
    expected = {
        key: tuple((region.name, region.dtype, region.shape) for region in layout.regions)
        for key, layout in (("inputs", wiring.inputs), ("outputs", wiring.outputs))
    }
    numbers = {tensor.name: tensor.fixed for tensor in wiring.manifest.inputs if tensor.fixed is not None}
    inputs, outputs = expected["inputs"], expected["outputs"]
    one = wiring.manifest.one_device
    place = CPU if one is None else one.place
    return model_of(
        path, inputs, outputs, request.seed, whole=True, spare=wiring.spare, numbers=numbers, place=place,
        recorded=wiring.manifest.imports, called=request.called,
    )  # fmt: skip
