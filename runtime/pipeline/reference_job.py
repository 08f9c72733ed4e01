"""The reference process, which runs models one after the other: times without a pipeline, and the right outputs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.errors import InputError
from mtpp.runtime.pipeline.memory import Ring
from mtpp.runtime.pipeline.model_file import ModelFile, OpenedModel
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
        """Do it, and say ``measured`` with a :class:`Reference`.

        Raises
        ------
        InputError
            If a model cannot be loaded or run.
        """
        keep_to(self.cores)
        opened = [model.open(self.choices) for model in self.models]
        last_use = {name: i for i, model in enumerate(self.models) for name, _, _ in model.inputs}
        inputs = [opened[0].shared(views) for views in self.inputs.views()]
        outputs = self.outputs.views()
        for slot, views in enumerate(outputs):
            self._round(opened, dict(inputs[slot]), last_use, views)
        again = {name: np.empty_like(array) for name, array in outputs[0].items()}
        self._round(opened, dict(inputs[0]), last_use, again)
        repeatable = all(array.tobytes() == outputs[0][name].tobytes() for name, array in again.items())
        for warmup in range(self.warmup):
            self._round(opened, dict(inputs[warmup % len(inputs)]), last_use, {})
        rounds: list[NDArray[np.float64]] = []
        start, cpu = time.monotonic(), time.process_time()
        while len(rounds) < self.repeats and (len(rounds) < FEWEST or time.monotonic() - start < self.budget_s):
            rounds.append(self._round(opened, dict(inputs[len(rounds) % len(inputs)]), last_use, {}))
        share = (time.process_time() - cpu) / (time.monotonic() - start)
        parent.send(("measured", Reference(np.array(rounds), share, repeatable)))

    def _round(
        self, opened: list[OpenedModel], values: dict[str, Any], last_use: dict[str, int], keep: Any
    ) -> NDArray[np.float64]:
        """Run all models once; write what is to be kept where it belongs; return the seconds of each."""
        seconds = np.zeros(len(opened))
        for i, (model, one) in enumerate(zip(self.models, opened, strict=True)):
            feeds = {name: values[name] for name, _, _ in model.inputs}
            start = time.monotonic()
            made = one.run(feeds)
            seconds[i] = time.monotonic() - start
            for name, dtype, shape in model.outputs:
                value = made[name]
                found = tuple(one.array(value).shape)
                if found != shape:
                    raise InputError(
                        f"its shape is {list(found)}, not {list(shape)} as the manifest says ({dtype})",
                        source=str(model.path),
                        where=f"output {name!r}",
                        remedy="split the model again, with the sizes that it has",
                    )
                if name in keep:
                    keep[name][...] = one.array(value)
                if name in last_use:
                    values[name] = value
            for name in [name for name in values if last_use.get(name, i) <= i]:
                del values[name]
        return seconds
