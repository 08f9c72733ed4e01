"""A cell as it travels between processes: an instance, how it is to be worked at, and what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.registry import BY_DEFAULT
from mtpp.solvers.certify.cell_work import Certification, CertifyLimits, certify
from mtpp.solvers.certify.cells.preparing import load_for_cells


@dataclass(frozen=True)
class CellLimits:
    """How long a cell may take, and what is enough; all of it can be pickled.

    Attributes
    ----------
    time_limit_s, target_ratio, bounds, algorithm, seed, memory_bytes, each, proofs_only, cutoff
        As in :class:`~mtpp.solvers.certify.cell_work.CertifyLimits`.
    threads
        That its searches may use.
    process_bytes
        Resident memory of the process that works at it, and of those that it starts; None: no limit.
    """

    time_limit_s: float | None = 60.0
    target_ratio: Fraction = Fraction(1)
    bounds: tuple[str, ...] = BY_DEFAULT
    algorithm: str = "auto"
    seed: int = 0
    threads: int = 1
    memory_bytes: int | None = None
    each: bool = False
    proofs_only: bool = False
    cutoff: int | None = None
    process_bytes: int | None = None


@dataclass(frozen=True)
class Cell:
    """One instance to be certified.

    Attributes
    ----------
    number
        What tells it from the other cells of a run.
    label
        What people call it.
    """

    number: int
    label: str
    instance: Instance
    limits: CellLimits

    def prepare(self) -> None:
        """Have the kernels ready that the work may need, so that its clock shows the work alone."""
        load_for_cells(self.limits.algorithm, self.limits.bounds, self.instance.system, self.instance.op_count)

    def certify(
        self,
        report: Callable[[Certification], None] = lambda state: None,
        interrupted: Callable[[], bool] | None = None,
    ) -> Certification:
        """Work at the cell in this process.

        Raises
        ------
        Infeasible
            As :func:`~mtpp.solvers.certify.cell_work.certify`.
        """
        limits = self.limits
        return certify(
            self.instance,
            CertifyLimits(
                time_limit_s=limits.time_limit_s,
                target_ratio=limits.target_ratio,
                bounds=limits.bounds,
                algorithm=limits.algorithm,
                seed=limits.seed,
                jobs=limits.threads,
                memory_bytes=limits.memory_bytes,
                each=limits.each,
                proofs_only=limits.proofs_only,
                cutoff=limits.cutoff,
                interrupted=interrupted or (lambda: False),
            ),
            report,
        )


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Attributes
    ----------
    state
        What is known of it, also where its work was cut off; None where that is nothing.
    problem
        Why there is nothing, or why the work was cut off by something other than a limit; empty if nothing went wrong.
    """

    cell: Cell
    state: Certification | None
    problem: str = ""

    @property
    def finished(self) -> bool:
        """Whether the cell got all it was to get: no accident, and no interruption."""
        return self.state is not None and not self.problem and self.state.stopped != "interrupted"


class OtherVersion(Exception):
    """A cell was sent to another version of this program, which may not mean the same by it."""
