"""Rows, problems and gaps of a table of certificates, as its cells come to their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.errors import MtppError
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.inference.model_file import ModelFile


@dataclass
class CertifiedCells:
    """The cells of one run, those with a row and those without.

    Attributes
    ----------
    models, stage_counts
        All that was to be certified, whether its turn came or not.
    by_place
        Rows by place of the model and of k in these.
    problems
        What went wrong, by label of the cell.
    done, stored
        Number of cells that had their turn, and of those of them whose rows were in the store.
    interrupted, out_of_time
        Whether the user or the limit of the whole run ended it before the last cell.
    failure
        What else did, or the first two results that contradict each other, whose cell has no row.
    """

    models: Sequence[ModelFile]
    stage_counts: Sequence[int]
    by_place: dict[tuple[int, int], CertificateRow] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    done: int = 0
    stored: int = 0
    interrupted: bool = False
    out_of_time: bool = False
    failure: MtppError | None = None

    @property
    def rows(self) -> list[CertificateRow]:
        """The rows, model by model."""
        return [self.by_place[place] for place in sorted(self.by_place)]

    @property
    def cells(self) -> int:
        """Number of cells that were asked for."""
        return len(self.models) * len(self.stage_counts)

    @property
    def missing(self) -> list[str]:
        """Labels of the cells without a row."""
        places = ((m, i) for m in range(len(self.models)) for i in range(len(self.stage_counts)))
        return [self._label(place) for place in places if place not in self.by_place]

    def _label(self, place: tuple[int, int]) -> str:
        return cell_label(self.models[place[0]], self.stage_counts[place[1]])

    def tell(self, observer: Observer) -> None:
        """Tell what was in the store already, and what the table leaves out, and why."""
        if self.stored:
            observer.note(f"{self.stored} of {self.cells} rows were in the store")
        for label, problem in self.problems.items():
            observer.complain(f"{label}: {problem}")
        left = self.cells - self.done
        if self.interrupted:
            observer.warn_interrupted(f"with {left} of {self.cells} cells left")
        elif self.out_of_time:
            short = f"{left} of {self.cells} cells had no turn" if left else "the last cells were cut short"
            observer.warn(f"‹total_time_limit›: {short}")


def cell_label(model: ModelFile, k: int) -> str:
    """Return the name of a cell for people."""
    return f"{model.path}, k = {k}"
