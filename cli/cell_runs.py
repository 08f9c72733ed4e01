"""From the options of ``mtpp certify`` to how its cells are worked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.certifying import CellRun
    from mtpp.cli.terminal.console import Console


@contextmanager
def cell_run(options: dict[str, Any], console: Console) -> Iterator[CellRun]:
    """Open the store and the way to the cluster, where there are any, and close them in the end.

    Raises
    ------
    InputError
        If an option is wrong, the store cannot be used, or the cluster cannot be reached.
    """
    from mtpp.cli.certifying import CellRun
    from mtpp.cli.options.cells import cell_limits, most_at_once
    from mtpp.cli.planning import available_cores
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.solvers.certify.cells.store import Store

    limits = cell_limits(options)
    deadline = deadline_from_start(options["total_time_limit"])
    with ExitStack() as opened:
        store = None if options["store"] is None else opened.enter_context(Store(options["store"]))
        if options["scheduler"] is not None:
            from mtpp.solvers.certify.cells.cluster import Cluster

            if options["jobs"] is not None:
                raise InputError("does not go with --scheduler", source="--jobs", remedy="the cluster's workers decide")
            cluster = opened.enter_context(Cluster(options["scheduler"]))
            if not cluster.threads:
                console.warn("the cluster has no worker yet: cells wait for one")
            yield CellRun(limits, cluster.run, None, store, deadline)
        else:
            from mtpp.solvers.certify.cells.processes import run_in_processes

            jobs = most_at_once(options["jobs"] or available_cores())
            yield CellRun(limits, partial(run_in_processes, at_once=jobs, tell=console.warn), jobs, store, deadline)
