"""Lower bounds: what no partition of a model into k stages can beat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mtpp.api.cells.certificate_table import BoundTable, outcome_of
from mtpp.api.cells.overheads import Overheads
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading
    from mtpp.solvers.certify.cell_limits import CellLimits


@dataclass(frozen=True)
class BoundRequest:
    """Models, numbers of stages, and how to work at the bounds of each pair of them.

    Attributes
    ----------
    models, stage_counts, reading, deadline, overheads
        As in :class:`mtpp.api.certify.CertifyRequest`.
    limits
        Of each cell; every bound gets an equal share of its time and is worked at for itself.
    """

    models: tuple[str | Model, ...]
    stage_counts: tuple[int, ...]
    reading: Reading
    limits: CellLimits
    deadline: Deadline = field(default_factory=Deadline)
    overheads: Overheads = field(default_factory=Overheads)


def bound_cells(request: BoundRequest, observer: Observer) -> BoundTable:
    """Work at the cells of a request one after the other in this process.

    Ctrl-C ends the work with the rows there are.

    Raises
    ------
    InputError
        If a model cannot be read; before the first cell.
    """
    from mtpp.api.cells.rows import bounds_alone
    from mtpp.api.cells.session import CellRun, certified_cells
    from mtpp.solvers.certify.cells.serial import run_here

    limits = replace(request.limits, each=True)
    run = CellRun(limits, run_here, jobs=1, deadline=request.deadline, processes=False, overheads=request.overheads)
    cells = certified_cells(request.models, request.stage_counts, request.reading, run, observer)
    rows = [bounds_alone(row) for row in cells.rows]
    return BoundTable(rows, **outcome_of(cells, limits.bounds), cutoff=limits.cutoff)


def bound(
    models: Any,
    k: int | Iterable[int],
    *,
    bounds: str | Iterable[str] | None = None,
    cutoff: int | None = None,
    time_limit_s: float | None = 60.0,
    total_time_limit_s: float | None = None,
    seed: int = 0,
    memory_limit: int | str | None = None,
    proof_limit: int | str = "8MB",
    reading: Reading | None = None,
    observer: Observer | None = None,
) -> BoundTable:
    """Prove what no partition of a model into k stages can beat, by each of several bounds.

    Every bound gets an equal share of the time of a cell and is worked at for itself; :func:`mtpp.certify` goes from
    cheap to strong ones and stops when the ratio will do.

    Parameters
    ----------
    models
        One, or a list: models of :func:`mtpp.read` or anything that it reads, and folders of models.
    k
        Number of stages at most, or several of them.
    bounds
        Names of bounds, in :data:`mtpp.solvers.bounds.registry.BOUNDS`; None: all.
    cutoff
        Look for no partition, and for no bound above so many ticks, which need not be what any partition costs.
    time_limit_s
        Seconds for each model and k, reading the model included; None: until every bound has come to its end.
    total_time_limit_s
        Seconds from this call for all; what had no turn by then has no row.
    seed
        Of all random choices.
    memory_limit
        What the exhaustive searches may take, in bytes or as ``"8GiB"``, at least 512 MiB; half of what is free by
        default.
    proof_limit
        Size of the proof of a bound by branch and bound, in bytes or as ``"8MB"``; what takes more is of tier
        ``solver``.
    reading
        How files are read: machine, dimensions and so on; by default for the reference system.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    A table that iterates over records with model, k, bound, ticks, tier and more. No partition of the model into k
    stages has a bottleneck below ``ticks``; that of tier ``solver`` is the word of HiGHS, the others are proofs.

    Raises
    ------
    InputError
        If a model cannot be read, or a parameter is wrong.
    Interrupted
        If Ctrl-C came before there was any row.

    Examples
    --------
    >>> from mtpp.datasets import sample_path
    >>> table = bound(sample_path("resnet50"), 2, bounds=["simple", "node", "downset"])
    >>> [(row.bound, row.ticks, row.tier) for row in table]
    [('simple', 852996053, 'exact'), ('downset', 933743466, 'enumerated'), ('node', 357585920, 'exact')]
    """
    from mtpp.api import parameters
    from mtpp.api.cells import parameters as of_cells
    from mtpp.api.cells.limits import CellLimits
    from mtpp.api.observer import listener
    from mtpp.api.options.kinds import StageCounts
    from mtpp.ranges import MOST_SEED

    deadline = parameters.deadline_of(total_time_limit_s, "total_time_limit_s")
    request = BoundRequest(
        models=of_cells.models_of(models, observer),
        stage_counts=StageCounts().read(k, "k"),
        reading=of_cells.reading_of(reading),
        limits=CellLimits(
            time_limit_s=parameters.deadline_of(time_limit_s).limit_s,
            bounds=of_cells.bounds_of(bounds, every=True),
            seed=parameters.whole(seed, "seed", least=0, most=MOST_SEED),
            memory_bytes=of_cells.memory_of(memory_limit),
            proof_bytes=of_cells.proof_bytes_of(proof_limit),
            cutoff=parameters.whole_or_none(cutoff, "cutoff", most=2**62 - 1),
        ),
        deadline=deadline,
    )
    heard = listener(observer)
    table = bound_cells(request, heard).sealed()
    table.raise_if_empty(heard)
    return table
