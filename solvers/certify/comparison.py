"""Algorithms measured against each other: a cell for each graph, k and algorithm, and the means over graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import geometric_mean

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.inference.model_file import ModelFile
from mtpp.machine.device import Device
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.certify.cells.cell import Cell
from mtpp.solvers.compilation import search_clock
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.last_look.partition import look_at_partition
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.solve import search_in_time
from mtpp.solvers.variants import Variant


@dataclass(frozen=True)
class RunLimits:
    """Limits of every run of a comparison.

    Attributes
    ----------
    time_limit_s
        Seconds per run, counted from its own start.
    work_limit
        Evaluations per run at most, whatever the algorithm's name says.
    seed, jobs, memory_bytes
        As in :class:`~mtpp.solvers.limits.InstanceLimits`.
    """

    time_limit_s: float | None = None
    work_limit: int | None = None
    seed: int = 0
    jobs: int = 1
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Run:
    """One run: an algorithm on a graph that is cut into at most k stages.

    Attributes
    ----------
    source
        What tells the graph from the others of the comparison.
    time_unit, ticks_per_unit
        Unit of the graph's costs, and the ticks in it for this k.
    bottleneck
        In ticks, derived anew from the partition; None where there is none.
    simple_bound
        max(largest work of an op, Σ work / k) in ticks, not rounded.
    evaluations, stopped, found_by
        As in :class:`~mtpp.solvers.limits.SearchResult`; *stopped* may be ``infeasible`` too.
    seconds
        That the search took; kernels are loaded and the instance is built before.
    problem
        Why there is no partition.
    """

    source: str
    k: int
    algorithm: str
    time_unit: str
    ticks_per_unit: int
    simple_bound: Fraction
    bottleneck: int | None
    evaluations: int
    seconds: float
    stopped: StopReason
    found_by: str | None = None
    problem: str | None = None

    @property
    def ratio(self) -> float | None:
        """Bottleneck / simple bound, at least 1, rounded once; None without a partition."""
        return None if self.bottleneck is None else float(self.bottleneck / self.simple_bound)

    @property
    def counts(self) -> bool:
        """Whether the run came to its end with a partition."""
        return self.bottleneck is not None and self.stopped != StopReason.INTERRUPTED


@dataclass(frozen=True)
class RunCell(Cell[Run]):
    """One run to be made.

    Attributes
    ----------
    source
        As in :class:`Run`.
    variant, limits
        The algorithm, and what it may take.
    """

    source: str
    variant: Variant
    limits: RunLimits

    def work(
        self, report: Callable[[Run], None] = lambda state: None, interrupted: Callable[[], bool] = lambda: False
    ) -> Run:
        """Run the algorithm on the clock; see :func:`run_cell`."""
        return run_cell(self.instance, self.source, self.variant, self.limits, interrupted)


@dataclass(frozen=True)
class Mean:
    """An algorithm's results for one k.

    Attributes
    ----------
    models
        Graphs that it rests on: those on which every algorithm came to its end with a partition.
    ratio
        Geometric mean of bottleneck / simple bound over them; None if there are none.
    seconds
        Sum over them.
    """

    algorithm: str
    k: int
    models: int
    ratio: float | None
    seconds: float


@dataclass(frozen=True)
class ComparedRuns:
    """All runs of a comparison, and what was asked for.

    Attributes
    ----------
    models
        All that were to be compared on, whether their turn came or not.
    cells
        The runs that were begun, in order.
    stage_counts, algorithms
        Numbers of stages and names of algorithms, as columns and rows of the table of means.
    system
        The machine of all models.
    limits
        Of every run.
    interrupted
        Whether the user ended it before the last run.
    """

    models: Sequence[ModelFile]
    cells: Sequence[Run]
    stage_counts: Sequence[int]
    algorithms: Sequence[str]
    system: Device
    limits: RunLimits
    interrupted: bool = False

    @property
    def runs(self) -> int:
        """Number of runs that were asked for."""
        return len(self.models) * len(self.stage_counts) * len(self.algorithms)

    def means(self) -> list[Mean]:
        """Return the means of each algorithm for each k."""
        return means(self.cells, self.algorithms, self.stage_counts)


def unrounded_simple_bound(instance: Instance) -> Fraction:
    """Return the simple lower bound as the paper's tables use it: max(largest work, Σ work / k), a real number.

    Notes
    -----
    Archer et al. (2024), Lemma 3.3. Rounded up to a whole tick it is still a bound (``bounds/simple.py``); ratios to
    the rounded one would depend on the length of a tick.
    """
    return max(Fraction(int(instance.work.max())), Fraction(int(instance.work.sum()), instance.k))


def run_cell(
    instance: Instance,
    source: str,
    variant: Variant,
    limits: RunLimits,
    interrupted: Callable[[], bool] = lambda: False,
) -> Run:
    """Run an algorithm on an instance whose simple bound is above 0, on the clock.

    Parameters
    ----------
    interrupted
        Tells whether the user wants the run to end now.
    """
    solver = variant.entry.load()
    lower = simple_bound(instance.envelope)
    search_limits = replace(_search_limits(instance, variant, limits), lower_bound=lower.value, interrupted=interrupted)
    found, problem, stopped = None, None, StopReason.INFEASIBLE
    start = search_clock()
    try:
        refuse_infeasible(instance)
        found = search_in_time(solver, instance, search_limits)
        stopped = found.stopped
    except Infeasible as error:
        problem = error.problem
        if interrupted():  # there was more to try
            problem, stopped = "interrupted before a partition was found", StopReason.INTERRUPTED
    seconds = search_clock() - start
    reached = None
    if found is not None:
        bounds = [(lower.method, lower.value)]
        placed = instance if found.devices is None else instance.on(found.devices)
        look_at_partition(placed, found.partition, found.bottleneck, found.found_by, bounds=bounds)
        reached = found.bottleneck
    return Run(
        source=source,
        k=instance.most_used,
        algorithm=variant.name,
        time_unit=instance.time_unit,
        ticks_per_unit=instance.ticks_per_unit,
        simple_bound=unrounded_simple_bound(instance.envelope),
        bottleneck=reached,
        evaluations=found.evaluations if found else 0,
        seconds=seconds,
        stopped=stopped,
        found_by=found.found_by if found else None,
        problem=problem,
    )


def _search_limits(instance: Instance, variant: Variant, limits: RunLimits) -> SearchLimits:
    evaluations = variant.evaluations
    if evaluations is None and limits.work_limit is None:
        timed = limits.time_limit_s is not None
        evaluations = UNLIMITED if timed else variant.entry.budget(instance)
    return SearchLimits(
        min(evaluations or UNLIMITED, limits.work_limit or UNLIMITED),
        deadline=Deadline(limits.time_limit_s, clock=search_clock),
        seed=limits.seed,
        jobs=limits.jobs,
        memory_bytes=limits.memory_bytes,
        **variant.search_options,
    )


def complete_sources(cells: Iterable[Run], algorithms: Collection[str], k: int) -> list[str]:
    """Return the graphs on which all *algorithms* came to their end with a partition into k stages."""
    finished: dict[str, int] = {}
    for cell in cells:
        if cell.k == k:
            finished[cell.source] = finished.get(cell.source, 0) + cell.counts
    return [source for source, count in finished.items() if count == len(algorithms)]


def means(cells: Sequence[Run], algorithms: Sequence[str], stage_counts: Sequence[int]) -> list[Mean]:
    """Return the means of each algorithm for each k, algorithm by algorithm.

    All means of one k rest on the same graphs, so that they compare like with like.
    """
    complete = {k: set(complete_sources(cells, algorithms, k)) for k in stage_counts}
    rows = []
    for name in algorithms:
        for k in stage_counts:
            own = [cell for cell in cells if cell.algorithm == name and cell.k == k and cell.source in complete[k]]
            ratios = [cell.ratio for cell in own if cell.ratio is not None]
            ratio = geometric_mean(ratios) if ratios else None
            rows.append(Mean(name, k, len(ratios), ratio, sum(cell.seconds for cell in own)))
    return rows
