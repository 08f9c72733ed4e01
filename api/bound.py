"""Lower bounds: what no partition of a model into k stages can beat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.api.cells.certificate_table import BoundTable, outcome_of
from mtpp.api.cells.overheads import Overheads
from mtpp.api.options.cells import Bounding
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading


def bound_cells(
    models: Sequence[str | Model],
    asked: Bounding,
    reading: Reading,
    observer: Observer,
    deadline: Deadline,
    overheads: Overheads,
) -> BoundTable:
    """Work at cells one after the other in this process, until the deadline.

    Ctrl-C ends the work with the rows there are.
    """
    from mtpp.api.cells.limits import cell_limits
    from mtpp.api.cells.rows import bounds_alone
    from mtpp.api.cells.session import CellRun, certified_cells
    from mtpp.api.inputs.model_files import counts_of
    from mtpp.solvers.certify.cells.cell import run_here

    limits = cell_limits(asked, each=True, warn=observer.warn, cutoff=asked.cutoff)
    run = CellRun(limits, asked, run_here, jobs=1, deadline=deadline, processes=False, overheads=overheads)
    cells = certified_cells(models, counts_of(asked.k, models, reading), reading, run, observer)
    rows = [bounds_alone(row) for row in cells.rows]
    return BoundTable(rows, **outcome_of(cells, limits.bounds), cutoff=limits.cutoff)


def bound(
    models: Any,
    k: int | Iterable[int] | None = None,
    *,
    bounds: str | Iterable[str] | None = None,
    objective: str = "bottleneck",
    max_latency: str | float | Fraction | None = None,
    max_bottleneck: str | float | Fraction | None = None,
    replicas: bool = False,
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

    Keywords that are not listed are fields of :class:`mtpp.api.options.cells.Bounding`.

    Parameters
    ----------
    models
        One, or a list: models of :func:`mtpp.read` or anything that it reads, and folders of models.
    memory_limit
        What the exhaustive searches may take, in bytes or as ``"8GiB"``, at least 512 MiB; half of what is free by
        default.
    reading
        How files are read: machine, dimensions and so on; by default for the reference system.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    A table that iterates over records with model, k, bound, ticks, tier and more. No partition of the model into k
    stages has a bottleneck, or a latency where that is the objective, below ``ticks``; that of tier ``solver`` is the
    word of HiGHS, the others are proofs. Bounds that do not hold for the goal are left out with a warning.

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
    from mtpp.api.inputs.reading import models_of, reading_of
    from mtpp.api.observer import listener

    asked = Bounding.among(locals())
    deadline, heard = Deadline(asked.total_time_limit_s), listener(observer)
    given, read = models_of(models, observer), reading_of(reading)
    table = bound_cells(given, asked, read, heard, deadline, Overheads()).sealed()
    table.raise_if_empty(heard)
    return table
