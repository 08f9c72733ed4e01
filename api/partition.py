"""Partitions of a model into pipeline stages, found by search, with a lower bound on every partition."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.api.inputs.counted_weights import as_counted
from mtpp.api.observer import Observer, Search, compilation_told
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.names import ALGORITHMS

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.host.interruption import Interruption
    from mtpp.inference.contraction import Contraction
    from mtpp.inference.instance import Instance
    from mtpp.inference.plan import Plan
    from mtpp.solvers.limits import SearchLimits, SearchResult
    from mtpp.solvers.registry import PartitionerEntry
    from mtpp.units import Exact


@dataclass(frozen=True)
class PartitionRequest:
    """A model, the number of stages or the bottleneck to keep to, and how to search.

    Attributes
    ----------
    k, max_bottleneck
        One of them: the number of stages at most, or what none may cost, such as ``"5ms"`` (a plain number for an
        abstract graph, as text or as a fraction), with as few stages as are found.
    algorithm
        Name in :data:`mtpp.solvers.registry.PARTITIONERS`, or another of its names.
    together
        Groups of op names that must share a stage.
    deadline
        End of the search.
    work_limit
        Candidates to evaluate at most; None: what the algorithm takes by default, or all that time allows.
    memory_bytes
        Bytes that an exhaustive search may keep.
    population, generations
        Of evolutionary searches.
    """

    model: Model
    k: int | None
    max_bottleneck: str | Fraction | None = None
    algorithm: str = "auto"
    together: tuple[tuple[str, ...], ...] = ()
    deadline: Deadline = field(default_factory=Deadline)
    work_limit: int | None = None
    seed: int = 0
    jobs: int = 1
    memory_bytes: int | None = None
    population: int | None = None
    generations: int | None = None

    def with_algorithm(self, name: str) -> PartitionRequest:
        """Return the request for an algorithm that may be named with a number of evaluations, as in tables of results.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        from mtpp.solvers.variants import parse_variant

        if name in ALGORITHMS:
            return replace(self, algorithm=name)
        variant = parse_variant(name, "algorithm")
        shape = variant.search_options
        return replace(
            self,
            algorithm=variant.entry.name,
            work_limit=min(size for size in (variant.evaluations, self.work_limit) if size is not None),
            population=shape.get("population") if self.population is None else self.population,
            generations=shape.get("generations") if self.generations is None else self.generations,
        )


class Prepared(NamedTuple):
    """An algorithm and the instance of a model.

    Attributes
    ----------
    contraction
        Of the instance by the groups of ops that must share a stage; None if there are none.
    """

    entry: PartitionerEntry
    instance: Instance
    contraction: Contraction | None

    @property
    def contracted(self) -> Instance:
        """The instance with the groups merged."""
        return self.contraction.instance if self.contraction else self.instance

    def of(self, instance: Instance) -> Prepared:
        """Return the same for *instance*, which is of the same model for another number of stages."""
        contraction = None if self.contraction is None else self.contraction.of(instance)
        return self._replace(instance=instance, contraction=contraction)


def prepare(request: PartitionRequest) -> Prepared:
    """Make the instance to search, and refuse what is wrong with the request before the wait.

    Raises
    ------
    InputError
        If the algorithm or an op does not exist, or a parameter does not go with the algorithm or the graph.
    Infeasible
        If an op or the total is plainly above the stage memory.
    """
    from mtpp.solvers import registry
    from mtpp.solvers.feasibility import refuse_infeasible
    from mtpp.solvers.memory.memory_arrays import memory_arrays
    from mtpp.solvers.solve import contract_groups

    model = request.model
    entry = registry.partitioner(request.algorithm)
    if not entry.evolves and (request.population or request.generations):
        raise InputError(
            f"{entry.name} has no population",
            parameter="population" if request.population else "generations",
            remedy="it goes with " + ", ".join(one.name for one in registry.PARTITIONERS.values() if one.evolves),
        )
    instance = model.instance(request.k or 1)
    prepared = Prepared(entry, instance, contract_groups(instance, request.together))
    memory_arrays(prepared.contracted)
    if request.k is not None:
        try:
            refuse_infeasible(prepared.contracted)
        except Infeasible as error:
            raise as_counted(error, model.graph) from None
    else:
        parse_bottleneck("" if request.max_bottleneck is None else request.max_bottleneck, model.graph.time_unit)
        model.instance(model.graph.op_count)
    return prepared


def search(request: PartitionRequest, observer: Observer, prepared: Prepared | None = None) -> Plan:
    """Search as requested; Ctrl-C ends the search with the best partition so far.

    Parameters
    ----------
    prepared
        What :func:`prepare` made of the request, if it is at hand.

    Raises
    ------
    InputError
        As :func:`prepare`.
    Infeasible
        If there is no partition, or none was found.
    Interrupted
        If Ctrl-C came before there was any.
    """
    from mtpp.host.interruption import Interruption
    from mtpp.solvers.solve import solve

    prepared = prepared or prepare(request)
    start: SearchResult | None = None
    with (
        compilation_told(observer),
        Interruption() as interruption,
        observer.search(prepared.instance) as listener,
    ):
        try:
            if request.max_bottleneck is not None:
                prepared, start = _fewest(request, prepared, listener, interruption)
                listener.costs = prepared.instance
            limits = _limits(request, prepared.instance, listener, interruption)
            return solve(
                prepared.instance,
                request.model.graph,
                limits,
                algorithm=request.algorithm,
                together=request.together,
                contraction=prepared.contraction,
                start=start,
            )
        except Infeasible as error:
            if interruption.requested:  # there was more to try
                raise Interrupted from None
            raise as_counted(error, request.model.graph) from None


def find_partition(
    request: PartitionRequest, observer: Observer, prepared: Prepared | None = None, *, spent_s: float = 0.0
) -> PartitionPlan:
    """Do the same, and return a plan that shows and saves itself; *spent_s* seconds went before."""
    from mtpp.api.partition_plan import PartitionPlan

    begin = time.monotonic() - spent_s
    found = search(request, observer, prepared)
    return PartitionPlan.of(found, request.model, elapsed_s=time.monotonic() - begin)


def _limits(
    request: PartitionRequest, instance: Instance, listener: Search, interruption: Interruption
) -> SearchLimits:
    from mtpp.solvers.limits import UNLIMITED, SearchLimits
    from mtpp.solvers.registry import partitioner

    evaluations = request.work_limit
    if evaluations is None:
        timed = request.deadline.limit_s is not None
        evaluations = UNLIMITED if timed else partitioner(request.algorithm).budget(instance)
    return SearchLimits(
        evaluations,
        deadline=request.deadline,
        seed=request.seed,
        jobs=request.jobs,
        memory_bytes=request.memory_bytes,
        observer=listener,
        population=request.population,
        generations=request.generations,
        interrupted=lambda: interruption.requested,
    )


def _fewest(
    request: PartitionRequest, prepared: Prepared, listener: Search, interruption: Interruption
) -> tuple[Prepared, SearchResult]:
    """Return the instance with the fewest stages found that keep to the bottleneck, and the partition that shows it."""
    from mtpp.solvers.limits import SearchResult
    from mtpp.solvers.orders.fewest import find_fewest_stages
    from mtpp.solvers.orders.slicing import slice_order
    from mtpp.solvers.registry import default_orders

    model = request.model
    assert request.max_bottleneck is not None
    allowed = parse_bottleneck(request.max_bottleneck, model.graph.time_unit)
    widest = model.instance(model.graph.op_count)
    limit = min(int(allowed * widest.ticks_per_unit), widest.most_ticks)
    limits = _limits(request, widest, listener, interruption)
    if request.work_limit is None:
        # How many stages it will be is not known yet; a typical stage has fifty ops.
        orders = default_orders(replace(widest, k=max(2, widest.op_count // 50)))
        limits = replace(limits, evaluations=orders)
    listener.phase("fewest stages")
    k, order = find_fewest_stages(prepared.of(widest).contracted, limit, limits)
    fewest = prepared.of(model.instance(k))
    cut = slice_order(fewest.contracted, order)
    assert cut is not None
    return fewest, SearchResult(cut.partition, cut.bottleneck, "fewest stages", 1, StopReason.FINISHED)


def parse_bottleneck(given: str | Fraction, time_unit: str) -> Exact:
    """Read a bottleneck, in the graph's time unit: a duration, or a plain number for an abstract graph.

    Raises
    ------
    InputError
        If it is neither.
    """
    from mtpp.units import PICOSECONDS, exact_decimal, parse_duration

    text = str(given)
    try:
        if time_unit == "1":
            value = given if isinstance(given, Fraction) else exact_decimal(text)
            if value < 0:
                raise ValueError(f"{text!r} must be at least zero")
            return value
        return Fraction(parse_duration(text), PICOSECONDS[time_unit])
    except InputError as error:
        raise InputError(error.problem, parameter="max_bottleneck", remedy=error.remedy) from None
    except ValueError as error:
        raise InputError(
            f"{error}", parameter="max_bottleneck", remedy="the graph has no time unit: write a plain number"
        ) from None


def parse_group(group: str | Iterable[str]) -> tuple[str, ...]:
    """Read one group of ops that must share a stage: names, or one text with commas between them.

    Raises
    ------
    InputError
        If it names fewer than two ops.
    """
    from mtpp.api.parameters import names

    found = names(group, "together")
    if len(set(found)) < 2:
        raise InputError(f"{group!r} names fewer than two ops", parameter="together", remedy="write ‹together› a,b")
    return found


def partition(
    model: Any,
    k: int | None = None,
    *,
    max_bottleneck: str | float | Fraction | None = None,
    algorithm: str = "auto",
    together: Sequence[str | Sequence[str]] = (),
    together_blocks: bool = False,
    ignore_engine: bool = False,
    time_limit_s: float | None = None,
    work_limit: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    memory_limit: int | str | None = None,
    population: int | None = None,
    generations: int | None = None,
    observer: Observer | None = None,
) -> PartitionPlan:
    """Cut a model into k pipeline stages and prove how good the cut is.

    Parameters
    ----------
    model
        A model of :func:`mtpp.read`, or anything that it reads.
    k
        Number of stages at most.
    max_bottleneck
        In place of *k*: the fewest stages that all stay within a time such as ``"5ms"``; a plain number where the
        graph's costs have no unit.
    algorithm
        ``"auto"``, or one of :data:`mtpp.solvers.registry.PARTITIONERS`; ``"random-100"`` tries 100 orders.
    together
        Groups of ops that must share a stage: each a list of names, or ``"a,b"``.
    together_blocks
        Whether each repeated block of an ONNX model stays in one stage.
    ignore_engine
        Whether a stage may end where :func:`mtpp.split` could not cut: for who only wants the number.
    time_limit_s
        Seconds from this call, reading included; the best partition so far is returned. Without it the result depends
        on the model, *k*, *seed* and the other limits alone, never on the machine or on *jobs*.
    work_limit
        Candidates to evaluate at most.
    seed
        Of all random choices.
    jobs
        Threads; all cores by default.
    memory_limit
        What an exhaustive search may keep, in bytes or as ``"4GiB"``; half of what is free by default.
    population, generations
        Size and number of generations of evolutionary searches.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    The best plan found. Its ``lower_bound`` holds for every partition of this model into *k* stages, and its ``ratio``
    is bottleneck / lower bound; where that is proven to be 1, ``optimal`` is True. After Ctrl-C ``stopped`` is
    "interrupted".

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
    """
    from mtpp.api import parameters
    from mtpp.api.inputs.block_groups import block_groups
    from mtpp.api.inputs.engine_groups import engine_groups
    from mtpp.api.inputs.reading import as_model
    from mtpp.api.inputs.reading_in_time import reading_given
    from mtpp.api.observer import listener
    from mtpp.host.cores import available_cores
    from mtpp.host.free_memory import memory_budget
    from mtpp.ranges import MOST_SEED
    from mtpp.units import parse_bytes

    begin = time.monotonic()
    deadline = parameters.deadline_of(time_limit_s)
    if (k is None) == (max_bottleneck is None):
        raise InputError("give either ‹k› or ‹max_bottleneck›", parameter="k")
    stages = None if k is None else parameters.stage_count(k)
    memory_bytes = parameters.quantity(memory_limit, "memory_limit", lambda text: parse_bytes(text, round_down=True))
    bottleneck = _bottleneck_of(max_bottleneck)
    heard = listener(observer)
    wanted = partial(
        PartitionRequest,
        k=stages,
        max_bottleneck=bottleneck,
        together=tuple(map(parse_group, _groups(together))),
        deadline=deadline,
        work_limit=parameters.whole_or_none(work_limit, "work_limit"),
        seed=parameters.whole(seed, "seed", least=0, most=MOST_SEED),
        jobs=parameters.whole_or_none(jobs, "jobs") or available_cores(),
        memory_bytes=memory_budget() if memory_bytes is None else memory_bytes,
        population=parameters.whole_or_none(population, "population", least=2, most=100_000),
        generations=parameters.whole_or_none(generations, "generations"),
    )
    cut_anywhere = parameters.flag(ignore_engine, "ignore_engine")
    name, whole_blocks = parameters.text(algorithm, "algorithm"), parameters.flag(together_blocks, "together_blocks")
    with reading_given(model, "model", deadline):
        request = wanted(as_model(model, observer)).with_algorithm(name)
        if not cut_anywhere:
            request = replace(request, together=(*request.together, *engine_groups(request.model)))
        if whole_blocks:
            request = replace(request, together=(*request.together, *block_groups(request.model)))
        prepared = prepare(request)
    return find_partition(request, heard, prepared, spent_s=time.monotonic() - begin)


def _groups(together: Any) -> list[Any]:
    from mtpp.api.parameters import shortened

    if isinstance(together, str | bytes) or not isinstance(together, Iterable):
        raise InputError(
            f"{shortened(together)} is not a list of groups", parameter="together", remedy='write [["a", "b"]]'
        )
    return list(together)


def _bottleneck_of(value: Any) -> str | Fraction | None:
    if value is None or isinstance(value, str):
        return value
    from mtpp.api.parameters import is_number, shortened

    if not is_number(value):
        raise InputError(f"{shortened(value)} is not a time", parameter="max_bottleneck", remedy='write "5ms"')
    return value if isinstance(value, Fraction) else str(value)
