"""Tables of certificates, re-derived row by row in plain Python integers.

A row with an upper side is checked like a plan, a row of bounds alone for its bound; the bounds that it lists beside
its best one are checked as far as their proofs are in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.checker.checks import (
    PARTITION,
    check_bound,
    check_costs,
    check_counts,
    check_file,
    check_group_names,
    check_model_ticks,
    check_ratio,
    gap_rows,
    hold,
    model_graph,
    proven_words,
    quotient,
    refuse_impossible_system,
    rows_named,
)
from mtpp.checker.claim import BOTTLENECK, LATENCY, BoundClaim
from mtpp.checker.devices.replicas import REPLICAS
from mtpp.checker.document import any_whole, brings_costs, machine, system_of_devices, time_unit
from mtpp.checker.facts import OWN_COSTS, counted, dims_rows, groups_row, system_rows
from mtpp.checker.goal import PlanGoal
from mtpp.checker.machine import on_devices, placed_graph
from mtpp.checker.names import row_name_rows
from mtpp.checker.report import (
    BOUND_CHECK,
    OUT_OF_TIME,
    STATED_TIERS,
    Check,
    Interrupts,
    Report,
    Search,
    Tier,
    complete,
    fact,
)
from mtpp.checker.tables.means import check_summary, check_unfinished
from mtpp.checker.tables.row_claims import FREE_TO_CHOOSE, MachineDue, RowClaims
from mtpp.checker.tables.row_partition import derived_objective, rows_on_stages
from mtpp.checker.tables.single_bounds import NAME as BOUNDS_TRIED
from mtpp.checker.tables.single_bounds import (
    PROVEN_BOUND,
    check_single_bounds,
    contradiction,
    others,
    proofs,
    refuse_stray_proofs,
)
from mtpp.document_shape import (
    Path,
    Rule,
    anything,
    array,
    choice,
    flag,
    mapping,
    nullable,
    number,
    record,
    refuse,
    sha256,
    tagged,
    text,
    whole,
)
from mtpp.errors import InputError

FORMAT = "mtpp-certificates"
_ROW = "the row"

_UPPER_SIDE: dict[str, Rule] = {
    "upper": whole(),
    "upper_algorithm": text,
    "ratio": nullable(number),
    "optimal": flag,
    "assignment": mapping(any_whole),
}

_PROVEN = record(
    {"value": whole(), "method": text, "tier": choice(Tier.EXACT, Tier.ENUMERATED), "proof": anything},
    {"ratio": nullable(number)},
)


def _either(one: Rule, other: Rule) -> Rule:
    """Return the rule of an array by *other*, and of all else by *one*."""
    return lambda value, path: (other if isinstance(value, list) else one)(value, path)


_row = record(
    {
        "model": text,
        "path": text,
        "sha256": sha256,
        "dims": mapping(whole(1)),
        "ops": whole(),
        "tensors": whole(),
        "time_unit": time_unit,
        "ticks_per_unit": whole(1),
        "system": system_of_devices,
        "k": whole(1),
        "lower": whole(),
        "lower_method": text,
        "tier": choice(*STATED_TIERS),
        "lower_proof": anything,
        "bounds": mapping(nullable(whole())),
        "solved": array(text),
        "seconds": mapping(number),
        "stopped": text,
    },
    {
        **_UPPER_SIDE,
        "together": array(array(text)),
        "costs_sha256": sha256,
        OWN_COSTS: brings_costs,
        "proven": _PROVEN,
        "proofs": proofs,
        "proposed_dims": array(text),
        "keep_state": mapping(text),
        "assumptions": array(text),
        "machine": machine,
        "devices": array(_either(whole(), array(whole()))),
        "replicas": flag,
        "objective": choice(BOTTLENECK, LATENCY),
        "bottleneck": whole(),
        "latency": whole(),
        "max_bottleneck": whole(),
        "max_latency": whole(),
    },
)


def _whole_row(value: Any, path: Path) -> None:
    _row(value, path)
    present = [key for key in _UPPER_SIDE if key in value]
    if present and len(present) < len(_UPPER_SIDE):
        missing = next(key for key in _UPPER_SIDE if key not in value)
        refuse("missing key", (*path, missing), f"a row with {present[0]} needs all of {', '.join(_UPPER_SIDE)}")
    if "proven" in value and value["tier"] != Tier.SOLVER:
        refuse("is for rows whose best bound is of tier solver", (*path, "proven"))
    if "proven" in value and ("ratio" in value["proven"]) != bool(present):
        refuse("belongs to rows with an upper side, and to all of them", (*path, "proven", "ratio"))
    refuse_stray_proofs(value, path)
    if not value.get(REPLICAS, True):
        refuse("is true where stages may stand on several devices, else left out", (*path, REPLICAS))
    for i, own in enumerate(value.get("devices", ())):
        if isinstance(own, list) != (REPLICAS in value):
            refuse("has a number for each stage, with replicas an array of numbers", (*path, "devices", i))
    if ("bottleneck" in value) != ("latency" in value) or ("bottleneck" in value and not present):
        refuse("bottleneck and latency belong to rows with an upper side, and to each other", path)
    if value.get("objective") == LATENCY and present and "latency" not in value:
        refuse("missing key", (*path, "latency"), "the upper side of such a row is a latency")
    PlanGoal.of(value, path)


check_table = tagged(FORMAT, {"rows": array(_whole_row), "summary": check_summary}, {"unfinished": check_unfinished})
"""Rule of a table of certificates; the content of proofs is not looked at."""


def row_path(index: int) -> Path:
    """Return where a row stands in its table."""
    return ("rows", index)


def verify_row(
    row: dict[str, Any],
    index: int,
    graph: Any,
    graph_sha256: str,
    costs_sha256: str | None = None,
    *,
    own_costs: bool | None = None,
    search: Search | None = None,
    system_due: Mapping[str, Any] | None = None,
    dims_due: Mapping[str, int] | None = None,
    machine_due: MachineDue = FREE_TO_CHOOSE,
    ended_by: Interrupts = (),
) -> Report:
    """Re-derive what a row of a table says and compare.

    Parameters
    ----------
    row
        Of a table that :data:`check_table` took.
    index
        Its place there, for messages.
    graph
        The model as an mtpp-graph document (numbers int, Decimal or Fraction).
    graph_sha256
        Of the file that it was read from.
    costs_sha256
        Of the file with measured costs that it was given, if any.
    own_costs, search, system_due, dims_due, ended_by
        As :func:`mtpp.checker.plan.verify_plan` takes them.
    machine_due
        Machine that the user holds the row to, and times of ops on the row's devices.

    Raises
    ------
    InputError
        If the proof or the graph is malformed; *source* is ``model`` for the latter.
    """
    claims = _claims(row, index, graph, machine_due)
    subject = claims.graph
    refuse_impossible_system(row["system"], subject, (*row_path(index), "system"))
    checks = [
        *system_rows(row["system"], system_due or {}, _ROW, row, own_costs),
        *claims.machine_checks(machine_due),
        *dims_rows(row, dims_due, _ROW),
        groups_row(row.get("together", []), subject.op_count),
        check_file(row["sha256"], graph_sha256, _ROW),
        *check_costs(row.get("costs_sha256"), costs_sha256, _ROW),
        check_counts(row, subject, _ROW),
        check_model_ticks(row["time_unit"], row["ticks_per_unit"], subject.time_unit, subject.ticks_per_unit, _ROW),
        *row_name_rows(row),
    ]
    if "upper" not in row:
        checks += check_group_names(row.get("together", []), subject)
    reached_there: int | None = None
    tier = Tier(row["tier"])
    try:
        if "upper" in row:
            reached_there = derived_objective(claims, checks)
        limit = reached_there if hold(checks, (*PARTITION, *claims.goal.rows)) else None
        claim = _claim(claims, index)
        if isinstance(claim, Check):
            bound, tier = claim, Tier.NONE
        else:
            bound, tier = check_bound(claim, row["lower_method"], tier, limit, search)
        checks.append(bound)
        if "proven" in row:
            proven = row["proven"]
            claim = _proven_claim(claims, index)
            if isinstance(claim, BoundClaim):
                method, its_tier = proven["method"], Tier(proven["tier"])
                claim = check_bound(claim, method, its_tier, limit, search, PROVEN_BOUND)[0]
            checks.append(claim)
        checks.append(check_single_bounds(claims, row_path(index), _reached(row, reached_there), checks, search))
    except ended_by:
        checks = list(complete(checks, _derived(row), OUT_OF_TIME))
    reached = _reached(row, reached_there)
    checks += _check_gaps(row, reached, checks)
    rechecked = any(check.name == BOUND_CHECK and check.passed for check in checks)
    ratio = None if reached_there is None or not rechecked else quotient(reached_there, row["lower"])
    return Report(tuple(checks), tier, ratio, bound_rechecked=rechecked, proven=_proven_words(row))


def unchecked_row(
    row: dict[str, Any],
    why: str,
    *,
    system_due: Mapping[str, Any] | None = None,
    dims_due: Mapping[str, int] | None = None,
) -> Report:
    """Return the report on a row of which nothing can be checked, such as one whose model was not found.

    What it says of its own figures is compared all the same, and held to what the user asks for.
    """
    checks = [
        *system_rows(row["system"], system_due or {}, _ROW, row),
        *dims_rows(row, dims_due, _ROW),
        groups_row(row.get("together", []), row["ops"]),
        fact("model file", f"recorded: {row['path']!r}, SHA-256 {row['sha256']}"),
        *row_name_rows(row),
    ]
    tier = Tier(row["tier"])
    if "upper" in row and row["lower"] > row["upper"]:
        of = row.get("objective", BOTTLENECK)
        above = f"the lower bound {row['lower']} is above the {of} {row['upper']} that the row states"
        checks.append(Check(BOUND_CHECK, False, above))
        tier = Tier.NONE
    fault = contradiction(row, row.get("upper"))
    if fault is not None:
        checks.append(Check(BOUNDS_TRIED, False, fault))
    checks = list(complete(checks, ("op and tensor counts", *_derived(row)), why))
    checks += _check_gaps(row, row.get("upper"), checks)
    return Report(tuple(checks), tier, None, bound_rechecked=False, proven=_proven_words(row))


def unseen_report(row: dict[str, Any], why: str, system_due: Mapping[str, Any]) -> Report:
    """Return the report on a row whose figures were not as much as compared: no time is left.

    It is the same for all rows of one kind (:func:`kind_of_row`), so that a hundred thousand of them can share it.
    """
    held = [check for check in system_rows(row["system"], system_due, _ROW, row) if not check.fact]
    gaps = ["ratio", "optimal", *([_PROVEN_RATIO] if "proven" in row else [])] if "upper" in row else []
    checks = complete(held, ("op and tensor counts", *_derived(row), *gaps), why)
    return Report(checks, Tier(row["tier"]), None, bound_rechecked=False, proven=_proven_words(row))


def kind_of_row(row: dict[str, Any], system_due: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what :func:`unseen_report` depends on."""
    return (
        "upper" in row,
        "proven" in row,
        bool(others(row)),
        row["tier"],
        *(row["system"].get(key) for key in system_due),
    )


_PROVEN_RATIO = "proven ratio"
"""Row on the ratio to the best bound that can be checked, where the best one cannot."""


def _derived(row: dict[str, Any]) -> list[str]:
    """Return the claims of a row that ratios rest on."""
    upper = ["assignment", *rows_on_stages(row)] if "upper" in row else []
    singles = [BOUNDS_TRIED] if others(row) else []
    return [*upper, BOUND_CHECK, *([PROVEN_BOUND] if "proven" in row else []), *singles]


def _reached(row: dict[str, Any], reached: int | None) -> int | None:
    return row.get("upper") if reached is None else reached


def _check_gaps(row: dict[str, Any], reached: int | None, checks: Sequence[Check]) -> list[Check]:
    """Check the ratios of a row to its bounds; none is due without an upper side."""
    if reached is None:
        return []
    partition = (*PARTITION, *PlanGoal.of(row).rows)
    rests_on = rows_named(checks, (*partition, BOUND_CHECK))
    found = gap_rows(row, reached, row["lower"], Tier(row["tier"]), rests_on, _ROW)
    if "proven" in row:
        due, rests_on = quotient(reached, row["proven"]["value"]), rows_named(checks, (*partition, PROVEN_BOUND))
        found.append(check_ratio(due, row["proven"]["ratio"], rests_on, _ROW, _PROVEN_RATIO))
    return found


def _proven_words(row: dict[str, Any]) -> str:
    together, goal = bool(row.get("together")), PlanGoal.of(row)
    on = on_devices(row["machine"]) if "machine" in row else ""
    on += ", each on one or more," if REPLICAS in row else ""
    if "upper" in row:
        return proven_words(
            row["upper"],
            row["lower"],
            row["k"],
            together=together,
            devices=on,
            objective=goal.objective,
            within=goal.words,
        )
    stages = counted(row["k"], "stage")
    return f"proven: no partition into {stages}{on}{goal.words} has a {goal.objective} below {row['lower']} ticks"


def _claims(row: dict[str, Any], index: int, graph: Any, due: MachineDue) -> RowClaims:
    """Return the row with the model's graph in ticks, on each device of its machine if it has one."""
    if "machine" not in row:
        return RowClaims.of(row, model_graph(graph, row["system"], row["k"]), None, row_path(index))
    try:
        placed = placed_graph(row["machine"], graph, row["k"], due.times, embedded=False)
    except InputError as error:
        if (error.where or "").startswith("/machine"):
            raise InputError(error.problem, where=f"/rows/{index}{error.where}", remedy=error.remedy) from None
        raise InputError(error.problem, source="model", where=error.where, remedy=error.remedy) from None
    return RowClaims.of(row, placed.envelope, placed, row_path(index))


def _claim(claims: RowClaims, index: int) -> BoundClaim | Check:
    row, path = claims.row, (*row_path(index), "lower_proof")
    return claims.claim(row["lower_method"], row["lower"], row["lower_proof"], path, BOUND_CHECK)


def _proven_claim(claims: RowClaims, index: int) -> BoundClaim | Check:
    bound, path = claims.row["proven"], (*row_path(index), "proven", "proof")
    return claims.claim(bound["method"], bound["value"], bound["proof"], path, PROVEN_BOUND)
