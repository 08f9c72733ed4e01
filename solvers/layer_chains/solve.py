"""From a model with degrees of tensor parallelism to a plan, proven best of all whose stages are intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtpp.errors import InconsistentResult, Infeasible, InvalidPartition
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.degrees.first_token import FirstToken
from mtpp.inference.degrees.stage_degrees import DegreeGraph, StageDegrees
from mtpp.inference.goal import Goal
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.plan import FewestDevicesProof, Plan
from mtpp.names import DOWNSET, FIXED, FREE
from mtpp.solvers.last_look.partition import look_at_bounds, look_at_groups, look_at_sums
from mtpp.solvers.layer_chains.decision import is_feasible
from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.evening import evenest
from mtpp.solvers.layer_chains.prices import prices_above
from mtpp.solvers.layer_chains.search import ChainResult, fastest_plan, least_latency_plan
from mtpp.solvers.layer_chains.tables import Alternative, ChainTables, Choice

INTERVALS = "intervals"
"""Rule of proofs of plans whose stages are intervals of the graph's order."""


@dataclass(frozen=True, eq=False)
class Prefill:
    """Prompts that the stages of a plan for decoding work on, too.

    Attributes
    ----------
    instances
        Of each degree, as those of a :class:`DegreeProblem`.
    limit
        Ticks that all stages together may take for a prompt; None: any.
    dims
        Sizes that the model was read for.
    graphs
        Of each degree, as plans embed them.
    """

    instances: Mapping[int, Instance]
    limit: int | None
    dims: Mapping[str, int]
    graphs: Mapping[int, DegreeGraph]


@dataclass(frozen=True, eq=False)
class DegreeProblem:
    """A model on a machine whose devices may run a stage at several degrees.

    Attributes
    ----------
    graph, instance
        The whole model, on all devices of the machine, of which at most k − spare may be used.
    instances
        Of each degree, on the same devices.
    degrees
        For each class of devices the degrees that it may run a stage at, ascending.
    together
        Groups of op names that one stage has to hold.
    goal
        Objective, and the limit on the other figure.
    none_empty
        Whether as many devices as may be used have to have a stage.
    one_degree
        Whether all stages have to have the same degree.
    even
        Whether of all plans of the least bottleneck the one with most stages, of even costs, is wanted.
    prefill
        Of the same layers, where the time to the first token counts; goes with the bottleneck as objective, without a
        limit on the latency of decoding.
    """

    graph: CostGraph
    instance: Instance
    instances: Mapping[int, Instance]
    degrees: Sequence[Sequence[int]]
    together: Sequence[Sequence[str]] = ()
    goal: Goal = field(default=Goal())
    none_empty: bool = False
    one_degree: bool = False
    even: bool = False
    prefill: Prefill | None = None

    @property
    def choices(self) -> list[Choice]:
        """All alternatives of the devices."""
        return self._choices(self.instances)

    def _choices(self, instances: Mapping[int, Instance]) -> list[Choice]:
        return [
            Choice(Alternative(c, degree), instances[degree])
            for c, degrees in enumerate(self.degrees)
            for degree in degrees
        ]

    @property
    def tables(self) -> ChainTables:
        """Costs of all intervals; with a prefill its times are the latency, and stages hold both phases."""
        tables = ChainTables.of(self.choices, self.together)
        if self.prefill is None:
            return tables
        return tables.with_latency(ChainTables.of(self._choices(self.prefill.instances), self.together))

    @property
    def sought(self) -> Goal:
        """Goal of the search: with a prefill the limit on the latency is on its own."""
        return self.goal if self.prefill is None else Goal(limit=self.prefill.limit)

    @property
    def devices(self) -> ChainDevices:
        """Devices, and how many may be used."""
        machine = self.instance.machine
        return ChainDevices.of(
            machine.class_of, free=machine.free, most_used=self.instance.most_used, none_empty=self.none_empty
        )

    def parts(self, tables: ChainTables) -> list[ChainTables]:
        """Return the tables that plans may be made of: all, or where all stages have one degree those of each."""
        if not self.one_degree:
            return [tables]
        return [tables.at(degree) for degree in tables.degrees]

    def using(self, used: int) -> DegreeProblem:
        """Return the same problem where at most so many devices may be used."""

        def of(instance: Instance) -> Instance:
            return replace(instance, spare=instance.k - used)

        own = {degree: of(instance) for degree, instance in self.instances.items()}
        return replace(self, instance=of(self.instance), instances=own)


def solve_with_degrees(
    problem: DegreeProblem, *, algorithm: str, seed: int = 0, tables: ChainTables | None = None
) -> Plan:
    """Return the best plan, with the proof that there is none better.

    Parameters
    ----------
    algorithm
        Name that was asked for.
    tables
        Of the problem, where they are at hand; the plan's latency is theirs.

    Raises
    ------
    Infeasible
        Proven: no plan keeps to the memories and the limit.
    InconsistentResult
        If the plan, derived again from its stages, is another: a bug.

    Notes
    -----
    As :func:`~mtpp.solvers.layer_chains.search.fastest_plan`.
    """
    goal, devices = problem.sought, problem.devices
    tables = tables or problem.tables
    parts = problem.parts(tables)
    found = min(filter(None, (_best(problem, part, devices) for part in parts)), key=_order(goal), default=None)
    if found is None:
        raise _infeasible(problem, tables, devices)
    value = found.latency if goal.of_latency else found.bottleneck
    return plan_of_stages(problem, found, proven_bound(problem, tables, value), algorithm, seed)


def solve_fewest_devices(problem: DegreeProblem, limit: int, *, algorithm: str, seed: int = 0) -> Plan:
    """Return the best plan on the fewest devices that keep to a bottleneck, with the proof that no fewer do.

    Parameters
    ----------
    problem
        With the least bottleneck as its goal.
    limit
        In ticks.

    Raises
    ------
    Infeasible
        Proven: no plan keeps to it.
    """
    tables = problem.tables
    parts = problem.parts(tables)
    for used in range(1, problem.instance.most_used + 1):
        fewer = problem.using(used)
        if any(is_feasible(part, fewer.devices, limit) for part in parts):
            break
    else:
        if not any(is_feasible(part, problem.devices) for part in parts):
            raise _infeasible(problem, tables, problem.devices)
        text = f"proven infeasible: no plan has a bottleneck of at most {problem.instance.describe(limit)}"
        raise Infeasible(text, parameter="max_bottleneck", remedy="allow more")
    plan = solve_with_degrees(fewer, algorithm=algorithm, seed=seed, tables=tables)
    below = None if used == 1 else proven_bound(problem.using(used - 1), tables, limit + 1)
    return replace(plan, fewest=FewestDevicesProof(limit, below))


def _best(problem: DegreeProblem, tables: ChainTables, devices: ChainDevices) -> ChainResult | None:
    """Return the best plan of some alternatives; None if there is none: proven."""
    goal = problem.sought
    if goal.of_latency:
        return least_latency_plan(tables, devices, max_bottleneck=goal.limit)
    found = fastest_plan(tables, devices, max_latency=goal.limit)
    if found is None or not problem.even or not goal.plain:
        return found
    stages = evenest(tables, problem.instance, found.bottleneck)
    return found if stages is None else ChainResult.of(tables, stages)


def _order(goal: Goal) -> Callable[[ChainResult], tuple[int, int]]:
    """Return the figures of a plan by which plans are compared, the objective first."""
    if goal.of_latency:
        return lambda found: (found.latency, found.bottleneck)
    return lambda found: (found.bottleneck, found.latency)


def proven_bound(problem: DegreeProblem, tables: ChainTables, value: int) -> LowerBound:
    """Return the optimum of the objective as a bound, with its proof."""
    return LowerBound(value, DOWNSET, Tier.EXACT, _proof(problem, tables, value))


def _proof(problem: DegreeProblem, tables: ChainTables, value: int) -> dict[str, Any]:
    """Return what a verifier has to know to repeat the decision that nothing is below a value."""
    goal, devices, instance = problem.sought, problem.devices, problem.instance
    prices = {} if goal.plain else prices_above(tables, devices, goal, value)
    return {
        "rule": INTERVALS,
        "cutoff": value,
        "k": instance.most_used,
        "order": FREE if instance.machine.free else FIXED,
        **prices,
    }


def plan_of_stages(problem: DegreeProblem, found: ChainResult, lower: LowerBound, algorithm: str, seed: int) -> Plan:
    """Return a plan with a stage for each device: in free order those with ops first, as in the pipeline.

    Raises
    ------
    InconsistentResult
        If the plan, derived again from its stages, is another: a bug.
    """
    whole, free = problem.instance, problem.instance.machine.free
    busy = [one.device for one in found.stages]
    devices = [*busy, *(i for i in range(whole.k) if i not in busy)] if free else list(range(whole.k))
    alternatives = [choice.alternative for choice in problem.choices]
    degree_of = {one.device: alternatives[one.alternative].degree for one in found.stages}
    of_stage = tuple(degree_of.get(i, problem.degrees[whole.machine.class_of[i]][0]) for i in devices)
    stage = np.empty(whole.op_count, dtype=np.int32)
    for one in found.stages:
        stage[whole.order[one.start : one.stop]] = devices.index(one.device)
    placed = whole.on(devices) if free else whole
    degrees = StageDegrees(
        of_stage,
        {degree: one.on(devices) if free else one for degree, one in problem.instances.items()},
        tuple(sorted({degree for degrees in problem.degrees for degree in degrees})),
        problem.none_empty,
        problem.one_degree,
    )
    try:
        partition = Partition.from_stages(placed, stage)
    except InvalidPartition as error:
        raise InconsistentResult(f"intervals of layers are no partition: {error.problem}") from None
    plan = Plan(
        graph=problem.graph,
        instance=placed,
        partition=partition,
        lower=lower,
        algorithm=algorithm,
        found_by=DOWNSET,
        seed=seed,
        evaluations=1,
        stopped=StopReason.OPTIMAL,
        together=problem.together,
        devices=tuple(devices),
        goal=problem.goal,
        degrees=degrees,
        first_token=_first_token(problem, degrees, devices),
    )
    _look(problem, plan, found)
    return plan


def _first_token(problem: DegreeProblem, degrees: StageDegrees, devices: Sequence[int]) -> FirstToken | None:
    prefill = problem.prefill
    if prefill is None:
        return None
    own, free = prefill.instances, problem.instance.machine.free
    instances = {degree: one.on(devices) if free else one for degree, one in own.items()}
    return FirstToken(replace(degrees, instances=instances), prefill.limit, prefill.dims, prefill.graphs)


def _look(problem: DegreeProblem, plan: Plan, found: ChainResult) -> None:
    """Derive a plan's figures again from its stages, and hold it to memory, groups, goal and bound."""
    costs = plan.costs
    if costs.bottleneck != found.bottleneck:
        raise InconsistentResult(
            f"tables of intervals say a bottleneck of {found.bottleneck} ticks, and the slowest stage costs "
            f"{costs.bottleneck}"
        )
    assert plan.degrees is not None
    for degree in sorted(set(plan.degrees.of_stage)):
        instance = plan.degrees.instances[degree]
        look_at_sums(instance, plan.partition, stage_costs(instance, plan.partition))
    if not keeps_stage_memory(plan.instance, costs):
        raise InconsistentResult("a stage of intervals of layers needs more memory than its device has")
    look_at_groups(plan.instance, plan.partition, problem.together, DOWNSET)
    if not plan.goal.keeps(costs):
        raise InconsistentResult("a plan of intervals of layers does not keep to its limit")
    look_at_bounds(plan.goal.value(costs), [(DOWNSET, plan.lower.value)])
    if plan.first_token is not None:
        prompt = plan.first_token.costs(plan.partition)
        if prompt.latency != found.latency or not keeps_stage_memory(plan.instance, prompt):
            raise InconsistentResult("stages of intervals of layers take other times for prompts than tables say")
        if not problem.sought.keeps(prompt):
            raise InconsistentResult("the first token of a plan comes later than its limit")


def _infeasible(problem: DegreeProblem, tables: ChainTables, devices: ChainDevices) -> Infeasible:
    """Return the error of a problem that no plan solves, with the first layers that no device holds, if any."""
    goal, instance = problem.sought, problem.instance
    if goal.limit is not None and least_latency_plan(tables, devices) is not None:
        other = "bottleneck" if goal.of_latency else "latency" if problem.prefill is None else "time to the first token"
        text = f"proven infeasible: no plan has a {other} of at most {instance.describe(goal.limit)}"
        return Infeasible(text, parameter=goal.limited, remedy="allow more")
    names = [instance.op_names[v] for v in instance.order.tolist()]
    held = np.array(tables.feasible.any(axis=0))
    n = tables.op_count
    for position, name in enumerate(names):
        if not held[: position + 1, position + 1 :].any():
            text = f"proven infeasible: no device holds a stage with {name!r}"
            return Infeasible(text, source="‹machine›")
    used = devices.most_used
    return Infeasible(
        f"proven infeasible: no cut of the {n:,} layers keeps to the memory of {used:,} of the devices",
        source="‹machine›",
    )
