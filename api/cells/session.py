"""Cells to be certified: handed out one by one, restored from the store or made into rows as they end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mtpp.api.cells.overheads import Overheads
from mtpp.api.cells.rows import certificate_row, of_file
from mtpp.api.cells.work import Session
from mtpp.errors import InconsistentResult, MtppError
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.solvers.certify.cell_state import Certification
from mtpp.solvers.certify.cells.cell import CertificateCell

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.goal import Goals
    from mtpp.api.options.reading import Reading
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.inference.instance import Instance
    from mtpp.inference.model_file import ModelFile
    from mtpp.solvers.certify.cell_state import CellLimits
    from mtpp.solvers.certify.cells.cell import Outcome
    from mtpp.solvers.certify.cells.keys import CellKey
    from mtpp.solvers.certify.cells.store import Store

Runner = Callable[[Iterable["CertificateCell"], Callable[[], bool]], Iterator["Outcome[Certification]"]]

_WORKER_S = 1.1
"""Seconds in which a worker process starts and gets its first graph."""

_LEAST_SHARE = 0.05
"""Of its time limit, for a cell whose model took most of it to be read."""


@dataclass(frozen=True)
class CellRun:
    """Limits of the cells of one run, and the place where they are worked at.

    Attributes
    ----------
    limits
        Of each, as the user gave them.
    goals
        Of each.
    run
        Works at them, as :meth:`mtpp.api.cells.work.Session.work` says.
    jobs
        Cells at once on this machine, whose cores and memory they share; None: on other machines.
    store
        Has rows of earlier runs, and gets those of this one.
    deadline
        When the last cell has to end.
    processes
        Whether each cell is worked at in a process of its own.
    overheads
        Seconds of the limits that go to other things.
    """

    limits: CellLimits
    goals: Goals
    run: Runner
    jobs: int | None = None
    store: Store | None = None
    deadline: Deadline = field(default_factory=Deadline)
    processes: bool = True
    overheads: Overheads = field(default_factory=Overheads)

    def limits_of(self, cells: int) -> CellLimits:
        """Return the limits of each of so many cells."""
        from mtpp.api.cells.limits import shared_out

        if self.jobs is None:
            return self.limits
        return shared_out(self.limits, cells, self.jobs, processes=self.processes)


def certified_cells(
    models: Sequence[str | Model], stage_counts: Sequence[int], reading: Reading, plan: CellRun, observer: Observer
) -> CertifiedCells:
    """Check all models, then certify every cell.

    What ends the run half-way, such as a store on a full disk, is in the result beside what is done.

    Raises
    ------
    InputError
        If a model cannot be read; before the first cell.
    """
    from mtpp.api.inputs.model_files import ReadingLimits

    start_s = _WORKER_S if plan.processes else 0.0
    cells = CertifiedCells(stage_counts, plan, observer)
    cells.work(
        models, reading, ReadingLimits(plan.limits.time_limit_s, plan.deadline, start_s, plan.overheads), plan.run
    )
    cells.tell()
    return cells


class CertifiedCells(Session["CertificateCell", Certification]):
    """Hands out cells, makes rows of their outcomes, and tells an observer of the progress.

    A row is in the store, on the disk, before anything is said of it.

    Attributes
    ----------
    by_place
        Rows by place of the model and of k among all.
    problems
        What went wrong, by label of the cell.
    done, stored
        Number of cells that had their turn, and of those of them whose rows were in the store.
    out_of_time
        Whether the limit of the whole run ended it before the last cell.
    failure
        What else did, or the first two results that contradict each other, whose cell has no row.
    """

    def __init__(self, stage_counts: Sequence[int], plan: CellRun, observer: Observer) -> None:
        super().__init__(stage_counts, observer)
        self.by_place: dict[tuple[int, int], CertificateRow] = {}
        self.problems: dict[str, str] = {}
        self.done = self.stored = 0
        self.out_of_time = False
        self.failure: MtppError | None = None
        self._plan = plan
        self._keys: dict[int, CellKey] = {}
        self._shortened: set[int] = set()

    def accept(self, model: Model) -> None:
        """Refuse goals that are none for a model."""
        if self._plan.goals.goal_option:
            self._plan.goals.goal(self._plan.goals.applied(model.instance(1), self._plan.limits.algorithm))

    def begin(self, models: Sequence[ModelFile]) -> Sequence[ModelFile]:
        """Share the machine out among the cells."""
        self._limits = self._plan.limits_of(len(models) * len(self.stage_counts))
        return models

    @property
    def rows(self) -> list[CertificateRow]:
        """The rows, model by model."""
        return [self.by_place[place] for place in sorted(self.by_place)]

    @property
    def asked(self) -> int:
        """Number of cells that were asked for."""
        return len(self.models) * len(self.stage_counts)

    @property
    def missing(self) -> list[str]:
        """Labels of the cells without a row."""
        places = ((m, i) for m in range(len(self.models)) for i in range(len(self.stage_counts)))
        return [self._label(place) for place in places if place not in self.by_place]

    def _label(self, place: tuple[int, int]) -> str:
        return cell_label(self.models[place[0]], self.stage_counts[place[1]])

    def tell(self) -> None:
        """Tell what was in the store already, and what the table leaves out, and why."""
        if self.stored:
            self.observer.note(f"{self.stored} of {self.asked} rows were in the store")
        if self.problems:
            from mtpp.solvers.memory_growth import with_hint

            for label, problem in self.problems.items():
                self.observer.complain(f"{label}: {with_hint(problem)}")
        left = self.asked - self.done
        if self.interrupted:
            from mtpp.views.certificate_texts import unfinished_text

            cut = sum(row.stopped == StopReason.INTERRUPTED for row in self.rows)
            self.observer.warn_interrupted(f"with {unfinished_text(cut, left)} of {self.asked} cells")
        elif self.out_of_time:
            short = f"{left} of {self.asked} cells had no turn" if left else "the last cells were cut short"
            self.observer.warn(f"‹total_time_limit›: {short}")

    def cells(self) -> Iterator[CertificateCell]:
        """Give the cells that have no row yet; a model is read again when its turn comes, and let go afterwards."""
        from mtpp.solvers.certify.cells.keys import graph_digest

        for m, file in enumerate(self.models):
            began = time.monotonic() - file.read_s
            model = self.files.read_again(file, self.observer.warn)
            if model is None:
                for k in self.stage_counts:
                    self.done += 1
                    self.problems[cell_label(file, k)] = "its file is not what it was when the run began"
                continue
            digest = "" if self._plan.store is None else graph_digest(model.graph)
            for i, k in enumerate(self.stage_counts):
                instance = self._plan.goals.applied(model.instance(k), self._limits.algorithm)
                own = replace(self._limits, goal=self._plan.goals.goal(instance))
                number = m * len(self.stage_counts) + i
                if digest and self._restore(number, digest, instance, own):
                    continue
                limits = self._limits_now(number, time.monotonic() - began, instance.op_count)
                if limits is None:
                    self.out_of_time = True
                    return
                label = cell_label(file, k)
                self._show(label)
                yield CertificateCell(number, label, instance, replace(limits, goal=own.goal))
                began = time.monotonic()  # the work on a cell is not on the clock of the next one

    def failed(self, error: MtppError) -> None:
        """Keep what ended the run, beside what is done."""
        self.failure = error

    def ended(self, outcome: Outcome[Certification]) -> None:
        """Keep what became of a cell."""
        cell = outcome.cell
        self.done += 1
        if outcome.contradiction:
            self.failure = self.failure or InconsistentResult(f"{cell.label}: {outcome.problem}")
        if outcome.problem:
            self.problems[cell.label] = outcome.problem
            self.observer.note(f"{cell.label}: {outcome.problem}")
        if outcome.state is None:
            return
        assert isinstance(cell, CertificateCell)
        row = certificate_row(outcome.state, cell.instance, self._file(cell.number), cell.limits.goal)
        cut = row.stopped == StopReason.TIME_LIMIT and cell.number in self._shortened
        if cut:
            self.out_of_time = True
        if outcome.finished and not cut and self._plan.store is not None:
            row = of_file(self._plan.store.put(self._keys[cell.number], row), self._file(cell.number))
        self._keep(cell.number, row)
        for reason in dict.fromkeys(outcome.state.left_out.values()):
            names = [name for name, why in outcome.state.left_out.items() if why == reason]
            self.observer.warn(f"{cell.label}: left out {', '.join(names)}: {reason}")
        self._say(cell.label, row, cell.instance)

    def _restore(self, number: int, digest: str, instance: Instance, limits: CellLimits) -> bool:
        """Take a row from the store; tell whether it has one."""
        from mtpp.solvers.certify.cells.keys import cell_key

        assert self._plan.store is not None
        given: dict[str, Any] = {"memory_bytes": self._plan.limits.memory_bytes, "machine": self._file(number).machine}
        key = cell_key(digest, instance, limits, **given)
        row = self._plan.store.get(key)
        if row is None and limits.proofs_only:  # work that asked for less may have proven as much
            row = self._plan.store.get(cell_key(digest, instance, replace(limits, proofs_only=False), **given))
            row = None if row is None or row.stopped == StopReason.SOLVER_TARGET else row
        if row is None:
            self._keys[number] = key
            return False
        file = self._file(number)
        self._keep(number, of_file(row, file))
        self.done += 1
        self.stored += 1
        self._say(f"{cell_label(file, instance.most_used)} (stored)", row, instance)
        return True

    def _limits_now(self, number: int, read_s: float, ops: int) -> CellLimits | None:
        """Return the limits of a cell that starts now, None if it must not.

        Parameters
        ----------
        read_s
            Seconds that it took to have its instance at hand: they count, and so does writing its row.
        """
        left = self._plan.deadline.remaining_s()
        limit = self._limits.time_limit_s
        if left <= 0:
            return None
        if limit is not None:
            limit = max(limit - read_s - self._plan.overheads.writing_s(read_s, ops), _LEAST_SHARE * limit)
        if left < (math.inf if limit is None else limit):
            self._shortened.add(number)
            limit = left
        return replace(self._limits, time_limit_s=limit)

    def _file(self, number: int) -> ModelFile:
        return self.models[number // len(self.stage_counts)]

    def _keep(self, number: int, row: CertificateRow) -> None:
        self.by_place[divmod(number, len(self.stage_counts))] = row

    def _say(self, label: str, row: CertificateRow, instance: Instance) -> None:
        self.observer.note(f"{label}: {_outcome_text(row, instance)}")
        self._show(label)

    def _show(self, label: str) -> None:
        self.progress.show(label, self.done, self.asked)


def cell_label(model: ModelFile, k: int) -> str:
    """Return the name of a cell for people."""
    return f"{model.path}, k = {k}"


def _outcome_text(row: CertificateRow, instance: Instance) -> str:
    ratio = "none" if row.ratio is None else f"{row.ratio:.4f}"
    of = "latency " if row.goal.of_latency else ""
    found = "" if row.upper is None else f"{of}{instance.describe(row.upper)} by {row.upper_algorithm}, "
    return (
        f"{found}at least {instance.describe(row.lower.value)} by {row.lower.method} ({row.lower.tier}), "
        f"ratio {ratio}, {row.total_seconds:.1f} s, {row.stopped}"
    )
