"""Checks that plans and tables of certificates share: of partitions, bounds, and the gap between them.

*said_by* is what a failed check calls the document: ``the plan`` or ``the row``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.bounds.latency_floor import check_latency_floor
from mtpp.checker.bounds.registry import CHECKERS
from mtpp.checker.claim import BOTTLENECK, LATENCY, BoundClaim
from mtpp.checker.document import ABSTRACT
from mtpp.checker.downset import check_enumerated
from mtpp.checker.facts import counted, factor
from mtpp.checker.graph import TickGraph, model_in_ticks
from mtpp.checker.machine import STAGE_TIMES
from mtpp.checker.names import BOUNDS
from mtpp.checker.relaxed import TooManyPaths, relaxation_of
from mtpp.checker.relaxed_claim import relaxed_claim
from mtpp.checker.report import BOUND_CHECK, Check, Search, Tier, Verdict, complete, fact
from mtpp.checker.stages import Between, PlacedStages, StageFigures, stage_figures
from mtpp.document_shape import Path, refuse
from mtpp.errors import InputError

STAGE_LENGTH = "stage times"

PARTITION = (
    *("assignment", "edges", "together", "stage memory", STAGE_LENGTH),
    *("tensor parallelism", "intervals", "no stage empty"),
)
"""Rows on a partition being one at all, on which all that is said of its bottleneck rests."""


def model_graph(document: Any, system: dict[str, Any], k: int) -> TickGraph:
    """Return the model in ticks; what is wrong with it is said of the source ``model``."""
    try:
        return model_in_ticks(document, system["bandwidth_bytes_per_s"], k)
    except InputError as error:
        raise InputError(error.problem, source="model", where=error.where, remedy=error.remedy) from None


def refuse_impossible_system(system: dict[str, Any], graph: TickGraph, path: Path) -> None:
    """Raise InputError if the system at *path* goes with no graph, or not with this one."""
    if system["fast_memory_bytes"] is not None and graph.time_unit == ABSTRACT:
        refuse("a fast memory needs a graph with a time unit", (*path, "fast_memory_bytes"))
    for memory, what in (("fast_memory_bytes", "fast memory"), ("stage_memory_bytes", "stage memory")):
        size = system.get(memory)
        if size is not None and system["activation_reserve_bytes"] > size:
            refuse(f"the activation reserve is above the {what}", (*path, "activation_reserve_bytes"))


def compare(name: str, stated: int, derived: int, unit: str, said_by: str) -> Check:
    """Check a figure."""
    if stated == derived:
        return Check(name, True, f"{derived} {unit}")
    return Check(name, False, f"{said_by} says {stated} {unit}, it is {derived}")


def check_file(stated: str | None, actual: str, said_by: str) -> Check:
    """Check that a model file is the one that a document was made from, by SHA-256."""
    if stated != actual:
        return Check("model file", False, f"{said_by} was made from SHA-256 {stated}, this file has {actual}")
    return Check("model file", True, f"SHA-256 {actual}")


def file_row(stated: str, actual: str | None, said_by: str) -> Check:
    """Return the row on the model file, which there may be none of."""
    if actual is None:
        return fact("model file", f"not given: nothing holds {said_by} to a file")
    return check_file(stated, actual, said_by)


def check_costs(stated: str | None, actual: str | None, said_by: str) -> list[Check]:
    """Check that a file with measured costs is the one that a document was made with; none is due without either."""
    name = "measured costs"
    if stated is None and actual is None:
        return []
    if stated is None:
        return [Check(name, False, f"{said_by} was made without measured costs, these have SHA-256 {actual}")]
    if stated != actual:
        found = "none were given" if actual is None else f"these have {actual}"
        return [Check(name, False, f"{said_by} was made with SHA-256 {stated}, {found}")]
    return [Check(name, True, f"SHA-256 {actual}")]


def check_counts(stated: dict[str, Any], graph: TickGraph, said_by: str) -> Check:
    """Check the numbers of ops and tensors, and the bytes of all parameters where they are stated."""
    name = "op and tensor counts"
    ops, tensors = graph.op_count, len(graph.tensor_names)
    if (stated["ops"], stated["tensors"]) != (ops, tensors):
        claim = f"{said_by} says {stated['ops']} ops and {stated['tensors']} tensors"
        return Check(name, False, f"{claim}, the graph has {ops} and {tensors}")
    held = sum(graph.param_bytes)
    if stated.get("param_bytes", held) != held:
        claim = f"{said_by} says {stated['param_bytes']} bytes of parameters"
        return Check(name, False, f"{claim}, the graph has {held}")
    return Check(name, True, f"{counted(ops, 'op')}, {counted(tensors, 'tensor')}")


def check_model_ticks(unit: str, stated: int, own_unit: str, own_ticks: int, said_by: str) -> Check:
    """Check the unit of a model's times, and how many ticks are in it; *own_unit* and *own_ticks* are the model's."""
    name = "ticks"
    if unit != own_unit:
        return Check(name, False, f"{said_by}'s time unit is {unit!r}, the model's {own_unit!r}")
    if stated != own_ticks:
        return Check(name, False, f"{said_by} says {stated} ticks per unit ({unit}), it is {own_ticks}")
    return Check(name, True, f"{stated} per unit ({unit})")


def check_assignment(assignment: dict[str, int], k: int, graph: TickGraph) -> Check:
    """Check that every op has a stage, from 0 to k - 1."""
    name = "assignment"
    known = set(graph.op_names)
    missing = [op for op in graph.op_names if op not in assignment]
    unknown = [op for op in assignment if op not in known]
    outside = [op for op, stage in assignment.items() if not 0 <= stage < k]
    if missing:
        return Check(name, False, f"{_with_verb(len(missing), 'has', 'have')} no stage, the first is {missing[0]!r}")
    if unknown:
        strangers = _with_verb(len(unknown), "is", "are")
        return Check(name, False, f"{strangers} not in the graph, the first is {unknown[0]!r}")
    if outside:
        op = outside[0]
        return Check(name, False, f"op {op!r} is in stage {assignment[op]}, the stages are 0 to {k - 1}")
    return Check(name, True, f"each of {counted(graph.op_count, 'op')} in one of {counted(k, 'stage')}")


def _with_verb(ops: int, one: str, several: str) -> str:
    return f"{counted(ops, 'op')} {one if ops == 1 else several}"


def check_edges(graph: TickGraph, stage_of: list[int]) -> Check:
    """Check that no edge goes to an earlier stage."""
    count = 0
    for t, u, v in graph.edges():
        count += 1
        if stage_of[u] > stage_of[v]:
            edge = f"{graph.op_names[u]!r} (stage {stage_of[u]}) to {graph.op_names[v]!r} (stage {stage_of[v]})"
            return Check("edges", False, f"tensor {graph.tensor_names[t]!r} goes back from {edge}")
    return Check("edges", True, f"none of {count} goes to an earlier stage")


def check_together(groups: list[list[str]], assignment: dict[str, int]) -> list[Check]:
    """Check that the ops of each group share a stage; nothing is claimed without groups."""
    name = "together"
    for group in groups:
        unknown = next((op for op in group if op not in assignment), None)
        if unknown is not None:
            return [Check(name, False, f"the graph has no op {unknown!r}")]
        apart = next((op for op in group if assignment[op] != assignment[group[0]]), None)
        if apart is not None:
            first = f"{group[0]!r} (stage {assignment[group[0]]})"
            return [Check(name, False, f"{first} and {apart!r} (stage {assignment[apart]}) are apart")]
    return [Check(name, True, f"{counted(len(groups), 'group')} kept")] if groups else []


def check_group_names(groups: list[list[str]], graph: TickGraph) -> list[Check]:
    """Check that groups are of ops that there are, where no assignment says so."""
    known = set(graph.op_names)
    unknown = next((op for group in groups for op in group if op not in known), None)
    return [] if unknown is None else [Check("together", False, f"the graph has no op {unknown!r}")]


def check_memory(needs: Mapping[int, int], limit: int | None, limits: Mapping[int, int | None] | None = None) -> Check:
    """Check that no stage needs more bytes than there may be; *limits* are those of each stage where they differ."""
    name = "stage memory"
    if limits is not None and len(set(limits.values())) > 1:
        over = [(s, need) for s, need in needs.items() if need > (need if limits[s] is None else limits[s] or 0)]
        if over:
            s, need = over[0]
            return Check(name, False, f"stage {s} needs {need} bytes, the limit of its device is {limits[s]}")
        return Check(name, True, "no stage needs more than the limit of its device")
    if limits:
        limit = next(iter(limits.values()))
    if limit is None:
        return fact(name, "no limit")
    held, stage = max((need, -s) for s, need in needs.items())
    if held > limit:
        return Check(name, False, f"stage {-stage} needs {held} bytes, the limit is {limit}")
    return Check(name, True, f"at most {held} of {limit} bytes")


def check_stage_times(ops: Mapping[int, int], placed: PlacedStages) -> list[Check]:
    """Check that no stage has more ops than its device has times of stages for; no row where none has such times."""
    times = {s: placed[s][1][STAGE_TIMES] for s in ops if STAGE_TIMES in placed[s][1]}
    over = [(s, row) for s, row in times.items() if ops[s] > len(row)]
    if over:
        s, row = over[0]
        return [Check(STAGE_LENGTH, False, f"stage {s} has {ops[s]} ops, its device times for at most {len(row)}")]
    return [Check(STAGE_LENGTH, True, "each device has a time for so many ops")] if times else []


def partition_bottleneck(
    document: dict[str, Any],
    key: str,
    graph: TickGraph,
    checks: list[Check],
    said_by: str,
    claims: Sequence[str],
    on_stages: Callable[[dict[int, StageFigures]], Sequence[Check]] = lambda stages: (),
    placed: PlacedStages | None = None,
    between: Between | None = None,
    figures_of: Callable[[list[int]], dict[int, StageFigures]] | None = None,
) -> int | None:
    """Add the rows on an assignment, and return its bottleneck if that could be derived.

    Parameters
    ----------
    key
        Of the bottleneck in the document.
    claims
        Rows on stages, unchecked where the assignment is wrong; *on_stages* makes those that the document has besides.
    placed
        Ticks and device of each stage of a plan for a machine.
    between
        As of :func:`~mtpp.checker.stages.stage_figures`.
    figures_of
        Figures of stages by the stage of each op, where these are not those of *graph* and *placed*.
    """
    assigned = check_assignment(document["assignment"], document["k"] if placed is None else len(placed), graph)
    checks.append(assigned)
    if not assigned.passed:
        checks[:] = complete(checks, claims, "the assignment is wrong")
        return None
    stage_of = [document["assignment"][name] for name in graph.op_names]
    stages = figures_of(stage_of) if figures_of else stage_figures(graph, stage_of, document["system"], placed, between)
    needs = {s: figures.param_bytes + figures.state_bytes + figures.peak_bytes for s, figures in stages.items()}
    bottleneck = max(stage.cost for stage in stages.values())
    checks += [
        check_edges(graph, stage_of),
        *check_together(document.get("together", []), document["assignment"]),
        *on_stages(stages),
        check_memory(
            needs,
            document["system"].get("stage_memory_bytes"),
            None if placed is None else {s: placed[s][1]["stage_memory_bytes"] for s in stages},
        ),
        *([] if placed is None else check_stage_times({s: figures.ops for s, figures in stages.items()}, placed)),
        compare("bottleneck", document[key], bottleneck, "ticks", said_by),
    ]
    return bottleneck


def check_bound(
    claim: BoundClaim, method: str, tier: Tier, reached: int | None, search: Search | None, name: str = BOUND_CHECK
) -> tuple[Check, Tier]:
    """Check a lower bound, as far as its tier allows, and return the tier that it has then.

    Parameters
    ----------
    reached
        Bottleneck of a partition, which no lower bound is above; None where there is none.
    search
        Runs an exhaustive search again (:func:`mtpp.checker.downset.check_enumerated`); None: searches are left out.
    name
        Of the row.
    """
    if reached is not None and claim.value > reached:
        return Check(name, False, f"{claim.value} ticks is above the {claim.objective}, {reached} ticks"), Tier.NONE
    passed: bool | None
    claim = claim.holding_states()
    if tier is Tier.SOLVER:
        if method not in BOUNDS:
            return Check(name, False, f"no bound is called {method[:60]!r}"), Tier.NONE
        why = "its proof was too long to be kept" if "proof_limit" in claim.proof else "rests on the MIP solver's word"
        return Check(name, None, f"{method}: {why}, so nobody can check it"), tier
    relaxation = relaxation_of(claim.proof, claim.path)
    if relaxation is not None:
        try:
            relaxed = relaxed_claim(claim, relaxation)
        except TooManyPaths:
            return Check(name, None, f"{method}: {relaxation}, which lead between too many others to be checked"), tier
        if isinstance(relaxed, str):
            return Check(name, False, f"{method}: {relaxed}"), Tier.NONE
        claim = relaxed
    if claim.objective == LATENCY and not claim.counts_latency:
        passed, detail = False, f"{method}: its proof is not of the latency"
    elif claim.counts_latency and tier is Tier.EXACT:
        passed, detail = check_latency_floor(claim, method)
    elif tier is Tier.ENUMERATED:
        passed, detail = check_enumerated(claim, method, search)
    elif method in CHECKERS:
        passed, detail = CHECKERS[method](claim)
    else:
        passed, detail = False, f"no checker for method {method[:60]!r}"
    if relaxation is not None:
        detail = f"{detail}; {relaxation}"
    if passed and claim.together:
        detail += "; among partitions that keep the groups together"
    return Check(name, passed, detail), Tier.NONE if passed is False else tier


def quotient(reached: int | Fraction, bound: int | Fraction) -> float | None:
    """Return the approximation ratio; None if the bound is zero below something positive."""
    if bound == 0:
        return 1.0 if reached == 0 else None
    return float(Fraction(reached) / bound)


def check_ratio(due: float | None, stated: Any | None, rests_on: Sequence[Check], said_by: str, name: str) -> Check:
    """Check an approximation ratio, which holds only if what it rests on was re-derived in this run.

    Parameters
    ----------
    due
        Of the figures in the document.
    rests_on
        The rows of those figures.
    """
    said = None if stated is None else float(stated)
    if said != due:
        return Check(name, False, f"{said_by} says {said!r}, it is {due!r}")
    text = "none: the lower bound is zero" if due is None else factor(due)
    return resting(name, text, rests_on)


def check_optimal(
    *,
    stated: bool,
    closed: bool,
    tier: Tier,
    rests_on: Sequence[Check],
    said_by: str,
    objective: str = BOTTLENECK,
) -> Check:
    """Check whether a document says rightly that its partition is proven optimal, or that it is not.

    Parameters
    ----------
    closed
        Whether bottleneck and lower bound meet.
    tier
        Of the bound, as stated: one of tier ``solver`` proves nothing.
    rests_on
        Rows of the figures that it rests on.
    """
    name = "optimal"
    if stated and tier is Tier.SOLVER:
        return Check(name, False, f"{said_by} says true, but a bound of tier solver is no proof")
    if stated and not closed:
        return Check(name, False, f"{said_by} says true, but the lower bound is below the {objective}")
    if not stated and closed and tier is not Tier.SOLVER:
        return Check(name, False, f"{said_by} says false, but {objective} and lower bound meet")
    if not stated and closed:
        return resting(name, "not claimed: closed by the MIP solver alone", rests_on)
    return resting(name, "proven" if stated else "not proven", rests_on, "claimed" if stated else "not claimed")


def gap_rows(
    document: dict[str, Any],
    reached: int | Fraction,
    bound: int | Fraction,
    tier: Tier,
    rests_on: Sequence[Check],
    said_by: str,
) -> list[Check]:
    """Check the ratio that a document states, and whether it is optimal; *tier* is that of the bound as stated."""
    return [
        check_ratio(quotient(reached, bound), document["ratio"], rests_on, said_by, "ratio"),
        check_optimal(
            stated=document["optimal"],
            closed=reached == bound,
            tier=tier,
            rests_on=rests_on,
            said_by=said_by,
            objective=document.get("objective", BOTTLENECK),
        ),
    ]


def resting(name: str, text: str, rests_on: Sequence[Check], otherwise: str | None = None) -> Check:
    """Return the row of something that is true if all it rests on is; *otherwise* is what it says if that is not."""
    for verdict, passed, why in ((Verdict.FALSE, False, "is false"), (Verdict.UNCHECKED, None, "was not checked")):
        row = next((check.name for check in rests_on if check.verdict == verdict), None)
        if row is not None:
            return Check(name, passed, f"{otherwise or text}: rests on {row}, which {why}")
    return Check(name, True, text)


def rows_named(checks: Sequence[Check], names: Sequence[str]) -> list[Check]:
    """Return the rows of these names, as far as there are any."""
    return [check for check in checks if check.name in names]


def hold(checks: Sequence[Check], names: Sequence[str]) -> bool:
    """Tell whether none of the rows of these names is false or unchecked."""
    return all(check.verdict in (Verdict.OK, None) for check in rows_named(checks, names))


def proven_words(
    reached: int,
    bound: int,
    k: int,
    *,
    together: bool,
    embedded: bool = False,
    devices: str = "",
    objective: str = BOTTLENECK,
    within: str = "",
) -> str:
    """Say what a bound and an objective prove together.

    Parameters
    ----------
    devices
        Those of a machine, in words.
    within
        The limit on the other figure, in words.
    """
    into = counted(k, "stage") + devices
    among = (" that keeps the groups together" if together else "") + within
    of = " of the embedded graph" if embedded else ""
    if reached == bound:
        return f"proven optimal: no partition{of} into {into}{among} has a smaller {objective}"
    if not bound:
        return f"but only the partition{of} and its costs: a lower bound of zero says nothing of better ones"
    within = factor(Fraction(reached, bound))
    return f"proven to be within a factor of {within} of the best partition{of} into {into}{among}"
