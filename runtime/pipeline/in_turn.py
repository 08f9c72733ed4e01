"""Models run one after the other in one process, each on the outputs of the ones before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.errors import InputError
from mtpp.runtime.pipeline.memory import Array, Shape
from mtpp.runtime.pipeline.model_file import ModelFile, OpenedModel
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
