"""The independent verifier of training plans: everything that one says, re-derived from the model in exact fractions.

Of the rest of the program it imports errors and rules of documents. :mod:`mtpp.checker.training.document` knows the
shape of the documents, :mod:`mtpp.checker.training.model` turns costs into ticks,
:mod:`mtpp.checker.training.stages` says what they take, and :mod:`mtpp.checker.training.bounds` re-derives lower
bounds. Documents of version 2 go to the verifier of their planner
(:mod:`mtpp.checker.training.graphpipe.plan`, :mod:`mtpp.checker.training.pfeife.plan`). Not checked: how the plan was
found (times, the search), its notes, what other ways of choosing configurations would have come to, and the model's
name; names are held to what they name (:mod:`mtpp.checker.names`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from mtpp.checker.checks import check_memory, gap_rows, hold, quotient, rows_named
from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.facts import counted, factor
from mtpp.checker.names import training_name_rows
from mtpp.checker.report import (
    BOUND_CHECK,
    OUT_OF_TIME,
    SHALLOW,
    Check,
    Interrupts,
    Report,
    Tier,
    Verdict,
    complete,
    fact,
)
from mtpp.checker.training.bounds import TrainingClaim, check_work, usable_options
from mtpp.checker.training.document import STAGE_TIMES, SUPERSTAGE_TIMES, as_fraction, fraction
from mtpp.checker.training.graphpipe.bounds import GraphSearch
from mtpp.checker.training.graphpipe.plan import verify_graph_plan
from mtpp.checker.training.infeasible import infeasible_checks
from mtpp.checker.training.levels import LevelFigures, SuperstageFigures, all_superstages, check_superstages
from mtpp.checker.training.model import LayerId, LayerOption, StatedModel, TickModel, training_model_in_ticks
from mtpp.checker.training.pfeife.plan import verify_split_plan
from mtpp.checker.training.plan_rows import (
    CONFIGURATIONS,
    LEAST_MEMORY,
    NO_PLAN,
    batch_rows,
    configurations_row,
    edges_row,
    layers_row,
    model_rows,
    no_plan_report,
    stages_of_layers,
    training_rows,
)
from mtpp.checker.training.stages import PipelineStage, TrainingFigures, pipeline_figures
from mtpp.checker.training.versions import check_any_training_plan, is_split_plan, is_version_2
from mtpp.document_shape import record, whole

METHOD = "downset"
"""Name of the search among the methods of lower bounds."""

_PLAN = "the plan"
_CLASS = "pipeline of stages in a line by these rules"
_TIME = "time per sample"
_DERIVED = ("stage figures", "stage memory", _TIME)
_SHAPE = ("layers", "edges", "degrees", "devices", "configurations")
_PIPELINE = (*_SHAPE, "superstages", "stage memory")


class TrainingSearches(NamedTuple):
    """Exhaustive searches behind training plans, which the caller of the verifier brings.

    Attributes
    ----------
    bound
        Is given a lower bound and its method; returns the row on it.
    no_plan
        Is given a document that says that there is no plan, and the model; returns the rows on that.
    graph
        Is given a lower bound of a plan of version 2; returns the outcome.
    """

    bound: Callable[[TrainingClaim, str], Check]
    no_plan: Callable[[dict[str, Any], TickModel], list[Check]]
    graph: GraphSearch | None = None


def verify_training_plan(
    plan: Any,
    model: StatedModel | dict[str, Any],
    model_sha256: str | None,
    *,
    searches: TrainingSearches | None = None,
    system_due: Mapping[str, Any] | None = None,
    costs_sha256: str | None = None,
    ended_by: Interrupts = (),
) -> Report:
    """Re-derive what *plan* says and compare.

    Parameters
    ----------
    plan
        Parsed document; numbers that are not whole are exact rationals.
    model
        The model, as read from its file; a plan by ``pfeife`` may be for a graph, an ``mtpp-graph`` document.
    model_sha256, costs_sha256
        Of that file and of one with measured costs, in lower-case hexadecimal; None for a model that is in no file.
    searches
        Run the exhaustive searches behind a document again; without them what rests on one stays unchecked.
    system_due
        Values of the plan's system that the user holds it to.
    ended_by
        Exceptions that end work: what was not checked by then is unchecked.

    Returns
    -------
    A report with one row per claim. A well-formed document that is wrong fails checks; it raises nothing.

    Raises
    ------
    InputError
        If the document is malformed (*where* is a JSON pointer), or its layers cannot be told apart.

    Notes
    -----
    O(stages · (layers + edges)), times the degrees of data parallelism for some bounds; and the searches.
    """
    check_any_training_plan(plan, ())
    if is_split_plan(plan):
        return verify_split_plan(
            plan, model, model_sha256, costs_sha256=costs_sha256, system_due=system_due, ended_by=ended_by
        )
    if is_version_2(plan):
        assert not isinstance(model, dict)
        search = None if searches is None else searches.graph
        return verify_graph_plan(plan, model, model_sha256, search=search, system_due=system_due, ended_by=ended_by)
    assert not isinstance(model, dict)
    ticks = training_model_in_ticks(model, plan["system"]["bandwidth_bytes_per_s"])
    checks = [
        *training_rows(plan["system"], system_due or {}, _PLAN),
        *batch_rows(plan, model.micro_batch_size),
        *model_rows(plan, model_sha256, len(ticks.ids), len(ticks.edges), ticks.time_unit),
        *training_name_rows(plan),
    ]
    if not plan["feasible"]:
        return _no_plan(plan, ticks, checks, searches, ended_by)
    return _feasible(plan, ticks, checks, searches, ended_by)


def _no_plan(
    plan: dict[str, Any],
    ticks: TickModel,
    checks: list[Check],
    searches: TrainingSearches | None,
    ended_by: Interrupts,
) -> Report:
    found: list[Check] = []
    tier = Tier.ENUMERATED if plan["proven"] else Tier.NONE
    try:
        found, tier = infeasible_checks(plan, ticks)
        open_ = [check.name for check in found if check.verdict is Verdict.UNCHECKED]
        if open_ and searches is not None:
            outcome = {check.name: check for check in searches.no_plan(plan, ticks)}
            found = [outcome.get(check.name, check) if check.name in open_ else check for check in found]
    except ended_by:
        claims = [NO_PLAN, *([LEAST_MEMORY] if plan["least_memory_bytes"] is not None else [])]
        checked = [check for check in found if check.verdict is not Verdict.UNCHECKED]
        found = list(complete(checked, claims, OUT_OF_TIME))
    shown = next(check for check in found if check.name == NO_PLAN)
    tier = Tier.NONE if any(check.passed is False for check in found) else tier
    return no_plan_report((*checks, *found), tier, proven=shown.passed is True)


def _feasible(
    plan: dict[str, Any],
    ticks: TickModel,
    checks: list[Check],
    searches: TrainingSearches | None,
    ended_by: Interrupts,
) -> Report:
    stated, tier = plan["lower_bound"], Tier(plan["lower_bound"]["tier"])
    value = as_fraction(stated["value"])
    time: Fraction | None = None
    try:
        time = _check_stages(plan, ticks, checks)
        bound, tier = _check_bound(plan, ticks, time if hold(checks, _PIPELINE) else None, searches)
        checks.append(bound)
    except ended_by:
        checks[:] = complete(checks, (*_SHAPE, *_DERIVED, BOUND_CHECK), OUT_OF_TIME)
        bound = checks[-1]
    reached = as_fraction(plan["time_per_sample_ticks"]) if time is None else time
    rests_on = [*rows_named(checks, _PIPELINE), bound]
    due, closed = quotient(reached, value), reached == value
    checks += gap_rows(plan, reached, value, Tier(stated["tier"]), rests_on, _PLAN)
    rechecked = bound.passed is True
    words = (
        f"proven optimal: no {_CLASS} takes less time per sample"
        if closed
        else f"proven to be within a factor of {factor(due)} of the fastest {_CLASS}"
        if due is not None
        else "but only the plan and its times: a lower bound of zero says nothing of faster ones"
    )
    ratio = due if rechecked and time is not None else None
    return Report(tuple(checks), tier, ratio, bound_rechecked=rechecked, proven=words)


def _check_stages(plan: dict[str, Any], ticks: TickModel, checks: list[Check]) -> Fraction | None:
    """Add the rows on stages, and return the time per sample, None if they are no plan."""
    system = plan["system"]
    shape = pipeline_checks(plan, ticks)
    checks += shape
    if any(check.passed is False for check in shape):
        checks[:] = complete(checks, _DERIVED, "the stages are no plan")
        return None
    stages = pipeline_of(plan, ticks)
    outer: list[SuperstageFigures] = []
    if system["topology"] is None:
        figures = pipeline_figures(ticks, stages, system["convention"], system["max_micro_batches"])
    else:
        levels = LevelFigures(plan, stages, ticks)
        figures, outer = levels.stages, levels.superstages
    time = max([stage.time for stage in figures] + [communicated.time for communicated in outer])
    checks += [
        _check_figures(plan, figures, outer, time),
        check_memory(dict(enumerate(stage.memory_bytes for stage in figures)), system["memory_bytes"]),
        _check_time(plan, time),
    ]
    return time


def _check_figures(
    plan: dict[str, Any], figures: list[TrainingFigures], outer: list[SuperstageFigures], time: Fraction
) -> Check:
    name = "stage figures"
    unit = PICOSECONDS_PER_UNIT[plan["time_unit"]]
    for i, (stated, mine) in enumerate(zip(plan["stages"], figures, strict=True)):
        said: list[tuple[str, Any, Any]] = [
            ("in_flight", stated["in_flight"], mine.in_flight),
            ("memory_bytes", stated["memory_bytes"], mine.memory_bytes),
            ("time_ticks", as_fraction(stated["time_ticks"]), mine.time),
            ("utilization", _real(stated["utilization"]), _utilization(mine.time, time)),
        ]
        said += [(key, _real(stated[key]), float(getattr(mine, key) / unit)) for key in STAGE_TIMES]
        for key, claimed, due in said:
            if claimed != due:
                return Check(name, False, f"stage {i}: {_PLAN} says {key} {claimed}, it is {due}")
    for row, communicated in zip(all_superstages(plan.get("superstages", ())), outer, strict=True):
        said = [
            ("time_ticks", as_fraction(row["time_ticks"]), communicated.time),
            ("utilization", _real(row["utilization"]), _utilization(communicated.time, time)),
        ]
        said += [(key, _real(row[key]), float(getattr(communicated, key) / unit)) for key in SUPERSTAGE_TIMES]
        for key, claimed, due in said:
            if claimed != due:
                run = f"superstage of level {row['level']} from stage {row['stages'][0]} on"
                return Check(name, False, f"{run}: {_PLAN} says {key} {claimed}, it is {due}")
    return Check(
        name, True, counted(len(figures), "stage") + (f", {counted(len(outer), 'superstage')}" if outer else "")
    )


def _check_time(plan: dict[str, Any], time: Fraction) -> Check:
    name = "time per sample"
    stated = as_fraction(plan["time_per_sample_ticks"])
    if stated != time:
        return Check(name, False, f"{_PLAN} says {stated} ticks, it is {time}")
    unit = plan["time_unit"]
    due = float(time / PICOSECONDS_PER_UNIT[unit])
    throughput = float(PICOSECONDS_PER_UNIT["s"] / time) if time else None
    for key, mine in (("time_per_sample", due), ("throughput_per_s", throughput)):
        if _real(plan[key]) != mine:
            return Check(name, False, f"{_PLAN} says {key} {_real(plan[key])}, it is {mine}")
    return Check(name, True, f"{time} ticks")


def _check_bound(
    plan: dict[str, Any], model: TickModel, reached: Fraction | None, searches: TrainingSearches | None
) -> tuple[Check, Tier]:
    """Check the lower bound, as far as its tier allows, and return the tier that it has then."""
    stated = plan["lower_bound"]
    claim = TrainingClaim(model, plan["system"], as_fraction(stated["value"]), stated["proof"])
    method, tier = stated["method"], Tier(stated["tier"])
    if reached is not None and claim.value > reached:
        found = Check(BOUND_CHECK, False, f"the lower bound {claim.value} is above the time per sample {reached}")
    elif tier is Tier.ENUMERATED:
        found = _check_enumerated(claim, method, searches)
    elif tier is not Tier.EXACT:
        found = Check(BOUND_CHECK, False, f"no bound of tier {tier} is known for training plans")
    elif method != "work":
        found = Check(BOUND_CHECK, False, f"no checker for method {method[:60]!r}")
    else:
        found = Check(BOUND_CHECK, *check_work(claim))
    return found, Tier.NONE if found.passed is False else tier


def _check_enumerated(claim: TrainingClaim, method: str, searches: TrainingSearches | None) -> Check:
    if method != METHOD:
        return Check(BOUND_CHECK, False, f"no search is known by the name of {method[:60]!r}")
    record({}, {"less_than": fraction, "downsets": whole()})(claim.proof, claim.path)
    if "less_than" in claim.proof and as_fraction(claim.proof["less_than"]) != claim.value:
        return Check(BOUND_CHECK, False, f"{method}: the proof is not for the value of the bound")
    if searches is None:
        return Check(BOUND_CHECK, None, f"{method}: {SHALLOW}")
    return searches.bound(claim, method)


def _utilization(time: Fraction, slowest: Fraction) -> float:
    return float(time / slowest) if slowest else 1.0


def _real(value: Any) -> float | None:
    """Return the float that a number in the document was written from."""
    return None if value is None else float(value)


def pipeline_checks(plan: dict[str, Any], model: TickModel) -> list[Check]:
    """Check the stages of a plan, all but what they take.

    Sections 3.1 and 3.6 of Tarnawski et al. (2021): every layer is in one stage; no edge goes to an earlier one, so
    that each stage is contiguous and the order of stages is one in which they can run; degrees are allowed and add up
    to no more than there is; every layer runs in a way that is there for its stage's t.
    """
    layers = layers_row(plan["stages"], model.ids)
    levels = [] if plan["system"]["topology"] is None else [check_superstages(plan)]
    return [
        layers,
        *levels,
        edges_row(model.edges, model.ids, stages_of_layers(plan["stages"], model.ids))
        if layers.passed
        else Check("edges", None, "the layers are wrong"),
        _check_degrees(plan),
        _check_devices(plan),
        _check_options(plan, model) if layers.passed else Check(CONFIGURATIONS, None, "the layers are wrong"),
        _check_knapsack(plan),
    ]


def pipeline_of(plan: dict[str, Any], model: TickModel) -> list[PipelineStage]:
    """Return the stages of a plan that passed :func:`pipeline_checks`."""
    place = {name: i for i, name in enumerate(model.ids)}
    return [
        PipelineStage(
            {place[layer]: _chosen(stage, model, place, layer) for layer in stage["layers"]}, stage["data_parallel"]
        )
        for stage in plan["stages"]
    ]


def _chosen(stage: dict[str, Any], model: TickModel, place: Mapping[LayerId, int], layer: LayerId) -> LayerOption:
    options = model.options[place[layer]][stage["tensor_parallel"]]
    return next(option for option in options if option.name == stage["configurations"][str(layer)])


def _check_degrees(plan: dict[str, Any]) -> Check:
    name, system = "degrees", plan["system"]
    most = system["max_micro_batches"]
    degrees = [_copies(stage) for stage in plan["stages"]]
    for i, stage in enumerate(plan["stages"]):
        d, t = stage["data_parallel"], stage["tensor_parallel"]
        if d > 1 and not system["data_parallel"]:
            return Check(name, False, f"stage {i}: a data-parallel degree of {d}, without data parallelism")
        if t > 1 and not system["tensor_parallel"]:
            return Check(name, False, f"stage {i}: a tensor-parallel degree of {t}, without tensor parallelism")
        if system["convention"] == "program" and most % d:
            return Check(name, False, f"stage {i}: a data-parallel degree of {d} does not divide {most}")
    total = sum(degrees)
    if plan["degrees_sum"] != total:
        return Check(
            name, False, f"the plan says that data-parallel degrees come to {plan['degrees_sum']}, it is {total}"
        )
    if total > most:
        return Check(name, False, f"data-parallel degrees come to {total}, at most {most} micro-batches are allowed")
    if system["exact_micro_batches"] and total != most:
        return Check(name, False, f"data-parallel degrees come to {total}, not exactly {most}")
    return Check(name, True, f"data-parallel ones come to {total} of {most}")


def _copies(stage: dict[str, Any]) -> int:
    """Return how often a stage is there: its degree of data parallelism, times those around it."""
    return int(stage.get("replicas", stage["data_parallel"]))


def _check_devices(plan: dict[str, Any]) -> Check:
    name, most = "devices", plan["system"]["devices"]
    for i, stage in enumerate(plan["stages"]):
        due = _copies(stage) * stage["tensor_parallel"]
        if stage["devices"] != due:
            return Check(name, False, f"stage {i}: the plan says {stage['devices']} devices, it is {due}")
    total = sum(stage["devices"] for stage in plan["stages"])
    if plan["devices_used"] != total:
        return Check(name, False, f"the plan says {plan['devices_used']} devices, it is {total}")
    if total > most:
        return Check(name, False, f"stages take {total} devices, there are {most}")
    return Check(name, True, f"{total} of {most}")


def _check_options(plan: dict[str, Any], model: TickModel) -> Check:
    return configurations_row(
        plan["stages"],
        model.ids,
        lambda layer, t: {option.name for option in model.options[layer].get(t, ())},
        lambda layer, t: {option.name for option in usable_options(model, plan["system"], layer, t)},
        "for a tensor-parallel degree of {}",
    )


def _check_knapsack(plan: dict[str, Any]) -> Check:
    stated = plan["knapsack"]["heuristic_differs"]
    if stated != sorted(set(stated)) or any(i >= len(plan["stages"]) for i in stated):
        return Check("knapsack", False, f"it differs in {stated}, which are not stages in ascending order")
    return fact("knapsack", "recorded: what the heuristic would choose")
