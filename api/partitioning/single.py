"""Search for the plan of one number of stages: the instance, limits, groups, and the way to the fewest stages."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mtpp.api.observer import Observer, Search, compilation_told
from mtpp.api.options.goal import parse_cost
from mtpp.api.options.search import Partitioning
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.names import ALGORITHMS, AUTO

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.host.interruption import Interruption
    from mtpp.inference.contraction import Contraction
    from mtpp.inference.goal import Goal
    from mtpp.inference.instance import Instance
    from mtpp.inference.plan import FewestDevicesProof, Plan
    from mtpp.language_models.capacity_proof import CapacityProof
    from mtpp.solvers.limits import SearchLimits, SearchResult
    from mtpp.solvers.unequal.fewest import FewestDevices
    from mtpp.solvers.variants import Variant


_FEWEST_SHARE = 0.5
"""Of the time, to decide whether fewer stages would do."""


@dataclass(frozen=True)
class Prepared:
    """A model and what is asked of its partitions, ready to be searched.

    Attributes
    ----------
    variant
        The algorithm; with a number of evaluations where its name says one.
    together
        Groups of ops that must share a stage.
    contraction
        Of the instance by these groups; None if there are none.
    capacity
        Proof of the load that the model is at, where the largest one was asked for.
    prompts
        The model for the prefill, where a plan is for both phases.
    """

    model: Model
    asked: Partitioning
    variant: Variant
    together: tuple[tuple[str, ...], ...]
    instance: Instance
    contraction: Contraction | None
    capacity: CapacityProof | None = None
    prompts: Model | None = None

    @property
    def contracted(self) -> Instance:
        """The instance with the groups merged."""
        return self.contraction.instance if self.contraction else self.instance

    @property
    def work_limit(self) -> int | None:
        """Candidates to evaluate at most; None: what the algorithm takes by default, or all that time allows."""
        sizes = [size for size in (self.variant.evaluations, self.asked.work_limit) if size is not None]
        return min(sizes, default=None)

    @property
    def goal(self) -> Goal:
        """Objective, and the limit on the other figure in ticks."""
        return self.asked.goal(self.instance)

    def of(self, instance: Instance) -> Prepared:
        """Return the same for *instance*, which is of the same model for another number of stages."""
        contraction = None if self.contraction is None else self.contraction.of(instance)
        return replace(self, instance=instance, contraction=contraction)

    def limits(self, deadline: Deadline, listener: Search, interruption: Interruption) -> SearchLimits:
        """Return the limits of a search of the instance."""
        from mtpp.solvers.limits import UNLIMITED, SearchLimits

        evaluations, asked = self.work_limit, self.asked
        if evaluations is None:
            evaluations = UNLIMITED if deadline.limit_s is not None else self.variant.entry.budget(self.instance)
        shape = {"population": asked.population, "generations": asked.generations}
        return SearchLimits(
            evaluations,
            deadline=deadline,
            observer=listener,
            interrupted=lambda: interruption.requested,
            **self.variant.search_options | {name: size for name, size in shape.items() if size is not None},
            **asked.limits(),
        )


def prepare(model: Model, asked: Partitioning, together: tuple[tuple[str, ...], ...] | None = None) -> Prepared:
    """Make the instance to search, and refuse what is wrong with what is asked before the wait.

    Parameters
    ----------
    together
        Groups of ops as :func:`groups_together` finds them, where they are at hand.
    """
    from mtpp.api.inputs.groups import groups_together
    from mtpp.api.language_models.both_phases import both_phases, is_of_both_phases
    from mtpp.solvers import registry
    from mtpp.solvers.solve import contract_groups
    from mtpp.solvers.stage_cost.cost_arrays import memory_arrays
    from mtpp.solvers.variants import Variant, parse_variant

    name = asked.algorithm
    variant = Variant(name, registry.partitioner(name)) if name in ALGORITHMS else parse_variant(name, "algorithm")
    together = groups_together(model, asked) if together is None else together
    if not variant.entry.evolves and (asked.population or asked.generations):
        raise InputError(
            f"{variant.entry.name} has no population",
            parameter="population" if asked.population else "generations",
            remedy="it goes with " + ", ".join(one.name for one in registry.PARTITIONERS.values() if one.evolves),
        )
    capacity = None
    if asked.of_capacity:
        from mtpp.api.language_models.capacity import at_capacity

        found = at_capacity(model, asked, together)
        model, capacity = found.model, found.proof
    prompts = None
    if is_of_both_phases(model):
        model, prompts = both_phases(model, asked)
    if model.degrees is not None:
        from mtpp.api.language_models.degrees import refuse_beside_degrees

        refuse_beside_degrees(asked)
        prepared = Prepared(model, asked, variant, together, model.whole_instance(asked.k), None, capacity, prompts)
        asked.goal(prepared.instance)
        return prepared
    instance = model.instance(asked.k if model.machine is not None else asked.k or 1)
    instance = asked.applied(instance, variant.name)
    prepared = Prepared(model, asked, variant, together, instance, contract_groups(instance, together))
    memory_arrays(prepared.contracted)
    asked.goal(instance)
    if asked.max_bottleneck is not None and not asked.counts_latency:
        parse_cost(asked.max_bottleneck, model.graph.time_unit, "max_bottleneck")
        if model.machine is None:
            model.instance(model.graph.op_count)
    return prepared


def search(prepared: Prepared, deadline: Deadline, observer: Observer, ending: Interruption | None = None) -> Plan:
    """Search until the deadline; Ctrl-C ends the search with the best partition so far.

    Parameters
    ----------
    ending
        Interruption that the caller has entered, for several searches.
    """
    from mtpp.host.interruption import Interruption
    from mtpp.solvers.latency.least_limit import with_least_limit
    from mtpp.solvers.latency.solve import solve_for_goal
    from mtpp.solvers.memory_growth import with_growth
    from mtpp.solvers.solve import solve

    if prepared.model.degrees is not None:
        from mtpp.api.language_models.degrees import search_with_degrees

        plan = search_with_degrees(
            prepared.model, prepared.instance, prepared.asked, prepared.together, prepared.prompts
        )
        return replace(plan, capacity=prepared.capacity)
    start: SearchResult | None = None
    fewest: FewestDevicesProof | None = None
    variant, graph = prepared.variant, prepared.model.graph
    with (
        compilation_told(observer),
        Interruption() if ending is None else nullcontext(ending) as interruption,
        observer.search(prepared.instance) as listener,
    ):
        try:
            algorithm = variant.name if variant.evaluations is None else variant.entry.name
            if prepared.asked.counts_latency:
                return solve_for_goal(
                    prepared.instance,
                    graph,
                    prepared.limits(deadline, listener, interruption),
                    prepared.goal,
                    frontier=prepared.asked.frontier,
                    algorithm=algorithm,
                    together=prepared.together,
                    contraction=prepared.contraction,
                )
            if prepared.asked.max_bottleneck is not None:
                if prepared.model.machine is None:
                    prepared, start, fewest = _fewest(prepared, deadline, listener, interruption, observer)
                else:
                    prepared, start, fewest = _fewest_devices(prepared, deadline, listener, interruption, observer)
                listener.costs = prepared.instance
            found = solve(
                prepared.instance,
                graph,
                prepared.limits(deadline, listener, interruption),
                algorithm=algorithm,
                together=prepared.together,
                contraction=prepared.contraction,
                start=start,
                closing=algorithm == AUTO and prepared.work_limit is None,
            )
            if prepared.asked.layers_only:
                found = _even(found, prepared.instance)
            return found if fewest is None else replace(found, fewest=fewest)
        except Infeasible as error:
            told = error
            growing = prepared.asked.max_bottleneck is None or prepared.model.machine is not None
            limits = prepared.limits(deadline, listener, interruption)
            if prepared.asked.counts_latency and prepared.goal.limit is not None:
                told = with_least_limit(error, prepared.contracted, prepared.goal, limits)
            elif growing:
                told = with_growth(error, prepared.contracted, limits)
            if interruption.requested:  # there was more to try
                raise Interrupted from None
            raise told from None


def _even(plan: Plan, instance: Instance) -> Plan:
    """Return a plan of layers on as many devices as there are; as it is where stages need not be intervals."""
    from mtpp.solvers.layer_chains.evening import evened
    from mtpp.solvers.layer_chains.tables import LONGEST

    plain = not instance.replicas and instance.cost.boundary is None and instance.op_count <= LONGEST
    return evened(plan, instance) if plain else plan


def find_partition(
    prepared: Prepared, deadline: Deadline, observer: Observer, *, spent_s: float = 0.0
) -> PartitionPlan:
    """Do the same, and return a plan that shows and saves itself; *spent_s* seconds went before."""
    from mtpp.api.partition_plan import PartitionPlan

    begin = time.monotonic() - spent_s
    found = on_machine(search(prepared, deadline, observer), prepared.model)
    return PartitionPlan.of(found, prepared.model, elapsed_s=time.monotonic() - begin)


def on_machine(plan: Plan, model: Model) -> Plan:
    """Return a plan with a stage for each device of the model's machine, where it has one."""
    from mtpp.inference.placement import on_whole_machine

    if model.machine is None or plan.degrees is not None:
        return plan
    return on_whole_machine(plan, model.whole_instance(plan.instance.most_used))


def _fewest(
    prepared: Prepared, deadline: Deadline, listener: Search, interruption: Interruption, observer: Observer
) -> tuple[Prepared, SearchResult, FewestDevicesProof | None]:
    """Return the instance of the fewest stages that keep to the bottleneck, such a partition, and a proof of both."""
    from mtpp.solvers.limits import SearchResult
    from mtpp.solvers.orders.fewest import find_fewest_stages
    from mtpp.solvers.orders.slicing import slice_order
    from mtpp.solvers.registry import default_orders
    from mtpp.solvers.unequal.fewest import lower_stages

    model = prepared.model
    assert prepared.asked.max_bottleneck is not None
    allowed = parse_cost(prepared.asked.max_bottleneck, model.graph.time_unit, "max_bottleneck")
    widest = prepared.of(model.instance(model.graph.op_count))

    def limit_of(instance: Instance) -> int:
        return min(int(allowed * instance.ticks_per_unit), instance.most_ticks)

    limits = widest.limits(deadline, listener, interruption)
    if prepared.work_limit is None:
        # How many stages it will be is not known yet; a typical stage has fifty ops.
        orders = default_orders(replace(widest.instance, k=max(2, widest.instance.op_count // 50)))
        limits = replace(limits, evaluations=orders)
    listener.phase("fewest stages")
    k, order = find_fewest_stages(widest.contracted, limit_of(widest.instance), limits)
    cut = slice_order(prepared.of(model.instance(k)).contracted, order)
    assert cut is not None
    start = SearchResult(cut.partition, cut.bottleneck, "fewest stages", 1, StopReason.FINISHED)
    found = lower_stages(
        lambda used: prepared.of(model.instance(used)).contracted,
        k,
        start,
        limit_of,
        prepared.of(model.instance(k)).limits(deadline.share(_FEWEST_SHARE), listener, interruption),
    )
    return _told_fewest(found, prepared, limit_of, observer, "stages")


def _fewest_devices(
    prepared: Prepared, deadline: Deadline, listener: Search, interruption: Interruption, observer: Observer
) -> tuple[Prepared, SearchResult, FewestDevicesProof | None]:
    """Return the instance of the fewest devices that keep to the bottleneck, such a partition, and a proof of both."""
    from mtpp.solvers.unequal.fewest import find_fewest_devices

    model, given = prepared.model, prepared.asked.max_bottleneck
    assert given is not None
    assert model.machine is not None
    allowed = parse_cost(given, model.graph.time_unit, "max_bottleneck")

    def limit_of(instance: Instance) -> int:
        return min(int(allowed * instance.ticks_per_unit), instance.most_ticks)

    found = find_fewest_devices(
        lambda used: prepared.of(model.instance(used)).contracted,
        model.machine.count,
        limit_of,
        prepared.limits(deadline, listener, interruption),
    )
    return _told_fewest(found, prepared, limit_of, observer, "devices")


def _told_fewest(
    found: FewestDevices, prepared: Prepared, limit_of: Callable[[Instance], int], observer: Observer, what: str
) -> tuple[Prepared, SearchResult, FewestDevicesProof | None]:
    """Tell of the fewest stages or devices, and return the instance, the partition, and the proof if there is one."""
    from mtpp.inference.plan import FewestDevicesProof

    model = prepared.model
    text = f"fewest {what} that keep to {prepared.asked.max_bottleneck}: {found.used}"
    if found.proven:
        observer.say(f"{text}, proven")
    else:
        observer.warn(f"{text}; that no fewer do is not proven")
    fewest, fewer = model.instance(found.used), model.instance(max(1, found.used - 1))
    shown = found.used == 1 or found.below is not None
    proof = None
    if found.proven and shown and fewest.ticks_per_unit == fewer.ticks_per_unit:
        proof = FewestDevicesProof(limit_of(fewest), found.below)
    return prepared.of(fewest), found.start, proof
