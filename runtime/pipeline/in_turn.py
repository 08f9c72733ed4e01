"""Stages of a folder, or the whole model alone, run in turn in one process: times, contents and sizes of tensors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.errors import InputError
from mtpp.runtime.element_types import Contents
from mtpp.runtime.pipeline.crew import Crew, Limits
from mtpp.runtime.pipeline.memory import Layout, OpenTensor, Ring, Shape, View, arrays, put
from mtpp.runtime.pipeline.model_file import ModelFile, OpenedModel
from mtpp.runtime.pipeline.run_length import LEAST_WARMUP, MOST_WARMUP
from mtpp.runtime.pipeline.stage_job import keep_to
from mtpp.runtime.session import SessionChoices


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

_WARMUP_SHARE = 0.1
"""Part of the budget that rounds before take at most, but for the first one, where no number of them is given."""


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
        Rounds before the clock starts, and after; at least one per set of inputs is run before. Without a number of
        rounds before, the time decides: rounds that take the whole budget need none, and count themselves.
    budget_s
        No round starts when as much has gone since the clock started, except the first few.
    """

    models: tuple[ModelFile, ...]
    choices: SessionChoices
    inputs: Ring
    outputs: Ring
    cores: tuple[int, ...] | None
    warmup: int | None
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
        models.run(inputs[0], _into(outputs[0]))
        first = {name: array.copy() for name, array in arrays(outputs[0]).items()}
        clock = _Clock()
        rounds = [models.run(*pair) for pair in zip(inputs[1:], map(_into, outputs[1:]), strict=True)]
        rounds.append(models.run(inputs[0], _into(outputs[0])))
        share = clock.cpu_share
        repeatable = all(_same(array, first[name]) for name, array in arrays(outputs[0]).items())
        if self.warmup is not None or len(rounds) < FEWEST or clock.gone_s < self.budget_s:
            run = models.prepared()
            self._warm_up(run, inputs)
            rounds, clock = [], _Clock()
            while len(rounds) < self.repeats and (len(rounds) < FEWEST or clock.gone_s < self.budget_s):
                rounds.append(run(inputs[len(rounds) % len(inputs)]))
            share = clock.cpu_share
        parent.send(("measured", Reference(np.array(rounds), share, repeatable)))

    def _warm_up(self, run: Callable[[Mapping[str, Any]], Any], inputs: Sequence[Mapping[str, Any]]) -> None:
        least, most = (LEAST_WARMUP, MOST_WARMUP) if self.warmup is None else (self.warmup, self.warmup)
        clock = _Clock()
        for done in range(most):
            if done >= least and clock.gone_s >= self.budget_s * _WARMUP_SHARE:
                return
            run(inputs[done % len(inputs)])


class _Clock:
    """Seconds since it was made, on the wall and of the processor."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    @property
    def gone_s(self) -> float:
        """Seconds on the wall."""
        return time.monotonic() - self._wall

    @property
    def cpu_share(self) -> float:
        """Part of them in which the process was running."""
        return (time.process_time() - self._cpu) / self.gone_s


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
