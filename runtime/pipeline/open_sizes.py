"""Room for tensors whose sizes only a run tells: the stages are run first, and their outputs are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from mtpp.runtime.pipeline.crew import Crew, Limits
from mtpp.runtime.pipeline.in_turn import InTurn
from mtpp.runtime.pipeline.memory import Array, Ring, arrays
from mtpp.runtime.pipeline.model_file import ModelFile
from mtpp.runtime.session import SessionChoices

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
