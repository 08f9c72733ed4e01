"""The independent verifier of plans by ``pfeife``: everything that one says, re-derived from the model in integers.

Of the rest of the program it imports errors and rules of documents. :mod:`.document` knows the shape of documents,
:mod:`.costs` turns costs into ticks, :mod:`.schedule` holds names of schedules to their passes and replays an
iteration, and :mod:`.paths` re-derives lower bounds. Not checked: how the plan was found (times, which search), and
the model's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from mtpp.checker.checks import (
    check_costs,
    check_counts,
    check_optimal,
    check_ratio,
    compare,
    file_row,
    hold,
    model_graph,
    quotient,
    resting,
    rows_named,
)
from mtpp.checker.facts import counted, factor
from mtpp.checker.graph import ceil_div
from mtpp.checker.names import end_rows
from mtpp.checker.report import BOUND_CHECK, OUT_OF_TIME, Check, Interrupts, Report, Tier, complete, fact
from mtpp.checker.training.model import StatedModel
from mtpp.checker.training.pfeife.claims import (
    BASELINES,
    DEVICES,
    along_order,
    baseline_check,
    device_check,
    family_check,
    family_rows_check,
    lower_check,
    schedules_asked_for,
)
from mtpp.checker.training.pfeife.costs import Line, graph_line, layer_line
from mtpp.checker.training.pfeife.document import STATED, each_device, holds_all_buffers
from mtpp.checker.training.pfeife.schedule import (
    Rows,
    StageTimes,
    device_bytes,
    fault_of,
    replay,
    resting_bytes,
    stage_times,
    stated_rows,
    straight_transfers,
)
from mtpp.checker.training.plan_rows import LEAST_MEMORY as LEAST
from mtpp.checker.training.plan_rows import NO_PLAN, bandwidth_row, model_rows, no_plan_report

_PLAN = "the plan"
STAGES, TIMES, SCHEDULE, ITERATION = "stages", "stage times", "schedule", "iteration"
FAMILY = "bound on schedules asked for"
MEMORY_BOUND = "memory bound"
_RESTS_ON = (STAGES, TIMES, SCHEDULE, ITERATION, DEVICES)
_CLAIMS = (*_RESTS_ON, BASELINES, BOUND_CHECK, FAMILY)


def verify_split_plan(
    plan: Any,
    model: Any,
    model_sha256: str | None,
    *,
    costs_sha256: str | None = None,
    system_due: Mapping[str, Any] | None = None,
    ended_by: Interrupts = (),
) -> Report:
    """Re-derive what a well-formed plan says; terms as in :func:`~mtpp.checker.training.plan.verify_training_plan`.

    Returns
    -------
    A report with one row per claim. A document that is wrong fails checks; it raises nothing.

    Notes
    -----
    O(S · n) for each mixture of paths, O(passes), O(n + pins).
    """
    line, checks = _line_of(plan, model, model_sha256, costs_sha256, system_due or {})
    if isinstance(line, str):
        checks.append(Check(STAGES, False, line))
        checks = list(complete(checks, _CLAIMS if plan["feasible"] else (LEAST, MEMORY_BOUND, NO_PLAN), "no costs"))
        return Report(tuple(checks), Tier.NONE, None, bound_rechecked=False, proven="")
    return _feasible(plan, line, checks, ended_by) if plan["feasible"] else _infeasible(plan, line, checks)


def _line_of(
    plan: dict[str, Any], model: Any, sha256: str | None, costs_sha256: str | None, due: Mapping[str, Any]
) -> tuple[Line | str, list[Check]]:
    system = plan["system"]
    memory = system["memory_bytes"]
    checks = [
        fact("devices at hand", f"{counted(system['devices'], 'device')}, memory {_memory(memory)}"),
        bandwidth_row(system, (), due, _PLAN),
        fact("latency", f"{system['latency_ticks']} ticks of each hand-over"),
        fact("transport", system["transport"]),
        fact("asked for", _asked_for(plan)),
        *end_rows(plan),
    ]
    if (plan["order"] is not None) != (plan["rules"]["order"] == "search"):
        return "the plan states an order of ops, and none was searched, or the reverse", checks
    if (plan["rules"]["loops"] is None) != (plan["rules"]["schedule"] is not None):
        return "the plan states neither loops nor a schedule that was asked for, or both", checks
    if plan["model"]["kind"] == "layers":
        stated: StatedModel = model
        line: Line | str = layer_line(plan, stated)
        checks += model_rows(plan, sha256, len(stated.layers), len(stated.edges), stated.time_unit)
        return line, checks
    graph = model_graph(model, {"bandwidth_bytes_per_s": system["bandwidth_bytes_per_s"]}, 1)
    if plan["model"]["system"].get("bandwidth_bytes_per_s") != system["bandwidth_bytes_per_s"]:
        checks.append(Check("system", False, "the plan states two bandwidths"))
    line = graph_line(plan, model)
    checks += [
        file_row(plan["model"]["sha256"], sha256, _PLAN),
        *check_costs(plan["model"].get("costs_sha256"), costs_sha256, _PLAN),
        check_counts(plan["model"], graph, _PLAN),
        Check("ticks", True, f"{graph.ticks_per_unit} per unit ({graph.time_unit})")
        if (plan["time_unit"], plan["ticks_per_unit"]) == (graph.time_unit, graph.ticks_per_unit)
        else Check("ticks", False, f"it is {graph.ticks_per_unit} per unit ({graph.time_unit})"),
    ]
    return line, checks


def _asked_for(plan: dict[str, Any]) -> str:
    """Return the schedules and costs that a plan is for, which its bounds hold for."""
    rules, costs = plan["rules"], plan["costs"]
    batches = counted(plan["micro_batches"], "micro-batch")
    if rules["schedule"] is not None:
        texts = [f"{batches} under the schedule {rules['schedule'][:60]}"]
    else:
        loops = ", ".join(map(str, rules["loops"] or ()))
        which = "any number" if rules["loop_batches"] == "any" else "divisors"
        prefetch = rules["prefetch"]
        ahead = "any" if prefetch is None else ", ".join(map(str, prefetch))
        texts = [f"{batches}; loops {loops}; loop batches: {which}; prefetch: {ahead}"]
    if plan["model"]["kind"] == "graph":
        what = "trained parameters" if costs.get("trained") == STATED else "parameters"
        texts.append(f"backward passes {costs['backward_ratio']} × forward passes, {costs['state']} × {what} in memory")
    else:
        texts.append(f"layers as their {costs['configurations']} configurations")
    texts.append(f"buffers of {'all micro-batches' if holds_all_buffers(plan) else 'micro-batches in flight'}")
    speed = plan["system"]["speed"]
    if speed != "1":
        texts.append(f"speeds {speed if isinstance(speed, str) else ', '.join(speed)}")
    return "; ".join(texts)


def _memory(stated: Any) -> str:
    if stated is None:
        return "not limited"
    return f"{stated} bytes each" if isinstance(stated, int) else ", ".join(f"{one} bytes" for one in stated)


def _feasible(plan: dict[str, Any], line: Line, checks: list[Check], ended_by: Interrupts) -> Report:
    reached: int | None = None
    tier = Tier(plan["lower_bound"]["tier"])
    value = plan["lower_bound"]["value"]
    try:
        found = _pipeline(plan, line, checks)
        if found is None:
            checks[:] = complete(checks, _CLAIMS, "there is no pipeline to check it on")
        else:
            rows, times, split = found
            reached = _iteration(plan, line, rows, times, split, checks)
            checks.append(device_check(plan, line, rows, times, split))
            checks.append(baseline_check(plan, line, rows))
            family, least = family_check(plan, line, FAMILY, rows)
            checks += [lower_check(plan, line, rows, least), family]
    except ended_by:
        checks[:] = complete(checks, _CLAIMS, OUT_OF_TIME)
    rests_on = rows_named(checks, (*_RESTS_ON, BOUND_CHECK, FAMILY))
    iteration = plan["iteration_ticks"]
    all_value = plan["family_bound"]["value"]
    due, family_due = quotient(iteration, value), quotient(iteration, all_value)
    bound = next(check for check in checks if check.name == BOUND_CHECK)
    for name, row in ((BOUND_CHECK, value), (FAMILY, all_value)):
        if row > iteration:
            checks[:] = [
                Check(name, False, f"the lower bound {row} is above the iteration {iteration}")
                if check.name == name
                else check
                for check in checks
            ]
    checks += [
        check_ratio(due, plan["ratio"], rests_on, _PLAN, "ratio"),
        check_ratio(family_due, plan["family_ratio"], rests_on, _PLAN, "ratio of schedules asked for"),
        check_optimal(
            stated=plan["optimal"],
            closed=iteration == all_value and not _narrower(plan),
            tier=Tier(plan["family_bound"]["tier"]),
            rests_on=rests_on,
            said_by=_PLAN,
        ),
    ]
    if any(check.passed is False for check in rows_named(checks, (BOUND_CHECK, FAMILY))):
        tier = Tier.NONE
    words = _proven(plan, due, family_due)
    rechecked = bound.passed is True
    return Report(
        tuple(checks), tier, due if rechecked and reached is not None else None, bound_rechecked=rechecked, proven=words
    )


def _narrower(plan: dict[str, Any]) -> str:
    """Return what the bounds hold for alone, though more was asked for: one order of ops, or slower configurations."""
    texts = []
    if plan["rules"]["order"] == "search" and _method_of_all(plan) != "loads":
        texts.append("along this order of ops")
    if plan["costs"]["configurations"] not in (None, "fastest"):
        texts.append("with layers as these configurations")
    return " and ".join(texts)


def _method_of_all(plan: dict[str, Any]) -> str:
    """Return the method of the bound on all schedules, that of their only one where there is but one."""
    family = plan["family_bound"]["method"]
    return str(plan["lower_bound"]["method"] if family == "schedule" else family)


def _proven(plan: dict[str, Any], due: float | None, family_due: float | None) -> str:
    """Return what a plan proves if all is true."""
    which, along = schedules_asked_for(plan), along_order(plan, _method_of_all(plan))
    if plan["costs"]["configurations"] is not None:
        fastest = plan["costs"]["configurations"] == "fastest"
        along += f", with layers as {'their fastest' if fastest else 'these'} configurations"
    if plan["iteration_ticks"] == plan["family_bound"]["value"]:
        optimal = "" if _narrower(plan) else " optimal"
        return f"proven{optimal}: no split under {which}{along}, is faster"
    return (
        f"proven to be within a factor of {_factor(due)} of the best split under this schedule, "
        f"and of {_factor(family_due)} of that under {which}{along}"
    )


def _factor(ratio: float | None) -> str:
    return "infinity" if ratio is None else factor(ratio)


def _pipeline(plan: dict[str, Any], line: Line, checks: list[Check]) -> tuple[Rows, StageTimes, list[int]] | None:
    """Add the rows on stages and schedule, and return them; None if they are none."""
    devices = plan["system"]["devices"]
    rows = stated_rows(plan["schedule"])
    split, fault = [0], None
    for s, stage in enumerate(plan["stages"]):
        if (stage["index"], stage["device"]) != (s, s % devices):
            fault = f"stage {s} is not in its place, or not on device {s % devices}"
        if not stage["layers"]:
            fault = f"stage {s} is empty"
        split.append(split[-1] + len(stage["layers"]))
    named = [name for stage in plan["stages"] for name in stage["layers"]]
    if not fault and named != line.names:
        fault = "the stages are no runs of all ops in their order"
    if fault or not plan["stages"]:
        checks.append(Check(STAGES, False, fault or "there are no stages"))
        return None
    checks.append(Check(STAGES, True, f"{counted(line.count, 'op')} in {counted(len(plan['stages']), 'stage')}"))
    times = stage_times(line, split)
    stated = [(row["forward_ticks"], row["backward_ticks"], row["handover_ticks"]) for row in plan["stages"]]
    direct = plan["system"]["transport"] == "direct"
    handover = [None] * len(stated) if direct else [*times.handover, 0]
    due = list(zip(times.forward, times.backward, handover, strict=True))
    wrong = next((s for s, (said, is_) in enumerate(zip(stated, due, strict=True)) if said != is_), None)
    text = "forward, backward and hand-over of every stage"
    if wrong is not None:
        text = f"the plan says {stated[wrong]} for stage {wrong}, it is {due[wrong]}"
    else:
        fault = _straight_fault(plan, straight_transfers(line, split) if direct else {})
    checks.append(Check(TIMES, wrong is None and fault is None, fault or text))
    fault = fault_of(rows, devices, plan["schedule"]["micro_batches"])
    if fault is None and plan["schedule"]["micro_batches"] != plan["micro_batches"]:
        fault = f"the schedule has {plan['schedule']['micro_batches']} micro-batches, the plan {plan['micro_batches']}"
    if fault is None and rows.stages != len(plan["stages"]):
        fault = f"the schedule has {rows.stages} stages, the plan {len(plan['stages'])}"
    if fault is None:
        fault = family_rows_check(plan, line, rows, plan["schedule"])
    checks.append(Check(SCHEDULE, fault is None, fault or "every pass once, as its parameters say"))
    return None if fault else (rows, times, split)


def held_bytes(plan: dict[str, Any], model: Any) -> list[tuple[int, list[int]]] | None:
    """Return the bytes that each device holds all the time, and for a micro-batch in flight in each of its stages.

    Parameters
    ----------
    plan, model
        As :func:`verify_split_plan` takes them.

    Returns
    -------
    None where sizes are not known, or stages and schedule are not those of the model.
    """
    line = layer_line(plan, model) if plan["model"]["kind"] == "layers" else graph_line(plan, model)
    if isinstance(line, str) or not line.sizes_known or (found := _pipeline(plan, line, [])) is None:
        return None
    rows, _, split = found
    direct = plan["system"]["transport"] == "direct"
    always, flying = resting_bytes(
        line, split, plan["schedule"]["micro_batches"], direct=direct, all_buffers=holds_all_buffers(plan)
    )
    return [(size, flying[d :: rows.devices]) for d, size in enumerate(always)]


def handed_bytes(plan: dict[str, Any], model: Any) -> dict[tuple[int, int], int]:
    """Return the bytes that a stage hands to another for a micro-batch, by both; empty where sizes are not known.

    Parameters
    ----------
    plan, model
        As :func:`held_bytes` takes them.
    """
    line = layer_line(plan, model) if plan["model"]["kind"] == "layers" else graph_line(plan, model)
    if isinstance(line, str) or not line.sizes_known or (found := _pipeline(plan, line, [])) is None:
        return {}
    split, sizes = found[2], [tensor.size or 0 for tensor in line.tensors]
    if plan["system"]["transport"] != "direct":
        crossing = line.crossing(sizes)
        return {(s, s + 1): crossing[cut] for s, cut in enumerate(split[1:-1])}
    between: dict[tuple[int, int], int] = {}
    stage_of = [s for s in range(len(split) - 1) for _ in range(split[s], split[s + 1])]
    for tensor, size in zip(line.tensors, sizes, strict=True):
        source = stage_of[tensor.producer]
        for target in {stage_of[v] for v in tensor.readers} - {source}:
            between[source, target] = between.get((source, target), 0) + size
    return between


def _straight_fault(plan: dict[str, Any], due: dict[tuple[int, int], int]) -> str | None:
    """Return what is wrong with the ticks that a plan says tensors take from stage to stage; None if nothing is."""
    for s, row in enumerate(plan["stages"]):
        said = [tuple(pair) for pair in row.get("handovers", [])]
        real = sorted((target, ticks) for (source, target), ticks in due.items() if source == s)
        if said != real:
            return f"the plan says that stage {s} hands {said} to other stages, it is {real}"
    return None


def _iteration(
    plan: dict[str, Any], line: Line, rows: Rows, times: StageTimes, split: list[int], checks: list[Check]
) -> int | None:
    """Add the row on the iteration, and return its ticks, None if passes wait for each other."""
    direct = plan["system"]["transport"] == "direct"
    ticks = replay(rows, times, straight_transfers(line, split) if direct else None)
    if ticks is None:
        checks.append(Check(ITERATION, False, "passes of the schedule wait for each other"))
    else:
        checks.append(compare(ITERATION, plan["iteration_ticks"], ticks, "ticks", _PLAN))
    return ticks


def _infeasible(plan: dict[str, Any], line: Line, checks: list[Check]) -> Report:
    devices, limit = plan["system"]["devices"], plan["system"]["memory_bytes"]
    stated = plan["memory_bound"]
    due = max(max(line.least_held), ceil_div(sum(line.least_held) - line.repeated, devices))
    if stated["method"] != "shares" or stated["tier"] != "exact" or stated["proof"]:
        checks.append(Check(MEMORY_BOUND, False, "no checker for this method"))
    else:
        ok = stated["value"] <= due
        text = f"the plan says {stated['value']} bytes, it is {due}"
        checks.append(Check(MEMORY_BOUND, ok, f"{stated['value']} bytes on some device" if ok else text))
    checks.append(_least(plan, line))
    fits = (
        limit is not None
        and plan["least_memory_plan"] is not None
        and all(
            need <= size
            for need, size in zip(plan["least_memory_plan"]["peak_bytes"], each_device(limit, devices), strict=False)
        )
    )
    most = max(each_device(limit, devices)) if limit is not None else None
    proven = most is not None and stated["value"] > most
    if fits:
        row = Check(NO_PLAN, False, "the plan says that there is none, and one of its own fits")
    elif plan["proven"] != proven:
        row = Check(NO_PLAN, False, f"the plan says proven {str(plan['proven']).lower()}, its memory bound says not so")
    elif proven:
        row = resting(NO_PLAN, "proven", rows_named(checks, (MEMORY_BOUND,)))
    else:
        row = fact(NO_PLAN, "none was found, which proves nothing")
    checks.append(row)
    tier = Tier.EXACT if proven and hold(checks, (MEMORY_BOUND,)) else Tier.NONE
    return no_plan_report(checks, tier, proven=row.passed is True)


def _least(plan: dict[str, Any], line: Line) -> Check:
    """Check the plan that needs the least memory of those found."""
    least, said = plan["least_memory_plan"], plan["least_memory_bytes"]
    if least is None or said is None:
        alike = least is None and said is None
        return fact(LEAST, "none stated") if alike else Check(LEAST, False, "a plan or its memory is missing")
    rows = stated_rows(least["schedule"])
    devices, micro_batches = plan["system"]["devices"], least["schedule"]["micro_batches"]
    split = least["split"]
    if micro_batches != plan["micro_batches"]:
        return Check(LEAST, False, f"it is of {counted(micro_batches, 'micro-batch')}, not of {plan['micro_batches']}")
    fault = fault_of(rows, devices, micro_batches)
    if fault is None:
        fault = family_rows_check(plan, line, rows, least["schedule"])
    whole = split[:1] == [0] and split[-1:] == [line.count] and all(a < b for a, b in pairwise(split))
    if fault is None and (not whole or rows.stages != len(split) - 1):
        fault = "its split is none of the model"
    if fault is None and replay(rows, stage_times(line, split)) is None:
        fault = "its passes wait for each other"
    if fault is not None:
        return Check(LEAST, False, fault)
    direct = plan["system"]["transport"] == "direct"
    need = device_bytes(line, rows, split, micro_batches, direct=direct, all_buffers=holds_all_buffers(plan))
    if need != least["peak_bytes"] or max(need) != said:
        return Check(LEAST, False, f"the plan says {said} bytes, its fullest device needs {max(need)}")
    return Check(LEAST, True, f"there is a plan with {said} bytes")
