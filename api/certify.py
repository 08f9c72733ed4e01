"""Certificates of many models: a partition of each into each number of stages, and a proof of how good it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from mtpp.api.cells.certificate_table import CertificateTable, outcome_of
from mtpp.api.cells.overheads import Overheads
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from pathlib import Path

    from mtpp.api.cells.limits import CellLimits
    from mtpp.api.cells.session import CellRun
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading


@dataclass(frozen=True)
class CertifyRequest:
    """Models, numbers of stages, and how to work at each pair of them.

    Attributes
    ----------
    models
        Files, folders, ``-`` for standard input, and models at hand.
    reading
        How files are read.
    limits
        Of each cell; ``memory_bytes`` is what all of them may take together, None: what is free decides.
    deadline
        When the last cell has to end.
    jobs
        Cells at once, a process each; None: as many as there are cores.
    store
        Path of the SQLite file that keeps each row as soon as there is one.
    scheduler
        Address of a Dask cluster to work on.
    overheads
        Seconds of the limits that go to other things.
    """

    models: tuple[str | Model, ...]
    stage_counts: tuple[int, ...]
    reading: Reading
    limits: CellLimits
    deadline: Deadline = field(default_factory=Deadline)
    jobs: int | None = None
    store: str | None = None
    scheduler: str | None = None
    overheads: Overheads = field(default_factory=Overheads)


def certify_cells(request: CertifyRequest, observer: Observer) -> CertificateTable:
    """Work at the cells of a request in worker processes, or on a cluster.

    Ctrl-C ends the work with the rows there are, as does an error half-way, which the table holds.

    Raises
    ------
    InputError
        If a model cannot be read, the store cannot be used, or the cluster cannot be reached; before the first cell.
    """
    from mtpp.api.cells.session import certified_cells

    with _run_of(request, observer) as run:
        cells = certified_cells(request.models, request.stage_counts, request.reading, run, observer)
    return CertificateTable(cells.rows, **outcome_of(cells, request.limits.bounds))


@contextmanager
def _run_of(request: CertifyRequest, observer: Observer) -> Iterator[CellRun]:
    """Open the store and the way to the cluster, where there are any, and close them in the end."""
    from mtpp.api.cells.limits import most_at_once
    from mtpp.api.cells.session import CellRun
    from mtpp.host.cores import available_cores
    from mtpp.solvers.certify.cells.store import Store

    limits = request.limits
    with ExitStack() as opened:
        store = None if request.store is None else opened.enter_context(Store(request.store))
        run = partial(CellRun, limits, store=store, deadline=request.deadline, overheads=request.overheads)
        if request.scheduler is not None:
            from mtpp.solvers.certify.cells.cluster import Cluster

            if request.jobs is not None:
                raise InputError(
                    "does not go with ‹scheduler›", parameter="jobs", remedy="the cluster's workers decide"
                )
            cluster = opened.enter_context(Cluster(request.scheduler))
            if not cluster.threads:
                observer.warn("the cluster has no worker yet: cells wait for one")
            yield run(cluster.run)
        else:
            from mtpp.solvers.certify.cells.processes import run_in_processes

            jobs = most_at_once(request.jobs or available_cores(), limits.memory_bytes)
            yield run(partial(run_in_processes, at_once=jobs, tell=observer.warn), jobs=jobs)


def certify(
    models: Any,
    k: int | Iterable[int],
    *,
    algorithm: str = "auto",
    bounds: str | Iterable[str] | None = None,
    target_ratio: float | Fraction = 1.0,
    proofs_only: bool = False,
    time_limit_s: float | None = 60.0,
    total_time_limit_s: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    store: str | Path | None = None,
    scheduler: str | None = None,
    memory_limit: int | str | None = None,
    proof_limit: int | str = "8MB",
    reading: Reading | None = None,
    observer: Observer | None = None,
) -> CertificateTable:
    """Partition models into stages and prove how good the partitions are: a row for each model and k.

    At each cell the bounds are tried from cheap to strong until the ratio will do or the time is up. Cells are worked
    at in processes of their own, several at once.

    Parameters
    ----------
    models
        One, or a list: models of :func:`mtpp.read` or anything that it reads, and folders of models.
    k
        Number of stages at most, or several of them.
    algorithm
        Of the partitions, as in :func:`mtpp.partition`.
    bounds
        Names of the bounds to try, ``"all"``, or None: those that pay.
    target_ratio
        A cell is done when a ratio ≤ this is proven.
    proofs_only
        Whether to go on where only the word of HiGHS reaches the ratio.
    time_limit_s
        Seconds for each cell, reading its model included; None: until nothing is left to try.
    total_time_limit_s
        Seconds from this call for all cells; those that had no turn by then have no row.
    seed
        Of all random choices.
    jobs
        Cells at once; all cores by default.
    store
        Path of an SQLite file that keeps each row as soon as there is one; what it has is not worked at again.
    scheduler
        Address of a Dask cluster to work on, such as ``tcp://host:8786``, in place of this machine.
    memory_limit
        Of all worker processes together, in bytes or as ``"8GiB"``, at least 512 MiB. A cell that reaches its share
        ends with what it has; this process goes on.
    proof_limit
        Size of the proof of a bound by branch and bound, in bytes or as ``"8MB"``; what takes more is of tier
        ``solver``.
    reading
        How files are read: machine, dimensions and so on; by default for the reference system.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    A table that iterates over its rows. No partition of a row's model into k stages is better than its ``lower`` bound,
    of tier ``exact``, ``enumerated`` or ``solver``; ``upper`` is the bottleneck of its partition, both in ticks. After
    Ctrl-C, or at the end of the total time, it holds the rows there are: see ``stopped``.

    Raises
    ------
    InputError
        If a model cannot be read, or a parameter is wrong; before the first cell.
    Interrupted
        If Ctrl-C came before there was any row.

    Examples
    --------
    >>> from mtpp.datasets import sample_path
    >>> table = certify(sample_path("resnet50"), [2, 4], jobs=1)
    >>> [(row.model, row.k, row.optimal) for row in table]
    [('resnet50', 2, True), ('resnet50', 4, True)]
    >>> table.stopped
    'finished'
    """
    from mtpp.api import parameters
    from mtpp.api.cells import parameters as of_cells
    from mtpp.api.cells.limits import CellLimits
    from mtpp.api.observer import listener
    from mtpp.api.options.kinds import Ratio, StageCounts
    from mtpp.ranges import MOST_SEED

    deadline = parameters.deadline_of(total_time_limit_s, "total_time_limit_s")
    request = CertifyRequest(
        models=of_cells.models_of(models, observer),
        stage_counts=StageCounts().read(k, "k"),
        reading=of_cells.reading_of(reading),
        limits=CellLimits(
            time_limit_s=parameters.deadline_of(time_limit_s).limit_s,
            target_ratio=Ratio().read(target_ratio, "target_ratio"),
            bounds=of_cells.bounds_of(bounds),
            algorithm=of_cells.algorithm_of(algorithm),
            seed=parameters.whole(seed, "seed", least=0, most=MOST_SEED),
            memory_bytes=of_cells.memory_of(memory_limit),
            proof_bytes=of_cells.proof_bytes_of(proof_limit),
            proofs_only=parameters.flag(proofs_only, "proofs_only"),
        ),
        deadline=deadline,
        jobs=parameters.whole_or_none(jobs, "jobs"),
        store=None if store is None else parameters.path_text(store, "store"),
        scheduler=parameters.text_or_none(scheduler, "scheduler"),
    )
    heard = listener(observer)
    table = certify_cells(request, heard).sealed()
    table.raise_if_empty(heard)
    return table
