"""The independent verifier of plans by ``graphpipe``: everything that one says, re-derived from the model in integers.

Of the rest of the program it imports errors and rules of documents. :mod:`.document` knows the shape of documents,
:mod:`.costs` turns costs into ticks, :mod:`.validity` checks that stages are a plan at all, :mod:`.pipeline` says what
they take, :mod:`.simulation` how long an iteration is, and :mod:`.bounds` re-derives lower bounds. Not checked: how the
plan was found (times, what stopped it), its notes, and the model's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.checks import check_memory, gap_rows, hold, quotient, resting, rows_named
from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.facts import counted, factor, memory
from mtpp.checker.names import end_rows
from mtpp.checker.report import BOUND_CHECK, OUT_OF_TIME, Check, Interrupts, Report, Tier, complete, fact
from mtpp.checker.training.graphpipe.bounds import GraphSearch, check_graph_bound
from mtpp.checker.training.graphpipe.costs import GraphModel, graph_model
from mtpp.checker.training.graphpipe.pipeline import (
    Channel,
    GraphStage,
    Pipeline,
    TimedStage,
    channels_of,
    depth_of,
    memory_bytes,
    path_bound,
    time_per_sample,
    timed_stage,
)
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.checker.training.graphpipe.simulation import MOST_MESSAGES, messages, simulated_iteration
from mtpp.checker.training.graphpipe.validity import NO_STAGES, SHAPE, stages_of, validity_checks
from mtpp.checker.training.model import StatedModel
from mtpp.checker.training.plan_rows import LEAST_MEMORY, NO_PLAN, bandwidth_row, model_rows, no_plan_report

_PLAN = "the plan"
_CLASS = "with kFkB orders of whole backward passes by these rules"
_USED = "devices used"

MEMORY_BOUND = "memory bound"
CLAIMS = (LEAST_MEMORY, MEMORY_BOUND, NO_PLAN)
"""Rows on what a document says of there being no plan; one on stages of it comes before."""

_LEAST = (*SHAPE, "stage figures", "stage memory", *CLAIMS)

ITERATION = "iteration"
_RESTS_ON = (*SHAPE, "stage memory", ITERATION)

DERIVED = ("stage figures", "transfers", "stage memory", "depth", "time per sample", ITERATION)
"""Rows on figures, which need stages that are a plan."""

_SECOND = PICOSECONDS_PER_UNIT["s"]


def verify_graph_plan(
    plan: Any,
    model: StatedModel,
    model_sha256: str | None,
    *,
    search: GraphSearch | None = None,
    system_due: Mapping[str, Any] | None = None,
    ended_by: Interrupts = (),
) -> Report:
    """Re-derive what a well-formed plan says; terms as in :func:`~mtpp.checker.training.plan.verify_training_plan`.

    Returns
    -------
    A report with one row per claim. A document that is wrong fails checks; it raises nothing.

    Notes
    -----
    O(layers · sizes · degrees + passes · channels of a stage); and the search.
    """
    setting = Setting.of(plan)
    costs = graph_model(model, setting)
    checks = [
        *setting_rows(plan, costs, setting, system_due or {}, _PLAN),
        *model_rows(plan, model_sha256, len(costs.ids), len(costs.edges), costs.time_unit),
        *end_rows(plan),
    ]
    verified = _feasible if plan["feasible"] else _no_plan
    return verified(plan, costs, setting, checks, search, ended_by)


def _no_plan(
    plan: dict[str, Any],
    model: GraphModel,
    setting: Setting,
    checks: list[Check],
    search: GraphSearch | None,
    ended_by: Interrupts,
) -> Report:
    tier = Tier(plan["memory_bound"]["tier"]) if plan["proven"] else Tier.NONE
    try:
        checks += least_memory_checks(plan, model, setting)
        found, tier = no_plan_checks(plan, model, setting, search)
        checks += found
    except ended_by:
        due = _LEAST if plan["least_memory_bytes"] is not None else CLAIMS
        checks[:] = complete(checks, due, OUT_OF_TIME)
    shown = next(check for check in checks if check.name == NO_PLAN)
    return no_plan_report(checks, tier, proven=shown.passed is True)


def _feasible(
    plan: dict[str, Any],
    model: GraphModel,
    setting: Setting,
    checks: list[Check],
    search: GraphSearch | None,
    ended_by: Interrupts,
) -> Report:
    stated = plan["lower_bound"]
    value, tier = stated["value"], Tier(stated["tier"])
    time: int | None = None
    try:
        time = _check_stages(plan, model, setting, checks)
        if time is not None and hold(checks, _RESTS_ON) and value > time:
            bound = Check(BOUND_CHECK, False, f"the lower bound {value} is above the iteration {time}")
            tier = Tier.NONE
        else:
            bound, tier = check_graph_bound(
                stated, "iteration", model, setting, search, name=BOUND_CHECK, path=("lower_bound",)
            )
        checks.append(bound)
    except ended_by:
        checks[:] = complete(checks, (*SHAPE, _USED, *DERIVED, BOUND_CHECK), OUT_OF_TIME)
        bound = next(check for check in checks if check.name == BOUND_CHECK)
    reached = plan["iteration_ticks"] if time is None else time
    rests_on = [*rows_named(checks, _RESTS_ON), bound]
    due, closed = quotient(reached, value), reached == value
    checks += gap_rows(plan, reached, value, Tier(stated["tier"]), rests_on, _PLAN)
    rechecked = bound.passed is True
    among = f"{'line of stages' if plan['system']['sequential'] else 'stage graph'} {_CLASS}"
    words = (
        f"proven optimal: no {among} has a shorter iteration"
        if closed
        else f"proven to be within a factor of {factor(due)} of the shortest iteration of any {among}"
        if due is not None
        else "but only the plan and its times: a lower bound of zero says nothing of faster ones"
    )
    ratio = due if rechecked and time is not None else None
    return Report(tuple(checks), tier, ratio, bound_rechecked=rechecked, proven=words)


def _check_stages(plan: dict[str, Any], model: GraphModel, setting: Setting, checks: list[Check]) -> int | None:
    """Add the rows on stages, and return the ticks of the iteration, None if they are no plan."""
    rows = plan["stages"]
    shape = validity_checks(rows, model, setting)
    used = sum(row["data_parallel"] for row in rows)
    said = plan["devices_used"]
    counted = Check(_USED, said == used, f"{used}" if said == used else f"the plan says {said}, it is {used}")
    checks += [*shape, counted]
    if not all(check.passed for check in shape):
        checks[:] = complete(checks, DERIVED, NO_STAGES)
        return None
    stages = stages_of(rows, model)
    timed = [timed_stage(stage, setting) for stage in stages]
    pipeline = Pipeline(setting.mini_batch, timed, channels_of(model, stages, setting))
    checks += [
        check_stage_figures(rows, stages, timed),
        check_transfers(plan["transfers"], pipeline.channels),
        check_memory(dict(enumerate(map(memory_bytes, stages))), setting.memory_bytes),
        check_depth(plan, pipeline),
        check_time_per_sample(plan, pipeline),
    ]
    iteration, time = check_iteration(plan, pipeline)
    checks.append(iteration)
    return time


def setting_rows(
    plan: dict[str, Any], model: GraphModel, setting: Setting, due: Mapping[str, Any], said_by: str
) -> list[Check]:
    """Return the rows on what a model is trained on; *due* may hold the bandwidth that the user says it has."""
    latency = f"{setting.latency_ticks} ticks of each transfer"
    return [
        fact("devices at hand", f"{setting.devices}, {memory(setting.memory_bytes)} each"),
        bandwidth_row(plan["system"], (), due, said_by),
        fact("latency", latency),
        fact("mini-batch", f"{counted(setting.mini_batch, 'sample')}, in micro-batches of {_sizes(setting)}"),
        _samples_row(model, setting),
        fact("plans that count", _kinds(setting)),
    ]


def _sizes(setting: Setting) -> str:
    text = ", ".join(map(str, setting.sizes))
    if len(setting.sizes) == 1:
        return text
    return f"{text}, which may differ by stage" if setting.per_stage else f"{text}, the same in all stages"


def _samples_row(model: GraphModel, setting: Setting) -> Check:
    name, stated = "samples of times", setting.times_of
    if model.times_of is None:
        return fact(name, f"{stated}, which the model does not say")
    if model.times_of != stated:
        return Check(name, False, f"the plan says {stated}, the model's times are of {model.times_of}")
    return Check(name, True, f"{stated}")


def _kinds(setting: Setting) -> str:
    shape = "one line of stages" if setting.sequential else "stage graphs"
    orders = ", ".join(f"{k}F{k}B" for k in setting.intervals)
    fewest = ", the fewest micro-batches in flight" if setting.least else ""
    kinds = {"data parallelism": setting.data_parallel, "recomputation": setting.recompute}
    left_out = [kind for kind, allowed in kinds.items() if not allowed]
    return f"{shape} in {orders} order{fewest}" + (f"; not with {', '.join(left_out)}" if left_out else "")


def least_memory_checks(plan: dict[str, Any], model: GraphModel, setting: Setting) -> list[Check]:
    """Check the least memory that a plan was found with, and that plan."""
    nothing = not plan["stages"] and not plan["transfers"]
    checks = [Check("stages", nothing, "none" if nothing else "there is no plan, but there are stages or transfers")]
    least, rows = plan["least_memory_bytes"], plan["least_memory_stages"]
    if least is None:
        stated = fact(LEAST_MEMORY, "none stated")
        return [*checks, Check(LEAST_MEMORY, False, "none is stated, but there are stages") if rows else stated]
    if least <= setting.memory_bytes:
        text = f"the plan says {least} bytes, devices have {setting.memory_bytes} and it finds none"
        return [*checks, Check(LEAST_MEMORY, False, text)]
    shape = validity_checks(rows, model, setting)
    checks += shape
    derived = ("stage figures", "stage memory", LEAST_MEMORY)
    if not all(check.passed for check in shape):
        return list(complete(checks, derived, NO_STAGES))
    stages = stages_of(rows, model)
    held = max(memory_bytes(stage) for stage in stages)
    return [
        *checks,
        check_stage_figures(rows, stages, [timed_stage(stage, setting) for stage in stages]),
        check_memory(dict(enumerate(map(memory_bytes, stages))), least),
        Check(LEAST_MEMORY, True, f"there is a plan with {least} bytes")
        if held == least
        else Check(LEAST_MEMORY, False, f"the plan says {least} bytes, its fullest device needs {held}"),
    ]


def no_plan_checks(
    plan: dict[str, Any], model: GraphModel, setting: Setting, search: GraphSearch | None
) -> tuple[list[Check], Tier]:
    """Check the bound of the memory that every plan needs; return the rows that rest on it, and its tier.

    It shows that there is no plan if it is above the memory of devices; a plan that fits into some more shows how far
    that bound is from it.
    """
    stated, least, limit = plan["memory_bound"], plan["least_memory_bytes"], setting.memory_bytes
    value = stated["value"]
    if least is not None and value > least:
        bound = Check(MEMORY_BOUND, False, f"the bound {value} is above the {least} bytes of a plan")
        tier = Tier.NONE
    else:
        bound, tier = check_graph_bound(
            stated, "memory", model, setting, search, name=MEMORY_BOUND, path=("memory_bound",)
        )
    if plan["proven"] != (value > limit):
        above = "above" if value > limit else "not above"
        said = str(plan["proven"]).lower()
        row = Check(NO_PLAN, False, f"the plan says proven {said}, but its memory bound is {above} {limit} bytes")
    elif plan["proven"]:
        row = resting(NO_PLAN, f"every plan needs at least {value} bytes, a device has {limit}", [bound])
    else:
        row = fact(NO_PLAN, "not claimed: none was found")
    return [bound, row], tier if plan["proven"] else Tier.NONE


def check_stage_figures(
    rows: Sequence[dict[str, Any]], stages: Sequence[GraphStage], timed: Sequence[TimedStage]
) -> Check:
    """Check what each stage is said to take and to need."""
    name = "stage figures"
    for i, (row, stage, mine) in enumerate(zip(rows, stages, timed, strict=True)):
        due = {
            "forward_ticks": mine.forward,
            "backward_ticks": mine.backward,
            "synchronisation_ticks": mine.synchronisation,
            "memory_bytes": memory_bytes(stage),
        }
        for key, value in due.items():
            if row[key] != value:
                return Check(name, False, f"stage {i}: the plan says {key} {row[key]}, it is {value}")
    return Check(name, True, counted(len(stages), "stage"))


def check_transfers(rows: Sequence[dict[str, Any]], channels: Sequence[Channel]) -> Check:
    """Check that the transfers are those between stages, in ascending order, and what they take."""
    name = "transfers"
    ends, due = [(row["source"], row["target"]) for row in rows], [(one.source, one.target) for one in channels]
    if ends != due:
        wrong = next((f"{s} to {t}" for s, t in due if (s, t) not in ends), None)
        if wrong is not None:
            return Check(name, False, f"the one from stage {wrong} is missing")
        wrong = next((f"{s} to {t}" for s, t in ends if (s, t) not in due), None)
        if wrong is not None:
            return Check(name, False, f"nothing passes from stage {wrong}")
        return Check(name, False, "they are not in ascending order, each once")
    for row, one in zip(rows, channels, strict=True):
        for key, value in (("forward_ticks", one.forward), ("backward_ticks", one.backward)):
            if row[key] != value:
                where = f"from stage {one.source} to {one.target}"
                return Check(name, False, f"{where}: the plan says {key} {row[key]}, it is {value}")
    return Check(name, True, f"{len(channels)} between stages")


def check_depth(plan: dict[str, Any], pipeline: Pipeline) -> Check:
    """Check the stages on the longest path."""
    name = "depth"
    due = depth_of(len(pipeline.stages), pipeline.channels)
    if plan["depth"] != due:
        return Check(name, False, f"the plan says {plan['depth']}, it is {due}")
    return Check(name, True, f"{counted(due, 'stage')} on the longest path")


def check_time_per_sample(plan: dict[str, Any], pipeline: Pipeline) -> Check:
    """Check what the slowest stage or channel takes for a sample."""
    name = "time per sample"
    stated, due = Fraction(*plan["time_per_sample_ticks"]), time_per_sample(pipeline)
    if stated != due:
        return Check(name, False, f"the plan says {stated} ticks, it is {due}")
    return Check(name, True, f"{due} ticks")


def check_iteration(plan: dict[str, Any], pipeline: Pipeline) -> tuple[Check, int | None]:
    """Check the iteration by a simulation, and its floats; return it besides, None if passes wait for each other."""
    if messages(pipeline) > MOST_MESSAGES:
        return Check(ITERATION, None, f"channels move more than {MOST_MESSAGES} micro-batches"), None
    due = simulated_iteration(pipeline)
    if due is None:
        return Check(ITERATION, False, "passes wait for each other: it does not end"), None
    least = path_bound(pipeline)
    if due < least:
        return Check(ITERATION, False, f"the verifier contradicts itself: {due} ticks, paths take {least}"), None
    if plan["iteration_ticks"] != due:
        return Check(ITERATION, False, f"the plan says {plan['iteration_ticks']} ticks, it is {due}"), due
    unit = plan["time_unit"]
    time = float(Fraction(due, PICOSECONDS_PER_UNIT[unit]))
    speed = float(Fraction(pipeline.mini_batch * _SECOND, due)) if due else None
    for key, mine in (("iteration_time", time), ("samples_per_s", speed)):
        said = None if plan[key] is None else float(plan[key])
        if said != mine:
            return Check(ITERATION, False, f"the plan says {key} {said!r}, it is {mine!r}"), due
    return Check(ITERATION, True, f"{due} ticks; paths alone take {least}"), due
