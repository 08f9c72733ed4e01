"""Plans by ``pfeife``: brute force, known optima, best known values, memory, given schedules, transports."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from looped_oracles import every_split, family_rows, needed_bytes, random_line, replayed, warm_ups
from split_problems import line_of, planned, problem_of, unit_line

from mtpp.errors import Deadlock, InputError
from mtpp.formats.graphs.native import graph_from_document, read_native
from mtpp.formats.io.json_text import parse_json
from mtpp.host.stop_reason import StopReason
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.least_memory import nothing_found
from mtpp.solvers.planners.pfeife.path_network import schedule_network
from mtpp.solvers.planners.pfeife.planner import plan
from mtpp.solvers.planners.pfeife.schedule_arrays import looped_arrays
from mtpp.solvers.planners.pfeife.search import SplitSearch
from mtpp.solvers.threads import Threads
from mtpp.training.pfeife.costs import LineCosts
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.looped import LoopedSchedule, least_warm_up
from mtpp.training.pfeife.named import named_schedule
from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem, SplitRules

SHARED = Path(__file__).parents[5] / "shared"
REFERENCE = SHARED / "reference" / "pfeife.json"

needs_shared = pytest.mark.skipif(not REFERENCE.exists(), reason="needs ../shared")


def reference() -> dict[str, Any]:
    """Return the known answers."""
    return json.loads(REFERENCE.read_text())  # type: ignore[no-any-return]


def best_of_everything(problem: SplitProblem) -> int | None:
    """Return the least iteration within the memory over all splits, loops, loop batches and warm-ups."""
    best = None
    devices, total, n = problem.devices, problem.micro_batches, problem.line.costs.ops
    for loops, batch in problem.cells:
        for warm_up in warm_ups(least_warm_up(devices, total, loops, batch), loops * total):
            rows = family_rows(devices, total, loops, batch, warm_up)
            for split in every_split(n, loops * devices):
                if problem.memory_bytes is not None and any(
                    need > limit
                    for need, limit in zip(needed_bytes(problem, rows, split), problem.memory_bytes, strict=True)
                ):
                    continue
                forward, backward, handover = problem.times.stage_times(split)
                taken = replayed(rows, forward.tolist(), backward.tolist(), handover.tolist())
                if taken is not None and (best is None or taken < best):
                    best = taken
    return best


@needs_shared
@pytest.mark.parametrize("number", range(12))
def test_known_small_optima(number: int) -> None:
    """Small problems of the reference come to their optimum, or to there being no plan."""
    case = reference()["small"][number]
    graph = graph_from_document(parse_json(json.dumps(case["graph"]).encode(), "x"), "x")
    memory = case.get("memory")
    problem = problem_of(
        line_of(graph),
        case["devices"],
        case["micro_batches"],
        memory_bytes=None if memory is None else [memory] * case["devices"],
        rules=SplitRules(loops=case["loops"]),
    )
    found = plan(problem, Limits())
    if case["optimum"] is None:
        assert isinstance(found, NoSplitPlan)
        assert found.least_memory_bytes is not None
        assert found.least_memory_bytes > memory >= 0
        assert found.memory.value <= found.least_memory_bytes
        return
    assert isinstance(found, SplitPlan)
    assert found.iteration == case["optimum"]
    assert found.lower.value <= found.iteration
    assert found.family.value <= found.iteration


@pytest.mark.parametrize("seed", range(40))
def test_every_plan_of_a_small_problem(seed: int) -> None:
    """A small problem, at times with little memory, comes to what brute force over everything comes to."""
    pick = random.Random(seed)
    devices = pick.choice([1, 2, 2, 3])
    ops = pick.randint(devices, 6)
    line = random_line(pick, ops)
    memory = None
    if pick.random() < 0.5:
        memory = [int(line.costs.fixed_bytes.sum() / devices * pick.choice([1.2, 1.5, 2])) + 60] * devices
    rules = SplitRules(loops=[loop for loop in (1, 2, 3) if loop * devices <= ops], loop_batches="any")
    problem = problem_of(line, devices, pick.choice([1, 2, 3]), memory_bytes=memory, rules=rules)
    due = best_of_everything(problem)
    found = plan(problem, Limits())
    assert (found.iteration if isinstance(found, SplitPlan) else None) == due
    if isinstance(found, SplitPlan):
        assert max(found.lower.value, found.family.value) <= found.iteration
        if memory is not None:
            assert max(found.peak_bytes) <= memory[0]
    else:
        assert memory is not None
        assert found.least_memory_bytes is not None
        assert memory[0] < found.least_memory_bytes
        assert not found.proven or found.memory.value > memory[0]


@pytest.mark.parametrize("seed", range(20))
def test_search_comes_to_what_going_through_all_splits_does(seed: int) -> None:
    """Annealing finds the optimum of problems that are small enough to know it."""
    pick = random.Random(1000 + seed)
    devices = pick.choice([2, 3, 4])
    ops = pick.randint(devices + 2, 11)
    problem = problem_of(random_line(pick, ops), devices, pick.choice([2, 3, 4]), rules=SplitRules(loops=(1, 2)))
    if devices * 2 > ops:
        problem = problem_of(problem.line, devices, problem.micro_batches, rules=SplitRules(loops=(1,)))
    search = SplitSearch(problem, Limits())
    with Threads(1) as threads:
        cells = search.cell_bounds(threads)
        raced = [found for one in cells if (found := search.raced(one, threads)) is not None]
        every = [m for one in cells for w in one.cell.every() if (m := one.cell.scheduled(w)) is not None]
        best = search.best_of_all(every)
    assert best is not None
    assert min(one.ticks for one in raced) == best.ticks


@needs_shared
def test_figure_4() -> None:
    """Fifteen equal ops on three devices: the splits and iterations of the paper's figure 4."""
    case = reference()["figure4"]
    line = unit_line(15)
    for row in case["schedules"]:
        looped = LoopedSchedule(3, 3, 1, 3, row["prefetch"])
        problem = problem_of(line, 3, 3, rules=SplitRules(schedule=("given", looped.schedule)))
        search = SplitSearch(problem, Limits())
        assert search.few
        split = np.cumsum([0, *row["split"]])
        forward, backward, handover = problem.times.stage_times(split)
        rows = [[(one.stage, "FB"[one.kind], one.micro_batch) for one in r] for r in looped.schedule.rows]
        assert replayed(rows, forward.tolist(), backward.tolist(), handover.tolist()) == row["iteration"]
    best_1f1b = planned(problem_of(line, 3, 3, rules=SplitRules(loops=(1,), prefetch=(0, 0, 0))))
    assert best_1f1b.iteration == 72
    assert best_1f1b.split == [0, 6, 11, 15]
    assert planned(problem_of(line, 3, 3, rules=SplitRules(loops=(1,)))).iteration == 69


@needs_shared
@pytest.mark.parametrize("number", [3, 7, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 8, 10, 14, 16))])
def test_best_known_values(number: int) -> None:
    """Real graphs: at most 1.005 times the best known iteration, never above a baseline, and bounds that hold."""
    case = reference()["large"][number]
    graph = read_native((SHARED / "data" / "instances" / case["instance"]).read_bytes(), case["instance"])
    found = planned(problem_of(line_of(graph), case["devices"], case["micro_batches"]), jobs=2)
    assert found.iteration <= 1.005 * case["best_known"]
    assert {one.name: one.iteration for one in found.baselines[:-1]} == case["baselines"]
    assert found.iteration <= min(case["baselines"].values())
    assert found.family_ratio is not None
    assert found.family_ratio < 1.2
    best = LoopedSchedule(
        case["devices"], case["micro_batches"], case["loops"], case["loop_batch"], case["prefetch"]
    ).schedule
    known = planned(
        problem_of(line_of(graph), case["devices"], case["micro_batches"], rules=SplitRules(schedule=("best", best)))
    )
    assert known.iteration <= 1.005 * case["best_known"]
    assert known.lower.value >= 0.9999 * case["bound_of_that_order"]


@needs_shared
def test_work_that_can_be_cut_anywhere() -> None:
    """Bounds of schedules of many equal ops come to the values of the linear programme, from above."""
    ops = 20_000
    for row in reference()["divisible"]["rows"]:
        looped = LoopedSchedule(row["devices"], row["micro_batches"], row["loops"], row["loop_batch"], row["prefetch"])
        problem = problem_of(
            unit_line(ops), row["devices"], row["micro_batches"], rules=SplitRules(schedule=("row", looped.schedule))
        )
        search = SplitSearch(problem, Limits())
        arrays = looped_arrays(looped)
        assert arrays is not None
        value = search.game(schedule_network(arrays)).value / (3 * ops)
        assert value == pytest.approx(row["iteration"], rel=3e-4)


def test_one_loop_of_work_that_can_be_cut_anywhere() -> None:
    """With one loop the bound on all schedules is 1 / (1 − (1 − 1/B)^D) of the work."""
    for devices, total in ((2, 4), (4, 8), (3, 3)):
        problem = problem_of(unit_line(12_000), devices, total, rules=SplitRules(loops=(1,)))
        search = SplitSearch(problem, Limits())
        with Threads(1) as threads:
            value = search.cell_bounds(threads)[0].value
        due = 36_000 / (1 - (1 - 1 / total) ** devices)
        assert value == pytest.approx(due, rel=1e-3) or value > due


def test_prefetch_and_passes_that_wait_for_each_other() -> None:
    """A fixed prefetch is kept; one whose passes wait for each other is told by its passes."""
    line = unit_line(12)
    found = planned(problem_of(line, 3, 6, rules=SplitRules(loops=(2,), prefetch=(2, 1, 0))))
    assert found.looped is not None
    assert list(found.looped.prefetch) == [2, 1, 0]
    assert found.family.value <= found.iteration
    waiting = LoopedSchedule(2, 4, 2, 2, (4, 0)).schedule
    with pytest.raises(Deadlock, match="2F3 waits for 1F3, which waits for 1B0"):
        plan(problem_of(line, 2, 4, rules=SplitRules(schedule=("given", waiting))), Limits())
    with pytest.raises(InputError, match="may not grow"):
        problem_of(line, 4, 8, rules=SplitRules(loops=(1,), prefetch=(0, 0, 0, 4)))


@pytest.mark.parametrize("transport", ["neighbours", "direct"])
def test_memory_does_not_grow_with_micro_batches(transport: Literal["neighbours", "direct"]) -> None:
    """Devices hold buffers of the micro-batches in flight; of all, as PyTorch does, only where that is asked for."""
    line, split = random_line(random.Random(5), 12), [0, 4, 8, 12]

    def need(count: int, buffers: Literal["in-flight", "torch-pipelining"]) -> Sequence[int]:
        schedule = LoopedSchedule(3, count, 1, count, (0, 0, 0)).schedule
        rules = SplitRules(loops=(1,), transport=transport, buffers=buffers)
        return problem_of(line, 3, count, rules=rules).device_bytes(schedule, split)

    assert need(4, "in-flight") == need(64, "in-flight")
    grown = [b - a for a, b in zip(need(4, "torch-pipelining"), need(64, "torch-pipelining"), strict=True)]
    if transport == "neighbours":
        crossing = line.costs.crossing_bytes[split]
        assert grown == [60 * int(a + b) for a, b in pairwise(crossing)]
    assert min(grown) > 0


@pytest.mark.parametrize("seed", range(12))
def test_straight_transport(seed: int) -> None:
    """Tensors that go straight to their readers: every split replayed by a second program; the bound holds."""
    pick = random.Random(seed)
    devices = pick.choice([1, 2, 3])
    ops = pick.randint(devices + 1, 6)
    rules = SplitRules(loops=(1, 2) if 2 * devices <= ops else (1,), transport="direct")
    problem = problem_of(random_line(pick, ops), devices, pick.choice([1, 2, 3]), rules=rules)
    best = None
    for loops, batch in problem.cells:
        least = least_warm_up(devices, problem.micro_batches, loops, batch)
        for warm_up in warm_ups(least, loops * problem.micro_batches):
            rows = family_rows(devices, problem.micro_batches, loops, batch, warm_up)
            for split in every_split(ops, loops * devices):
                forward, backward, handover = problem.times.stage_times(split)
                if replayed(rows, forward.tolist(), backward.tolist(), handover.tolist()) is None:
                    continue
                taken = _straight(problem, rows, split)
                best = taken if best is None else min(best, taken)
    found = planned(problem)
    assert found.iteration == best
    assert found.lower.method == "loads"
    assert found.lower.value <= found.iteration


def _straight(problem: SplitProblem, rows: Sequence[list[tuple[int, str, int]]], split: Sequence[int]) -> int:
    """Return the iteration where tensors go straight to the stages that read them."""
    stage_of = [s for s in range(len(split) - 1) for _ in range(split[s], split[s + 1])]
    between: dict[tuple[int, int], int] = {}
    for one in problem.line.costs.tensors:
        source = stage_of[one.producer]
        for target in sorted({stage_of[v] for v in one.consumers} - {source}):
            between[source, target] = between.get((source, target), problem.line.costs.latency) + one.ticks
    forward, backward, _ = problem.times.stage_times(split)
    stages, devices = len(forward), len(rows)
    come: dict[tuple[int, str, int], dict[int, int]] = {}
    channel: dict[tuple[int, int], int] = {}
    free, at = [0] * devices, [0] * devices
    while any(at[d] < len(row) for d, row in enumerate(rows)):
        before = list(at)
        for d, row in enumerate(rows):
            if at[d] == len(row):
                continue
            stage, kind, m = row[at[d]]
            forth = kind == "F"
            needed = [s for s in range(stages) if ((s, stage) if forth else (stage, s)) in between]
            here = come.get(row[at[d]], {})
            if any(s not in here for s in needed):
                continue
            free[d] = max([free[d], *here.values()]) + int((forward if forth else backward)[stage])
            at[d] += 1
            for other in range(stages):
                key = (stage, other) if forth else (other, stage)
                if key in between:
                    way = (d, other % devices)
                    channel[way] = max(free[d], channel.get(way, 0)) + between[key]
                    come.setdefault((other, kind, m), {})[stage] = channel[way]
        assert at != before
    return max(free)


def test_search_that_has_to_end() -> None:
    """A search that is ended at once has a plan and a bound on all; nothing is proven of memory that has no limit."""
    problem = problem_of(random_line(random.Random(4), 60), 4, 8)
    found = plan(problem, Limits(interrupted=lambda: True))
    assert isinstance(found, SplitPlan)
    assert (found.lower.method, found.family.method) == ("loads", "loads")
    assert 0 < found.family.value <= found.iteration
    assert not nothing_found(problem, StopReason.TIME_LIMIT).proven
    tight = problem_of(problem.line, 4, 8, memory_bytes=[1] * 4)
    assert nothing_found(tight, StopReason.TIME_LIMIT).proven


@pytest.mark.parametrize("search", ["anneal", "beam"])
@pytest.mark.parametrize("given", [None, "1f1b"])
def test_a_search_that_has_to_end_says_of_no_plan_that_fits_that_there_is_none(search: str, given: str | None) -> None:
    """Ended before, or after a few looks at its limits, a search within memory that even stages fit into has a plan."""
    rules = SplitRules(search=search, schedule=None if given is None else (given, named_schedule(given, 8, 8, 1)))
    line = random_line(random.Random(4), 60)
    most = max(planned(problem_of(line, 8, 8, rules=rules)).peak_bytes)
    problem = problem_of(line, 8, 8, rules=rules, memory_bytes=[2 * most] * 8)
    for looks in (0, 1, 5, 20, 60):
        left = iter(range(looks))
        found = plan(problem, Limits(interrupted=lambda left=left: next(left, None) is None))  # type: ignore[misc]
        assert isinstance(found, SplitPlan)
        assert max(found.peak_bytes) <= 2 * most


def test_annealing_is_no_worse_than_the_beam() -> None:
    """On a line of uneven ops the beam search of the paper finds nothing shorter."""
    line = random_line(random.Random(8), 60)
    annealed = planned(problem_of(line, 4, 8))
    beam = planned(problem_of(line, 4, 8, rules=SplitRules(search="beam")))
    assert annealed.iteration <= beam.iteration
    assert annealed.iteration < min(one.iteration for one in beam.baselines)


def test_speeds_and_memory_of_each_device() -> None:
    """A device of twice the speed gets more ops; one of little memory gets fewer."""
    line = unit_line(30)
    even = planned(problem_of(line, 2, 8, rules=SplitRules(loops=(1,))))
    faster = planned(problem_of(line, 2, 8, speeds=[2, 1], rules=SplitRules(loops=(1,))))
    assert faster.split[1] > even.split[1]
    assert faster.iteration < even.iteration
    heavy = LineCosts(line.costs.forward, line.costs.backward, np.full(30, 10), np.zeros(30, dtype=np.int64), [])
    small = ModelLine("heavy", "graph", line.names, "ps", 1, heavy, True)
    held = planned(problem_of(small, 2, 8, memory_bytes=[100, 300], rules=SplitRules(loops=(1,))))
    assert held.split == [0, 10, 30]
    assert held.peak_bytes == [100, 200]


def test_the_same_plan_whatever_the_number_of_threads() -> None:
    """Threads change the speed, not the plan."""
    line = random_line(random.Random(3), 40)
    one, two = (planned(problem_of(line, 4, 4), jobs=jobs) for jobs in (1, 2))
    assert (one.split, one.iteration, one.looped) == (two.split, two.iteration, two.looped)
    assert one.family.proof == two.family.proof
