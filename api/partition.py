"""Partitions of a model into pipeline stages, found by search, with a lower bound on every partition."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

from mtpp.api.observer import Observer, listener
from mtpp.api.options.search import Partitions
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.api.partitioning.plan_range import PlanRange


@overload
def partition(
    model: Any,
    k: int | None = None,
    *,
    max_bottleneck: str | float | Fraction | None = None,
    objective: str = "bottleneck",
    max_latency: str | float | Fraction | None = None,
    frontier: bool = False,
    replicas: bool = False,
    algorithm: str = "auto",
    together: Sequence[str | Sequence[str]] = (),
    together_blocks: bool = False,
    layers_only: bool = False,
    ignore_engine: bool = False,
    time_limit_s: float | None = None,
    work_limit: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    memory_limit: int | str | None = None,
    population: int | None = None,
    generations: int | None = None,
    observer: Observer | None = None,
) -> PartitionPlan: ...


@overload
def partition(
    model: Any,
    k: Iterable[int],
    *,
    max_bottleneck: str | float | Fraction | None = None,
    objective: str = "bottleneck",
    max_latency: str | float | Fraction | None = None,
    frontier: bool = False,
    replicas: bool = False,
    algorithm: str = "auto",
    together: Sequence[str | Sequence[str]] = (),
    together_blocks: bool = False,
    layers_only: bool = False,
    ignore_engine: bool = False,
    time_limit_s: float | None = None,
    work_limit: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    memory_limit: int | str | None = None,
    population: int | None = None,
    generations: int | None = None,
    observer: Observer | None = None,
) -> PlanRange: ...


def partition(
    model: Any,
    k: int | Iterable[int] | None = None,
    *,
    max_bottleneck: str | float | Fraction | None = None,
    objective: str = "bottleneck",
    max_latency: str | float | Fraction | None = None,
    frontier: bool = False,
    replicas: bool = False,
    algorithm: str = "auto",
    together: Sequence[str | Sequence[str]] = (),
    together_blocks: bool = False,
    layers_only: bool = False,
    ignore_engine: bool = False,
    time_limit_s: float | None = None,
    work_limit: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    memory_limit: int | str | None = None,
    population: int | None = None,
    generations: int | None = None,
    observer: Observer | None = None,
) -> PartitionPlan | PlanRange:
    """Cut a model into k pipeline stages and prove how good the cut is; into each number of stages of a range.

    Keywords that are not listed are fields of :class:`mtpp.api.options.search.Partitioning`.

    Parameters
    ----------
    model
        A model of :func:`mtpp.read`, or anything that it reads.
    time_limit_s
        Seconds from this call, reading included; the best partition so far is returned. Without it the result depends
        on the model, *k*, *seed* and the other limits alone, never on the machine or on *jobs*.
    k
        Number of stages at most. A range or a list, such as ``range(1, 17)``, has a plan for each number.
    memory_limit
        What an exhaustive search may keep, in bytes or as ``"4GiB"``; half of what is free by default.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    The best plan found. Its ``lower_bound`` holds for every partition of this model into *k* stages, and its ``ratio``
    is bottleneck / lower bound, or latency / lower bound where that is the objective; where that is proven to be 1,
    ``optimal`` is True. After Ctrl-C ``stopped`` is "interrupted".

    For several numbers of stages a :class:`~mtpp.api.partitioning.plan_range.PlanRange`: its rows say throughput,
    latency and gain of each, and its ``knee`` where further devices bring little.

    Raises
    ------
    InputError
        If the model cannot be read, or a parameter is wrong.
    Infeasible
        If no partition keeps to the limits on memory, or none was found.
    LimitReached
        If the time limit passed, or the memory did not suffice, while the model was read.
    Interrupted
        If Ctrl-C came before there was any partition.

    Examples
    --------
    >>> import mtpp
    >>> plan = mtpp.partition(mtpp.datasets.sample_path("resnet50"), 4)
    >>> plan.k, plan.optimal, plan.ratio
    (4, True, 1.0)
    >>> round(plan.bottleneck_s * 1e6, 1)
    559.4
    >>> several = mtpp.partition(mtpp.datasets.sample_path("resnet50"), range(1, 5))
    >>> [(row.k, row.optimal) for row in several.rows], several.knee
    ([(1, True), (2, True), (3, True), (4, True)], None)
    """
    from mtpp.api.inputs.model import for_stages
    from mtpp.api.inputs.reading import as_model
    from mtpp.api.inputs.reading_in_time import reading_given
    from mtpp.api.partitioning.range_search import find_range
    from mtpp.api.partitioning.single import find_partition, prepare

    begin = time.monotonic()
    asked, several = Partitions.among(locals()), isinstance(k, Iterable)
    deadline, heard = Deadline(asked.time_limit_s), listener(observer)
    with reading_given(model, "model", deadline):
        read = as_model(model, observer)
        if asked.lacks_stages(on_machine=read.machine is not None):
            either = "give ‹k›" if asked.counts_latency or asked.of_capacity else "give either ‹k› or ‹max_bottleneck›"
            raise InputError(either, parameter="k")
        count = next(iter(asked.counts), None)
        prepared = None if several else prepare(for_stages(read, count), asked.single(count))
    if prepared is None:
        return find_range(read, asked, deadline, heard)
    return find_partition(prepared, deadline, heard, spent_s=time.monotonic() - begin)
