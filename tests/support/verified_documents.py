"""True documents of any graph, system, algorithm and bound, verified as the command does, and held to brute force."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import oracles
import training_oracles
from certificate_documents import certificate_row, table_to_write
from graph_strategies import random_graph
from plan_documents import SHA256, graph_document
from training_models import random_problem

from mtpp.api.observer import Observer
from mtpp.api.verification.searches import downset_search, training_searches
from mtpp.checker.plan import Report, verify_plan
from mtpp.checker.report import worst
from mtpp.checker.table import check_table, verify_row
from mtpp.checker.tables.means import verify_summary
from mtpp.checker.tables.single_bounds import on_singles, on_the_rest
from mtpp.checker.training.plan import verify_training_plan
from mtpp.errors import Infeasible, InputError
from mtpp.formats.graphs.native import ticks_document, to_document
from mtpp.formats.io.json_text import dump_json, parse_json
from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.training_plan import no_plan_document, training_plan_document
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.plan import Plan
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.limits import PlanLimits, SearchLimits
from mtpp.solvers.planners.registry import PLANNERS
from mtpp.solvers.solve import solve
from mtpp.training.plan import NoPlan
from mtpp.training.problem import PlanningProblem

ALGORITHMS = ("auto", "slice", "anneal", "random", "series-parallel")
PROVEN_BOUNDS = tuple(name for name, entry in BOUNDS.items() if entry.tier != "solver")
_CODES = {"ok": 0, "false": 1, "unchecked": 3}
_QUIET = Observer()
_SEARCH = downset_search(_QUIET)

Truth = dict[str, bool]
"""Row → whether what it says is true, by brute force."""


@dataclass(frozen=True)
class Case:
    """A true document.

    Attributes
    ----------
    document
        As read back from what was written.
    by_solver
        Whether its best bound is a MIP solver's.
    verify
        Verifies a document in its place; returns the exit code and the rows that passed, with what to call them.
    untrue
        Names those of some rows of a document that are not true.
    """

    document: Any
    by_solver: bool
    verify: Callable[[Any], tuple[int, list[str]]]
    untrue: Callable[[Any, list[str]], list[str]]


def random_system(rng: random.Random, graph: CostGraph) -> Device:
    """Return a system that goes with a graph, often with memories that not everything fits into."""
    peak, reserve = rng.choice(("reserve", "order")), rng.randrange(20)
    bandwidth = rng.choice((1, 3, 10**9, 25 * 10**9, 7 * 10**11))
    fast = rng.randrange(20, 300) if graph.time_unit != "1" and rng.random() < 0.3 else None
    most = int(graph.param_bytes.sum()) + 400
    held = rng.randrange(most // 2, most) if rng.random() < 0.3 else None
    return Device("drawn", 10**12, 10**11, Link(bandwidth), fast, reserve, peak, held)


def random_instance(rng: random.Random) -> tuple[CostGraph, Device, int]:
    """Return a graph of at most 7 ops with a system and a number of stages."""
    graph = random_graph(
        rng.randrange(2**31),
        rng.randrange(1, 8),
        time_unit=rng.choice(("1", "ps", "ns", "us", "s")),
        fractional=rng.random() < 0.3,
        largest_cost=rng.choice((3, 30, 1000)),
        consumers_per_tensor=rng.choice((1.0, 1.5, 2.5)),
    )
    return graph, random_system(rng, graph), rng.randrange(1, 5)


def random_plan(rng: random.Random) -> tuple[Plan, bool]:
    """Return a plan by any algorithm with any bound, and whether that is said to be a MIP solver's."""
    while True:
        graph, system, k = random_instance(rng)
        groups = [rng.sample(graph.op_names, 2)] if graph.op_count > 2 and rng.random() < 0.2 else []
        limits = SearchLimits(rng.choice((20, 300)), seed=rng.randrange(1000))
        try:
            instance = Instance.build(graph, Machine.uniform(k, system))
            plan = solve(instance, graph, limits, algorithm=rng.choice(ALGORITHMS), together=groups)
        except (Infeasible, InputError):
            continue
        if rng.random() < 0.6 and not groups:
            name = rng.choice(PROVEN_BOUNDS)
            tried = BOUNDS[name].load()(instance, BoundLimits(plan.costs.bottleneck, start=plan.partition))
            if tried.lower is not None:
                lower = replace(tried.lower, proof=_with_merges(tried.lower))
                stopped = plan.stopped if lower.value >= plan.lower.value else StopReason.BUDGET
                plan = replace(plan, lower=lower, stopped=stopped)
        if rng.random() < 0.15:
            solver = replace(plan.lower, tier="solver", method=rng.choice(("exact-mip", "bottleneck")), proof={})
            return replace(plan, lower=solver, stopped=StopReason.BUDGET), True
        return plan, False


def _with_merges(lower: LowerBound) -> dict[str, Any]:
    """Return a proof with the list of merges, its caller's to add but where a bound is of the graph as it is."""
    return dict(lower.proof) if lower.method in ("simple", "capacity") else {"merges": [], **lower.proof}


def plan_case(rng: random.Random) -> Case:
    """Return a plan, with its graph embedded or its model at hand, or both."""
    plan, by_solver = random_plan(rng)
    embed, given = rng.choice(((True, False), (False, True), (True, True)))
    work, transfer = plan.instance.work.tolist(), plan.instance.transfer.tolist()
    embedded = ticks_document(plan.graph, work, transfer) if embed else None
    written = plan.to_document(file={"sha256": SHA256}, dims={}, elapsed_s=0.1, graph_document=embedded)
    document = parse_json(dump_json(written).encode(), "plan")
    document["optimal"] = document["optimal"] and not by_solver
    model = graph_document(plan.graph) if given else None

    def verify(written: Any) -> tuple[int, list[str]]:
        def report() -> Report:
            hashed = SHA256 if given else None
            return verify_plan(written, model, graph_sha256=hashed, model_given=given, search=_SEARCH)

        return _run(report)

    def untrue(wrong: Any, rows: list[str]) -> list[str]:
        if not rows:
            return []
        graph = plan.graph if given else _embedded_graph(wrong["graph"])
        if graph is None:
            return [row for row in rows if row == "stage costs"]
        truth = partition_truth(graph, wrong, wrong["bottleneck"], wrong["lower_bound"]["value"])
        truth["stage costs"] = _stages_are_true(graph, wrong)
        truth["op and tensor counts"] = _counts(wrong["model"], graph)
        truth["model file"] = wrong["model"]["sha256"] == SHA256
        if "graph" in wrong and given:
            truth["embedded graph"] = _same_graph(wrong, plan.graph)
        return [row for row in rows if not truth[row]]

    return Case(document, by_solver, verify, untrue)


def _run(report: Callable[[], Report]) -> tuple[int, list[str]]:
    try:
        found = report()
    except InputError:
        return 2, []
    return _CODES[found.verdict], found.named("ok")


def _counts(stated: Any, graph: CostGraph) -> bool:
    return bool((stated["ops"], stated["tensors"]) == (graph.op_count, graph.tensor_count))


_ROWS_ON_STAGES = (
    *("edges", "together", "stage memory", "bottleneck", "latency", "ratio", "optimal"),
    *("throughput", "speed-up", "crossing tensors"),
)


def partition_truth(graph: CostGraph, wrong: Any, upper: int | None, lower: int) -> Truth:
    """Say what of a plan or a row is true; both have the same keys for it."""
    system, k = Device.from_document(wrong["system"]), wrong["k"]
    groups = wrong.get("together", [])
    number = {name: v for v, name in enumerate(graph.op_names)}
    best = optimum(graph, system, k, tuple(tuple(number[op] for op in group if op in number) for group in groups))
    ticks = oracles.to_ticks(graph, system, k)
    bounded = lower <= best
    truth = {
        "ticks": (wrong["ticks_per_unit"], wrong["time_unit"]) == (ticks.per_unit, graph.time_unit),
        "lower bound": bounded,
    }
    if upper is None:
        return truth
    assignment = wrong["assignment"]
    whole = set(assignment) == set(number) and all(0 <= stage < k for stage in assignment.values())
    truth |= {"assignment": whole}
    if not whole:
        return truth | dict.fromkeys(_ROWS_ON_STAGES, False)
    stages = [assignment[name] for name in graph.op_names]
    tensors = oracles.tensors_of(graph)
    limit = system.memory_bytes
    figures = {s: _figures(graph, system, k, stages, s) for s in set(stages)}
    reached = max(one["cost"] for one in figures.values())
    truth |= {
        "edges": all(stages[u] <= stages[v] for u, readers in tensors for v in readers),
        "together": all(op in assignment for group in groups for op in group)
        and all(len({assignment[op] for op in group}) <= 1 for group in groups),
        "stage memory": limit is None
        or all(one["param_bytes"] + one["peak_bytes"] <= limit for one in figures.values()),
        "bottleneck": upper == reached,
        "latency": wrong.get("latency") == sum(one["cost"] for one in figures.values()),
    }
    truth |= _figures_truth(graph, wrong, system, k, stages, tensors, reached)
    held = bounded and all(truth[row] for row in ("edges", "together", "stage memory"))
    due = reached / lower if lower else (1.0 if reached == 0 else None)
    stated = None if wrong["ratio"] is None else float(wrong["ratio"])
    truth["ratio"] = held and stated == due
    truth["optimal"] = held and wrong["optimal"] == (reached == lower) and (not wrong["optimal"] or reached == best)
    return truth


def _figures_truth(
    graph: CostGraph, wrong: Any, system: Device, k: int, stages: list[int], tensors: list[Any], reached: int
) -> Truth:
    """Say what of throughput, speed-up and tensors between stages is true, of plans that state them."""
    if "crossing" not in wrong:
        return {}
    one = _figures(graph, system, k, [0] * graph.op_count, 0)
    fits = system.memory_bytes is None or one["param_bytes"] + one["peak_bytes"] <= system.memory_bytes
    crossing = [t for t, (u, readers) in enumerate(tensors) if any(stages[v] != stages[u] for v in readers)]
    size = sum(max(int(graph.tensor_bytes[t]), 0) for t in crossing)
    timed = graph.time_unit != "1"
    due = float(Fraction(10**12, reached)) if timed and reached else None
    alone = float(Fraction(one["cost"], reached)) if fits and reached else None
    return {
        "throughput": _same_number(wrong["throughput_per_s"], due),
        "speed-up": _same_number(wrong["speed_up"], alone),
        "crossing tensors": wrong["crossing"] == {"tensors": len(crossing), "bytes": size},
    }


def _same_number(stated: Any, due: float | None) -> bool:
    return (None if stated is None else float(stated)) == due


def _figures(graph: CostGraph, system: Device, k: int, stages: list[int], s: int) -> dict[str, int]:
    return oracles.stage_figures(graph, system, [v for v, stage in enumerate(stages) if stage == s], k)


@cache
def _optimum(key: str, load: _Loaded) -> int:
    graph, system, k, groups = load.problem
    return oracles.brute_force_optimum(graph, system, k, groups)


class _Loaded:
    """A problem that is not a part of the key of the cache."""

    def __init__(self, *problem: Any) -> None:
        self.problem = problem

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Loaded)


def optimum(graph: CostGraph, system: Device, k: int, groups: tuple[tuple[int, ...], ...]) -> int:
    """Return OPT by brute force."""
    key = dump_json([to_document(graph), system.to_document(), min(k, 99), [list(group) for group in groups]])
    return _optimum(key, _Loaded(graph, system, k, groups))


def _stages_are_true(graph: CostGraph, wrong: Any) -> bool:
    system, k = Device.from_document(wrong["system"]), wrong["k"]
    number = {name: v for v, name in enumerate(graph.op_names)}
    stage_of = wrong["assignment"]
    if len(wrong["stages"]) != k or set(stage_of) != set(number):
        return False
    for s, stated in enumerate(wrong["stages"]):
        ops = [v for v in oracles.own_order(graph) if stage_of[graph.op_names[v]] == s]
        ends = (graph.op_names[ops[0]], graph.op_names[ops[-1]]) if ops else (None, None)
        due = {"index": s, "ops": len(ops), "first": ends[0], "last": ends[1]}
        if stated != due | oracles.stage_figures(graph, system, ops, k):
            return False
    return True


def _embedded_graph(document: Any) -> CostGraph | None:
    """Return the graph that a plan embeds, in ticks; None if it has sizes that no graph may have."""
    ops = [Op(op["name"], op["work"], op.get("kind", ""), op.get("param_bytes", 0)) for op in document["ops"]]
    tensors = [
        Tensor(one["name"], one["producer"], tuple(one["consumers"]), one.get("bytes"), one["transfer"])
        for one in document["tensors"]
    ]
    try:
        return CostGraph.build(name=document["name"], time_unit=document["time_unit"], ops=ops, tensors=tensors)
    except InputError:
        return None


def _same_graph(wrong: Any, graph: CostGraph) -> bool:
    """Tell whether what a plan embeds is a model in ticks."""
    ticks = oracles.to_ticks(graph, Device.from_document(wrong["system"]), wrong["k"])
    mine = _embedded_graph(wrong["graph"])
    if mine is None:
        return False
    sizes = [None if size == UNKNOWN_BYTES else int(size) for size in graph.tensor_bytes]
    theirs = [None if size == UNKNOWN_BYTES else int(size) for size in mine.tensor_bytes]
    return (
        (mine.op_names, mine.tensor_names, sizes) == (graph.op_names, graph.tensor_names, theirs)
        and list(mine.work) == list(ticks.work)
        and list(mine.transfer) == list(ticks.transfer)
        and mine.param_bytes.tolist() == graph.param_bytes.tolist()
        and oracles.tensors_of(mine) == oracles.tensors_of(graph)
    )


def table_case(rng: random.Random) -> Case:
    """Return a table of a few rows, some of bounds alone, some whose best bound is a MIP solver's."""
    found = [random_plan(rng) for _ in range(rng.randrange(1, 4))]
    rows = [_row(rng, plan) for plan, _ in found]
    written = table_to_write(rows) if rng.random() < 0.7 else {**table_to_write(rows), "summary": []}
    for entry in written["summary"]:
        methods = [row["lower_method"] for row in rows if row["k"] == entry["k"]]
        entry["best"] = {method: methods.count(method) for method in methods}
        of_k = [row for row in rows if row["k"] == entry["k"]]
        entry["closed"] = sum("upper" in row and _closed(row) for row in of_k)
    document = parse_json(dump_json(written).encode(), "table")
    models = [graph_document(plan.graph) for plan, _ in found]

    def verify(table: Any) -> tuple[int, list[str]]:
        try:
            check_table(table, ())
            if len(table["rows"]) > len(models):
                return 2, []  # which model a row is for is found by its file
            reports = [verify_row(row, i, models[i], SHA256, search=_SEARCH) for i, row in enumerate(table["rows"])]
        except InputError:
            return 2, []
        if not reports:
            return 1, []
        verdicts = [report.verdict for report in reports]
        rest, singles = map(on_the_rest, reports), map(on_singles, reports)
        means = verify_summary(table["rows"], table["summary"], list(rest), list(singles))
        named = [f"{i}:{name}" for i, report in enumerate(reports) for name in report.named("ok")]
        named += [f"mean:{check.name}" for check in means if check.verdict == "ok"]
        return _CODES[worst([*verdicts, *(check.verdict for check in means)])], named

    def untrue(wrong: Any, passed: list[str]) -> list[str]:
        false: list[str] = []
        for i, row in enumerate(wrong["rows"] if passed else ()):
            graph = found[i][0].graph
            truth = partition_truth(graph, row, row.get("upper"), row["lower"])
            best = optimum(graph, Device.from_document(row["system"]), row["k"], _numbered(graph, row))
            singles = [value for name, value in row["bounds"].items() if name != row["lower_method"]]
            truth["bounds tried"] = all(value is None or value <= best for value in singles)
            truth["model file"], truth["op and tensor counts"] = row["sha256"] == SHA256, _counts(row, graph)
            if "proven" in row:
                held = partition_truth(
                    graph, {**row, "ratio": row["proven"].get("ratio")}, row.get("upper"), row["proven"]["value"]
                )
                truth["proven lower bound"], truth["proven ratio"] = held["lower bound"], held.get("ratio", False)
            false += [name for name in passed if name.startswith(f"{i}:") and not truth[name.partition(":")[2]]]
        return false

    return Case(document, any(row["tier"] == "solver" for row in rows), verify, untrue)


def _add_single_bound(rng: random.Random, plan: Plan, row: dict[str, Any]) -> None:
    """Add another bound to a row, with its proof, where there is one that is no better than the best."""
    name = rng.choice(PROVEN_BOUNDS)
    limits = BoundLimits(plan.costs.bottleneck, start=plan.partition)
    single = BOUNDS[name].load()(plan.instance, limits).lower
    best = max(value for value in row["bounds"].values() if value is not None)
    if name in row["bounds"] or single is None or not single.is_proof or not single.value <= best:
        return
    row["bounds"][name] = single.value
    row["proofs"] = {name: {"tier": str(single.tier), "proof": _with_merges(single)}}


def _numbered(graph: CostGraph, row: Any) -> tuple[tuple[int, ...], ...]:
    number = {name: v for v, name in enumerate(graph.op_names)}
    return tuple(tuple(number[op] for op in group if op in number) for group in row.get("together", []))


def _closed(row: dict[str, Any]) -> bool:
    """Tell whether a row counts as closed: to a millionth for a MIP solver."""
    near = row["upper"] * 10**6 <= row["lower"] * (10**6 + 1)
    return bool(row["upper"] == row["lower"] or (row["tier"] == "solver" and row["lower"] and near))


def _row(rng: random.Random, plan: Plan) -> dict[str, Any]:
    graph, instance = plan.graph, plan.instance
    stages = plan.partition.assignment.tolist() if rng.random() < 0.8 else None
    row = certificate_row(graph, instance.device, instance.k, stages)
    if plan.together:
        row["together"] = [list(group) for group in plan.together]
    lower, upper = plan.lower, row.get("upper")
    if lower.value < row["lower"]:  # the best bound of a row is the best of those that it lists
        lower = simple_bound(instance)
    row["bounds"] = {"simple": row["lower"], "bottleneck": None, lower.method: lower.value}
    if not plan.together and rng.random() < 0.6:
        _add_single_bound(rng, plan, row)
    proven = {key: row[key] for key in ("lower", "lower_method", "tier", "lower_proof")}
    row |= {"lower": lower.value, "lower_method": lower.method, "tier": lower.tier, "lower_proof": dict(lower.proof)}
    if upper is not None:
        row["ratio"] = upper / lower.value if lower.value else (1.0 if upper == 0 else None)
        row["optimal"] = upper == lower.value and lower.is_proof
    if not lower.is_proof and rng.random() < 0.7:
        value = proven["lower"]
        row["proven"] = {
            "value": value,
            "method": proven["lower_method"],
            "tier": proven["tier"],
            "proof": proven["lower_proof"],
        }
        if upper is not None:
            row["proven"]["ratio"] = upper / value if value else (1.0 if upper == 0 else None)
    return row


def training_case(rng: random.Random) -> Case:
    """Return a training plan by any planner, or that there is none."""
    problem = random_problem(rng.randrange(2**31), most_layers=4, most_devices=4)
    planner = rng.choice(list(PLANNERS))
    result = PLANNERS[planner].load()(problem, PlanLimits())
    if isinstance(result, NoPlan):
        written = no_plan_document(problem, result, file={"sha256": SHA256}, elapsed_s=0.1)
    else:
        written = training_plan_document(
            result, file={"sha256": SHA256}, knapsack="exact", heuristic_differs=[], elapsed_s=0.1
        )
    document = parse_json(document_text(written).encode(), "plan")

    def verify(plan: Any) -> tuple[int, list[str]]:
        return _run(lambda: verify_training_plan(plan, problem.model, SHA256, searches=training_searches(_QUIET)))

    def untrue(wrong: Any, rows: list[str]) -> list[str]:
        truth = training_truth(problem, document, wrong) if rows else {}
        return [row for row in rows if row in truth and not truth[row]]

    return Case(document, False, verify, untrue)


def training_truth(problem: PlanningProblem, document: Any, wrong: Any) -> Truth:
    """Say what of a training plan's bound and feasibility is true, by all plans there are."""
    try:
        asked = _asked(problem, wrong["system"])
    except InputError:  # some layer has no configuration that may be used
        return {"no plan": True, "least memory": False}
    if asked is None:
        return {}
    best = training_oracles.best_time(asked)
    if not wrong["feasible"]:
        least = wrong["least_memory_bytes"]
        needed = training_oracles.least_memory(asked)
        return {
            "no plan": best is None,
            "least memory": needed is not None and least is not None and needed <= least,
        }
    value, time = Fraction(*wrong["lower_bound"]["value"]), Fraction(*document["time_per_sample_ticks"])
    bounded = best is None or value <= best
    truth = {"lower bound": bounded}
    if (wrong["stages"], wrong["system"]) == (document["stages"], document["system"]):
        due = float(time / value) if value else (1.0 if time == 0 else None)
        stated = None if wrong["ratio"] is None else float(wrong["ratio"])
        truth["ratio"] = bounded and stated == due
        truth["optimal"] = bounded and wrong["optimal"] == (time == value) and (not wrong["optimal"] or time == best)
        truth["time per sample"] = wrong["time_per_sample_ticks"] == document["time_per_sample_ticks"]
    return truth


MOST_DEVICES = 6
"""More are too many for brute force."""


def _asked(problem: PlanningProblem, system: Any) -> PlanningProblem | None:
    """Return a problem with another system, None if it is too large; devices that no plan can use are left out."""
    widest = max((t for layer in problem.model.layers for t in layer.configurations), default=1)
    devices = min(system["devices"], system["max_micro_batches"] * widest)
    if devices > MOST_DEVICES:
        return None
    return PlanningProblem(
        problem.model,
        machine=Machine.of_devices(
            devices, memory_bytes=system["memory_bytes"], bandwidth_bytes_per_s=system["bandwidth_bytes_per_s"]
        ),
        micro_batches=system["max_micro_batches"],
        exact_micro_batches=system["exact_micro_batches"],
        convention=system["convention"],
        schemes=replace(
            problem.schemes,
            data_parallel=system["data_parallel"],
            tensor_parallel=system["tensor_parallel"],
            recompute=system["recompute"],
        ),
    )


CASES: dict[str, Callable[[random.Random], Case]] = {
    "plan": plan_case,
    "table": table_case,
    "training plan": training_case,
}
"""Kind of document → what draws one."""
