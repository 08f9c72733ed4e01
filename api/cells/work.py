"""Work at cells: all models checked first, then the cells of each, handed out one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from mtpp.api.observer import Observer, Steps, compilation_told
from mtpp.errors import MtppError
from mtpp.host.interruption import Interruption
from mtpp.solvers.certify.cells.cell import Outcome, S

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.model_files import ModelFiles, ReadingLimits
    from mtpp.api.options.reading import Reading
    from mtpp.inference.model_file import ModelFile

C = TypeVar("C")


class Session(ABC, Generic[C, S]):
    """Cells of one run, for each model and number of stages.

    Attributes
    ----------
    models
        All that are to be worked at, whether their turn came or not.
    """

    files: ModelFiles
    progress: Steps

    def __init__(self, stage_counts: Sequence[int], observer: Observer) -> None:
        self.models: Sequence[ModelFile] = ()
        self.stage_counts = stage_counts
        self.observer = observer
        self._interruption = Interruption()

    def work(
        self,
        models: Sequence[str | Model],
        reading: Reading,
        limits: ReadingLimits,
        run: Callable[[Iterator[C], Callable[[], bool]], Iterator[Outcome[S]]],
    ) -> None:
        """Check all models, then work at every cell, until the user ends it.

        Parameters
        ----------
        run
            Works at cells, asking for them one by one, and gives their outcomes as they come, until it is told to end.

        Raises
        ------
        InputError
            If a model cannot be read; before the first cell.
        """
        from mtpp.api.inputs.model_files import ModelFiles

        with self.observer.steps() as self.progress:
            self.files = ModelFiles(reading, self.observer.warn, self.progress.show, limits, self.accept)
            self.models = self.begin(self.files.check(models, max(self.stage_counts)))
            with self._interruption, compilation_told(self.observer):
                try:
                    for outcome in run(self.cells(), lambda: self.interrupted):
                        self.ended(outcome)
                        del outcome  # or its instance would be kept while the next model is read
                except MtppError as error:
                    self.failed(error)

    @property
    def interrupted(self) -> bool:
        """Whether the user has ended it."""
        return self._interruption.requested

    def accept(self, model: Model) -> None:
        """Raise InputError if what is asked for does not go with a model; called for each before the first cell."""

    def begin(self, models: Sequence[ModelFile]) -> Sequence[ModelFile]:
        """Return the models to be worked at, of those that were found; called once, before the first cell."""
        return models

    @abstractmethod
    def cells(self) -> Iterator[C]:
        """Give the cells that are to be worked at, each when its turn comes."""

    @abstractmethod
    def ended(self, outcome: Outcome[S]) -> None:
        """Take in what became of a cell."""

    def failed(self, error: MtppError) -> None:
        """Take in what ended the run half-way, such as a store on a full disk; by default it is raised."""
        raise error
