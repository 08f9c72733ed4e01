"""More freedom is never slower: planners with an option that allows more plans, against the same without it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from irregular_campaign import piper_problem, read_model, split_plan
from irregular_freedoms import freed, freed_graph, freed_split
from irregular_models import irregular_line_case, irregular_model, irregular_split_case
from looped_oracles import random_line
from machines import on_machine
from seeds import ALL_SEEDS, sampled
from training_models import random_model

from mtpp.errors import InputError
from mtpp.machine.machine import Machine
from mtpp.names import TRANSPORTS
from mtpp.solvers.limits import Limits, PlanLimits
from mtpp.solvers.planners.graphpipe.planner import plan as graphpipe
from mtpp.solvers.planners.pfeife.planner import plan as pfeife
from mtpp.solvers.planners.piper.planner import plan as piper
from mtpp.training.graph_plan import GraphPlan
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import TrainingModel
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.named import named_schedule
from mtpp.training.pfeife.plan import SplitPlan
from mtpp.training.pfeife.problem import SplitProblem, SplitRules
from mtpp.training.plan import TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes

NARROWER: dict[str, dict[str, Any]] = {
    "one size": {"micro_batch_sizes": (2,)},
    "other sizes": {"micro_batch_sizes": (2, 4)},
    "the same in all stages": {"per_stage": False},
    "one order": {"intervals": (1,)},
    "the other order": {"intervals": (2,)},
    "one line": {"sequential": True},
    "fewest in flight": {"in_flight": "least"},
    "no replicas": {"data_parallel": False},
    "no recomputation": {"recompute": False},
}
"""Options of graphpipe that allow fewer plans than :data:`WIDEST`."""

WIDEST = GraphRules(micro_batch_sizes=(1, 2, 4), per_stage=True, intervals=(1, 2))

PAIRS = [one for count in (1, 2) for one in combinations(NARROWER, count)]


def _asked(model: TrainingModel, rules: GraphRules, **system: int) -> int | None:
    """Return the iteration of the plan, None if none is found or the rules leave nothing to plan."""
    given = {"devices": 4, "memory_bytes": 1_000, "bandwidth_bytes_per_s": 10**12, "mini_batch": 4, **system}
    try:
        found = graphpipe(GraphProblem.build(model, rules=rules, **on_machine(**given)), Limits())
    except InputError:
        return None
    return found.iteration if isinstance(found, GraphPlan) else None


def _rules(names: Sequence[str]) -> GraphRules:
    given: dict[str, Any] = {}
    for name in names:
        given |= NARROWER[name]
    return replace(WIDEST, **given)


def _no_slower(model: TrainingModel, narrow: Sequence[str], wide: Sequence[str], known: dict[Any, int | None]) -> None:
    """Check that what allows more plans is at least as fast; *known* keeps the iterations of a model."""
    if "fewest in flight" in wide and "one line" in set(narrow) - set(wide):
        return  # the fewest of a graph are fewer than those of a line: no freedom more
    if {"one size", "other sizes"} <= {*narrow} or {"one order", "the other order"} <= {*narrow}:
        return  # one of them stands for both
    for names in (narrow, wide):
        if tuple(names) not in known:
            known[tuple(names)] = _asked(model, _rules(names))
    slow, fast = known[tuple(narrow)], known[tuple(wide)]
    assert slow is None or (fast is not None and fast <= slow), f"{wide}: {fast}, {narrow}: {slow}"


def _all_pairs(model: TrainingModel, pairs: Sequence[Sequence[str]]) -> None:
    known: dict[Any, int | None] = {}
    for narrow in pairs:
        _no_slower(model, narrow, (), known)
        for name in narrow if len(narrow) > 1 else ():
            _no_slower(model, narrow, [one for one in narrow if one != name], known)


def _large(seed: int) -> TrainingModel:
    """Return a model of nine or ten layers: too many to look at all plans."""
    draw = random.Random(seed)
    while True:
        model = read_model(irregular_model(draw, most_layers=10))
        if len(model.layers) > 8:
            return model


@pytest.mark.parametrize("seed", range(2))
def test_small_models(seed: int) -> None:
    """Every pair of options of graphpipe, where all plans are looked at."""
    _all_pairs(read_model(irregular_model(random.Random(f"small {seed}"), most_layers=5)), PAIRS)


@pytest.mark.parametrize("seed", range(2))
def test_searched_models(seed: int) -> None:
    """Some pairs of options of graphpipe, where plans are searched."""
    _all_pairs(_large(seed), random.Random(seed).sample(PAIRS, 6))


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(100, 106), 2))
def test_more_searched_models(seed: int) -> None:
    """Every pair of options of graphpipe."""
    _all_pairs(_large(seed), PAIRS)


NARROWER_SPLITS: dict[str, dict[str, Any]] = {
    "one loop": {"loops": (1,)},
    "two loops": {"loops": (1, 2)},
    "batches that divide": {"loop_batches": "divisors"},
    "no prefetch": {"prefetch": (0, 0)},
    "the file's order": {"order": "file"},
}
"""Options of pfeife that allow fewer plans."""

WIDEST_SPLITS = SplitRules(loops=(1, 2, 3), loop_batches="any", order="search")

LINES = {0: 8, 1: 8, 2: 12, 5: 26, **({3: 20, 4: 30, 7: 40} if ALL_SEEDS else {})}
"""Numbers of ops by seed, of which those above 22 have too many splits to go through all; even seeds limit memory."""


@pytest.mark.parametrize(
    ("seed", "ops"),
    [(1, 6), *(pytest.param(seed, ops, marks=pytest.mark.slow) for seed, ops in LINES.items())],
)
def test_pairs_of_options_of_pfeife(seed: int, ops: int) -> None:
    """Loops, loop batches, prefetch and orders, alone and in pairs: small lines gone through, long ones annealed."""
    line = random_line(random.Random(seed), ops)
    memory = None if seed % 2 else [1_500] * 2
    pairs: list[tuple[str, ...]] = [one for count in (1, 2) for one in combinations(NARROWER_SPLITS, count)]
    known = {one: _split(line, memory, one) for one in [(), *pairs]}
    for narrow in pairs:
        for wide in [(), *((one,) for one in narrow if len(narrow) > 1)]:
            slow, fast = known[narrow], known[wide]
            if {"one loop", "two loops"} <= {*narrow} and wide == ("one loop",):
                continue  # the latter option stands for both
            assert slow is None or (fast is not None and fast <= slow), f"{wide}: {fast}, {narrow}: {slow}"


def _split(line: ModelLine, memory: list[int] | None, names: Sequence[str]) -> int | None:
    given: dict[str, Any] = {}
    for name in names:
        given |= NARROWER_SPLITS[name]
    problem = SplitProblem.build(
        line,
        machine=Machine.of_devices(2, memory_bytes=memory, bandwidth_bytes_per_s=10**12),
        micro_batches=4,
        rules=replace(WIDEST_SPLITS, **given),
    )
    found = pfeife(problem, Limits())
    return found.iteration if isinstance(found, SplitPlan) else None


NARROWER_ANYWHERE: dict[str, dict[str, Any]] = {
    "one loop": {"loops": (1,)},
    "two loops": {"loops": (1, 2)},
    "batches that divide": {"loop_batch": "divisors"},
    "the file's order": {"order": "file"},
    "room for all": {"buffers": "torch-pipelining"},
    "gpipe": {"schedule": "gpipe", "loops": (1,)},
    "1f1b": {"schedule": "1f1b", "loops": (1,)},
    "interleaved": {"schedule": "interleaved", "loops": (2,)},
    "bfs": {"schedule": "bfs", "loops": (2,)},
}
"""Options of pfeife that allow fewer plans, schedules that are given among them."""

_OF_FAMILIES = ("one loop", "two loops", "batches that divide")


def _irregular_splits(seed: int) -> None:
    """Check pairs of options for a graph or a model of layers, with any transport, speeds, memory and shares."""
    document, asked = irregular_split_case(seed)
    draw = random.Random(f"free {seed}")
    layers = "layers" in document
    document = freed(document, draw) if layers else freed_graph(document, draw)
    asked = freed_split(asked, draw)
    given = {key: asked[key] for key in ("devices", "bandwidth", "memory", "speed", "latency", "transport")}
    given |= {"micro_batches": draw.choice((2, 3, 4)), "backward_ratio": asked["backward_ratio"]}
    given |= {"loops": (1, 2, 3), "loop_batch": "any", "order": "search"}
    if layers and draw.random() < 0.7:
        given["memory"] = [draw.choice((60, 100, 150, 250))] * asked["devices"]
    if not layers and all("transfer" in one for one in document["tensors"]):
        del given["bandwidth"]  # has no effect, of which the reader warns
    model = read_model(document) if layers else document
    known: dict[tuple[str, ...], int | None] = {}
    for names in (one for count in (0, 1, 2) for one in combinations(NARROWER_ANYWHERE, count)):
        schedules = [one for one in names if "schedule" in NARROWER_ANYWHERE[one]]
        if len(schedules) > 1 or {"one loop", "two loops"} <= {*names}:
            continue
        if schedules and any(one in _OF_FAMILIES for one in names):
            continue
        options = dict(given)
        for name in names:
            options |= NARROWER_ANYWHERE[name]
        if schedules:
            options["loop_batch"] = "divisors"
        found, _ = split_plan(model, options)
        known[names] = None if found is None else found.document()["iteration_ticks"]
    for narrow, slow in known.items():
        for name in narrow:
            wide = tuple(one for one in narrow if one != name)
            if slow is not None and wide in known:
                fast = known[wide]
                assert fast is not None, f"{seed}: nothing for {wide}, {slow} for {narrow}"
                assert fast <= slow, f"{seed}: {fast} for {wide}, {slow} for {narrow}"


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in sampled(range(1, 40), 19))]
)
def test_pairs_of_options_of_pfeife_on_irregular_models(seed: int) -> None:
    """Schedules against their families, orders, loops, loop batches and buffers."""
    _irregular_splits(seed)


FREED = sampled((14, 16, 17, 12, 13, 15, 18, 19, 20, 21, 22, 23), 3)
"""Seeds of lines of 6 ops more, in orders of the file and searched, by both transports; annealed from 16 on."""


@pytest.mark.parametrize(
    ("seed", "ops"), [(3, 6), *(pytest.param(seed, 6 + seed, marks=pytest.mark.slow) for seed in FREED)]
)
def test_memory_speeds_schedules_and_buffers_of_lines(seed: int, ops: int) -> None:
    """No limit, faster devices, less to hold and no schedule given: none makes a plan slower, annealed ones neither."""
    draw = random.Random(f"free {seed}")
    line = random_line(draw, ops)
    memory = [draw.choice((150, 250, 400, 600))] * 2
    rules = replace(WIDEST_SPLITS, order=draw.choice(("file", "search")), transport=draw.choice(TRANSPORTS))

    def asked(limits: list[int] | None, speeds: Sequence[int] = (1, 1), **narrower: Any) -> int | None:
        problem = SplitProblem.build(
            line,
            machine=Machine.of_devices(2, memory_bytes=limits, bandwidth_bytes_per_s=10**12, speeds=speeds),
            micro_batches=4,
            rules=replace(rules, **narrower),
        )
        found = pfeife(problem, Limits())
        return found.iteration if isinstance(found, SplitPlan) else None

    held, free = asked(memory), asked(None)
    pairs = [(asked(memory, buffers="torch-pipelining"), held), (held, free), (free, asked(None, (2, 1)))]
    for name, loops in (("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("bfs", 2)):
        if 2 * loops <= len(line.names):
            given = name, named_schedule(name, 2, 4, loops)
            pairs += [(asked(memory, schedule=given), held), (asked(None, schedule=given), free)]
    for slow, fast in pairs:
        assert slow is None or (fast is not None and fast <= slow)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_of_schemes_of_piper_on_irregular_models(seed: int) -> None:
    """The same as of regular ones, and more devices, memory and micro-batches."""
    document, asked = irregular_line_case(seed)
    model = read_model(freed(document, random.Random(f"free {seed}"), degrees=True))
    widest = {"devices": 4, "memory_bytes": asked["memory_bytes"], "micro_batches": 4, "exact": False}
    widest |= {"data_parallel": True, "tensor_parallel": True, "recompute": True}
    narrower: dict[str, Any] = {"devices": 3, "memory_bytes": 100, "micro_batches": 3, "exact": True}
    narrower |= dict.fromkeys(("data_parallel", "tensor_parallel", "recompute"), False)
    narrower["memory_bytes"] = min(100, asked["memory_bytes"])
    common = {"bandwidth": asked["bandwidth"], "convention": "paper"}
    times: dict[tuple[str, ...], Any] = {}
    for names in (one for count in (0, 1, 2) for one in combinations(narrower, count)):
        case = common | widest | {name: narrower[name] for name in names}
        try:
            found = piper(piper_problem(model, case), PlanLimits())
        except InputError:
            times[names] = None
            continue
        times[names] = found.time_per_sample if isinstance(found, TrainingPlan) else None
    for narrow, slow in times.items():
        for name in narrow:
            fast = times[tuple(one for one in narrow if one != name)]
            if {"exact", "micro_batches"} <= {*narrow} and name == "micro_batches":
                continue  # other degrees, not more
            assert slow is None or (fast is not None and fast <= slow), f"{seed}: without {name} of {narrow}"


@pytest.mark.parametrize("seed", range(12))
def test_pairs_of_schemes_of_piper(seed: int) -> None:
    """Any number of micro-batches that fits, data and tensor parallelism and recomputation."""
    model = random_model(seed, most_layers=6)
    times: dict[tuple[bool, ...], Any] = {}
    for data_parallel in (False, True):
        for tensor_parallel in (False, True):
            for recompute in (False, True):
                for at_most in (False, True):
                    key = data_parallel, tensor_parallel, recompute, at_most
                    times[key] = _piper(model, Schemes(data_parallel, tensor_parallel, recompute), exact=not at_most)
    for narrow, slow in times.items():
        for wide, fast in times.items():
            if slow is not None and all(a <= b for a, b in zip(narrow, wide, strict=True)):
                assert fast is not None
                assert fast <= slow


def _piper(model: TrainingModel, schemes: Schemes, *, exact: bool) -> Any:
    try:
        problem = PlanningProblem(
            model,
            machine=Machine.of_devices(4, memory_bytes=300, bandwidth_bytes_per_s=10**12),
            micro_batches=4,
            exact_micro_batches=exact,
            schemes=schemes,
        )
    except InputError:
        return None
    found = piper(problem, PlanLimits())
    return found.time_per_sample if isinstance(found, TrainingPlan) else None
