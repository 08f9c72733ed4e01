"""Algorithms measured against each other: a cell for each graph, k and algorithm, and the means over graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import geometric_mean

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.model_file import ModelFile
from mtpp.inference.objective import StageCosts
from mtpp.machine.device import Device
from mtpp.names import ENGINE_RULES
from mtpp.solvers.aim import GOAL_ALGORITHMS, Aim
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.certify.cells.cell import Cell
from mtpp.solvers.compilation import search_clock
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.variants import Variant
from mtpp.units import InTicks


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
class Run(InTicks):
    """One run: an algorithm on a graph that is cut into at most k stages.

    Attributes
    ----------
    source
        What tells the graph from the others of the comparison.
    time_unit, ticks_per_unit
        Unit of the graph's costs, and the ticks in it for this k.
    bottleneck, latency
        In ticks, derived anew from the partition; None where there is none.
    simple_bound
        max(largest work of an op, Σ work / k) in ticks, not rounded; of latencies and of stages on several devices the
        simple bound on these.
    evaluations, stopped, found_by
        As in :class:`~mtpp.solvers.limits.SearchResult`; *stopped* may be ``infeasible`` too.
    seconds
        That the search took; kernels are loaded and the instance is built before.
    problem
        Why there is no partition, or that it does not keep to the goal's limit.
    goal, replicas
        Objective with the limit on the other figure, and whether stages may stand on several devices.
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
    goal: Goal = field(default=Goal())
    replicas: bool = False
    latency: int | None = None

    @property
    def reached(self) -> int | None:
        """The objective in ticks; None without a partition."""
        return self.latency if self.goal.of_latency else self.bottleneck

    @property
    def breaks_limit(self) -> bool:
        """Whether there is a partition, and it does not keep to the goal's limit."""
        return self.bottleneck is not None and self.problem is not None

    @property
    def ratio(self) -> float | None:
        """Objective / simple bound, at least 1, rounded once; None without a partition that keeps to the limit."""
        if self.reached is None or self.breaks_limit or not self.simple_bound:
            return None
        return float(self.reached / self.simple_bound)

    @property
    def counts(self) -> bool:
        """Whether the run came to its end with a partition."""
        return self.bottleneck is not None and self.stopped != StopReason.INTERRUPTED

    @property
    def unfit(self) -> bool:
        """Whether it is of a rule of engines, whose one answer exceeds the memory of a device."""
        return self.algorithm in ENGINE_RULES and self.stopped == StopReason.INFEASIBLE


@dataclass(frozen=True)
class RunCell(Cell[Run]):
    """One run to be made.

    Attributes
    ----------
    source
        As in :class:`Run`.
    variant, limits
        The algorithm, and what it may take.
    goal
        That partitions are held to.
    """

    source: str
    variant: Variant
    limits: RunLimits
    goal: Goal = field(default=Goal())

    def work(
        self, report: Callable[[Run], None] = lambda state: None, interrupted: Callable[[], bool] = lambda: False
    ) -> Run:
        """Run the algorithm on the clock; see :func:`run_cell`."""
        return run_cell(Aim(self.instance, self.goal), self.source, self.variant, self.limits, interrupted)


@dataclass(frozen=True)
class Mean:
    """An algorithm's results for one k.

    Attributes
    ----------
    models
        Graphs that it rests on: those on which every algorithm came to its end with a partition, but rules of engines
        that do not fit them; of such a rule those that it fits.
    ratio
        Geometric mean of objective / simple bound over them; None if there are none, or some break the goal's limit.
    seconds
        Sum over them.
    broken
        Number of those whose partition does not keep to the goal's limit.
    """

    algorithm: str
    k: int
    models: int
    ratio: float | None
    seconds: float
    broken: int = 0


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
    def goal(self) -> Goal:
        """Goal of the first run; the limit may come to other ticks in others."""
        return self.cells[0].goal if self.cells else Goal()

    @property
    def replicas(self) -> bool:
        """Whether stages may stand on several devices."""
        return any(run.replicas for run in self.cells)

    @property
    def plain(self) -> bool:
        """Whether the goal is the least bottleneck with a device for each stage, whatever the latency."""
        return self.goal.plain and not self.replicas

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
    aim: Aim,
    source: str,
    variant: Variant,
    limits: RunLimits,
    interrupted: Callable[[], bool] = lambda: False,
) -> Run:
    """Run an algorithm on an instance whose simple bound is above 0, on the clock.

    An algorithm that knows nothing of the goal searches for the least bottleneck of stages on a device each.

    Parameters
    ----------
    interrupted
        Tells whether the user wants the run to end now.
    """
    instance, solver = aim.instance, variant.entry.load()
    own = aim if aim.plain or variant.entry.name in GOAL_ALGORITHMS else Aim(replace(instance, replicas=False))
    lower = simple_bound(instance.envelope) if own.plain else own.first_bound()
    search_limits = replace(
        _search_limits(own.instance, variant, limits), lower_bound=lower.value, interrupted=interrupted
    )
    found, costs, problem, stopped = None, None, None, StopReason.INFEASIBLE
    start = search_clock()
    try:
        refuse_infeasible(instance)
        found = own.search(solver, search_limits)
        stopped = found.stopped
    except Infeasible as error:
        problem = error.problem
        if interrupted():  # there was more to try
            problem, stopped = "interrupted before a partition was found", StopReason.INTERRUPTED
    seconds = search_clock() - start
    if found is not None:
        own.look(found.partition, found.bottleneck, found.found_by, [(lower.method, lower.value)])
        costs = own.costs(found.partition)
        if not aim.goal.keeps(costs):
            problem = _broken(aim, costs)
    return Run(
        source=source,
        k=instance.most_used,
        algorithm=variant.name,
        time_unit=instance.time_unit,
        ticks_per_unit=instance.ticks_per_unit,
        simple_bound=Fraction(aim.first_bound().value)
        if aim.searched_alone
        else unrounded_simple_bound(instance.envelope),
        bottleneck=costs.bottleneck if costs else None,
        evaluations=found.evaluations if found else 0,
        seconds=seconds,
        stopped=stopped,
        found_by=found.found_by if found else None,
        problem=problem,
        goal=aim.goal,
        replicas=instance.replicas,
        latency=costs.latency if costs else None,
    )


def _broken(aim: Aim, costs: StageCosts) -> str:
    """Say that a partition with some costs breaks the limit of a goal."""
    other, instance = aim.goal.limited.removeprefix("max_"), aim.instance
    found = costs.bottleneck if aim.goal.of_latency else costs.latency
    said = f"a {other} of {instance.describe(found)} breaks the limit"
    return f"{said} of {instance.describe(aim.goal.limit or 0)}"


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
    """Return the graphs on which all *algorithms* came to their end with a partition into k stages.

    A rule of engines that does not fit a graph does not count, as long as another algorithm has a partition.
    """
    finished: dict[str, int] = {}
    partitioned = set()
    for cell in cells:
        if cell.k == k:
            finished[cell.source] = finished.get(cell.source, 0) + (cell.counts or cell.unfit)
            if cell.counts:
                partitioned.add(cell.source)
    return [source for source, count in finished.items() if count == len(algorithms) and source in partitioned]


def means(cells: Sequence[Run], algorithms: Sequence[str], stage_counts: Sequence[int]) -> list[Mean]:
    """Return the means of each algorithm for each k, algorithm by algorithm.

    All means of one k rest on the same graphs, so that they compare like with like, but those of rules of engines that
    do not fit all of them.
    """
    complete = {k: set(complete_sources(cells, algorithms, k)) for k in stage_counts}
    rows = []
    for name in algorithms:
        for k in stage_counts:
            own = [cell for cell in cells if cell.algorithm == name and cell.k == k and cell.source in complete[k]]
            own = [cell for cell in own if not cell.unfit]
            ratios = [cell.ratio for cell in own if cell.ratio is not None]
            broken = sum(cell.breaks_limit for cell in own)
            ratio = geometric_mean(ratios) if ratios and not broken else None
            rows.append(Mean(name, k, len(ratios), ratio, sum(cell.seconds for cell in own), broken))
    return rows
