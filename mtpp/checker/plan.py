"""The independent verifier: everything a plan says, re-derived from documents in plain Python integers.

Of the rest of the program it imports errors and rules of documents: no mistake made elsewhere is repeated here.
:mod:`mtpp.checker.document` knows the documents' shape, :mod:`mtpp.checker.graph` turns costs into ticks,
:mod:`mtpp.checker.stages` adds up stages, :mod:`mtpp.checker.bounds.registry` re-checks the proofs of lower bounds,
:mod:`mtpp.checker.merges` the merges that some of them rest on, and :mod:`mtpp.checker.table` does for tables of
certificates what this module does for plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mtpp.checker.capacity.claim import LayersDue, capacity_words, check_capacity
from mtpp.checker.checks import (
    PARTITION,
    check_assignment,
    check_bound,
    check_costs,
    check_counts,
    check_edges,
    check_file,
    check_model_ticks,
    check_together,
    compare,
    file_row,
    gap_rows,
    hold,
    model_graph,
    partition_bottleneck,
    proven_words,
    quotient,
    refuse_impossible_system,
    rows_named,
)
from mtpp.checker.claim import LATENCY
from mtpp.checker.devices.fewest import check_fewest
from mtpp.checker.devices.one_device import check_one_device
from mtpp.checker.devices.plan_figures import check_figures
from mtpp.checker.devices.replicas import REPLICAS, DeviceList, ReplicatedStages, devices_row
from mtpp.checker.document import ABSTRACT, PICOSECONDS_PER_UNIT, STAGE_FIGURES, check_plan
from mtpp.checker.facts import counted, dims_rows, groups_row, system_rows
from mtpp.checker.frontier import check_frontier
from mtpp.checker.goal import PlanGoal, claim_of_bound
from mtpp.checker.graph import TickGraph, embedded_in_ticks, first_difference
from mtpp.checker.intervals.bound import check_interval_bound
from mtpp.checker.intervals.degree_graphs import (
    DEGREES,
    STAGES,
    DegreeGraphs,
    DegreesDue,
    intervals_row,
    none_empty_row,
    one_degree_row,
)
from mtpp.checker.intervals.first_token import ROW as FIRST_ROW
from mtpp.checker.intervals.first_token import Prompts, PromptsDue
from mtpp.checker.machine import (
    PlacedGraph,
    Times,
    machine_rows,
    on_devices,
    placed_graph,
    times_row,
)
from mtpp.checker.names import plan_name_rows
from mtpp.checker.report import (
    BOUND_CHECK,
    OUT_OF_TIME,
    Check,
    Interrupts,
    Report,
    Search,
    Tier,
    complete,
    fact,
    meets_tier,
)
from mtpp.checker.serving import serving_rows
from mtpp.checker.stages import StageFigures
from mtpp.errors import InputError

__all__ = ["Check", "Report", "meets_tier", "verify_plan"]

_PLAN = "the plan"
_ON_STAGES = ("edges", "stage costs", "stage memory", "bottleneck")


def verify_plan(
    plan: Any,
    graph: Any | None,
    *,
    graph_sha256: str | None = None,
    costs_sha256: str | None = None,
    own_costs: bool | None = None,
    model_given: bool = False,
    model_unfound: str | None = None,
    search: Search | None = None,
    system_due: Mapping[str, Any] | None = None,
    dims_due: Mapping[str, int] | None = None,
    machine_due: Mapping[str, Any] | None = None,
    times_due: Sequence[Times | None] | None = None,
    measured_due: Sequence[Times | None] | None = None,
    degrees_due: DegreesDue | None = None,
    layers_due: LayersDue | None = None,
    prompts_due: PromptsDue | None = None,
    ended_by: Interrupts = (),
) -> Report:
    """Re-derive what *plan* says and compare.

    Parameters
    ----------
    plan
        Parsed plan file; non-integer numbers as Decimal.
    graph
        The model as an mtpp-graph document (numbers int, Decimal or Fraction), or None to use the graph that the
        plan embeds.
    graph_sha256
        Of the model file that *graph* was read from, in lower-case hexadecimal.
    costs_sha256
        Of the file with measured costs that *graph* was given, if any.
    own_costs
        Whether the model file brings the costs of its ops; None where that is not known.
    model_given
        Whether *graph* comes from a model file, whose SHA-256 then has to be the plan's.
    model_unfound
        Why there is no model file, where one was looked for: that the plan is for it is unchecked then.
    search
        Runs the exhaustive search behind a bound again; without it such a bound stays unchecked.
    system_due, dims_due
        Values of the plan's system and dimensions that the user holds it to.
    machine_due
        Machine that the user holds it to, in the plan's form.
    times_due
        For each device of the plan's machine the times of ops that *graph* has on it, None where they are its own work
        at the device's speed, or measured ones that the plan states.
    measured_due
        For each device of the machine that the user holds it to the times in its file, None where it has none.
    degrees_due
        Shares of the model at each degree of tensor parallelism above 1, where *graph* is the model and can be divided.
    prompts_due
        The model at prefill for each degree, where the plan is for both phases.
    layers_due
        Graphs of the model at the capacity that the plan states and at the next value, by degree, phase and value.
    ended_by
        Exceptions that end work: what was not checked by then is unchecked.

    Returns
    -------
    A report with one row per claim. A well-formed plan that is wrong fails checks; it raises nothing.

    Raises
    ------
    InputError
        If the plan or the graph is malformed (*where* is a JSON pointer; *source* is ``model`` if it points into the
        graph), or if there is no graph to compare with.

    Notes
    -----
    O(n log n + pins) time and O(n + pins) memory, besides the bound's proof; recursion depth does not depend on the
    input.
    """
    check_plan(plan, ())
    if "machine" in plan:
        embedded, model, placed = _on_machine(plan, graph, times_due)
    else:
        embedded = embedded_in_ticks(plan["graph"]) if "graph" in plan else None
        model = None if graph is None else model_graph(graph, plan["system"], plan["k"])
        placed = None
    subject = embedded if model is None else model
    if subject is None:
        raise InputError("the plan embeds no graph", where="/graph", remedy="give the model with ‹model›")
    refuse_impossible_system(plan["system"], subject, ("system",))

    devices = DeviceList.of(plan, subject, placed) if REPLICAS in plan else None
    degrees, prompts, on_degrees = None, None, list[Check]()
    if DEGREES in plan and placed is not None:
        prompts = Prompts.of(plan, placed, None if graph is None else prompts_due or {})
        degrees, on_degrees = DegreeGraphs.of(plan, placed, None if graph is None else degrees_due or {})
    checks = [
        *system_rows(plan["system"], system_due or {}, _PLAN, plan["model"], own_costs),
        *([] if placed is None else machine_rows(plan, placed, machine_due)),
        *([] if devices is None else [devices_row(plan, devices.names, devices.order)]),
        *([] if placed is None else times_row(plan["machine"], times_due if graph is not None else None, measured_due)),
        *dims_rows(plan["model"], dims_due, _PLAN),
        *serving_rows(plan),
        groups_row(plan["together"], subject.op_count),
        _check_file(plan, graph_sha256, model_given=model_given, unfound=model_unfound),
        *_check_costs(plan, costs_sha256, model_given=model_given),
        *_check_embedded(plan, embedded, model),
        *on_degrees,
        check_counts(plan["model"], subject, _PLAN),
        _check_ticks(plan, model if placed is None or (model is None and subject.time_unit == "ps") else subject),
        *plan_name_rows(plan, subject),
    ]
    if placed is None and machine_due is not None:
        checks.append(Check("machine", False, "the plan is for equal devices, it has to be for a machine"))
    goal = PlanGoal.of(plan)
    reached_there, ended = _check_partition(plan, subject, devices or placed, checks, ended_by, degrees, prompts)
    held = (*PARTITION, *goal.rows, *(() if prompts is None else (FIRST_ROW,)))
    stated = plan["lower_bound"]
    method, tier, value = stated["method"], Tier(stated["tier"]), stated["value"]
    bound = Check(BOUND_CHECK, None, f"{method}: {OUT_OF_TIME}")
    if not ended:
        with suppress(*ended_by):
            upper = reached_there if hold(checks, held) else None
            if degrees is not None and placed is not None:
                bound, tier = check_interval_bound(plan, placed, degrees, goal, upper, prompts)
            elif isinstance(claim := claim_of_bound(plan, subject, devices or placed, stated, goal), Check):
                bound, tier = claim, Tier.NONE
            else:
                bound, tier = check_bound(claim, method, tier, upper, search)
    rests_on = [*rows_named(checks, held), bound]
    reached = goal.value(plan) if reached_there is None else reached_there
    checks += [bound, *gap_rows(plan, reached, value, Tier(stated["tier"]), rests_on, _PLAN)]
    checks += check_frontier(plan, subject, placed, ended_by, search, ended=ended)
    checks += [] if placed is None or ended else check_one_device(plan, subject, placed, ended_by)
    hindered = OUT_OF_TIME if ended else "the stages are wrong" if reached_there is None else ""
    rows = rows_named(checks, (*held, "bottleneck"))
    checks += check_figures(plan, subject, placed, rows, ended_by, hindered=hindered)
    checks += check_fewest(plan, subject, placed, ended_by, search, ended=ended, degrees=degrees)
    checks += check_capacity(plan, subject, layers_due, ended_by, hindered=hindered)
    rechecked = bound.passed is True
    return Report(
        tuple(checks),
        tier,
        quotient(reached, value) if rechecked and reached_there is not None else None,
        bound_rechecked=rechecked,
        proven=proven_words(
            reached,
            value,
            plan["k"],
            together=bool(plan["together"]),
            embedded=model is None,
            devices=_on(plan, placed, devices, degrees),
            objective=goal.objective,
            within=goal.words if prompts is None else prompts.words,
        )
        + capacity_words(plan),
    )


def _on(
    plan: dict[str, Any], placed: PlacedGraph | None, devices: DeviceList | None, degrees: DegreeGraphs | None
) -> str:
    """Say which devices stages stand on; nothing for one of k equal devices each."""
    where = "" if placed is None else on_devices(plan["machine"])
    if degrees is not None:
        return f" of consecutive ops{degrees.at_words(plan)}{where}"
    return where if devices is None else f"{where}, each on one or more,"


def _on_machine(
    plan: dict[str, Any], graph: Any | None, times_due: Sequence[Times | None] | None
) -> tuple[TickGraph | None, TickGraph | None, PlacedGraph]:
    """Return the embedded graph and the model on the envelope of the plan's machine, and on each of its devices."""
    machine, k = plan["machine"], plan["k"]
    inside = placed_graph(machine, plan["graph"], k, None, embedded=True) if "graph" in plan else None
    given = None
    if graph is not None:
        try:
            given = placed_graph(machine, graph, k, times_due, embedded=False)
        except InputError as error:
            if (error.where or "").startswith("/machine"):
                raise
            raise InputError(error.problem, source="model", where=error.where, remedy=error.remedy) from None
    placed = given or inside
    if placed is None:
        raise InputError("the plan embeds no graph", where="/graph", remedy="give the model with ‹model›")
    pairs = [] if inside is None or given is None else zip(inside.all_graphs, given.all_graphs, strict=True)
    for own, due in {(id(own), id(due)): (own, due) for own, due in pairs}.values():
        if first_difference(own, due) is not None:
            return own, due, placed
    return None if inside is None else inside.envelope, None if given is None else given.envelope, placed


def _check_partition(
    plan: dict[str, Any],
    subject: TickGraph,
    placed: PlacedGraph | DeviceList | None,
    checks: list[Check],
    ended_by: Interrupts,
    degrees: DegreeGraphs | None = None,
    prompts: Prompts | None = None,
) -> tuple[int | None, bool]:
    """Add the rows on stages; return the objective if it could be derived, and whether work was ended."""
    on, between, goal, derived = None, None, PlanGoal.of(plan), []
    claims = (*_ON_STAGES, *goal.rows, *(() if degrees is None else (STAGES,)))
    claims += () if prompts is None else (FIRST_ROW,)
    if placed is not None and not hold(checks, ("devices",)):
        checks[:] = complete(checks, ("assignment", *claims), "the devices are wrong")
        return None, False
    if isinstance(placed, DeviceList):
        try:
            return _check_replicas(plan, subject, placed, checks), False
        except ended_by:
            checks[:] = complete(checks, ("assignment", *_ON_STAGES), OUT_OF_TIME)
            return None, True
    if degrees is not None:
        checks.append(degrees.degrees_row(plan))
        if not checks[-1].passed:
            checks[:] = complete(checks, ("assignment", *claims), "the degrees are wrong")
            return None, False
    if placed is not None:
        numbers = [stage["device"]["index"] for stage in plan["stages"]]
        on = [(placed.by_device[i], placed.devices[i]) for i in numbers]
        between = placed.between_stages(numbers)

    def rows(stages: dict[int, StageFigures]) -> list[Check]:
        costs = [stage.cost for stage in stages.values()]
        derived.append(sum(costs) if goal.objective == LATENCY else max(costs))
        own = []
        if degrees is not None:
            stage_of = [plan["assignment"][name] for name in subject.op_names]
            own = [intervals_row(subject, stage_of), *none_empty_row(plan), *one_degree_row(plan)]
            own += [] if prompts is None else [prompts.row(plan, stage_of)]
        return [*own, *_stage_rows(plan, stages), *goal.limit_rows(max(costs), sum(costs))]

    try:
        found = partition_bottleneck(
            plan, "bottleneck", subject, checks, _PLAN, claims, rows, on, between,
            None if degrees is None else lambda stage_of: degrees.figures(plan, stage_of),
        )  # fmt: skip
        return None if found is None else derived[0], False
    except ended_by:
        checks[:] = complete(checks, ("assignment", *claims), OUT_OF_TIME)
        return None, True


def _check_replicas(plan: dict[str, Any], graph: TickGraph, devices: DeviceList, checks: list[Check]) -> int | None:
    """Add the rows on stages of several devices; return the bottleneck if it could be derived."""
    assigned = check_assignment(plan["assignment"], len(plan["stages"]), graph)
    checks.append(assigned)
    if not assigned.passed:
        checks[:] = complete(checks, _ON_STAGES, "the assignment is wrong")
        return None
    stage_of = [plan["assignment"][name] for name in graph.op_names]
    found = ReplicatedStages.of(plan, stage_of, devices)
    bottleneck = max(stage.cost for stage in found.stages.values())
    checks += [
        check_edges(graph, stage_of),
        *check_together(plan["together"], plan["assignment"]),
        _check_stages(plan, dict(found.stages)),
        found.each_row(plan),
        *([compare("latency", plan["latency"], found.latency, "ticks", _PLAN)] if "latency" in plan else []),
        found.memory_row(),
        *found.length_rows(),
        compare("bottleneck", plan["bottleneck"], bottleneck, "ticks", _PLAN),
    ]
    return bottleneck


def _check_file(plan: dict[str, Any], actual: str | None, *, model_given: bool, unfound: str | None) -> Check:
    if actual is not None:
        return check_file(plan["model"]["sha256"], actual, _PLAN)
    if model_given:
        return Check("model file", False, "the model file's SHA-256 is not known")
    if unfound is not None:
        return Check("model file", None, unfound)
    return file_row(plan["model"]["sha256"], None, _PLAN)


def _check_costs(plan: dict[str, Any], actual: str | None, *, model_given: bool) -> list[Check]:
    stated = plan["model"].get("costs_sha256")
    if model_given or actual is not None or stated is None:
        return check_costs(stated, actual, _PLAN)
    return [fact("measured costs", f"not given (SHA-256 recorded: {stated})")]


def _check_embedded(plan: dict[str, Any], embedded: TickGraph | None, model: TickGraph | None) -> list[Check]:
    name = "embedded graph"
    if embedded is None:
        return []
    in_ticks = "machine" not in plan
    due = ABSTRACT if (model.time_unit if model else plan["time_unit"]) == ABSTRACT else "ps"
    if in_ticks and embedded.time_unit != due:
        said = f"its time unit is {embedded.time_unit!r}; ticks of this plan are written as {due!r}"
        return [Check(name, False, said)]
    if model is None:
        return [fact(name, "its costs as whole numbers; taken as the model" if in_ticks else "taken as the model")]
    difference = first_difference(embedded, model)
    return [
        Check(
            name, difference is None, difference or f"the model's{', its costs as whole numbers' if in_ticks else ''}"
        )
    ]


def _check_ticks(plan: dict[str, Any], model: TickGraph | None) -> Check:
    unit, stated = plan["time_unit"], plan["ticks_per_unit"]
    if model is not None:
        return check_model_ticks(unit, stated, model.time_unit, model.ticks_per_unit, _PLAN)
    due = PICOSECONDS_PER_UNIT[unit] if unit != ABSTRACT else 10 ** (len(str(stated)) - 1)
    if stated != due:
        return Check("ticks", False, f"the plan says {stated} ticks per unit ({unit}), it is {due}")
    return fact("ticks", f"{stated} per unit ({unit}): the embedded graph is in ticks already")


def _check_stages(plan: dict[str, Any], stages: dict[int, StageFigures]) -> Check:
    name = "stage costs"
    if "machine" not in plan and REPLICAS not in plan and len(plan["stages"]) != plan["k"]:
        return Check(name, False, f"the plan lists {len(plan['stages'])} stages, k is {plan['k']}")
    for s, stated in enumerate(plan["stages"]):
        if stated["index"] != s:
            return Check(name, False, f"stage {s}: the plan says index {stated['index']}, it is {s}")
        derived = stages.get(s, StageFigures())
        for figure in STAGE_FIGURES:
            mine = getattr(derived, figure)
            if stated[figure] != mine:
                return Check(name, False, f"stage {s}: the plan says {figure} {stated[figure]}, it is {mine}")
        kept = stated.get("state_bytes", 0)
        if kept != derived.state_bytes:
            return Check(name, False, f"stage {s}: the plan says state_bytes {kept}, it is {derived.state_bytes}")
    count = len(plan["stages"])
    return Check(name, True, f"{counted(count, 'stage')}, {count - len(stages)} of them empty")


def _stage_rows(plan: dict[str, Any], stages: dict[int, StageFigures]) -> list[Check]:
    rows = [_check_stages(plan, stages)]
    if "latency" in plan or plan.get("objective") == LATENCY:
        stated = plan.get("latency", -1)
        rows.append(compare("latency", stated, sum(stage.cost for stage in stages.values()), "ticks", _PLAN))
    return rows
