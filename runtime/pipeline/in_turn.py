"""Models run one after the other in one process, each on the outputs of the ones before it.

The reference process tells times without a pipeline and the right outputs; another one, how large tensors become.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.runtime.pipeline.crew import Crew, Limits
from mtpp.runtime.pipeline.memory import OpenTensor, Ring, Shape, View, arrays
from mtpp.runtime.pipeline.model_file import ModelFile, OpenedModel
from mtpp.runtime.pipeline.stage_job import keep_to
from mtpp.runtime.session import SessionChoices


class InTurn:
    """The models of a pipeline, opened; none reads what a later one makes."""

    def __init__(self, models: Sequence[ModelFile], choices: SessionChoices) -> None:
        self._models = models
        self._opened = [model.open(choices) for model in models]
        self._last_use = {name: i for i, model in enumerate(models) for name, _, _ in model.inputs}

    def shared(self, views: Mapping[str, Array]) -> dict[str, Any]:
        """Return inputs as values on the same memory."""
        return self._opened[0].shared(views)

    def run(
        self, inputs: Mapping[str, Any], keep: Callable[[str, Array], None] = lambda name, array: None
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

    def _take(
        self, model: ModelFile, opened: OpenedModel, made: Mapping[str, Any], keep: Callable[[str, Array], None]
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
        for warmup in range(self.warmup):
            models.run(inputs[warmup % len(inputs)])
        rounds: list[NDArray[np.float64]] = []
        start, cpu = time.monotonic(), time.process_time()
        while len(rounds) < self.repeats and (len(rounds) < FEWEST or time.monotonic() - start < self.budget_s):
            rounds.append(models.run(inputs[len(rounds) % len(inputs)]))
        share = (time.process_time() - cpu) / (time.monotonic() - start)
        parent.send(("measured", Reference(np.array(rounds), share, repeatable)))


def _into(views: Mapping[str, View]) -> Callable[[str, Array], None]:
    """Return a function that writes an output where it belongs."""

    def keep(name: str, array: Array) -> None:
        view = views.get(name)
        if isinstance(view, OpenTensor):
            view.put(array)
        elif view is not None:
            view[...] = array

    return keep


def _same(a: Array, b: Array) -> bool:
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

        def note(name: str, array: Array) -> None:
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
