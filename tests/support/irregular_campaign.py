"""Planners against brute force on irregular models, case by case: bound ≤ brute force ≤ plan, and ``verify`` agrees.

``python tests/support/irregular_campaign.py graphpipe 0 100000`` runs the cases of these seeds, and prints each that
fails and how many came out as what.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

if __name__ == "__main__":  # as tests find their modules
    sys.path[:0] = [str(Path(__file__).parents[2])]

import training_oracles
from irregular_graph_oracle import best_graph_plan, least_graph_memory
from irregular_models import irregular_graph_case, irregular_line_case, irregular_split_case
from irregular_split_oracle import SplitOracle

import mtpp
from mtpp.api.training.split_result import SplitPlanResult
from mtpp.errors import Deadlock, Infeasible, InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results.graph_plan import graph_plan_document, no_graph_plan_document
from mtpp.formats.results.training_plan import no_plan_document, training_plan_document
from mtpp.formats.training.native import training_model_from_document
from mtpp.host.stop_reason import StopReason
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.bound import iteration_bound
from mtpp.solvers.planners.graphpipe.memory_bound import memory_bound
from mtpp.solvers.planners.graphpipe.planner import bound_of
from mtpp.solvers.planners.graphpipe.planner import plan as graphpipe
from mtpp.solvers.planners.graphpipe.search import StageGraphSearch
from mtpp.solvers.planners.limits import PlanLimits
from mtpp.solvers.planners.piper.planner import plan as piper
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import TrainingModel
from mtpp.training.plan import TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes

Document = dict[str, Any]
Problem = TypeVar("Problem")

_REFUSALS = ("no size of micro-batches can be used", "no size that layer", "no iteration has")


_SEARCHED = 20
"""Of so many cases, one is planned by the search for larger models as well."""

NO_FILE = "0" * 64
"""Digest of a model that is in no file."""


def read_model(document: Document) -> TrainingModel:
    """Read a model as from a file."""
    return training_model_from_document(parse_json(json.dumps(document).encode(), "model"), "model")


def graph_problem(document: Document, asked: Document) -> GraphProblem:
    """Return the problem of a case of :func:`irregular_models.irregular_graph_case`."""
    return GraphProblem.build(
        read_model(document),
        devices=asked["devices"],
        memory_bytes=asked["memory_bytes"],
        bandwidth_bytes_per_s=asked["bandwidth"],
        mini_batch=asked["mini_batch"],
        latency_ticks=asked["latency"],
        rules=GraphRules(
            asked["sizes"],
            asked["per_stage"],
            asked["intervals"],
            "least" if asked["least"] else "any",
            asked["sequential"],
            asked["data_parallel"],
            asked["recompute"],
        ),
    )


def check_graphpipe(seed: int) -> str:
    """Plan stage graphs for one case; return what came out."""
    document, asked = irregular_graph_case(seed)
    best = best_graph_plan(document, asked)
    problem = _unless_refused(lambda: graph_problem(document, asked), _REFUSALS)
    if problem is None:
        assert best is None, f"refused, and {best} is possible"
        return "refused"
    found = graphpipe(problem, Limits())
    if isinstance(found, GraphPlan):
        assert best is not None, "a plan where there is none"
        assert found.lower.value <= best.iteration, f"bound {found.lower} above {best}"
        assert best.iteration <= found.iteration, f"plan {found.iteration} below {best}"
        assert found.iteration == best.iteration, f"plan {found.iteration} above {best}"
        _verified(graph_plan_document(found, sha256=None, elapsed_s=0), problem.model, document)
        chains = iteration_bound(problem, 2 * best.iteration)
        assert chains.value <= best.iteration, f"{chains} above {best}"
        by_chains = replace(found, lower=bound_of(problem, chains), stopped=StopReason.FINISHED)
        _verified(graph_plan_document(by_chains, sha256=None, elapsed_s=0), problem.model, document)
        if seed % _SEARCHED == 0:
            searched = StageGraphSearch(problem).best()
            assert searched is None or searched.iteration >= best.iteration
        return "optimal"
    assert isinstance(found, NoGraphPlan)
    assert best is None, f"no plan, and {best} is possible"
    least = least_graph_memory(document, asked)
    assert found.least_memory_bytes == least, f"{found.least_memory_bytes} bytes would do, {least} are the least"
    assert least is None or found.memory.value <= least
    assert found.proven
    assert found.hopeless == (least is None)
    assert least is None or memory_bound(problem).value <= least
    none = no_graph_plan_document(found, reason="", sha256=None, elapsed_s=0)
    _verified(none, problem.model, document)
    return "hopeless" if found.hopeless else "no memory"


def piper_problem(document: Document, asked: Document) -> PlanningProblem:
    """Return the problem of a case of :func:`irregular_models.irregular_line_case`."""
    return PlanningProblem.build(
        read_model(document),
        devices=asked["devices"],
        memory_bytes=asked["memory_bytes"],
        bandwidth_bytes_per_s=asked["bandwidth"],
        micro_batches=asked["micro_batches"],
        exact_micro_batches=asked["exact"],
        convention=asked["convention"],
        schemes=Schemes(asked["data_parallel"], asked["tensor_parallel"], asked["recompute"]),
    )


def check_piper(seed: int) -> str:
    """Plan pipelines for one case; return what came out."""
    document, asked = irregular_line_case(seed)
    problem = _unless_refused(lambda: piper_problem(document, asked), ("has no configuration that may be used",))
    if problem is None:
        return "refused"
    found, best = piper(problem, PlanLimits()), training_oracles.best_plan(problem)
    if isinstance(found, TrainingPlan):
        assert best is not None, "a plan where there is none"
        assert found.lower.value <= best[0] <= found.time_per_sample, f"{found.lower}, {best}, {found.time_per_sample}"
        assert found.time_per_sample == best[0]
        plan = training_plan_document(found, sha256=NO_FILE, knapsack="exact", heuristic_differs=[], elapsed_s=0)
        _verified(plan, problem.model, document)
        return "optimal"
    assert best is None, f"no plan, and {best} is possible"
    assert found.proven
    assert found.least_memory_bytes == training_oracles.least_memory(problem)
    none = no_plan_document(
        problem,
        planner=found.planner,
        sha256=NO_FILE,
        proven=found.proven,
        least_memory_bytes=found.least_memory_bytes,
        reason=found.reason,
        stopped=found.stopped,
        elapsed_s=0,
    )
    _verified(none, problem.model, document)
    return "no memory"


def check_pfeife(seed: int) -> str:
    """Plan split points and schedules for one case; return what came out."""
    document, asked = irregular_split_case(seed)
    oracle = SplitOracle(document, asked)
    given = {key: asked[key] for key in ("devices", "micro_batches", "bandwidth", "memory", "speed", "loops")}
    given |= {key: asked[key] for key in ("loop_batch", "prefetch", "latency", "order")}
    model = read_model(document) if oracle.layers else document
    if not oracle.layers and all("transfer" in one for one in document["tensors"]):
        del given["bandwidth"]  # has no effect, of which the reader warns
    found, error = _split_plan(model, given)
    if isinstance(error, Deadlock):
        return "deadlock"
    if isinstance(error, Infeasible):
        assert asked["memory"] is not None
        if "as far as was found" in str(error):
            return "missed" if oracle.fits_somehow() else "none found"
        assert not oracle.fits_somehow(), f"no plan fits, and one does: {error}"
        return "no memory"
    if found is None:
        assert "need as many ops" in str(error) or "may not grow" in str(error), error
        return "refused"
    plan = found.document()
    costs = oracle.costs(plan["costs"]["configurations"])
    order = [str(name) for stage in plan["stages"] for name in stage["layers"]]
    assert order in [list(one) for one in oracle.orders()], f"{order} is no topological order"
    here = oracle.best(order, costs)
    assert here is not None, "a plan where none fits"
    iteration, family = plan["iteration_ticks"], plan["family_bound"]["value"]
    assert here <= iteration, f"plan {iteration} below {here}"
    assert family <= here, f"bound {plan['family_bound']} above {here}"
    rows = [
        [(int(one.split(kind)[0]), kind, int(one.split(kind)[1])) for one in row for kind in one if kind in "FB"]
        for row in plan["schedule"]["order"]
    ]
    alone = oracle.best_split(order, costs, rows, len(plan["stages"]))
    assert plan["lower_bound"]["value"] <= alone, f"bound {plan['lower_bound']} above {alone}"
    assert all(row["peak_bytes"] >= 0 for row in plan["devices"])
    _verified(plan, model, document)
    if plan["optimal"]:
        orders = oracle.orders() if asked["order"] == "search" else [tuple(order)]
        best = min(time for one in orders if (time := oracle.best(one, costs)) is not None)
        assert iteration == best, f"optimal at {iteration}, and {best} is possible"
        return "optimal"
    return "best along its order" if here == iteration else "planned"


def _split_plan(
    model: TrainingModel | Document, given: Document
) -> tuple[SplitPlanResult | None, Infeasible | InputError | None]:
    """Return a plan, or the error that there is none."""
    try:
        return mtpp.plan_training(model, planner="pfeife", jobs=1, **given), None
    except (Infeasible, InputError) as error:
        return None, error


def _unless_refused(build: Callable[[], Problem], known: Sequence[str]) -> Problem | None:
    """Return a problem, None if it is refused for a reason that is known."""
    try:
        return build()
    except InputError as error:
        if not any(one in str(error) for one in known):
            raise
        return None


def _verified(plan: Document, model: TrainingModel | Document, document: Document) -> None:
    """Check that the verifier finds nothing false; what tensors cost extra it may leave unchecked."""
    report = mtpp.verify(plan, model)
    shares = any(
        one.get(key)
        for layer in document.get("layers", ())
        for one in layer["configurations"].get("1", ())
        for key in ("sync_in", "sync_out")
    )
    wrong = [f"{row.claim}: {row.detail}" for row in report.rows if row.verdict == "false"]
    assert not wrong, wrong
    unchecked = [f"{row.claim}: {row.detail}" for row in report.rows if row.verdict == "unchecked"]
    assert shares or not unchecked, unchecked


CHECKS: dict[str, Callable[[int], str]] = {
    "graphpipe": check_graphpipe,
    "piper": check_piper,
    "pfeife": check_pfeife,
}


def main(planner: str, first: int, last: int) -> int:
    """Run the cases of seeds *first* up to *last*; return how many fail."""
    came: Counter[str] = Counter()
    for seed in range(first, last):
        try:
            came[CHECKS[planner](seed)] += 1
        except Exception as error:
            came["FAILED"] += 1
            print(f"{planner} {seed}: {type(error).__name__}: {error}", flush=True)
        if (seed + 1 - first) % 1000 == 0:
            print(f"{planner}: {seed + 1 - first} cases: {dict(came)}", flush=True)
    print(f"{planner}: seeds {first} to {last - 1}: {dict(came)}", flush=True)
    return came["FAILED"]


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
