"""Planners against brute force on irregular models, case by case: bound ≤ brute force ≤ plan, and ``verify`` agrees.

``python tests/support/irregular_campaign.py graphpipe 0 100000`` runs the cases of these seeds, and prints each that
fails and how many came out as what.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from planning import plan_with

if __name__ == "__main__":  # as tests find their modules
    sys.path[:0] = [str(Path(__file__).parents[2])]

import training_oracles
from irregular_freedoms import freed, freed_graph, freed_split, written_anew
from irregular_graph_oracle import best_graph_plan, least_graph_memory
from irregular_models import irregular_graph_case, irregular_level_case, irregular_line_case, irregular_split_case
from irregular_split_oracle import SplitOracle
from nested_models import graph_problem, nested_problem
from nested_oracles import Oracle

import mtpp
from mtpp.api.training.plan_results import SplitPlanResult
from mtpp.errors import Deadlock, Infeasible, InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results.graph_plan import PlannedGraph
from mtpp.formats.results.training_plan import no_plan_document, training_plan_document
from mtpp.formats.training.native import training_model_from_document
from mtpp.host.stop_reason import StopReason
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.solvers.last_look.graph_plans import look_at_graph_plan
from mtpp.solvers.last_look.line_plans import look_at_line_plan, look_at_nested_plan
from mtpp.solvers.limits import Limits, PlanLimits
from mtpp.solvers.planners.graphpipe.bound import iteration_bound
from mtpp.solvers.planners.graphpipe.least_memory import memory_bound
from mtpp.solvers.planners.graphpipe.planner import bound_of
from mtpp.solvers.planners.graphpipe.planner import plan as graphpipe
from mtpp.solvers.planners.graphpipe.search import StageGraphSearch
from mtpp.solvers.planners.nested.planner import plan_nested
from mtpp.solvers.planners.piper.planner import plan as piper
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.model import TrainingModel
from mtpp.training.nested_plan import NestedPlan
from mtpp.training.pfeife.named import named_schedule
from mtpp.training.plan import TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes

Document = dict[str, Any]
Problem = TypeVar("Problem")

_REFUSALS = ("no size of micro-batches can be used", "no size that layer", "no iteration has")


_AT_LIMITS = 10
"""Of so many cases with a plan, one is planned with the least memory that does, and with a byte less."""

_NO_FILE: Any = SimpleNamespace(identity={"sha256": None})
_SEARCHED = 20
"""Of so many cases, one is planned by the search for larger models as well."""

NO_FILE = "0" * 64
"""Digest of a model that is in no file."""


def read_model(document: Document) -> TrainingModel:
    """Read a model as from a file."""
    return training_model_from_document(parse_json(json.dumps(document).encode(), "model"), "model")


def check_graphpipe(seed: int, *, more: bool = True) -> str:
    """Plan stage graphs for one case, with *more* freedoms and at exact limits; return what came out."""
    document, asked = irregular_graph_case(seed)
    if not more:
        return _check_graphpipe(document, document, asked, seed)
    draw = random.Random(f"more graph {seed}")
    document = freed(document, draw)
    given = written_anew(document, draw)
    came = _check_graphpipe(document, given, asked, seed)
    if came == "no memory" or (came == "optimal" and seed % _AT_LIMITS == 0):
        least = least_graph_memory(document, asked)
        assert least is not None
        assert _check_graphpipe(document, given, {**asked, "memory_bytes": max(1, least)}, seed) == "optimal"
        if least > 1:
            assert _check_graphpipe(document, given, {**asked, "memory_bytes": least - 1}, seed) == "no memory"
    return came


def _check_graphpipe(document: Document, given: Document, asked: Document, seed: int) -> str:
    """Plan for one case, which the planner is *given* as a document that says the same."""
    best = best_graph_plan(document, asked)
    problem = _unless_refused(lambda: graph_problem(given, asked), _REFUSALS)
    if problem is None:
        assert best is None, f"refused, and {best} is possible"
        return "refused"
    found = graphpipe(problem, Limits())
    look_at_graph_plan(problem, found)
    if isinstance(found, GraphPlan):
        assert best is not None, "a plan where there is none"
        assert found.lower.value <= best.iteration, f"bound {found.lower} above {best}"
        assert best.iteration <= found.iteration, f"plan {found.iteration} below {best}"
        assert found.iteration == best.iteration, f"plan {found.iteration} above {best}"
        _verified(PlannedGraph(_NO_FILE, found, 0).document(), problem.model)
        chains = iteration_bound(problem, 2 * best.iteration)
        assert chains.value <= best.iteration, f"{chains} above {best}"
        by_chains = replace(found, lower=bound_of(problem, chains), stopped=StopReason.FINISHED)
        _verified(PlannedGraph(_NO_FILE, by_chains, 0).document(), problem.model)
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
    _verified(PlannedGraph(_NO_FILE, found, 0).document(), problem.model)
    return "hopeless" if found.hopeless else "no memory"


def piper_problem(document: Document | TrainingModel, asked: Document) -> PlanningProblem:
    """Return the problem of a case of :func:`irregular_models.irregular_line_case`."""
    return PlanningProblem(
        read_model(document) if isinstance(document, dict) else document,
        machine=Machine.of_devices(
            asked["devices"], memory_bytes=asked["memory_bytes"], bandwidth_bytes_per_s=asked["bandwidth"]
        ),
        micro_batches=asked["micro_batches"],
        exact_micro_batches=asked["exact"],
        convention=asked["convention"],
        schemes=Schemes(asked["data_parallel"], asked["tensor_parallel"], asked["recompute"]),
    )


def check_piper(seed: int) -> str:
    """Plan pipelines for one case; return what came out."""
    document, asked = irregular_line_case(seed)
    draw = random.Random(f"more line {seed}")
    document = written_anew(freed(document, draw, degrees=True), draw)
    came = _check_piper(document, asked)
    if came == "no memory" or (came == "optimal" and seed % _AT_LIMITS == 0):
        least = training_oracles.least_memory(piper_problem(document, asked))
        if least is not None:
            assert _check_piper(document, {**asked, "memory_bytes": max(1, least)}) == "optimal"
            assert least <= 1 or _check_piper(document, {**asked, "memory_bytes": least - 1}) == "no memory"
    return came


def _check_piper(document: Document, asked: Document) -> str:
    problem = _unless_refused(lambda: piper_problem(document, asked), ("has no configuration that may be used",))
    if problem is None:
        return "refused"
    found, best = piper(problem, PlanLimits()), training_oracles.best_plan(problem)
    if isinstance(found, TrainingPlan):
        assert best is not None, "a plan where there is none"
        assert found.lower.value <= best[0] <= found.time_per_sample, f"{found.lower}, {best}, {found.time_per_sample}"
        assert found.time_per_sample == best[0]
        look_at_line_plan(problem, found)
        plan = training_plan_document(
            found, file={"sha256": NO_FILE}, knapsack="exact", heuristic_differs=[], elapsed_s=0
        )
        _verified(plan, problem.model)
        return "optimal"
    assert best is None, f"no plan, and {best} is possible"
    assert found.proven
    assert found.least_memory_bytes == training_oracles.least_memory(problem)
    none = no_plan_document(problem, found, file={"sha256": NO_FILE}, elapsed_s=0)
    _verified(none, problem.model)
    return "no memory"


def check_nested(seed: int) -> str:
    """Plan pipelines on several levels of devices for one case; return what came out."""
    document, asked = irregular_level_case(seed)
    draw = random.Random(f"more levels {seed}")
    document = written_anew(freed(document, draw, degrees=True), draw)
    came, least = _check_nested(document, asked)
    if least is not None and (came == "no memory" or seed % _AT_LIMITS == 0):
        assert _check_nested(document, {**asked, "memory_bytes": max(1, least)})[0] == "optimal"
        assert least <= 1 or _check_nested(document, {**asked, "memory_bytes": least - 1})[0] == "no memory"
    return came


def _check_nested(document: Document, asked: Document) -> tuple[str, int | None]:
    """Return what came out, and the least memory with which there is a plan."""
    model = read_model(document)
    tree = Machine.of_levels(tuple(Level(count, Link(rate)) for count, rate in asked["levels"]))
    given = {
        "memory_bytes": asked["memory_bytes"],
        "micro_batches": asked["micro_batches"],
        "exact_micro_batches": asked["exact"],
        "schemes": Schemes(asked["data_parallel"], True, asked["recompute"]),
    }
    refusals = ("has no configuration that may be used",)
    problem = _unless_refused(lambda: nested_problem(model, tree, given), refusals)
    if problem is None:
        return "refused", None
    oracle = Oracle(model, tree, **given)
    found, best, least = plan_nested(problem, PlanLimits()), oracle.best(), oracle.least_memory()
    if isinstance(found, NestedPlan):
        assert best is not None, "a plan where there is none"
        assert found.lower.value <= best <= found.time_per_sample, f"{found.lower}, {best}, {found.time_per_sample}"
        assert found.time_per_sample == best
        look_at_nested_plan(problem, found)
        plan = training_plan_document(
            found, file={"sha256": NO_FILE}, knapsack="exact", heuristic_differs=[], elapsed_s=0
        )
        _verified(plan, model)
        return "optimal", least
    assert best is None, f"no plan, and {best} is possible"
    assert found.proven
    assert found.least_memory_bytes == least
    none = no_plan_document(problem, found, file={"sha256": NO_FILE}, elapsed_s=0)
    _verified(none, model)
    return "no memory", least


def check_pfeife(seed: int) -> str:
    """Plan split points and schedules for one case; return what came out."""
    document, asked = irregular_split_case(seed)
    draw = random.Random(f"more split {seed}")
    document = freed(document, draw) if "layers" in document else freed_graph(document, draw)
    asked = freed_split(asked, draw)
    if asked["schedule"] is not None:
        asked["loops"], asked["loop_batch"], asked["prefetch"] = [draw.choice((1, 2))], "divisors", None
        try:
            named = named_schedule(asked["schedule"], asked["devices"], asked["micro_batches"], *asked["loops"])
        except InputError:
            return "no such schedule"
        asked["rows"] = [[(one.stage, "FBIW"[one.kind], one.micro_batch) for one in row] for row in named.rows]
    oracle = SplitOracle(document, asked)
    given = {key: asked[key] for key in ("devices", "micro_batches", "bandwidth", "memory", "speed", "loops")}
    given |= {key: asked[key] for key in ("loop_batch", "prefetch", "latency", "order", "transport", "buffers")}
    given |= {key: asked[key] for key in ("backward_ratio", "state", "schedule")}
    document = written_anew(document, draw)
    model = read_model(document) if oracle.layers else document
    if oracle.layers:
        del given["state"]  # of layers, memory is as they say
    if not oracle.layers and all("transfer" in one for one in document["tensors"]):
        del given["bandwidth"]  # has no effect, of which the reader warns
    found, error = split_plan(model, given)
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
        [(int(one.split(kind)[0]), kind, int(one.split(kind)[1])) for one in row for kind in one if kind in "FBIW"]
        for row in plan["schedule"]["order"]
    ]
    alone = oracle.best_split(order, costs, rows, len(plan["stages"]))
    assert plan["lower_bound"]["value"] <= alone, f"bound {plan['lower_bound']} above {alone}"
    assert all(row["peak_bytes"] >= 0 for row in plan["devices"])
    _verified(plan, model)
    if plan["optimal"]:
        orders = oracle.orders() if asked["order"] == "search" else [tuple(order)]
        best = min(time for one in orders if (time := oracle.best(one, costs)) is not None)
        assert iteration == best, f"optimal at {iteration}, and {best} is possible"
        return "optimal"
    return "best along its order" if here == iteration else "planned"


def split_plan(
    model: TrainingModel | Document, given: Document
) -> tuple[SplitPlanResult | None, Infeasible | InputError | None]:
    """Return a plan, or the error that there is none."""
    try:
        with warnings.catch_warnings(action="ignore", category=mtpp.MtppWarning):
            return plan_with(model, planner="pfeife", jobs=1, **given), None
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


def _verified(plan: Document, model: TrainingModel | Document) -> None:
    """Check that the verifier finds nothing false, and leaves nothing unchecked."""
    report = mtpp.verify(plan, model)
    wrong = [f"{row.claim}: {row.detail}" for row in report.rows if row.verdict == "false"]
    assert not wrong, wrong
    unchecked = [f"{row.claim}: {row.detail}" for row in report.rows if row.verdict == "unchecked"]
    assert not unchecked, unchecked


CHECKS: dict[str, Callable[[int], str]] = {
    "graphpipe": check_graphpipe,
    "piper": check_piper,
    "nested": check_nested,
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
