"""One cell of a table of certificates: a partition, then bounds from cheap to strong until the ratio will do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from mtpp.certificate import Certificate, LowerBound
from mtpp.certificate_table import BoundFigure
from mtpp.deadline import Deadline
from mtpp.instance import Instance
from mtpp.objective import bottleneck
from mtpp.partition import Partition
from mtpp.progress import Observer, Silent
from mtpp.solvers.bounding import BoundLimits
from mtpp.solvers.bounds.registry import BOUNDS, bound_entry
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.reduction import Reduction, merge_record, reduce_instance
from mtpp.solvers.registry import partitioner
from mtpp.solvers.search import UNLIMITED, SearchLimits

_PARTITION_SHARE = 0.25
"""Of the time of a cell, at most, for the first partition."""


@dataclass(frozen=True)
class CertifyLimits:
    """How long a cell may take, and what is enough.

    Attributes
    ----------
    time_limit_s
        Seconds for the cell, from its start.
    target_ratio
        Work ends when this ratio is proven.
    bounds
        Names of the bounds to try, in the order of the registry.
    algorithm
        Of the partition.
    each
        Work at every bound for itself, for tables that compare bounds: none is told what others have proven or left
        out because the ratio will do, and each gets an equal share of the time.
    seed, jobs, memory_bytes, observer, interrupted
        As in :class:`~mtpp.solvers.search.SearchLimits`.
    """

    time_limit_s: float | None = 60.0
    target_ratio: Fraction = Fraction(1)
    bounds: Sequence[str] = tuple(BOUNDS)
    algorithm: str = "auto"
    each: bool = False
    seed: int = 0
    jobs: int = 1
    memory_bytes: int | None = None
    observer: Observer = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Certification:
    """What is known of a cell, at its end or on the way.

    Attributes
    ----------
    partition, upper, upper_algorithm
        The best partition, its bottleneck in ticks, and what found it.
    lower
        The best bound.
    bounds
        Every bound tried so far.
    partition_seconds, total_seconds
        As in :class:`~mtpp.certificate_table.CertificateRow`.
    stopped
        As there; empty while the work goes on.
    """

    partition: Partition
    upper: int
    upper_algorithm: str
    lower: LowerBound
    bounds: dict[str, BoundFigure]
    partition_seconds: float
    total_seconds: float
    stopped: str = ""


def certify(
    instance: Instance, limits: CertifyLimits, report: Callable[[Certification], None] = lambda state: None
) -> Certification:
    """Partition an instance and raise a lower bound until the ratio will do, or the time is up.

    Parameters
    ----------
    report
        Is told what is known after every step: who has to end this process loses nothing.

    Raises
    ------
    Infeasible
        Proven, or because no partition was found.
    InconsistentBound
        If a bound is above a bottleneck: a bug.
    """
    start = time.perf_counter()
    deadline = Deadline.from_now(limits.time_limit_s)
    refuse_infeasible(instance)
    lower = simple_bound(instance)
    figures = {"simple": BoundFigure(lower.value, time.perf_counter() - start, True)}
    began = time.perf_counter()
    entry = partitioner(limits.algorithm)
    search = SearchLimits(
        entry.budget(instance) if limits.time_limit_s is None else UNLIMITED,
        deadline.share(_PARTITION_SHARE),
        lower_bound=lower.value,
        seed=limits.seed,
        jobs=limits.jobs,
        memory_bytes=limits.memory_bytes,
        observer=limits.observer,
        interrupted=limits.interrupted,
    )
    found = entry.load()(instance, search)
    partition_seconds = time.perf_counter() - began
    if found.lower is not None and (not limits.each or found.lower.method in limits.bounds):
        figures["downset"] = BoundFigure(found.lower.value, partition_seconds, found.stopped == "optimal")
        lower = max(lower, found.lower, key=_value)
    state = Certification(found.partition, found.bottleneck, found.found_by, lower, figures, partition_seconds, 0.0)

    def told(**changes: object) -> Certification:
        new = replace(state, total_seconds=time.perf_counter() - start, **changes)  # type: ignore[arg-type]
        _ = Certificate(new.upper, new.lower)  # raises if they contradict each other
        report(new)
        return new

    state = told()
    rounds = reduce_instance(instance)
    inner = rounds[-1].contraction.instance if rounds else instance
    for number, name in enumerate(limits.bounds):
        stopped = _stopped(state, limits, deadline)
        if stopped:
            return told(stopped=stopped)
        if name in state.bounds:
            continue
        limits.observer.phase(name)
        began = time.perf_counter()
        result = bound_entry(name).load()(
            inner,
            BoundLimits(
                state.upper,
                _carried(state.partition, rounds),
                0 if limits.each else state.lower.value,
                None if limits.each else _enough(state.upper, limits.target_ratio),
                deadline.share(1 / (len(limits.bounds) - number)) if limits.each else deadline,
                limits.seed,
                limits.memory_bytes,
                limits.observer,
                limits.interrupted,
            ),
        )
        seconds = time.perf_counter() - began
        lower = state.lower
        proven = None if result.lower is None else _with_merges(result.lower, rounds, instance)
        if proven is not None and proven.value > lower.value:
            lower = proven
            limits.observer.bound(lower.value)
        partition, upper, algorithm = state.partition, state.upper, state.upper_algorithm
        if result.partition is not None:
            lifted = _lifted(result.partition, rounds)
            cost = bottleneck(instance, lifted)
            if cost < upper:
                partition, upper, algorithm = lifted, cost, name
        figure = BoundFigure(None if proven is None else proven.value, seconds, result.solved)
        state = told(
            partition=partition,
            upper=upper,
            upper_algorithm=algorithm,
            lower=lower,
            bounds=state.bounds | {name: figure},
        )
    return told(stopped=_stopped(state, limits, deadline) or "finished")


def _value(bound: LowerBound) -> int:
    return bound.value


def _enough(upper: int, target_ratio: Fraction) -> int:
    """Return the least bound that proves the ratio."""
    return -(-upper * target_ratio.denominator // target_ratio.numerator)


def _stopped(state: Certification, limits: CertifyLimits, deadline: Deadline) -> str:
    if not limits.each and state.lower.value >= _enough(state.upper, limits.target_ratio):
        return "target"
    if limits.interrupted():
        return "interrupted"
    return "time-limit" if deadline.expired() else ""


def _carried(partition: Partition, rounds: Sequence[Reduction]) -> Partition:
    for merges in rounds:
        partition = merges.carry(partition)
    return partition


def _lifted(partition: Partition, rounds: Sequence[Reduction]) -> Partition:
    for merges in reversed(rounds):
        partition = merges.contraction.lift(partition)
    return partition


def _with_merges(lower: LowerBound, rounds: Sequence[Reduction], instance: Instance) -> LowerBound:
    """Return a bound on the reduced instance as one on the instance, whose proof says what was merged."""
    if lower.method == "simple" or "merges" in lower.proof:
        return lower
    merges = merge_record(rounds, instance.first_members.tolist())
    return replace(lower, proof={"merges": merges, **lower.proof})
