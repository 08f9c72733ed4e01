"""Bounds by convex weights: they hold if and only if no convex set exceeds the capacity, and never above OPT."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import oracles
import pytest
from flow_proofs import Drawn, drawn_problems, edges_of, judged, mutated, name_of
from graph_strategies import LINK, chain
from labelling_oracle import Labellings
from refusals import refusal
from scipy.optimize import linprog
from seeds import sampled

from mtpp.checker.bounds import frontier_scan
from mtpp.checker.merged import stage_weights
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op
from mtpp.machine.device import Device
from mtpp.machine.link import Link

DEAR = chain([6, 6, 6], [10, 4], "ps")
"""Three ops of 6, of which the first one's stage pays 10 for the tensor that leaves it or 6 for the second op."""

PROOF: dict[str, Any] = {
    "cutoff": 16,
    "stages": 3,
    "streamed": False,
    "scan": [0, 1, 2],
    "forgotten": [],
    "weights": [[0, 1]],
    "capacity": 0,
    "slope": [0, 0],
}
"""No convex set below 16 ticks holds the first op."""

EVEN = CostGraph.build(name="even", time_unit="ps", ops=[Op(f"op{i}", 4) for i in range(7)], tensors=[])

COUNTED: dict[str, Any] = {
    **PROOF,
    "cutoff": 12,
    "scan": [3, 0, 1, 6, 2, 4, 5],
    "weights": [[op, 5] for op in range(7)],
    "capacity": 10,
    "slope": [5, 2],
}
"""Stages of less than 12 ticks hold two of the even ops at most."""

judge = partial(judged, "convex-weights")


def test_hand_made_proofs_pass() -> None:
    """What a set may hold by hand is the optimum, for fewer ticks and other numbers of stages too."""
    held = "convex-weights: no convex set below 16 ticks holds more than 0 of the ops' weight of 1, so 3 are too few"
    assert judge(DEAR, 3, 16, PROOF) == (True, held)
    assert judge(DEAR, 3, 15, {**PROOF, "cutoff": 15})[0]
    assert judge(DEAR, 9, 16, {**PROOF, "stages": 9})[0]
    assert judge(EVEN, 3, 12, COUNTED)[0]
    assert oracles.brute_force_optimum(DEAR, LINK, 3) == 16
    assert oracles.brute_force_optimum(EVEN, LINK, 3) == 12


@pytest.mark.parametrize("slope", [[0, 0], [1, 0], [7, 2], [10**9, 0], [0, 63], [2**63 - 1, 63]], ids=str)
def test_any_slope_tells_the_same(slope: list[int]) -> None:
    """Slopes are for speed."""
    assert judge(DEAR, 3, 16, {**PROOF, "slope": slope})[0]
    assert judge(EVEN, 3, 12, {**COUNTED, "slope": slope})[0]
    told = judge(EVEN, 3, 13, {**COUNTED, "cutoff": 13, "slope": slope})
    assert told == (False, "convex-weights: a convex set may hold 15, more than 10")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"cutoff": 17}, "the proof's cutoff is 17 ticks, the claim's 16"),
        ({"cutoff": 15}, "the proof's cutoff is 15 ticks, the claim's 16"),
        ({"stages": 4}, "the proof is for 4 stages, the claim for 3"),
        ({"streamed": True}, "nothing is streamed without a fast memory"),
        ({"scan": [0, 1]}, "op 'op2' is not in the order"),
        ({"scan": [0, 1, 3]}, "there is no op 3"),
        ({"scan": [0, 1, 1]}, "op 'op1' is in the order twice"),
        ({"scan": [0, 1, 2, 1]}, "op 'op1' is in the order twice"),
        ({"scan": [1, 0, 2]}, "op 'op1' comes in the order before one that it reads from"),
        ({"scan": []}, "op 'op0' is not in the order"),
        ({"forgotten": [2]}, "there is no tensor 2 between ops"),
        ({"forgotten": [1, 1]}, "a tensor is forgotten twice"),
        ({"forgotten": [0]}, "a convex set may hold 1, more than 0"),
        ({"weights": []}, "the ops have 0 in all, which 3 stages of 0 may hold"),
        ({"weights": [[0, 1], [0, 1]]}, "op 'op0' has two weights"),
        ({"weights": [[3, 1]]}, "there is no op 3"),
        ({"weights": [[2, 1]]}, "a convex set may hold 1, more than 0"),
        ({"weights": [[0, 1], [2, 1]]}, "a convex set may hold 1, more than 0"),
        ({"capacity": 1}, "the ops have 1 in all, which 3 stages of 1 may hold"),
    ],
)
def test_faults_are_named(change: dict[str, Any], fault: str) -> None:
    """The first thing that is wrong is said."""
    assert judge(DEAR, 3, 16, {**PROOF, **change}) == (False, f"convex-weights: {fault}")


def test_the_cutoff_is_the_limit() -> None:
    """A tick more than is true is refused: more fits in then."""
    told = judge(DEAR, 3, 17, {**PROOF, "cutoff": 17})
    assert told == (False, "convex-weights: a convex set may hold 1, more than 0")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"cutoff": 0}, "cutoff"),
        ({"stages": 0}, "stages"),
        ({"streamed": 0}, "streamed"),
        ({"scan": 0}, "scan"),
        ({"scan": [0, "op1", 2]}, "scan/1"),
        ({"scan": [0, -1, 2]}, "scan/1"),
        ({"forgotten": None}, "forgotten"),
        ({"forgotten": [-1]}, "forgotten/0"),
        ({"weights": {}}, "weights"),
        ({"weights": [[0]]}, "weights/0"),
        ({"weights": [[0, 0]]}, "weights/0/1"),
        ({"weights": [[0, -1]]}, "weights/0/1"),
        ({"weights": [[0, 1.0]]}, "weights/0/1"),
        ({"weights": [[0, 2**62]]}, "weights/0/1"),
        ({"weights": [[-1, 1]]}, "weights/0/0"),
        ({"capacity": -1}, "capacity"),
        ({"slope": [1]}, "slope"),
        ({"slope": [-1, 0]}, "slope/0"),
        ({"slope": [0, -1]}, "slope/1"),
        ({"slope": [0, 64]}, "slope/1"),
        ({"merges": [[]]}, "merges/0"),
        ({"more": 1}, "more"),
    ],
)
def test_malformed_proofs_are_bad_input(change: dict[str, Any], where: str) -> None:
    """A proof of another shape is refused at its pointer, before anything is judged."""
    assert refusal(judge, DEAR, 3, 99, {**PROOF, **change}).where == f"/lower_bound/proof/{where}"


def test_missing_keys_are_bad_input() -> None:
    """Only the merges may be missing."""
    for key in PROOF:
        with pytest.raises(InputError) as caught:
            judge(DEAR, 3, 16, {other: value for other, value in PROOF.items() if other != key})
        assert caught.value.where == f"/lower_bound/proof/{key}"


def test_groups_count_as_one_op() -> None:
    """With the first and the last op together all three are one, called by any of its ops, once."""
    proof = {**PROOF, "scan": [1], "weights": [[2, 1]], "stages": 7, "cutoff": 18}
    together = [["op0", "op2"]]
    assert judge(DEAR, 7, 18, proof, together=together)[0]
    assert not judge(DEAR, 7, 18, proof)[0]
    name = "op 'op0', with what is merged with it,"
    two = judge(DEAR, 7, 18, {**proof, "weights": [[2, 1], [1, 1]]}, together=together)
    assert two == (False, f"convex-weights: {name} has two weights")
    two = judge(DEAR, 7, 18, {**proof, "scan": [0, 2]}, together=together)
    assert two == (False, f"convex-weights: {name} is in the order twice")


def test_streamed_parameters_count_beyond_the_memory() -> None:
    """With a tick a byte beyond 15, no stage below 12 ticks holds an op of 2 ticks with 25 bytes."""
    graph = CostGraph.build(name="one", time_unit="ps", ops=[Op("op0", 2, None, 25)], tensors=[])
    proof = {**PROOF, "streamed": True, "scan": [0], "cutoff": 12}
    for fast, reserve, peak in ((15, 0, "reserve"), (20, 5, "reserve"), (15, 5, "order")):
        system = Device("memory", 1, 1, Link(10**12), fast, reserve, peak)
        assert judge(graph, 3, 12, proof, system)[0]
        assert not judge(graph, 3, 13, {**proof, "cutoff": 13}, system)[0]
        assert not judge(graph, 3, 12, {**proof, "streamed": False}, system)[0]


def test_wide_graphs_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """More states than are looked at are no proof, and said."""
    monkeypatch.setattr(frontier_scan, "MOST_STATES", 3)
    told = judge(DEAR, 3, 16, PROOF)
    assert told == (False, "convex-weights: scans with more than 3 states are not checked")


def some_proof(drawn: Drawn, cutoff: int, *, best: bool) -> tuple[bool, dict[str, Any]]:
    """Make a proof with the best weights there are, or with random ones; tell whether trying all sets bears it out."""
    pick, merged = drawn.pick, drawn.merged
    streamed = drawn.system.fast_memory_bytes is not None and pick.random() < 0.7
    weighed = stage_weights(merged, drawn.system.to_document(), streamed=streamed)
    assert weighed is not None
    weight, spare = weighed
    forgotten = {t for t in range(len(merged.tensors)) if pick.random() < (0.05 if best else 0.2)}
    ways = Labellings.of(merged, weight, forgotten)
    sets = np.unique(ways.labels[ways.cost <= cutoff - 1 + spare] == 1, axis=0)
    n = len(weight)
    if best:
        found = linprog(-np.ones(n), sets.astype(float), np.ones(len(sets)), bounds=(0, drawn.k + 1))
        value = [int(share * pick.choice([60, 10**9])) for share in found.x]
    else:
        value = [pick.choice([0, 1, pick.randint(0, 100)]) for _ in range(n)]
    held = max(int((sets * value).sum(axis=1).max()), 0)
    capacity = held if best else max(0, held - pick.choice([0, 0, 1]))
    rows = [[name_of(merged, v, pick), amount] for v, amount in enumerate(value) if amount]
    pick.shuffle(rows)
    draws = [pick.random() for _ in range(n)]
    order = list(nx.lexicographical_topological_sort(edges_of(merged), key=draws.__getitem__))
    proof = {
        "cutoff": cutoff,
        "stages": drawn.k,
        "streamed": streamed,
        "scan": [name_of(merged, v, pick) for v in order],
        "forgotten": sorted(forgotten),
        "weights": rows,
        "capacity": capacity,
        "slope": [pick.choice([0, 1, 10**6]), pick.choice([0, 4])],
    }
    if drawn.merges:
        proof["merges"] = drawn.merges
    return held == capacity and sum(value) > drawn.k * capacity, proof


@pytest.mark.parametrize("seeds", [range(60), pytest.param(sampled(range(60, 1000), 300), marks=pytest.mark.slow)])
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("best", [False, True])
def test_proofs_hold_if_no_set_exceeds_the_capacity(best: bool, reduced: bool, seeds: Sequence[int]) -> None:
    """As trying all convex sets tells, on merged graphs too; whatever passes is below the optimum."""
    proven = tight = 0
    for drawn in drawn_problems(seeds, reduced=reduced):
        optimum = drawn.optimum
        some = {max(1, optimum // 2), max(1, optimum * 3 // 4), max(1, optimum), optimum + 1}
        for cutoff in some if optimum < oracles.NEVER else {1, 50}:
            holds, proof = some_proof(drawn, cutoff, best=best)
            passed, detail = drawn.verdict("convex-weights", cutoff, proof)
            assert passed is holds, (drawn.seed, cutoff, detail)
            assert not passed or cutoff <= optimum
            proven += passed
            tight += passed and cutoff == optimum
    assert proven > len(seeds) // 3
    assert tight > (len(seeds) // 5 if best else 0)


@pytest.mark.parametrize("seeds", [range(60), pytest.param(sampled(range(60, 500), 150), marks=pytest.mark.slow)])
def test_nothing_above_the_optimum_passes(seeds: Sequence[int]) -> None:
    """Whatever is changed in a proof, what still passes is true."""
    passed = above = 0
    for drawn in drawn_problems(seeds):
        pick, optimum = drawn.pick, drawn.optimum
        if optimum in (0, oracles.NEVER):
            continue
        for _ in range(15):
            _, proof = some_proof(drawn, pick.choice([optimum, optimum * 3 // 4 + 1, optimum + 1]), best=True)
            changed = mutated(copy.deepcopy(proof), pick)
            if pick.random() < 0.5:
                changed["cutoff"] = optimum + 1
                changed = mutated(changed, pick)
            claimed, stages = changed["cutoff"], changed["stages"]
            try:
                holds = drawn.verdict("convex-weights", claimed, changed)[0]
            except InputError:
                continue
            assert not holds or (claimed <= optimum and stages == drawn.k), (drawn.seed, changed)
            passed += holds
            above += claimed > optimum
    assert passed > len(seeds) // 2
    assert above > 4 * len(seeds)


def test_weights_of_random_size_are_held_to_the_optimum() -> None:
    """Weights that are drawn, with the capacity that sets keep to at another cutoff, prove nothing that is false."""
    proven = 0
    for drawn in drawn_problems(range(3000, 3100)):
        if drawn.optimum in (0, oracles.NEVER):
            continue
        for _ in range(10):
            cutoff = random.Random(drawn.seed).randint(1, 2 * drawn.optimum)
            _, proof = some_proof(drawn, cutoff, best=drawn.pick.random() < 0.5)
            claimed = drawn.pick.choice([cutoff, drawn.optimum, drawn.optimum + 1])
            holds = drawn.verdict("convex-weights", claimed, {**proof, "cutoff": claimed})[0]
            assert not holds or claimed <= drawn.optimum, drawn.seed
            proven += holds
    assert proven > 50
