"""The cells of one run: handed out one by one, restored from the store or made into rows as they end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mtpp.api.cells.certified import CertifiedCells, cell_label
from mtpp.api.cells.rows import certificate_row, of_file
from mtpp.api.inputs.counted_weights import problem_as_counted
from mtpp.errors import InconsistentResult
from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.api.cells.run import CellRun
    from mtpp.api.inputs.model_files import ModelFiles
    from mtpp.api.observer import Observer, Steps
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.inference.instance import Instance
    from mtpp.inference.model_file import ModelFile
    from mtpp.solvers.certify.cell_limits import CellLimits
    from mtpp.solvers.certify.cells.cell import Cell, Outcome
    from mtpp.solvers.certify.cells.keys import CellKey


_LEAST_SHARE = 0.05
"""Of its time limit, for a cell whose model took most of it to be read."""


class CellSession:
    """Hands out cells, makes rows of what comes out, and tells an observer what is being done.

    A row is in the store, on the disk, before anything is said of it.
    """

    def __init__(
        self, table: CertifiedCells, files: ModelFiles, plan: CellRun, observer: Observer, progress: Steps
    ) -> None:
        self._table = table
        self._files = files
        self._plan = plan
        self._limits = plan.limits_of(table.cells)
        self._observer = observer
        self._progress = progress
        self._keys: dict[int, CellKey] = {}
        self._shortened: set[int] = set()
        self._prepared = False

    def cells(self) -> Iterator[Cell]:
        """Give the cells that have no row yet; a model is read again when its turn comes, and let go afterwards."""
        from mtpp.solvers.certify.cells.cell import Cell
        from mtpp.solvers.certify.cells.keys import graph_digest

        for m, file in enumerate(self._table.models):
            began = time.monotonic() - file.read_s
            model = self._files.read_again(file, self._observer.warn)
            if model is None:
                for k in self._table.stage_counts:
                    self._table.done += 1
                    self._table.problems[cell_label(file, k)] = "its file is not what it was when the run began"
                continue
            digest = "" if self._plan.store is None else graph_digest(model.graph)
            for i, k in enumerate(self._table.stage_counts):
                instance = model.instance(k)
                number = m * len(self._table.stage_counts) + i
                if digest and self._restore(number, digest, instance):
                    continue
                if not self._prepare(instance):  # compiling, which is done once, is on no clock
                    began = time.monotonic() - file.read_s
                limits = self._limits_now(number, time.monotonic() - began, instance.op_count)
                began = time.monotonic()
                if limits is None:
                    self._table.out_of_time = True
                    return
                label = cell_label(file, k)
                self._show(label)
                yield Cell(number, label, instance, limits)

    def ended(self, outcome: Outcome) -> None:
        """Keep what became of a cell."""
        cell = outcome.cell
        self._table.done += 1
        if outcome.contradiction:
            self._table.failure = self._table.failure or InconsistentResult(f"{cell.label}: {outcome.problem}")
        if outcome.problem:
            problem = problem_as_counted(outcome.problem, self._file(cell.number).counted_weights)
            self._table.problems[cell.label] = problem
            self._observer.note(f"{cell.label}: {problem}")
        if outcome.state is None:
            return
        row = certificate_row(outcome.state, cell.instance, self._file(cell.number))
        cut = row.stopped == StopReason.TIME_LIMIT and cell.number in self._shortened
        if cut:
            self._table.out_of_time = True
        if outcome.finished and not cut and self._plan.store is not None:
            row = of_file(self._plan.store.put(self._keys[cell.number], row), self._file(cell.number))
        self._keep(cell.number, row)
        for reason in dict.fromkeys(outcome.state.left_out.values()):
            names = [name for name, why in outcome.state.left_out.items() if why == reason]
            self._observer.warn(f"{cell.label}: left out {', '.join(names)}: {reason}")
        self._say(cell.label, row, cell.instance)

    def _restore(self, number: int, digest: str, instance: Instance) -> bool:
        """Take a row from the store; tell whether it has one."""
        from mtpp.solvers.certify.cells.keys import cell_key

        assert self._plan.store is not None
        key = cell_key(digest, instance, self._limits, memory_bytes=self._plan.limits.memory_bytes)
        row = self._plan.store.get(key)
        if row is None and self._limits.proofs_only:  # work that asked for less may have proven as much
            limits = replace(self._limits, proofs_only=False)
            row = self._plan.store.get(cell_key(digest, instance, limits, memory_bytes=self._plan.limits.memory_bytes))
            row = None if row is None or row.stopped == StopReason.SOLVER_TARGET else row
        if row is None:
            self._keys[number] = key
            return False
        file = self._file(number)
        self._keep(number, of_file(row, file))
        self._table.done += 1
        self._table.stored += 1
        self._say(f"{cell_label(file, instance.k)} (stored)", row, instance)
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

    def _prepare(self, instance: Instance) -> bool:
        """Compile once, before several processes would each do so; tell whether all was compiled before."""
        if self._prepared or self._plan.jobs is None:
            return True
        from mtpp.solvers.certify.cells.preparing import compiled_for_cells, load_for_cells

        names = (self._limits.algorithm, self._limits.bounds, instance.system)
        compiled = compiled_for_cells(*names)
        if not compiled:
            self._observer.say("compiling (once) …")
        elif self._plan.processes:  # each loads what it needs, and this process has no need of it
            self._prepared = True
            return True
        load_for_cells(*names, most_ops=max(model.ops for model in self._table.models))
        self._prepared = True
        return compiled

    def _file(self, number: int) -> ModelFile:
        return self._table.models[number // len(self._table.stage_counts)]

    def _keep(self, number: int, row: CertificateRow) -> None:
        self._table.by_place[divmod(number, len(self._table.stage_counts))] = row

    def _say(self, label: str, row: CertificateRow, instance: Instance) -> None:
        self._observer.note(f"{label}: {_outcome_text(row, instance)}")
        self._show(label)

    def _show(self, label: str) -> None:
        self._progress.show(label, self._table.done, self._table.cells)


def _outcome_text(row: CertificateRow, instance: Instance) -> str:
    ratio = "none" if row.ratio is None else f"{row.ratio:.4f}"
    found = "" if row.upper is None else f"{instance.describe(row.upper)} by {row.upper_algorithm}, "
    return (
        f"{found}at least {instance.describe(row.lower.value)} by {row.lower.method} ({row.lower.tier}), "
        f"ratio {ratio}, {row.total_seconds:.1f} s, {row.stopped}"
    )
