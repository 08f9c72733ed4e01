"""Bounds by position weights: refuted is what trying all labellings refutes, and never a cutoff that can be met."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import networkx as nx
import oracles
import pytest
from flow_proofs import Drawn, drawn_problems, edges_of, judged, mutated, name_of
from graph_strategies import LINK, chain
from labelling_oracle import Labellings, Maker, Weighing
from refusals import refusal
from seeds import sampled

from mtpp.checker.bounds import frontier_scan, position_weights
from mtpp.checker.merged import stage_weights
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op
from mtpp.machine.device import Device
from mtpp.machine.link import Link

EVEN = CostGraph.build(name="even", time_unit="ps", ops=[Op(f"op{i}", 4) for i in range(7)], tensors=[])

STEP: dict[str, Any] = {
    "weights": [[op, [1, 1, 1]] for op in range(7)],
    "slopes": [[0, 0], [1, 1], [4, 2]],
    "floors": [0, 2, -5],
}
"""Stages of less than 12 ticks hold two of the even ops at most."""

LEAF: dict[str, Any] = {"steps": [STEP], "branch": None}

PROOF: dict[str, Any] = {
    "cutoff": 12,
    "stages": 3,
    "streamed": False,
    "scan": [3, 0, 1, 6, 2, 4, 5],
    "forgotten": [],
    "tree": LEAF,
}

DEAR = chain([6, 6, 6], [10, 4], "ps")
"""Three ops of 6: the first two cost 16 together, the last 10, and 18 all three."""

ENDS: dict[str, Any] = {"weights": [[0, [1, 0]], [2, [0, 1]]], "slopes": [[0, 0], [1, 1]], "floors": [0, 0]}

PAIR: dict[str, Any] = {
    **PROOF,
    "cutoff": 16,
    "stages": 2,
    "scan": [0, 1, 2],
    "tree": {"steps": [ENDS], "branch": None},
}
"""The first op is in the first of two stages, which is below 16 ticks with no others."""

NOTHING: dict[str, Any] = {"steps": [], "branch": None}

judge = partial(judged, "position-weights")


def with_step(**changes: Any) -> dict[str, Any]:
    """Return the proof with parts of its step changed."""
    return {**PROOF, "tree": {"steps": [{**STEP, **changes}], "branch": None}}


def test_hand_made_proofs_pass() -> None:
    """Weights that a stage cannot hold, and windows by work alone, show the optimum."""
    held = "position-weights: no 3 stages below 12 ticks are worth enough, by 1 step in 1 case"
    assert judge(EVEN, 3, 12, PROOF) == (True, held)
    assert judge(EVEN, 3, 11, {**PROOF, "cutoff": 11})[0]
    assert not judge(EVEN, 3, 13, {**PROOF, "cutoff": 13})[0]
    assert oracles.brute_force_optimum(EVEN, LINK, 3) == 12
    assert judge(DEAR, 2, 16, PAIR)[0]
    assert not judge(DEAR, 2, 17, {**PAIR, "cutoff": 17})[0]
    assert oracles.brute_force_optimum(DEAR, LINK, 2) == 16


def test_labels_without_slack_are_left_out() -> None:
    """Six of the even ops take all the worth there is, which leaves no stage for the seventh."""
    assert judge(EVEN, 3, 12, with_step(weights=STEP["weights"][1:]))[0]
    assert not judge(EVEN, 3, 12, with_step(weights=STEP["weights"][1:], floors=[3, 2, 2]))[0]


def test_windows_alone_refute() -> None:
    """Two stages below 12 ticks hold one of three ops of 6 each; below 13 there may be two in one."""
    for cutoff in (12, 9, 6, 1):
        assert judge(DEAR, 2, cutoff, {**PAIR, "cutoff": cutoff, "tree": NOTHING})[0]
    assert not judge(DEAR, 2, 13, {**PAIR, "cutoff": 13, "tree": NOTHING})[0]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"cutoff": 17}, "the proof's cutoff is 17 ticks, the claim's 16"),
        ({"cutoff": 15}, "the proof's cutoff is 15 ticks, the claim's 16"),
        ({"streamed": True}, "nothing is streamed without a fast memory"),
        ({"scan": [0, 1]}, "op 'op2' is not in the order"),
        ({"scan": [0, 1, 3]}, "there is no op 3"),
        ({"scan": [0, 1, 1]}, "op 'op1' is in the order twice"),
        ({"scan": [0, 2, 1]}, "op 'op2' comes in the order before one that it reads from"),
        ({"forgotten": [2]}, "there is no tensor 2 between ops"),
        ({"forgotten": [0, 0]}, "a tensor is forgotten twice"),
        ({"forgotten": [0]}, "case 0 is not refuted: its weights leave a slack of 0"),
        ({"tree": NOTHING}, "case 0 is not refuted: no weights"),
        ({"tree": {"steps": [], "branch": [3, 1, NOTHING, NOTHING]}}, "there is no op 3"),
        ({"tree": {"steps": [], "branch": [1, 1, PAIR["tree"], NOTHING]}}, "case 1 is not refuted: no weights"),
        ({"tree": {"steps": [], "branch": [1, 1, NOTHING, PAIR["tree"]]}}, "case 0 is not refuted: no weights"),
    ],
)
def test_faults_are_named(change: dict[str, Any], fault: str) -> None:
    """The first thing that is wrong is said."""
    told = judge(DEAR, 2, 16, {**PAIR, **change})
    assert told == (False, f"position-weights: {fault}")


def test_stages_are_those_of_the_claim() -> None:
    """Rows of as many stages as the proof says, which are the claim's."""
    told = judge(EVEN, 4, 12, PROOF)
    assert told == (False, "position-weights: the proof is for 3 stages, the claim for 4")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"weights": [[0, [1, 1, 1]], [0, [1, 1, 1]]]}, "step 0: op 'op0' has two rows of weights"),
        ({"weights": [[7, [1, 1, 1]]]}, "step 0: there is no op 7"),
        ({"weights": []}, "case 0 is not refuted: its weights leave a slack of 1"),
        ({"weights": STEP["weights"][2:]}, "case 0 is not refuted: its weights leave a slack of 1"),
        ({"floors": [0, 9, 0]}, "case 0 is not refuted: its weights leave a slack of 5"),
    ],
)
def test_wrong_steps_prove_nothing(change: dict[str, Any], fault: str) -> None:
    """Ops twice, other weights, and floors above the best, which is then not known."""
    told = judge(EVEN, 3, 12, with_step(**change))
    assert told == (False, f"position-weights: {fault}")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"cutoff": 0}, "cutoff"),
        ({"stages": 0}, "stages"),
        ({"streamed": None}, "streamed"),
        ({"scan": {}}, "scan"),
        ({"scan": [0, 1, -2]}, "scan/2"),
        ({"forgotten": [True]}, "forgotten/0"),
        ({"tree": None}, "tree"),
        ({"tree": {"steps": []}}, "tree/branch"),
        ({"tree": {**NOTHING, "more": 0}}, "tree/more"),
        ({"tree": {"steps": {}, "branch": None}}, "tree/steps"),
        ({"tree": {"steps": [], "branch": []}}, "tree/branch"),
        ({"tree": {"steps": [], "branch": [0, 1, NOTHING]}}, "tree/branch"),
        ({"tree": {"steps": [], "branch": [-1, 1, NOTHING, NOTHING]}}, "tree/branch/0"),
        ({"tree": {"steps": [], "branch": [0, 0, NOTHING, NOTHING]}}, "tree/branch/1"),
        ({"tree": {"steps": [], "branch": [0, 1, NOTHING, None]}}, "tree/branch/3"),
        ({"tree": {"steps": [], "branch": [0, 1, {**NOTHING, "steps": [1]}, NOTHING]}}, "tree/branch/2/steps/0"),
        ({"merges": 1}, "merges"),
        ({"more": 1}, "more"),
    ],
)
def test_malformed_proofs_are_bad_input(change: dict[str, Any], where: str) -> None:
    """A proof of another shape is refused at its pointer, before anything is judged."""
    assert refusal(judge, EVEN, 3, 99, {**PROOF, **change}).where == f"/lower_bound/proof/{where}"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"weights": {}}, "weights"),
        ({"weights": [[0]]}, "weights/0"),
        ({"weights": [[-1, [1, 1, 1]]]}, "weights/0/0"),
        ({"weights": [[0, [1, 1]]]}, "weights/0/1"),
        ({"weights": [[0, [1, 1, 1, 1]]]}, "weights/0/1"),
        ({"weights": [[0, [1, 1.5, 1]]]}, "weights/0/1/1"),
        ({"weights": [[0, [1, 2**62, 1]]]}, "weights/0/1/1"),
        ({"weights": [[0, [-(2**62), 1, 1]]]}, "weights/0/1/0"),
        ({"slopes": [[0, 0]]}, "slopes"),
        ({"slopes": [[0, 0], [0, 0], [0]]}, "slopes/2"),
        ({"slopes": [[0, 0], [-1, 0], [0, 0]]}, "slopes/1/0"),
        ({"slopes": [[0, 64], [0, 0], [0, 0]]}, "slopes/0/1"),
        ({"floors": [0]}, "floors"),
        ({"floors": [0, 0.0, 0]}, "floors/1"),
        ({"floors": [0, 0, 2**127]}, "floors/2"),
    ],
)
def test_malformed_steps_are_bad_input(change: dict[str, Any], where: str) -> None:
    """Rows have a number for each stage."""
    assert refusal(judge, EVEN, 3, 99, with_step(**change)).where == f"/lower_bound/proof/tree/steps/0/{where}"


def test_missing_keys_are_bad_input() -> None:
    """Only the merges may be missing; all of a step has to be there."""
    for key in PROOF:
        with pytest.raises(InputError) as caught:
            judge(EVEN, 3, 12, {other: value for other, value in PROOF.items() if other != key})
        assert caught.value.where == f"/lower_bound/proof/{key}"
    for key in STEP:
        step = {other: value for other, value in STEP.items() if other != key}
        with pytest.raises(InputError) as caught:
            judge(EVEN, 3, 12, {**PROOF, "tree": {"steps": [step], "branch": None}})
        assert caught.value.where == f"/lower_bound/proof/tree/steps/0/{key}"


@pytest.mark.parametrize("last", [LEAF, NOTHING, 3])
def test_trees_may_be_deep(last: Any) -> None:
    """Three thousand splits one in the other are followed, and what is wrong at the end is found."""
    tree = last
    for _ in range(3000):
        tree = {"steps": [], "branch": [2, 3, tree, NOTHING]}
    if last == 3:
        with pytest.raises(InputError, match="expected an object, found 3"):
            judge(EVEN, 3, 12, {**PROOF, "tree": tree})
    else:
        assert judge(EVEN, 3, 12, {**PROOF, "tree": tree})[0] is (last is LEAF)


def test_groups_count_as_one_op() -> None:
    """With the first and the last op together all three are one, called by any of its ops, once."""
    together = [["op0", "op2"]]
    step = {**ENDS, "weights": [[2, [1, 1]]]}
    proof = {**PAIR, "scan": [1], "cutoff": 18, "tree": {"steps": [step], "branch": None}}
    assert judge(DEAR, 2, 18, proof, together=together)[0]
    assert not judge(DEAR, 2, 18, proof)[0]
    step = {**ENDS, "weights": [[2, [1, 1]], [1, [1, 1]]]}
    proof = {**PAIR, "scan": [1], "cutoff": 19, "tree": {"steps": [step], "branch": None}}
    told = judge(DEAR, 2, 19, proof, together=together)
    assert told[1].endswith("step 0: op 'op0', with what is merged with it, has two rows of weights")


def test_streamed_parameters_count_beyond_the_memory() -> None:
    """With a tick a byte beyond 15, no stage below 12 ticks holds an op of 2 ticks with 25 bytes."""
    graph = CostGraph.build(name="one", time_unit="ps", ops=[Op("op0", 2, None, 25)], tensors=[])
    step = {**ENDS, "weights": [[0, [1, 1]]]}
    proof = {**PAIR, "scan": [0], "cutoff": 12, "streamed": True, "tree": {"steps": [step], "branch": None}}
    for fast, reserve, peak in ((15, 0, "reserve"), (20, 5, "reserve"), (15, 5, "order")):
        system = Device("memory", 1, 1, Link(10**12), fast, reserve, peak)
        assert judge(graph, 2, 12, proof, system)[0]
        assert not judge(graph, 2, 13, {**proof, "cutoff": 13}, system)[0]
        assert not judge(graph, 2, 12, {**proof, "streamed": False}, system)[0]


def test_wide_graphs_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """More states than are looked at are no proof, and said."""
    monkeypatch.setattr(frontier_scan, "MOST_STATES", 3)
    told = judge(EVEN, 3, 12, PROOF)
    assert told == (False, "position-weights: step 0: scans with more than 3 states are not checked")


def weighed(drawn: Drawn, cutoff: int, *, streamed: bool, forgotten: set[int]) -> Weighing:
    """Return the statement of a proof for trying."""
    known = stage_weights(drawn.merged, drawn.system.to_document(), streamed=streamed)
    assert known is not None
    weight, spare = known
    ways = Labellings.of(drawn.merged, weight, forgotten)
    system, memory = drawn.system, drawn.system.memory_bytes
    if memory is not None and system.peak == "reserve":
        memory -= system.activation_reserve_bytes
    return Weighing(drawn.merged, weight, drawn.k, cutoff - 1 + spare, ways, memory)


def dressed(drawn: Drawn, cutoff: int, streamed: bool, forgotten: set[int], tree: dict[str, Any]) -> dict[str, Any]:
    """Return the proof with a tree, in some order."""
    pick = drawn.pick
    edges = edges_of(drawn.merged)
    draws = [pick.random() for _ in edges.nodes]
    order = list(nx.lexicographical_topological_sort(edges, key=draws.__getitem__))
    proof = {
        "cutoff": cutoff,
        "stages": drawn.k,
        "streamed": streamed,
        "scan": [name_of(drawn.merged, v, pick) for v in order],
        "forgotten": sorted(forgotten),
        "tree": tree,
    }
    return proof | ({"merges": drawn.merges} if drawn.merges else {})


def cutoffs(drawn: Drawn) -> list[int]:
    """Return cutoffs around the optimum, and below."""
    if drawn.optimum == oracles.NEVER:
        return [20]
    return sorted({max(1, drawn.optimum * 3 // 4), max(1, drawn.optimum), drawn.optimum + 1})


@pytest.mark.parametrize("seeds", [range(40), pytest.param(sampled(range(40, 700), 80), marks=pytest.mark.slow)])
@pytest.mark.parametrize("reduced", [False, True])
def test_made_proofs_pass_if_and_only_if_true(reduced: bool, seeds: Sequence[int]) -> None:
    """With splits, what stages cost in all tells the optimum; where parameters are streamed, it is below that."""
    passed = refused = 0
    for drawn in drawn_problems(seeds, reduced=reduced):
        memory = drawn.system.fast_memory_bytes is not None
        for cutoff in cutoffs(drawn):
            streamed = memory and drawn.pick.random() < 0.7
            weighing = weighed(drawn, cutoff, streamed=streamed, forgotten=set())
            proof = dressed(drawn, cutoff, streamed, set(), Maker(weighing, drawn.pick).tree())
            holds, detail = drawn.verdict("position-weights", cutoff, proof)
            assert holds is weighing.refuted(proof["tree"]), (drawn.seed, cutoff, detail)
            assert not holds or cutoff <= drawn.optimum, (drawn.seed, cutoff)
            assert holds or memory or cutoff > drawn.optimum, (drawn.seed, cutoff, detail)
            passed += holds
            refused += not holds
    assert min(passed, refused) > len(seeds) // 2


def random_step(drawn: Drawn, weighing: Weighing, pick: random.Random) -> dict[str, Any]:
    """Return weights, floors and slopes of any kind."""
    k, n = drawn.k, len(weighing.weight)
    largest = pick.choice([1, 5, 10**9])
    kind = pick.choice(["equal", "work", "any"])
    rows = []
    for v in range(n):
        if kind == "any":
            row = [pick.randint(-largest, largest) for _ in range(k)]
        else:
            row = [weighing.weight[v] if kind == "work" else pick.randint(0, largest)] * k
            row[pick.randrange(k)] += pick.choice([0, 0, 1, -1])
        if pick.random() < 0.9:
            rows.append([name_of(drawn.merged, v, pick), row])
    pick.shuffle(rows)
    size = sum(abs(amount) for _, row in rows for amount in row)
    floors = [pick.choice([-size, 0, pick.randint(-largest, 2 * largest)]) for _ in range(k)]
    slopes = [[pick.choice([0, 1, 10**6]), pick.choice([0, 3])] for _ in range(k)]
    return {"weights": rows, "floors": floors, "slopes": slopes}


def random_tree(drawn: Drawn, weighing: Weighing, pick: random.Random, depth: int = 2) -> dict[str, Any]:
    """Return steps and splits of any kind."""
    steps = [random_step(drawn, weighing, pick) for _ in range(pick.randint(0, 2))]
    branch = None
    if depth and pick.random() < 0.5:
        op = name_of(drawn.merged, pick.randrange(len(weighing.weight)), pick)
        children = [random_tree(drawn, weighing, pick, depth - 1) for _ in range(2)]
        branch = [op, pick.randint(1, drawn.k + 1), *children]
    return {"steps": steps, "branch": branch}


def random_cases(seeds: Sequence[int], each: int) -> Iterator[tuple[Drawn, int, Weighing, dict[str, Any]]]:
    """Draw problems, cutoffs and trees."""
    for drawn in drawn_problems(seeds):
        pick = drawn.pick
        for _ in range(each):
            cutoff = pick.choice(cutoffs(drawn))
            streamed = drawn.system.fast_memory_bytes is not None and pick.random() < 0.5
            forgotten = {t for t in range(len(drawn.merged.tensors)) if pick.random() < 0.1}
            weighing = weighed(drawn, cutoff, streamed=streamed, forgotten=forgotten)
            tree = random_tree(drawn, weighing, pick)
            yield drawn, cutoff, weighing, dressed(drawn, cutoff, streamed, forgotten, tree)


@pytest.mark.parametrize(
    "seeds", [range(5000, 5150), pytest.param(sampled(range(5150, 7000), 600), marks=pytest.mark.slow)]
)
def test_any_integers_give_a_true_statement(seeds: Sequence[int]) -> None:
    """Of any weights, floors, slopes and splits, as trying all labellings tells, and never above the optimum."""
    passed = refused = 0
    for drawn, cutoff, weighing, proof in random_cases(seeds, 5):
        holds, detail = drawn.verdict("position-weights", cutoff, proof)
        assert holds is weighing.refuted(proof["tree"]), (drawn.seed, cutoff, detail, proof)
        assert not holds or cutoff <= drawn.optimum, (drawn.seed, cutoff)
        passed += holds
        refused += not holds
    assert min(passed, refused) > len(seeds) // 2


def test_scans_that_are_not_kept_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is the same where nothing is kept in memory."""
    cases = list(random_cases(range(7000, 7040), 4))
    kept = [drawn.verdict("position-weights", cutoff, proof) for drawn, cutoff, _, proof in cases]
    monkeypatch.setattr(position_weights, "_MOST_KEPT", 0)
    assert kept == [drawn.verdict("position-weights", cutoff, proof) for drawn, cutoff, _, proof in cases]


@pytest.mark.parametrize("seeds", [range(40), pytest.param(sampled(range(40, 400), 120), marks=pytest.mark.slow)])
def test_nothing_above_the_optimum_passes(seeds: Sequence[int]) -> None:
    """Whatever is changed in a proof, what still passes is true."""
    passed = above = 0
    for drawn in drawn_problems(seeds):
        pick, optimum = drawn.pick, drawn.optimum
        if optimum in (0, oracles.NEVER):
            continue
        weighing = weighed(drawn, optimum, streamed=False, forgotten=set())
        proof = dressed(drawn, optimum, False, set(), Maker(weighing, pick).tree())
        for _ in range(25):
            changed = mutated(copy.deepcopy(proof), pick)
            if pick.random() < 0.5:
                changed["cutoff"] = optimum + 1
                changed = mutated(changed, pick)
            claimed, stages = changed["cutoff"], changed["stages"]
            try:
                holds = drawn.verdict("position-weights", claimed, changed)[0]
            except InputError:
                continue
            assert not holds or (claimed <= optimum and stages == drawn.k), (drawn.seed, changed)
            passed += holds
            above += claimed > optimum
    assert passed > len(seeds)
    assert above > 4 * len(seeds)
