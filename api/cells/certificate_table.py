"""Tables of certificates and of lower bounds: a row for each model and number of stages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from mtpp.api.output import SavedResult, checked_format
from mtpp.errors import InconsistentResult, Interrupted, MtppError, renamed
from mtpp.host.stop_reason import StopReason
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    from mtpp.api.cells.session import CertifiedCells
    from mtpp.api.observer import Observer
    from mtpp.inference.certificate import Tier
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.views.terminal import Medium


@dataclass(frozen=True, repr=False)
class CellTable(SavedResult):
    """Rows of the cells that had their turn, and what became of the others.

    Attributes
    ----------
    cells
        Rows, model by model, each with its k in order.
    problems
        What went wrong, by the label of the cell.
    missing
        Labels of the cells without a row.
    stopped
        "finished"; "interrupted" (Ctrl-C), "time-limit" (that of the whole run) or "failed" where some cells had no
        turn or were cut short; None of a table that was read, which does not say it.
    failure
        The error that ended the run half-way, such as a store on a full disk; or that of a cell whose results
        contradict each other: it has no row.
    bounds
        Names of the bounds asked for.
    loaded
        Document that the table was read from; None for a table that was made here.
    """

    cells: Sequence[CertificateRow]
    problems: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    stopped: StopReason | None = StopReason.FINISHED
    failure: MtppError | None = None
    bounds: Sequence[str] = ()
    loaded: Mapping[str, Any] | None = field(default=None, kw_only=True)

    @property
    def verified(self) -> bool:
        """Whether the figures were computed here; those of a document are claims until :func:`mtpp.verify` says so."""
        return self.loaded is None

    @property
    def unfinished(self) -> dict[str, int]:
        """Cells of a run that ended early: with a row but ``cut_short`` by Ctrl-C, and ``not_begun``; else empty."""
        if self.loaded is not None:
            return dict(self.loaded.get("unfinished", {}))
        if self.stopped == StopReason.FINISHED:
            return {}
        cut = sum(row.stopped == StopReason.INTERRUPTED for row in self.cells)
        return {"cut_short": cut, "not_begun": sum(label not in self.problems for label in self.missing)}

    def sealed(self) -> Self:
        """Return the same table of rows that cannot be changed: one copy, of their proofs as well."""
        from mtpp.api.cells.rows import sealed
        from mtpp.inference.frozen import frozen

        return replace(self, cells=tuple(map(sealed, self.cells)), problems=frozen(self.problems))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows of all models and k as in the JSON document: copies that may be changed."""
        from mtpp.inference.frozen import thawed

        return [thawed(row.to_document()) for row in self.cells]

    def text(self, output_format: str = "table", *, as_fraction: bool = False) -> str:
        """Return the table as ``table``, ``markdown``, ``csv``, ``html`` or ``json``.

        Parameters
        ----------
        as_fraction
            Bounds as fractions of the best partition (at most 1) in place of approximation ratios (at least 1).

        Raises
        ------
        InputError
            If there is no such format.
        """
        chosen = checked_format(output_format)
        return self.to_json() if chosen == "json" else self._shown(chosen, as_fraction=as_fraction)

    def _said(self) -> Mapping[str, Any]:
        from mtpp.inference.certificate_table import table_document
        from mtpp.solvers.certify.summary import summarise

        if self.loaded is not None:
            return self.loaded
        summary = [one.to_document() for one in summarise(self.cells)]
        return table_document(self.cells, summary, self.unfinished)

    def _shown(self, medium: str | Medium, *, as_fraction: bool = False) -> str:
        from mtpp.views.certificates import certificates_text

        notes = self._notes()
        if medium == "html":
            notes += [("", line) for line in self._remarks()]
        return certificates_text(self.cells, medium, as_fraction=as_fraction, with_upper=self._with_upper, notes=notes)

    def raise_if_empty(self, observer: Observer) -> None:
        """Raise what ended the run before there was any row; where there are some, warn of a failure.

        Raises
        ------
        Interrupted
            If Ctrl-C did.
        MtppError
            As *failure*.
        """
        if self.failure is not None:
            if not self.cells:
                raise self.failure
            ended = not isinstance(self.failure, InconsistentResult)
            observer.warn(f"ended before all cells had their turn: {self.failure}" if ended else str(self.failure))
        elif self.stopped == StopReason.INTERRUPTED and not self.cells:
            raise Interrupted("interrupted before there was any row")

    @property
    def _with_upper(self) -> bool:
        return True

    def _notes(self) -> list[tuple[str, str]]:
        """Return more lines of a name and a text for people."""
        from mtpp.views.certificate_texts import bounds_cut_short, unfinished_text

        notes = [*bounds_cut_short(self.cells, self.bounds)]
        if any(self.unfinished.values()):
            notes.append(("unfinished", unfinished_text(self.unfinished["cut_short"], self.unfinished["not_begun"])))
        return notes

    def _remarks(self) -> list[str]:
        """Return what a reader of this table alone would miss: what standard error says to users of a terminal."""
        lines = [f"{label}: {problem}" for label, problem in self.problems.items()]
        if not self.verified:
            lines.append("claimed, not verified")
        elif self.stopped != StopReason.FINISHED:
            without = "1 cell has" if len(self.missing) == 1 else f"{len(self.missing)} cells have"
            lines.append(f"stopped: {self.stopped}, {without} no row")
        return lines


@dataclass(frozen=True, repr=False)
class CertificateTable(CellTable):
    """Partitions and proofs of how good they are; iterates over its rows.

    A row has the attributes model, k, upper, lower, ratio, optimal, assignment and more. Costs are in ticks of the row,
    ``ticks_per_unit`` of them in its ``time_unit``. Bounds of tier ``exact`` and ``enumerated`` are proofs that
    ``mtpp verify`` checks; tier ``solver`` is the word of HiGHS.
    """

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[CertificateRow]:
        return iter(self.cells)

    def __getitem__(self, place: int) -> CertificateRow:
        return self.cells[place]

    def plot(self, path: str | os.PathLike[str], time_limit_s: float | None = None) -> None:
        """Draw seconds until a ratio was proven against ops, and write the points as CSV beside; the extra ``plot``.

        Parameters
        ----------
        path
            A picture whose ending says its format: .png, .svg or .pdf.
        time_limit_s
            Of each cell, which the picture marks.

        Raises
        ------
        InputError
            If the ending is none of these, or the files cannot be written.
        """
        from mtpp.api.parameters import path_text
        from mtpp.views.certificate_plot import check_plot, write_plot

        target = path_text(path, "path")
        check_plot(target)
        write_plot(target, self.cells, time_limit_s)

    def unmet(self, ratio: Fraction | float) -> list[str]:
        """Return a line for each cell whose ratio is not proven to be at most *ratio*, those without a row included.

        The ratio is compared exactly; bounds of tier ``solver`` prove nothing.
        """
        from mtpp.views.certificates import unmet_ratio

        return [*unmet_ratio(self.cells, ratio), *(f"{label}: no certificate" for label in self.missing)]


@dataclass(frozen=True)
class BoundRow:
    """One lower bound on one model cut into at most k stages.

    Attributes
    ----------
    model
        Name of its graph.
    bound
        Name of the bound.
    ticks
        No partition has a smaller bottleneck, or latency where that is the objective; None if nothing was proven in the
        time.
    lower_s
        The same in seconds; None for a graph whose costs have no unit.
    tier
        ``exact`` or ``enumerated``: a proof that can be checked; ``solver``: the word of HiGHS.
    solved
        Whether it completed: more time would not raise it.
    seconds
        That it took.
    objective
        ``bottleneck`` or ``latency``.
    """

    model: str
    k: int
    bound: str
    ticks: int | None
    lower_s: float | None
    tier: Tier
    solved: bool
    seconds: float
    objective: str = "bottleneck"


@dataclass(frozen=True, repr=False)
class BoundTable(CellTable):
    """Lower bounds alone: iterates over rows of one bound each; ``cells`` has a row per model and k, with proofs.

    Attributes
    ----------
    cutoff
        Ticks above which no bound was sought, where that was asked for.
    """

    cutoff: int | None = None

    def __len__(self) -> int:
        return len(self._rows())

    def __iter__(self) -> Iterator[BoundRow]:
        return iter(self._rows())

    def __getitem__(self, place: int) -> BoundRow:
        return self._rows()[place]

    def _rows(self) -> list[BoundRow]:
        from mtpp.solvers.bounds.registry import bound_entry

        return [
            BoundRow(
                row.model,
                row.k,
                name,
                figure.value,
                None if figure.value is None or row.time_unit == "1" else figure.value / PICOSECONDS["s"],
                bound_entry(name).tier,
                figure.solved,
                figure.seconds,
                row.objective,
            )
            for row in self.cells
            for name, figure in row.bounds.items()
        ]

    @property
    def _with_upper(self) -> bool:
        return False

    def _notes(self) -> list[tuple[str, str]]:
        notes = super()._notes()
        if self.cutoff is not None:
            notes.append(("cutoff", f"no bound above {self.cutoff} ticks was sought"))
        return notes


def outcome_of(cells: CertifiedCells, bounds: Sequence[str]) -> dict[str, Any]:
    """Return what all tables say of a run, as keyword arguments of their records."""
    stopped = StopReason.FINISHED
    if cells.failure is not None:
        stopped = StopReason.FAILED
    elif cells.interrupted:
        stopped = StopReason.INTERRUPTED
    elif cells.out_of_time:
        stopped = StopReason.TIME_LIMIT
    return {
        "problems": {label: renamed(problem) for label, problem in cells.problems.items()},
        "missing": tuple(cells.missing),
        "stopped": stopped,
        "failure": cells.failure,
        "bounds": tuple(bounds),
    }
