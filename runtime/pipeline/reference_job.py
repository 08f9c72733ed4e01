"""The reference process, which runs models one after the other: times without a pipeline, and the right outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from mtpp.runtime.pipeline.in_turn import InTurn
from mtpp.runtime.pipeline.memory import Array, OpenTensor, Ring, View, arrays
from mtpp.runtime.pipeline.model_file import ModelFile
from mtpp.runtime.pipeline.stage_job import keep_to
from mtpp.runtime.session import SessionChoices

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
