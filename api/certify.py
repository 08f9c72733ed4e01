"""Certificates of many models: a partition of each into each number of stages, and a proof of how good it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from mtpp.api.cells.certificate_table import CertificateTable, outcome_of
from mtpp.api.cells.overheads import Overheads
from mtpp.api.options.cells import Certifying
from mtpp.api.parameters import flag
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

    from mtpp.api.cells.session import Runner
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading


def certify_cells(
    models: Sequence[str | Model],
    asked: Certifying,
    reading: Reading,
    observer: Observer,
    deadline: Deadline,
    overheads: Overheads,
    *,
    proofs_only: bool,
) -> CertificateTable:
    """Work at cells in worker processes, or on a cluster, until the deadline.

    Ctrl-C ends the work with the rows there are, as does an error half-way, which the table holds.
    """
    from mtpp.api.cells.limits import cell_limits
    from mtpp.api.cells.session import CellRun, certified_cells
    from mtpp.api.inputs.model_files import counts_of
    from mtpp.solvers.certify.cells.store import Store
    from mtpp.solvers.registry import partitioner

    algorithm = partitioner(asked.algorithm).name
    limits = cell_limits(asked, target_ratio=asked.target_ratio, algorithm=algorithm, proofs_only=proofs_only)
    with ExitStack() as opened:
        store = None if asked.store is None else opened.enter_context(Store(asked.store))
        run, jobs = _runner_of(asked, observer, opened)
        plan = CellRun(limits, asked, run, jobs, store, deadline, overheads=overheads)
        cells = certified_cells(models, counts_of(asked.k, models, reading), reading, plan, observer)
    return CertificateTable(cells.rows, **outcome_of(cells, limits.bounds))


def _runner_of(asked: Certifying, observer: Observer, opened: ExitStack) -> tuple[Runner, int | None]:
    """Return what works at the cells, and how many of them at once; a way to a cluster is closed in the end."""
    from mtpp.api.cells.limits import most_at_once
    from mtpp.host.capacity import available_cores

    if asked.scheduler is not None:
        from mtpp.solvers.certify.cells.cluster import Cluster

        if asked.jobs is not None:
            raise InputError("does not go with ‹scheduler›", parameter="jobs", remedy="the cluster's workers decide")
        cluster = opened.enter_context(Cluster(asked.scheduler))
        if not cluster.threads:
            observer.warn("the cluster has no worker yet: cells wait for one")
        return cluster.run, None
    from mtpp.solvers.certify.cells.processes import run_in_processes

    jobs = most_at_once(asked.jobs or available_cores(), asked.memory_limit)
    return partial(run_in_processes, at_once=jobs, tell=observer.warn), jobs


def certify(
    models: Any,
    k: int | Iterable[int] | None = None,
    *,
    algorithm: str = "auto",
    bounds: str | Iterable[str] | None = None,
    objective: str = "bottleneck",
    max_latency: str | float | Fraction | None = None,
    max_bottleneck: str | float | Fraction | None = None,
    replicas: bool = False,
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

    Keywords that are not listed are fields of :class:`mtpp.api.options.cells.Certifying`.

    Parameters
    ----------
    models
        One, or a list: models of :func:`mtpp.read` or anything that it reads, and folders of models.
    proofs_only
        Whether to go on where only the word of HiGHS reaches the ratio.
    memory_limit
        Of all worker processes together, in bytes or as ``"8GiB"``, at least 512 MiB. A cell that reaches its share
        ends with what it has; this process goes on.
    reading
        How files are read: machine, dimensions and so on; by default for the reference system.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    A table that iterates over its rows. No partition of a row's model into k stages is better than its ``lower`` bound,
    of tier ``exact``, ``enumerated`` or ``solver``; ``upper`` is the bottleneck of its partition, or the latency where
    that is the objective, both in ticks. After Ctrl-C, or at the end of the total time, it holds the rows there are:
    see ``stopped``.

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
    from mtpp.api.inputs.reading import models_of, reading_of
    from mtpp.api.observer import listener

    asked = Certifying.among(locals())
    deadline, heard, proofs = Deadline(asked.total_time_limit_s), listener(observer), flag(proofs_only, "proofs_only")
    given, read = models_of(models, observer), reading_of(reading)
    table = certify_cells(given, asked, read, heard, deadline, Overheads(), proofs_only=proofs).sealed()
    table.raise_if_empty(heard)
    return table
