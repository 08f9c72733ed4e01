"""From options to a plan and from a plan to its readers: what ``partition`` and ``evaluate`` share."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.errors import Infeasible, InputError

if TYPE_CHECKING:
    from mtpp.api.model import Model
    from mtpp.cli.terminal.console import Console
    from mtpp.host.interruption import Interruption
    from mtpp.host.progress import Observer
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.instance import Instance
    from mtpp.inference.plan import Plan
    from mtpp.solvers.limits import SearchLimits, SearchResult
    from mtpp.solvers.registry import PartitionerEntry
    from mtpp.views.stage_comparison import StageComparison


_WRITING_SHARE = 0.4
"""Of the seconds that a graph of many ops was read in, for stage costs, the plan's JSON and its table."""

_MANY_OPS = 20_000

_SHOWING_S = 0.15
"""Seconds of the processor for a table."""

_SLOWEST = 6.0

_FIRST_RESULT_S = 1e-5
"""Seconds of the processor per op, for a first partition, a simple bound and writing both."""

_PINS_PER_OP = 20
"""Readers of tensors that take as long as an op."""


@dataclass(frozen=True)
class PlanRequest:
    """What the user asks of ``mtpp partition``, besides the model; see its help."""

    k: int | None
    max_bottleneck: str | None
    algorithm: str
    together: tuple[tuple[str, ...], ...]
    time_limit_s: float | None
    work_limit: int | None
    seed: int
    jobs: int
    memory_bytes: int
    population: int | None = None
    generations: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> PlanRequest:
        """Read the command's options."""
        from mtpp.cli.options.limits import search_memory
        from mtpp.solvers.registry import ALIASES, PARTITIONERS
        from mtpp.solvers.variants import parse_variant

        name, work_limit = options["algorithm"], options["work_limit"]
        shape = {"population": options["population"], "generations": options["generations"]}
        if ALIASES.get(name, name) not in PARTITIONERS:  # a name with a number of evaluations, as in tables of results
            variant = parse_variant(name, "algorithm")
            name = variant.entry.name
            work_limit = min(size for size in (variant.evaluations, work_limit) if size is not None)
            shape |= {key: value for key, value in variant.search_options.items() if shape[key] is None}
        return cls(
            k=options["k"],
            max_bottleneck=options["max_bottleneck"],
            algorithm=name,
            together=tuple(tuple(parse_group(text)) for text in options["together"]),
            time_limit_s=options["time_limit"],
            work_limit=work_limit,
            seed=options["seed"],
            jobs=options["jobs"] or available_cores(),
            memory_bytes=search_memory(options["memory_limit"]),
            **shape,
        )


class Prepared(NamedTuple):
    """An algorithm, the instance of a model, and that with the ops merged that must share a stage."""

    entry: PartitionerEntry
    instance: Instance
    contracted: Instance


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parse_group(text: str) -> list[str]:
    """Read the ops of one ``--together a,b`` option."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(set(names)) < 2:
        raise InputError(f"{text!r} names fewer than two ops", source="--together", remedy="write --together a,b")
    return names


def prepare(model: Model, request: PlanRequest) -> Prepared:
    """Make the instance to search, and refuse what is wrong with the input before the wait."""
    from mtpp.solvers import registry
    from mtpp.solvers.feasibility import refuse_infeasible
    from mtpp.solvers.memory.memory_arrays import memory_arrays
    from mtpp.solvers.solve import contracted

    entry = registry.partitioner(request.algorithm)
    if not entry.evolves and (request.population or request.generations):
        raise InputError(
            f"{entry.name} has no population",
            source="--population" if request.population else "--generations",
            remedy="it goes with " + ", ".join(one.name for one in registry.PARTITIONERS.values() if one.evolves),
        )
    instance = model.instance(request.k or 1)
    inner = contracted(instance, request.together)
    memory_arrays(inner)
    if request.k is not None:
        refuse_infeasible(inner)
    else:
        parse_bottleneck(request.max_bottleneck or "", model.graph.time_unit)
        model.instance(model.graph.op_count)
    return Prepared(entry, instance, inner)


def make_plan(model: Model, request: PlanRequest, console: Console, prepared: Prepared | None = None) -> Plan:
    """Partition a model as requested; progress goes to standard error."""
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.host.interruption import Interruption
    from mtpp.solvers.compiling import compile_ahead, compiled
    from mtpp.solvers.solve import solve

    entry, instance, inner = prepared or prepare(model, request)
    start: SearchResult | None = None
    if not compiled(inner, [entry.name]):
        console.say("compiling (once) …")
        compile_ahead(entry.name, inner.system, deadline_from_start(request.time_limit_s).remaining_s())
    with Interruption() as interruption, console.search(instance) as live:
        try:
            if request.max_bottleneck is not None:
                instance, start = _fewest(model, request, live, interruption)
                live.costs = instance
            limits = _limits(request, instance, live, interruption)
            return solve(
                instance, model.graph, limits, algorithm=request.algorithm, together=request.together, start=start
            )
        except Infeasible:
            if interruption.requested:  # there was more to try
                raise KeyboardInterrupt from None
            raise


def _limits(request: PlanRequest, instance: Instance, observer: Observer, interruption: Interruption) -> SearchLimits:
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.solvers.limits import UNLIMITED, SearchLimits
    from mtpp.solvers.registry import partitioner

    evaluations = request.work_limit
    if evaluations is None:
        timed = request.time_limit_s is not None
        evaluations = UNLIMITED if timed else partitioner(request.algorithm).budget(instance)
    return SearchLimits(
        evaluations,
        deadline_from_start(searching_s(request.time_limit_s, instance.op_count)),
        seed=request.seed,
        jobs=request.jobs,
        memory_bytes=request.memory_bytes,
        observer=observer,
        population=request.population,
        generations=request.generations,
        interrupted=lambda: interruption.requested,
    )


def searching_s(time_limit_s: float | None, ops: int) -> float | None:
    """Return the end of a search, in seconds from process start, that leaves time to write what it has found.

    Writing takes a part of what reading took, which tells as well how fast this machine is just now.
    """
    from mtpp.host.process_age import process_age_s

    if time_limit_s is None:
        return None
    return max(time_limit_s - writing_s(process_age_s(), ops), 0.1 * time_limit_s)


def writing_s(read_s: float, ops: int) -> float:
    """Return the seconds that it takes to write a result about so many ops, whose graph was read in *read_s*."""
    return _SHOWING_S * _slowness() + _WRITING_SHARE * read_s * min(1.0, ops / _MANY_OPS)


def first_result_s(graph: CostGraph, start_s: float = 0) -> float:
    """Return the seconds from a graph at hand to a first result about it, written; *start_s* goes with large ones."""
    size = graph.op_count + graph.consumers.size / _PINS_PER_OP
    return _slowness() * (_FIRST_RESULT_S * size + start_s * min(1.0, size / _MANY_OPS))


def _slowness() -> float:
    """Return how much more slowly than alone this process gets on, as others compute on this machine as well."""
    from mtpp.host.process_age import process_age_s

    return min(_SLOWEST, process_age_s() / max(1e-3, time.process_time()))


def _fewest(
    model: Model, request: PlanRequest, observer: Observer, interruption: Interruption
) -> tuple[Instance, SearchResult]:
    """Return the instance with the fewest stages found for ``--max-bottleneck``, and the partition that shows it."""
    from mtpp.solvers.limits import SearchResult
    from mtpp.solvers.orders.fewest import find_fewest_stages
    from mtpp.solvers.orders.slicing import slice_order
    from mtpp.solvers.registry import default_orders
    from mtpp.solvers.solve import contracted

    assert request.max_bottleneck is not None
    allowed = parse_bottleneck(request.max_bottleneck, model.graph.time_unit)
    widest = model.instance(model.graph.op_count)
    limit = min(int(allowed * widest.ticks_per_unit), widest.most_ticks)
    limits = _limits(request, widest, observer, interruption)
    if request.work_limit is None:
        # How many stages it will be is not known yet; a typical stage has fifty ops.
        orders = default_orders(replace(widest, k=max(2, widest.op_count // 50)))
        limits = replace(limits, evaluations=orders)
    observer.phase("fewest stages")
    inner = contracted(widest, request.together)
    k, order = find_fewest_stages(inner, limit, limits)
    instance = model.instance(k)
    cut = slice_order(contracted(instance, request.together), order)
    assert cut is not None
    return instance, SearchResult(cut.partition, cut.bottleneck, "fewest stages", 1, "finished")


def parse_bottleneck(text: str, time_unit: str) -> Any:
    """Read ``--max-bottleneck``, in the graph's time unit: a duration, or a plain number for an abstract graph."""
    from mtpp.units import PICOSECONDS, exact_decimal, parse_duration

    try:
        if time_unit == "1":
            value = exact_decimal(text)
            if value < 0:
                raise ValueError(f"{text!r} must be at least zero")
            return value
        return Fraction(parse_duration(text), PICOSECONDS[time_unit])
    except InputError as error:
        raise InputError(error.problem, source="--max-bottleneck", remedy=error.remedy) from None
    except ValueError as error:
        raise InputError(
            f"{error}", source="--max-bottleneck", remedy="the graph has no time unit: write a plain number"
        ) from None


def deliver_plan(
    plan: Plan,
    model: Model,
    console: Console,
    output: str | None,
    output_format: str,
    *,
    embed: bool,
    instead: StageComparison | None = None,
) -> None:
    """Write and print a plan, and warn of what its reader should know; *instead* is printed in its place."""
    from mtpp.cli.terminal.delivery import deliver
    from mtpp.views.plan import plan_text

    def json_text() -> str:
        from mtpp.formats.graphs.native import ticks_document
        from mtpp.formats.results.plan import write_plan
        from mtpp.host.process_age import process_age_s

        embedded = None
        if embed or model.source.is_stdin or model.read_as_told:
            embedded = ticks_document(model.graph, plan.instance.work.tolist(), plan.instance.transfer.tolist())
        document = plan.to_document(
            sha256=model.source.sha256,
            dims=model.dims,
            elapsed_s=process_age_s(),
            costs_sha256=model.costs_sha256,
            graph_document=embedded,
        )
        return write_plan(document)

    def shown() -> str:
        if instead is not None:
            return instead.shown(output_format, assumptions(model))
        return json_text() if output_format == "json" else plan_text(plan, output_format, assumptions(model))

    empty = plan.partition.empty_stages
    if empty:
        k, ops = plan.partition.k, plan.graph.op_count
        reason = f"k = {k} is more than the {ops} ops: " if k > ops else ""
        listed = ", ".join(map(str, empty[:8])) + (", …" if len(empty) > 8 else "")
        console.warn(f"{reason}{len(empty)} of {k} stages stay empty: {listed}")
    deliver(output, json_text, shown)


def assumptions(model: Model) -> list[str]:
    """Return what the figures rest on, for people."""
    texts = [f"system {model.system.describe()}"]
    if model.costs is not None:
        texts.append(f"costs measured: {model.costs.display}")
    dims = dict(model.dims)
    if dims:
        texts.append("dims " + ", ".join(f"{name} = {value}" for name, value in dims.items()))
    inputs = model.graph.metadata.get("inputs")
    if isinstance(inputs, list) and inputs:
        shapes = [f"{i['name']} {'×'.join(map(str, i.get('shape', [])))}" for i in inputs[:4] if isinstance(i, dict)]
        texts.append("inputs " + ", ".join(shapes) + (" …" if len(inputs) > 4 else ""))
    assumed = model.graph.metadata.get("assumptions")
    if isinstance(assumed, list):
        texts += map(str, assumed)
    return texts


def unmet_requirements(plan: Plan, ratio: float | None, *, optimal: bool) -> str | None:
    """Return what a requirement of the user's lacks, or None."""
    certificate = plan.certificate
    if optimal and not certificate.optimal:
        known = certificate.ratio is not None and certificate.lower.is_proof
        proven = f"the proven ratio is {certificate.ratio:.6g}" if known else "no ratio is proven"
        return f"--require-optimal: not proven optimal; {proven}"
    if ratio is not None and not certificate.lower.is_proof:
        return f"--require-ratio {ratio:g}: no ratio is proven, the bound is of tier {certificate.lower.tier}"
    allowed = None if ratio is None else Fraction(repr(ratio)) * certificate.lower.value
    if allowed is not None and (certificate.ratio is None or certificate.upper > allowed):
        proven = "none" if certificate.ratio is None else f"{certificate.ratio:.6g}"
        if certificate.ratio is not None and certificate.ratio <= 1:
            proven = "above 1"
        return f"--require-ratio {ratio:g}: the proven ratio is {proven}"
    return None
