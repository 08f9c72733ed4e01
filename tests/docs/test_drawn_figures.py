"""What drawings derive from proofs, and from the graphs themselves, holds by brute force."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import oracles
import pytest
from labelling_oracle import Labellings, windows_of, worths_of
from looped_oracles import family_rows, replayed
from processes import ROOT

from docs.drawing import (
    capacity,
    chosen_stages,
    configuration,
    convex_weights,
    crossings,
    downset,
    fraction,
    position_weights,
    relaxation,
)
from docs.drawing.example import LADDER, Example
from docs.drawing.merges import MERGE, merged
from docs.drawing.stage_sets import convex_sets, downsets
from docs.drawing.training import layer_plans
from docs.drawing.training.example import MS, chain, fits, graph_plan, layer_chains, split_plan
from docs.drawing.training.schedule_paths import path_length, splits
from docs.drawing.training.schedule_paths import replayed as drawn_times
from mtpp.checker.claim import BoundClaim
from mtpp.checker.graph import model_in_ticks
from mtpp.checker.relaxed import relaxation_of, relaxed_graph
from mtpp.formats.graphs.native import read_native
from mtpp.machine.presets import load_device

EXAMPLES = (
    LADDER,
    MERGE,
    chosen_stages.DETOUR,
    chosen_stages.POSITIONS,
    chosen_stages.PAIR,
    relaxation.SMALL_OPS,
    position_weights.CROSSED,
)
REFERENCE = load_device("reference")


def _graph(example: Example) -> oracles.CostGraph:
    return read_native(example.path.read_bytes(), example.name)


def _stages(example: Example, limit: int) -> Iterator[set[str]]:
    """Yield every set that is a stage of some partition into k stages, none of which costs more than *limit*."""
    graph = _graph(example)
    for assignment in oracles.monotone_assignments(graph, example.k):
        stages = [{op for op, s in zip(example.ops, assignment, strict=True) if s == b} for b in range(example.k)]
        if oracles.bottleneck(graph, REFERENCE, assignment, example.k) <= limit:
            yield from (stage for stage in stages if stage)


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{one.name}-{one.k}" for one in EXAMPLES])
def test_costs_of_sets(example: Example) -> None:
    """The cost of every set of ops is that of the definition."""
    graph = _graph(example)
    for size in range(1, len(example.ops) + 1):
        for some in combinations(range(len(example.ops)), size):
            names = [example.ops[v] for v in some]
            assert example.cost(names) == oracles.stage_cost(graph, REFERENCE, some, example.k)


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{one.name}-{one.k}" for one in EXAMPLES])
def test_downsets_and_convex_sets(example: Example) -> None:
    """Every stage of a partition is convex, and what the first stages hold is a downset; all of them occur."""
    graph = _graph(example)
    stages, first = set(), {()}
    for assignment in oracles.monotone_assignments(graph, len(example.ops)):
        for b in range(len(example.ops)):
            stages.add(tuple(op for op, s in zip(example.ops, assignment, strict=True) if s == b))
            first.add(tuple(op for op, s in zip(example.ops, assignment, strict=True) if s <= b))
    assert stages - {()} == set(convex_sets(example))
    assert first == set(downsets(example))


def test_fraction_limits_hold() -> None:
    """No convex set below the cutoff has more work than the limit of any of its ops."""
    proof = LADDER.bound("fraction")["lower_proof"]
    most = dict(zip(LADDER.ops, fraction.most_beside(LADDER, proof), strict=True))
    for some in convex_sets(LADDER):
        if LADDER.cost(some) < proof["cutoff"]:
            assert all(sum(LADDER.work[op] for op in some) <= most[op] for op in some)
    assert sum(Fraction(LADDER.work[op], most[op]) for op in LADDER.ops) > LADDER.k


def test_room_of_a_stage() -> None:
    """Three times the most work of a stage below the bound is less than all; within the bound it is not."""
    value, total = LADDER.bound("capacity")["lower"], sum(LADDER.work.values())
    assignments = list(oracles.monotone_assignments(_graph(LADDER), LADDER.k))
    sets = [[op for op, s in zip(LADDER.ops, row, strict=True) if s == stage] for row in assignments for stage in row]
    below, within = (
        max(chosen_stages.work_of(LADDER, some) for some in sets if LADDER.cost(some) <= limit)
        for limit in (value - 1, value)
    )
    assert chosen_stages.work_of(LADDER, capacity.largest_within(LADDER, value - 1)) == below == 9
    assert LADDER.k * below < total <= LADDER.k * within


def test_configuration_values_hold() -> None:
    """No set that can be a stage below the cutoff is worth more than one, and all ops together more than k."""
    row = LADDER.bound("configuration")
    parts = configuration.values(LADDER, row["lower_proof"])
    largest = configuration.possible_stages(LADDER, row["lower"] - 1)
    assert all(sum(parts[op] for op in some) <= 1 for some in largest)
    assert sum(parts.values()) > LADDER.k
    for limit in (row["lower"] - 1, row["lower"]):  # there is no partition at the first, and one at the second
        shown = configuration.possible_stages(LADDER, limit)
        assert all(any(stage <= set(some) for some in shown) for stage in _stages(LADDER, limit))


def test_convex_weights_hold() -> None:
    """No stage of any partition that costs less than the cutoff holds more than the capacity; k times that is less."""
    row = LADDER.bound("convex-weights")
    proof, graph = row["lower_proof"], _graph(LADDER)
    weight = convex_weights.weights(LADDER, proof)
    shown = convex_weights.largest_sets(LADDER, row["lower"] - 1)
    for assignment in oracles.monotone_assignments(graph, len(LADDER.ops)):
        for stage in set(assignment):
            some = [v for v, s in enumerate(assignment) if s == stage]
            if oracles.stage_cost(graph, REFERENCE, some, LADDER.k) < row["lower"]:
                assert sum(weight[LADDER.ops[v]] for v in some) <= proof["capacity"]
                assert any({LADDER.ops[v] for v in some} <= set(other) for other in shown)
    assert sum(weight.values()) > LADDER.k * proof["capacity"]


def test_spans_of_tensors_in_a_scan() -> None:
    """No op comes before one that it reads from, and three tensors are live at most, as the page says."""
    order = [LADDER.ops[op] for op in LADDER.bound("convex-weights")["lower_proof"]["scan"]]
    spans = convex_weights.spans(LADDER, order).values()
    assert all(begin < end for begin, end in spans)
    live = [
        {one.name for one in LADDER.tensors if one.producer in order[:i] and set(one.consumers) & set(order[i:])}
        for i in range(len(order))
    ]
    assert [len(row) for row in live] == [sum(begin < i <= end for begin, end in spans) for i in range(len(order))]
    assert max(map(len, live)) == 3


def test_every_partition_is_worth_the_same() -> None:
    """Over its stages, each partition adds up to the sum of the last weights; so much is out of reach."""
    example = position_weights.CROSSED
    graph, k = _graph(example), example.k
    weights = position_weights.step_weights(example)
    for assignment in oracles.monotone_assignments(graph, k):
        total = 0
        for op, own in zip(example.ops, assignment, strict=True):
            row = weights[op]
            total += row[own] + sum(row[j] - row[j - 1] for j in range(own + 1, k))
        assert total == sum(row[-1] for row in weights.values())


@pytest.mark.parametrize("stage", [1, 2])
def test_worths_of_a_stage(stage: int) -> None:
    """Worths, windows and the most of each stage are those of all labellings, and less than any partition is worth."""
    example = position_weights.CROSSED
    row = example.bound("position-weights")
    limit, ticks = row["lower"] - 1, model_in_ticks(json.loads(example.path.read_text()), 25 * 10**9, example.k)
    merged = BoundClaim(ticks, REFERENCE.to_document(), example.k, [], 0, {"merges": []}).merged()
    assert not isinstance(merged, str)
    weights = position_weights.step_weights(example)
    stages = windows_of(merged, merged.work, example.k, limit)
    drawn = position_weights.windows(example, limit)
    assert [set(range(first, last + 1)) for first, last in drawn.values()] == stages
    worths = worths_of(dict(enumerate(weights.values())), stages, stage)
    assert list(position_weights.worths(example, weights, limit, stage).values()) == worths
    ways = Labellings.of(merged, merged.work).allowed(worths, limit)
    most, labels = position_weights.best_labelling(example, dict(zip(example.ops, worths, strict=True)), limit)
    assert max(ways.worth(worths)) == most
    assert list(labels.values()) in ways.labels[ways.worth(worths) == most].tolist()
    (step,) = row["lower_proof"]["tree"]["steps"]
    assert most < step["floors"][stage - 1]
    assert sum(floor - 1 for floor in step["floors"]) < sum(one[-1] for one in weights.values())


def test_windows_are_those_of_the_verifier() -> None:
    """The windows that clash in the end are what `mtpp verify` says of the proof, as the page shows."""
    proof = LADDER.bound("crossings")["lower_proof"]
    _, (least, most) = crossings.history(proof, sum(LADDER.work.values()))[-1]
    page = " ".join((ROOT / "docs" / "bounds" / "crossings.md").read_text(encoding="utf-8").split())
    (said,) = re.findall(r"the first (\d+) stages need (\d+) at least, and have room for (\d+)", page)
    stages, need, room = map(int, said)
    assert (least[stages], most[stages]) == (need, room)


def test_fewest_stages() -> None:
    """So many stages suffice to stay below the cutoff, and one less does not."""
    cutoff = LADDER.bound("downset")["lower"]
    fewest, _ = downset.fewest_stages(LADDER, cutoff)[LADDER.ops]
    graph = _graph(LADDER)
    assert oracles.brute_force_optimum(graph, REFERENCE, fewest) < cutoff
    assert oracles.brute_force_optimum(graph, REFERENCE, fewest - 1) >= cutoff


def test_relaxed_graph() -> None:
    """Work and tensors of what is left are those that the verifier derives, but for paths, which cost nothing."""
    example = relaxation.SMALL_OPS
    work, tensors = relaxation.relaxed(example)
    whole = model_in_ticks(json.loads(example.path.read_text()), 25 * 10**9, example.k)
    told = relaxation_of(example.bound("relaxation")["lower_proof"], ())
    assert told is not None
    found = relaxed_graph(whole, told)
    assert not isinstance(found, str)
    assert dict(zip(found.op_names, found.work, strict=True)) == work
    derived = zip(found.producer, found.consumers, found.transfer, strict=True)
    named = {(found.op_names[p], *sorted(found.op_names[v] for v in vs), t) for p, vs, t in derived if t}
    assert named == {(one.producer, *sorted(one.consumers), one.transfer) for one in tensors if one.consumers}


def test_merged_graph_has_the_same_optimum() -> None:
    """The merge leaves the optimum as it is."""
    work, tensors, (gone, kept) = merged(MERGE)
    best = oracles.brute_force_optimum(_graph(MERGE), REFERENCE, MERGE.k)
    together = [[MERGE.ops.index(gone), MERGE.ops.index(kept)]]
    assert oracles.brute_force_optimum(_graph(MERGE), REFERENCE, MERGE.k, together) == best
    assert MERGE.cost((gone, kept)) <= MERGE.cost((kept,))
    assert sum(work.values()) == sum(MERGE.work.values())
    assert {one.producer for one in tensors} <= set(work)


def test_chosen_sets_cost_what_the_bounds_prove() -> None:
    """The cheapest set of each kind costs exactly the bound on the page."""
    detour, pair, positions = chosen_stages.DETOUR, chosen_stages.PAIR, chosen_stages.POSITIONS
    every = list(chosen_stages.all_sets(detour))
    assert detour.cost(chosen_stages.cheapest(detour, every)) == detour.bound("bottleneck-no-dag")["lower"]
    convex = list(convex_sets(detour))
    assert detour.cost(chosen_stages.cheapest(detour, convex)) == detour.bound("bottleneck")["lower"]
    least = chosen_stages.cheapest(pair, convex_sets(pair), lambda one: chosen_stages.work_of(pair, one))
    assert chosen_stages.work_of(pair, least) == pair.bound("bottleneck-no-cut-io")["lower"]
    anchor = pair.ops[pair.bound("node-convex")["lower_proof"]["anchor"][0]]
    assert pair.cost(chosen_stages.cheapest_around(pair, anchor)) == pair.bound("node-convex")["lower"]
    assert min(one[0] for one in chosen_stages.positions(positions)) == positions.bound("bottleneck-guess")["lower"]


def test_chains_of_layers() -> None:
    """No stage graph is faster than what its chain takes at least, and the fastest is the plan's."""
    best = {stages: layer_plans.best_iteration(stages) for stages in layer_chains()}
    for stages, found in best.items():
        if found is not None:
            assert found[0] >= max(sum(size for size, _, _ in row) for row in layer_plans.chain_times(stages))
            assert all(fits(stage, count) for stage, count in zip(stages, found[1], strict=True))
    assert min(found[0] for found in best.values() if found is not None) == graph_plan()["iteration_ticks"] / MS


def test_paths_through_the_schedule() -> None:
    """Under every split, times are those of a replay, and neither path is longer than the iteration."""
    plan = split_plan()
    rows, proof = plan["schedule"]["order"], plan["lower_bound"]["proof"]
    work = list(chain().values())
    least = []
    for split in splits():
        forward = [sum(work[a:b]) * MS for a, b in ((0, split[1]), (split[1], len(work)))]
        time = replayed(family_rows(2, 2, 1, 2, (2, 1)), forward, [2 * f for f in forward], [MS // 2])
        assert max(end for _, end in drawn_times(rows, split).values()) * MS == time
        lengths = [path_length(path, rows, split) for path in proof["paths"]]
        assert time is not None
        assert max(lengths) * MS <= time
        mixed = sum(path["weight"] * Fraction(x) for path, x in zip(proof["paths"], lengths, strict=True))
        least.append(mixed * MS / proof["total"])
    assert min(least) == plan["lower_bound"]["value"]
