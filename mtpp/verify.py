"""The independent verifier: everything a plan says, re-derived from documents in plain Python integers.

It imports nothing from the rest of the program but the errors, so that a mistake made there is not repeated here.
:mod:`mtpp.verify_document` knows the documents' shape, :mod:`mtpp.verify_graph` turns costs into ticks,
:mod:`mtpp.verify_stages` adds up stages, :mod:`mtpp.verify_bounds` re-checks the proofs of lower bounds,
:mod:`mtpp.verify_merges` the merges that some of them rest on, and :mod:`mtpp.verify_certificates` does for tables of
certificates what this module does for plans.
"""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.verify_checks import (
    check_assignment,
    check_bound,
    check_costs,
    check_counts,
    check_edges,
    check_file,
    check_gap,
    check_memory,
    check_model_ticks,
    check_together,
    compare,
    model_graph,
    quotient,
    refuse_impossible_system,
)
from mtpp.verify_claim import BoundClaim
from mtpp.verify_document import ABSTRACT, PICOSECONDS_PER_UNIT, STAGE_FIGURES, check_plan
from mtpp.verify_graph import TickGraph, embedded_in_ticks, first_difference
from mtpp.verify_report import NO_TIER, Check, Report, meets_tier
from mtpp.verify_stages import StageFigures, stage_figures

__all__ = ["Check", "Report", "meets_tier", "plan_claim", "verify_plan"]

_PLAN = "the plan"


def verify_plan(
    plan: Any,
    graph: Any | None,
    *,
    graph_sha256: str | None = None,
    costs_sha256: str | None = None,
    model_given: bool = False,
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
    model_given
        Whether *graph* comes from a model file, whose SHA-256 then has to be the plan's.

    Returns
    -------
    A report with one check per claim. A well-formed plan that is wrong fails checks; it raises nothing.

    Raises
    ------
    InputError
        If the plan or the graph is malformed (*where* is a JSON pointer; *source* is ``model`` if it points into the
        graph), or if there is no graph to compare with.

    Notes
    -----
    O(n log n + pins) time, O(n + pins) memory; recursion depth does not depend on the input.
    """
    check_plan(plan, ())
    embedded = embedded_in_ticks(plan["graph"]) if "graph" in plan else None
    model = None if graph is None else model_graph(graph, plan["system"], plan["k"])
    subject = embedded if model is None else model
    if subject is None:
        raise InputError("the plan embeds no graph", where="/graph", remedy="give the model with --model")
    refuse_impossible_system(plan["system"], subject, ("system",))

    checks = [
        _check_file(plan, graph_sha256, model_given=model_given),
        *_check_costs(plan, costs_sha256, model_given=model_given),
        _check_embedded(plan, embedded, model),
        check_counts(plan["model"], subject, _PLAN),
        _check_ticks(plan, model),
    ]
    assigned = check_assignment(plan["assignment"], plan["k"], subject)
    checks.append(assigned)
    bottleneck: int | None = None
    if assigned.passed:
        stage_of = [plan["assignment"][name] for name in subject.op_names]
        stages = stage_figures(subject, stage_of, plan["system"])
        bottleneck = max(stage.cost for stage in stages.values())
        checks += [
            check_edges(subject, stage_of),
            check_together(plan["together"], plan["assignment"]),
            _check_stages(plan, stages),
            check_memory(stages, plan["system"].get("stage_memory_bytes")),
            compare("bottleneck", plan["bottleneck"], bottleneck, "ticks", _PLAN),
        ]
    else:
        skipped = ("edges", "together", "stage costs", "stage memory", "bottleneck")
        checks += [Check(name, None, "not checked: the assignment is wrong") for name in skipped]
    stated = plan["lower_bound"]
    bound, tier = check_bound(_claim(plan, subject), stated["method"], stated["tier"])
    checks.append(bound)
    reached = plan["bottleneck"] if bottleneck is None else bottleneck
    checks += check_gap(reached, stated["value"], plan["ratio"], plan["optimal"], _PLAN)
    ratio = None if bottleneck is None or tier == NO_TIER else quotient(bottleneck, stated["value"])
    return Report(tuple(checks), tier, ratio, bound_rechecked=bound.passed is True)


def plan_claim(plan: dict[str, Any], graph: Any | None) -> BoundClaim:
    """Return what a plan which passed claims of its lower bound, on the model if it is given, else what it embeds."""
    ticks = embedded_in_ticks(plan["graph"]) if graph is None else model_graph(graph, plan["system"], plan["k"])
    return _claim(plan, ticks)


def _claim(plan: dict[str, Any], graph: TickGraph) -> BoundClaim:
    bound = plan["lower_bound"]
    return BoundClaim(graph, plan["system"], plan["k"], plan["together"], bound["value"], bound["proof"])


def _check_file(plan: dict[str, Any], actual: str | None, *, model_given: bool) -> Check:
    if actual is not None:
        return check_file(plan["model"]["sha256"], actual, _PLAN)
    if model_given:
        return Check("model file", False, "the model file's SHA-256 is not known")
    return Check("model file", None, "not checked: no model file")


def _check_costs(plan: dict[str, Any], actual: str | None, *, model_given: bool) -> list[Check]:
    stated = plan["model"].get("costs_sha256")
    if model_given or actual is not None or stated is None:
        return check_costs(stated, actual, _PLAN)
    return [Check("measured costs", None, "not checked: no model file")]


def _check_embedded(plan: dict[str, Any], embedded: TickGraph | None, model: TickGraph | None) -> Check:
    name = "embedded graph"
    if embedded is None:
        return Check(name, None, "not checked: the plan embeds none")
    due = ABSTRACT if (model.time_unit if model else plan["time_unit"]) == ABSTRACT else "ps"
    if embedded.time_unit != due:
        return Check(name, False, f"its time unit is {embedded.time_unit!r}; ticks of this plan are written as {due!r}")
    if model is None:
        return Check(name, True, "in ticks; taken as the model")
    difference = first_difference(embedded, model)
    return Check(name, difference is None, difference or "the model's, in ticks")


def _check_ticks(plan: dict[str, Any], model: TickGraph | None) -> Check:
    unit, stated = plan["time_unit"], plan["ticks_per_unit"]
    if model is not None:
        return check_model_ticks(unit, stated, model, _PLAN)
    due = PICOSECONDS_PER_UNIT[unit] if unit != ABSTRACT else 10 ** (len(str(stated)) - 1)
    if stated != due:
        return Check("ticks", False, f"the plan says {stated} ticks per unit ({unit}), it is {due}")
    return Check("ticks", None, "conversion not checked: the embedded graph is in ticks already")


def _check_stages(plan: dict[str, Any], stages: dict[int, StageFigures]) -> Check:
    name = "stage costs"
    if len(plan["stages"]) != plan["k"]:
        return Check(name, False, f"the plan lists {len(plan['stages'])} stages, k is {plan['k']}")
    for s, stated in enumerate(plan["stages"]):
        if stated["index"] != s:
            return Check(name, False, f"stage {s}: the plan says index {stated['index']}, it is {s}")
        derived = stages.get(s, StageFigures())
        for figure in STAGE_FIGURES:
            mine = getattr(derived, figure)
            if stated[figure] != mine:
                return Check(name, False, f"stage {s}: the plan says {figure} {stated[figure]}, it is {mine}")
    return Check(name, True, f"{plan['k']} stages, {plan['k'] - len(stages)} of them empty")
