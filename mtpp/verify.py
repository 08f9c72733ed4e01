"""The independent verifier: everything a plan says, re-derived from documents in plain Python integers.

It imports nothing from the rest of the program but the errors, so that a mistake made there is not repeated here.
:mod:`mtpp.verify_document` knows the documents' shape, :mod:`mtpp.verify_graph` turns costs into ticks,
:mod:`mtpp.verify_stages` adds up stages, :mod:`mtpp.verify_bounds` re-checks the proofs of lower bounds, and
:mod:`mtpp.verify_merges` the merges that some of them rest on.
"""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.verify_bounds import CHECKERS, BoundClaim, together_classes
from mtpp.verify_document import ABSTRACT, PICOSECONDS_PER_UNIT, STAGE_FIGURES, check_plan, refuse
from mtpp.verify_graph import TickGraph, embedded_in_ticks, first_difference, model_in_ticks
from mtpp.verify_merged import MergedGraph
from mtpp.verify_merges import check_merges, replay_merges
from mtpp.verify_report import BOUND_CHECK, NO_TIER, Check, Report, meets_tier
from mtpp.verify_stages import StageFigures, stage_figures

__all__ = ["Check", "Report", "graph_in_ticks", "meets_tier", "replayed_merges", "verify_plan"]


def verify_plan(plan: Any, graph: Any | None, *, graph_sha256: str | None = None, model_given: bool = False) -> Report:
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
    model = None if graph is None else _model(graph, plan)
    subject = embedded if model is None else model
    if subject is None:
        raise InputError("the plan embeds no graph", where="/graph", remedy="give the model with --model")
    _refuse_impossible_system(plan["system"], subject)

    checks = [
        _check_file(plan["model"]["sha256"], graph_sha256, model_given=model_given),
        _check_embedded(plan, embedded, model),
        _check_counts(plan["model"], subject),
        _check_ticks(plan, model),
    ]
    assigned = _check_assignment(plan, subject)
    checks.append(assigned)
    bottleneck: int | None = None
    if assigned.passed:
        stage_of = [plan["assignment"][name] for name in subject.op_names]
        stages = stage_figures(subject, stage_of, plan["system"])
        bottleneck = max(stage.cost for stage in stages.values())
        checks += [
            _check_edges(subject, stage_of),
            _check_together(plan["together"], plan["assignment"]),
            _check_stages(plan, stages, subject),
            _check_memory(stages, plan["system"].get("stage_memory_bytes")),
            _compare("bottleneck", plan["bottleneck"], bottleneck, "ticks"),
        ]
    else:
        skipped = ("edges", "together", "stage costs", "stage memory", "bottleneck")
        checks += [Check(name, None, "not checked: the assignment is wrong") for name in skipped]
    bound, tier = _check_bound(plan, subject)
    checks.append(bound)
    checks += _check_gap(plan, bottleneck)
    ratio = None if bottleneck is None or tier == NO_TIER else _quotient(bottleneck, plan["lower_bound"]["value"])
    return Report(tuple(checks), tier, ratio, bound_rechecked=bound.passed is True)


def graph_in_ticks(plan: dict[str, Any], graph: Any | None) -> TickGraph:
    """Return the graph that a plan which passed is about: the model if it is given, else what the plan embeds."""
    return embedded_in_ticks(plan["graph"]) if graph is None else _model(graph, plan)


def replayed_merges(plan: dict[str, Any], graph: TickGraph) -> MergedGraph | str:
    """Return a plan's graph with all merged that its bound by downset search rests on, or what is wrong with a merge.

    Raises
    ------
    InputError
        If the list of merges is malformed.
    """
    merges = plan["lower_bound"]["proof"]["merges"]
    check_merges(merges, ("lower_bound", "proof", "merges"))
    return replay_merges(graph, together_classes(graph, plan["together"]), plan["system"], merges)


def _model(graph: Any, plan: dict[str, Any]) -> TickGraph:
    try:
        return model_in_ticks(graph, plan["system"]["bandwidth_bytes_per_s"], plan["k"])
    except InputError as error:
        raise InputError(error.problem, source="model", where=error.where, remedy=error.remedy) from None


def _refuse_impossible_system(system: dict[str, Any], graph: TickGraph) -> None:
    if system["fast_memory_bytes"] is not None and graph.time_unit == ABSTRACT:
        refuse("a fast memory needs a graph with a time unit", ("system", "fast_memory_bytes"))
    for memory, what in (("fast_memory_bytes", "fast memory"), ("stage_memory_bytes", "stage memory")):
        size = system.get(memory)
        if size is not None and system["activation_reserve_bytes"] > size:
            refuse(f"the activation reserve is above the {what}", ("system", "activation_reserve_bytes"))


def _compare(name: str, stated: int, derived: int, unit: str) -> Check:
    if stated == derived:
        return Check(name, True, f"{derived} {unit}")
    return Check(name, False, f"the plan says {stated} {unit}, it is {derived}")


def _check_file(stated: str | None, actual: str | None, *, model_given: bool) -> Check:
    name = "model file"
    if actual is None:
        if model_given:
            return Check(name, False, "the model file's SHA-256 is not known")
        return Check(name, None, "not checked: no model file")
    if stated != actual:
        return Check(name, False, f"the plan was made from SHA-256 {stated}, this file has {actual}")
    return Check(name, True, f"SHA-256 {actual}")


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


def _check_counts(stated: dict[str, Any], graph: TickGraph) -> Check:
    name = "op and tensor counts"
    ops, tensors = graph.op_count, len(graph.tensor_names)
    if (stated["ops"], stated["tensors"]) != (ops, tensors):
        claim = f"the plan says {stated['ops']} ops and {stated['tensors']} tensors"
        return Check(name, False, f"{claim}, the graph has {ops} and {tensors}")
    return Check(name, True, f"{ops} ops, {tensors} tensors")


def _check_ticks(plan: dict[str, Any], model: TickGraph | None) -> Check:
    name = "ticks"
    unit, stated = plan["time_unit"], plan["ticks_per_unit"]
    if model is not None and unit != model.time_unit:
        return Check(name, False, f"the plan's time unit is {unit!r}, the model's {model.time_unit!r}")
    if model is not None:
        due = model.ticks_per_unit
    elif unit != ABSTRACT:
        due = PICOSECONDS_PER_UNIT[unit]
    else:
        due = 10 ** (len(str(stated)) - 1)
    if stated != due:
        return Check(name, False, f"the plan says {stated} ticks per unit ({unit}), it is {due}")
    if model is None:
        return Check(name, None, "conversion not checked: the embedded graph is in ticks already")
    return Check(name, True, f"{due} per unit ({unit})")


def _check_assignment(plan: dict[str, Any], graph: TickGraph) -> Check:
    name = "assignment"
    assignment, k = plan["assignment"], plan["k"]
    known = set(graph.op_names)
    missing = [op for op in graph.op_names if op not in assignment]
    unknown = [op for op in assignment if op not in known]
    outside = [op for op, stage in assignment.items() if not 0 <= stage < k]
    if missing:
        return Check(name, False, f"{len(missing)} ops have no stage, the first is {missing[0]!r}")
    if unknown:
        return Check(name, False, f"{len(unknown)} ops are not in the graph, the first is {unknown[0]!r}")
    if outside:
        op = outside[0]
        return Check(name, False, f"op {op!r} is in stage {assignment[op]}, the stages are 0 to {k - 1}")
    return Check(name, True, f"each of {graph.op_count} ops in one of {k} stages")


def _check_edges(graph: TickGraph, stage_of: list[int]) -> Check:
    count = 0
    for t, u, v in graph.edges():
        count += 1
        if stage_of[u] > stage_of[v]:
            edge = f"{graph.op_names[u]!r} (stage {stage_of[u]}) to {graph.op_names[v]!r} (stage {stage_of[v]})"
            return Check("edges", False, f"tensor {graph.tensor_names[t]!r} goes back from {edge}")
    return Check("edges", True, f"none of {count} goes to an earlier stage")


def _check_together(groups: list[list[str]], assignment: dict[str, int]) -> Check:
    name = "together"
    for group in groups:
        unknown = next((op for op in group if op not in assignment), None)
        if unknown is not None:
            return Check(name, False, f"the graph has no op {unknown!r}")
        apart = next((op for op in group if assignment[op] != assignment[group[0]]), None)
        if apart is not None:
            first = f"{group[0]!r} (stage {assignment[group[0]]})"
            return Check(name, False, f"{first} and {apart!r} (stage {assignment[apart]}) are apart")
    return Check(name, True, f"{len(groups)} groups kept" if groups else "no groups asked for")


def _check_stages(plan: dict[str, Any], stages: dict[int, StageFigures], graph: TickGraph) -> Check:
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


def _check_memory(stages: dict[int, StageFigures], limit: int | None) -> Check:
    name = "stage memory"
    if limit is None:
        return Check(name, True, "no limit")
    held, stage = max((figures.param_bytes + figures.peak_bytes, -s) for s, figures in stages.items())
    if held > limit:
        return Check(name, False, f"stage {-stage} needs {held} bytes, the limit is {limit}")
    return Check(name, True, f"at most {held} of {limit} bytes")


def _check_bound(plan: dict[str, Any], graph: TickGraph) -> tuple[Check, str]:
    stated = plan["lower_bound"]
    method, tier = stated["method"], stated["tier"]
    if tier == "enumerated":
        return _check_enumerated(plan, graph)
    if tier == "solver":
        return Check(BOUND_CHECK, None, f"{method}: not re-checked: rests on the MIP solver"), tier
    if method not in CHECKERS:
        return Check(BOUND_CHECK, False, f"no checker for method {method!r}"), NO_TIER
    claim = BoundClaim(graph, plan["system"], plan["k"], plan["together"], stated["value"], stated["proof"])
    passed, detail = CHECKERS[method](claim)
    if passed and plan["together"]:
        detail += "; among partitions that keep the groups together"
    return Check(BOUND_CHECK, passed, detail), tier if passed else NO_TIER


def _check_enumerated(plan: dict[str, Any], graph: TickGraph) -> tuple[Check, str]:
    """Replay the merges that an exhaustive search rests on; running it again is not for this module."""
    method, tier, proof = (plan["lower_bound"][key] for key in ("method", "tier", "proof"))
    if method != "downset" or "merges" not in proof:
        return Check(BOUND_CHECK, None, f"{method}: not re-checked: enumerated, use --deep"), tier
    merged = replayed_merges(plan, graph)
    if isinstance(merged, str):
        return Check(BOUND_CHECK, False, f"{method}: {merged}"), NO_TIER
    hold = merges_hold(len(proof["merges"]))
    return Check(BOUND_CHECK, None, f"{method}: {hold}; the search itself is not re-run: use --deep"), tier


def merges_hold(count: int) -> str:
    """Say that *count* merges hold."""
    return "no merges" if count == 0 else "1 merge holds" if count == 1 else f"{count} merges hold"


def _quotient(bottleneck: int, bound: int) -> float | None:
    if bound == 0:
        return 1.0 if bottleneck == 0 else None
    return bottleneck / bound


def _check_gap(plan: dict[str, Any], derived: int | None) -> list[Check]:
    """Compare the bottleneck, as re-derived if it could be, with the lower bound."""
    bottleneck = plan["bottleneck"] if derived is None else derived
    bound = plan["lower_bound"]["value"]
    if bound > bottleneck:
        below = Check("bound order", False, f"the lower bound {bound} is above the bottleneck {bottleneck}")
    else:
        below = Check("bound order", True, f"{bound} <= {bottleneck} ticks")

    due = _quotient(bottleneck, bound)
    stated = None if plan["ratio"] is None else float(plan["ratio"])
    if stated == due:
        ratio = Check("ratio", True, "none: the lower bound is zero" if due is None else f"{due!r}")
    else:
        ratio = Check("ratio", False, f"the plan says {stated!r}, it is {due!r}")

    closed = bottleneck == bound
    if plan["optimal"] == closed:
        optimal = Check("optimal", True, "proven" if closed else "not proven")
    else:
        optimal = Check("optimal", False, f"the plan says {plan['optimal']}, the numbers {closed}".lower())
    return [below, ratio, optimal]
