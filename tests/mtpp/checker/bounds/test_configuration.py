"""Configuration bounds by weights and families: valid proofs pass, what is wrong is said, nothing above OPT passes."""

from __future__ import annotations

import copy
import random
from functools import partial
from typing import Any

import oracles
import pytest
from configuration_proofs import Problem, configuration_proof
from flow_proofs import claim_of, drawn_problems, judged, mutated, random_problem
from graph_strategies import LINK, chain
from refusals import refusal

from mtpp.checker.bounds.families import Families, Family
from mtpp.checker.merged import MergedGraph
from mtpp.checker.paths import Paths
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device
from mtpp.machine.link import Link

THREE = chain([6, 6, 6], [10, 4], "ps")
"""Three ops of 6, of which the first one's stage pays 10 for the tensor that leaves it or 6 for the second op."""

DEAR = CostGraph.build(
    name="dear",
    time_unit="ps",
    ops=[Op(f"op{i}", work) for i, work in enumerate((6, 6, 1, 1, 6))],
    tensors=[
        Tensor("t0", "op0", ("op1",), None, 10),
        Tensor("t1", "op1", ("op2",), None, 2),
        Tensor("t2", "op1", ("op3",), None, 2),
        Tensor("t3", "op2", ("op4",), None, 2),
        Tensor("t4", "op3", ("op4",), None, 2),
    ],
)
"""The first one's stage pays 10 for the tensor that leaves it or 6 for the second op, and 4 for what leaves that."""

FLOW: list[Any] = [
    [[0, 0, 10, 1, -10], [1, 1, 2, 2, -2], [2, 1, 2, 3, -2], [3, 2, 1, 4, -1], [4, 3, 1, 4, -1]],
    [],
]
"""10 ticks from the first op to the second one, of which it passes 4 on to two others, and those 1 each."""

SHARES: list[Any] = [[[0, 0, 10, 1, -10], [1, 1, 2, 2, -2], [2, 1, 2, 3, -2]], []]
"""The same but for tensors that no stage with the first op holds on both sides: those take what their ops pay."""

PROOF: dict[str, Any] = {
    "cutoff": 16,
    "stages": 3,
    "streamed": False,
    "capacity": 0,
    "denominator": 1,
    "weights": [[0, 1]],
    "families": [[0, ["leaf", 1, 0, FLOW]]],
}
"""A set with the first op costs 6 and another 10: no stage below 16 ticks holds it."""

EVEN = CostGraph.build(name="even", time_unit="ps", ops=[Op(f"op{i}", 4) for i in range(7)], tensors=[])


def pairs(op: int) -> list[Any]:
    """Split the sets that hold one of even ops and none before it by each of those after it."""
    tree: list[Any] = ["none"]
    for other in range(6, op, -1):
        tree = ["split", other, ["leaf", 0, 0, [[], []]], tree]
    return tree


COUNTED: dict[str, Any] = {
    "cutoff": 12,
    "stages": 3,
    "streamed": False,
    "capacity": 2,
    "denominator": 3,
    "weights": [[op, 1] for op in range(7)],
    "families": [[op, pairs(op)] for op in range(7)],
}
"""Stages of less than 12 ticks hold two of the even ops at most, and with one two others could not hold the rest."""


judge = partial(judged, "configuration")


def shares(rows: list[list[int]]) -> dict[str, Any]:
    """Bound the family of the first op by other shares."""
    return {"families": [[0, ["shares", 1, 0, rows, []]]]}


def test_hand_made_proofs_pass() -> None:
    """What a flow shows and what counting shows is the optimum, for fewer ticks and other numbers of stages too."""
    held = (
        "configuration: no stage below 16 ticks holds more than 0 of the ops' weight of 1, so 3 are too few, by 1 flow"
    )
    assert judge(DEAR, 3, 16, PROOF) == (True, held)
    assert judge(DEAR, 3, 15, {**PROOF, "cutoff": 15})[0]
    assert judge(DEAR, 3, 16, {**PROOF, "families": [[0, ["shares", 1, 0, *SHARES]]]}) == (True, held)
    assert judge(DEAR, 9, 16, {**PROOF, "stages": 9})[0]
    assert judge(EVEN, 3, 12, COUNTED)[0]
    assert oracles.brute_force_optimum(DEAR, LINK, 3) == 16
    assert oracles.brute_force_optimum(EVEN, LINK, 3) == 12


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"cutoff": 17}, "the proof's cutoff is 17 ticks, the claim's 16"),
        ({"stages": 4}, "the proof is for 4 stages, the claim for 3"),
        ({"streamed": True}, "nothing is streamed without a fast memory"),
        ({"weights": []}, "the ops have 0 in all, which 3 stages of 0 may hold"),
        ({"weights": [[0, 1], [4, 1]]}, "op 'op4' has a weight and no family"),
        ({"weights": [[0, 1], [0, 1]]}, "op 'op0' has two weights"),
        ({"weights": [[0, 2]]}, "family 0, of op 'op0': sets may hold 1, more than 0"),
        ({"weights": [[5, 1]]}, "there is no op 5"),
        ({"capacity": 1}, "the ops have 1 in all, which 3 stages of 1 may hold"),
        ({"denominator": 2}, "family 0, of op 'op0': 10 goes into tensor 0, whose capacity is 5"),
        ({"families": []}, "op 'op0' has a weight and no family"),
        ({"families": [[0, ["none"]]]}, "family 0, of op 'op0': a family that the proof says is empty may not be"),
        ({"families": PROOF["families"] * 2}, "op 'op0' has two families"),
        ({"families": [[5, ["none"]]]}, "there is no op 5"),
        ({"families": [[0, ["split", 5, ["none"], ["none"]]]]}, "family 0, of op 'op0': there is no op 5"),
        ({"families": [[0, ["leaf", 0, 0, [[], []]]]]}, "family 0, of op 'op0': sets may hold 1, more than 0"),
        ({"families": [[0, ["leaf", 1, 0, [[], []]]]]}, "family 0, of op 'op0': sets may hold 10, more than 0"),
        ({"families": [[0, ["leaf", 1, 0, [[], [[1, 2, 1]]]]]]}, "family 0, of op 'op0': sets with op 1 need not hold"),
        ({"families": [[0, ["leaf", 1, 0, [[], [[5, 0, 1]]]]]]}, "family 0, of op 'op0': there is no op 5"),
        ({"families": [[0, ["leaf", 1, 0, [[[5, 0, 1]], []]]]]}, "family 0, of op 'op0': there is no tensor 5"),
        (shares([[0, 0, 10, 1, -9], *SHARES[0][1:]]), "what goes into tensor 0 and out of it differs by 1"),
        (shares([[0, 0, 11, 1, -11], *SHARES[0][1:]]), "11 goes into tensor 0, whose capacity is 10"),
        (shares([*SHARES[0], [3, 2, -1]]), "the share -1 of tensor 3 is below 0"),
        (shares([*SHARES[0], [3, 2, 3]]), "the shares of tensor 3 are 3, its capacity is 2"),
        (shares([*SHARES[0], [3, 1, 1]]), "op 1 does not touch tensor 3"),
        (shares([*SHARES[0], [3, 9, 1]]), "there is no op 9"),
        (shares([*SHARES[0], [3, 2, 1], [3, 2, 1]]), "tensor 3 has two rows"),
        (shares([*SHARES[0], [3, 2, 0]]), "sets may hold 1, more than 0"),
        (shares([*SHARES[0], [9, 2, 0]]), "there is no tensor 9"),
        (
            {"merges": [["pull-down", 1, 2]]},
            "merge 0 ('pull-down' of op 'op1' to 'op2'): the op that moves has another reader",
        ),
    ],
)
def test_what_is_false_is_named(change: dict[str, Any], fault: str) -> None:
    """One thing wrong with the proof, and it proves nothing."""
    passed, detail = judge(DEAR, 3, 16, {**PROOF, **change})
    assert not passed
    assert (
        detail.removeprefix("configuration: ")
        .removeprefix("family 0, of op 'op0': ")
        .startswith(fault.removeprefix("family 0, of op 'op0': "))
    )


def test_the_cutoff_is_the_limit() -> None:
    """A tick more than is true is refused: more fits in then."""
    assert judge(DEAR, 3, 17, {**PROOF, "cutoff": 17})[1].endswith("sets may hold 1, more than 0")
    assert judge(EVEN, 3, 13, {**COUNTED, "cutoff": 13})[1].endswith("sets may hold 7, more than 2")
    assert judge(EVEN, 4, 12, {**COUNTED, "stages": 4})[1].endswith("a family that the proof says is empty may not be")


def test_families_may_be_missing_where_stages_need_one_of_the_others() -> None:
    """Three even ops, but not two, are too much to be left out of a stage that the others would have to hold."""
    for count, passed in ((7, True), (6, True), (5, False)):
        verdict = judge(EVEN, 3, 12, {**COUNTED, "families": COUNTED["families"][:count]})
        assert verdict[0] is passed
    assert verdict[1] == "configuration: op 'op5' has a weight and no family"


@pytest.mark.parametrize(
    ("root", "arc", "allowed"),
    [
        (2, [0, 1, 1], True),
        (2, [0, 2, 1], True),
        (2, [1, 0, 1], False),
        (0, [2, 1, 1], True),
        (0, [2, 0, 1], True),
        (0, [1, 2, 1], False),
    ],
)
def test_arcs_go_to_what_comes_along(root: int, arc: list[int], allowed: bool) -> None:
    """What lies on a path to the op of the family comes along, and nothing else."""
    proof = {**PROOF, "weights": [[root, 1]], "families": [[root, ["leaf", 0, 0, [[], [arc]]]]]}
    verdict = judge(DEAR, 3, 16, proof)
    assert ("need not hold" not in verdict[1]) is allowed


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"cutoff": 0}, "cutoff"),
        ({"stages": 0}, "stages"),
        ({"streamed": 0}, "streamed"),
        ({"capacity": -1}, "capacity"),
        ({"denominator": 0}, "denominator"),
        ({"weights": {}}, "weights"),
        ({"weights": [[0]]}, "weights/0"),
        ({"weights": [[0, 0]]}, "weights/0/1"),
        ({"weights": [[-1, 1]]}, "weights/0/0"),
        ({"families": None}, "families"),
        ({"families": [[0]]}, "families/0"),
        ({"families": [["op0", ["none"]]]}, "families/0/0"),
        ({"families": [[0, []]]}, "families/0/1"),
        ({"families": [[0, "none"]]}, "families/0/1"),
        ({"families": [[0, ["some"]]]}, "families/0/1/0"),
        ({"families": [[0, [["none"]]]]}, "families/0/1/0"),
        ({"families": [[0, ["none", 1]]]}, "families/0/1"),
        ({"families": [[0, ["split", 1, ["none"]]]]}, "families/0/1"),
        ({"families": [[0, ["split", -1, ["none"], ["none"]]]]}, "families/0/1/1"),
        ({"families": [[0, ["split", 1, ["none"], 7]]]}, "families/0/1/3"),
        ({"families": [[0, ["split", 1, ["split", 2, ["none"], ["no"]], ["none"]]]]}, "families/0/1/2/3/0"),
        ({"families": [[0, ["leaf", 1, 0]]]}, "families/0/1"),
        ({"families": [[0, ["leaf", -1, 0, FLOW]]]}, "families/0/1/1"),
        ({"families": [[0, ["leaf", 1, 0.5, FLOW]]]}, "families/0/1/2"),
        ({"families": [[0, ["leaf", 1, 0, []]]]}, "families/0/1/3"),
        ({"families": [[0, ["leaf", 1, 0, [[[0, 1]], []]]]]}, "families/0/1/3/0/0"),
        ({"families": [[0, ["leaf", 1, 0, [[[0, 1, True]], []]]]]}, "families/0/1/3/0/0/2"),
        ({"families": [[0, ["leaf", 1, 0, [[[0, 1, 2**127]], []]]]]}, "families/0/1/3/0/0/2"),
        ({"families": [[0, ["leaf", 1, 0, [[[0, -1, 1]], []]]]]}, "families/0/1/3/0/0/1"),
        ({"families": [[0, ["leaf", 1, 0, [[], [[0, 1]]]]]]}, "families/0/1/3/1/0"),
        ({"families": [[0, ["shares", 1, 0, []]]]}, "families/0/1"),
        ({"families": [[0, ["shares", -1, 0, *FLOW]]]}, "families/0/1/1"),
        ({"families": [[0, ["shares", 1, 0, [[0, 1]], []]]]}, "families/0/1/3/0"),
        ({"families": [[0, ["shares", 1, 0, [[-1, 0, 1]], []]]]}, "families/0/1/3/0/0"),
        ({"families": [[0, ["shares", 1, 0, [], [[0, 1, 0]]]]]}, "families/0/1/4/0/2"),
        ({"families": [[0, ["leaf", 1, 0, [[], [[0, 1, 0]]]]]]}, "families/0/1/3/1/0/2"),
        ({"merges": [[]]}, "merges/0"),
        ({"more": 1}, "more"),
    ],
)
def test_malformed_proofs_are_bad_input(change: dict[str, Any], where: str) -> None:
    """What is not of the proof's shape is refused at its pointer, before anything is judged."""
    assert refusal(judge, DEAR, 3, 99, {**PROOF, **change}).where == f"/lower_bound/proof/{where}"


def test_missing_keys_are_bad_input() -> None:
    """Only the merges may be missing."""
    for key in PROOF:
        with pytest.raises(InputError) as caught:
            judge(DEAR, 3, 16, {other: value for other, value in PROOF.items() if other != key})
        assert caught.value.where == f"/lower_bound/proof/{key}"


@pytest.mark.parametrize("last", [["leaf", 1, 0, FLOW], ["none"], ["so"]])
def test_trees_may_be_deep(last: list[Any]) -> None:
    """Three thousand splits one in the other are followed, and what is wrong at the end is found."""
    tree = last
    for _ in range(3000):
        tree = ["split", 2, ["leaf", 1, 0, FLOW], tree]
    proof = {**PROOF, "families": [[0, tree]]}
    if last == ["so"]:
        with pytest.raises(InputError, match="unknown value 'so'"):
            judge(DEAR, 3, 16, proof)
    else:
        assert judge(DEAR, 3, 16, proof)[0] is (last[0] == "leaf")


def test_groups_count_as_one_op() -> None:
    """With the first and the last op together all three share a stage, so any of them has the family of all."""
    proof = {**PROOF, "weights": [[2, 1]], "families": [[1, ["none"]]], "stages": 7, "cutoff": 18}
    assert judge(THREE, 7, 18, proof, together=[["op0", "op2"]])[0]
    assert not judge(THREE, 7, 18, proof)[0]
    assert not judge(THREE, 7, 18, {**proof, "weights": [[2, 1], [1, 1]]}, together=[["op0", "op2"]])[0]


def test_streamed_parameters_count_beyond_the_memory() -> None:
    """With a tick a byte beyond 15, no stage below 12 ticks holds an op of 2 ticks with 25 bytes."""
    graph = CostGraph.build(name="one", time_unit="ps", ops=[Op("op0", 2, None, 25)], tensors=[])
    proof = {**PROOF, "streamed": True, "families": [[0, ["none"]]]}
    for fast, reserve, peak in ((15, 0, "reserve"), (20, 5, "reserve"), (15, 5, "order")):
        system = Device("memory", 1, 1, Link(10**12), fast, reserve, peak)
        assert judge(graph, 3, 12, {**proof, "cutoff": 12}, system)[0]
        assert not judge(graph, 3, 13, {**proof, "cutoff": 13}, system)[0]
        assert not judge(graph, 3, 12, {**proof, "cutoff": 12, "streamed": False}, system)[0]


@pytest.mark.parametrize("seeds", [range(50), pytest.param(range(50, 180), marks=pytest.mark.slow)])
@pytest.mark.parametrize("reduced", [False, True])
def test_made_proofs_pass_and_are_below_the_optimum(reduced: bool, seeds: range) -> None:
    """What the weights of a linear program prove is accepted, on merged graphs too, and never above the optimum."""
    exact = 0
    for drawn in drawn_problems(seeds, reduced=reduced):
        optimum = drawn.optimum
        for cutoff in {max(1, optimum * 3 // 4), max(1, optimum), optimum + 1} if optimum < oracles.NEVER else ():
            proof = configuration_proof(drawn.merged, drawn.system, drawn.k, cutoff, drawn.merges, drawn.pick)
            if proof is None:
                continue
            assert cutoff <= optimum
            exact += cutoff == optimum
            passed, detail = drawn.verdict("configuration", cutoff, proof)
            assert passed, (drawn.seed, cutoff, detail)
    assert exact > len(seeds) // 5


def regrown(proof: dict[str, Any], pick: random.Random) -> dict[str, Any]:
    """Return a proof with one part of a tree replaced by nothing, by another part of a tree, or by its own branch."""
    nodes = [(row, 1) for row in proof["families"]]
    for row, place in nodes:
        if row[place][0] == "split":
            nodes += [(row[place], 2), (row[place], 3)]
    row, place = pick.choice(nodes)
    other, elsewhere = pick.choice(nodes)
    branches = row[place][2:4] if row[place][0] == "split" else []
    row[place] = copy.deepcopy(pick.choice([["none"], other[elsewhere], *branches]))
    return proof


@pytest.mark.parametrize("seeds", [range(70), pytest.param(range(70, 220), marks=pytest.mark.slow)])
def test_nothing_above_the_optimum_passes(seeds: range) -> None:
    """Whatever is changed in a proof, what still passes is true."""
    passed = above = 0
    for drawn in drawn_problems(seeds):
        pick, optimum, proof = drawn.pick, drawn.optimum, None
        for cutoff in (optimum, optimum * 4 // 5, optimum // 2) if optimum < oracles.NEVER else ():
            if proof is None and cutoff > 0:
                proof = configuration_proof(drawn.merged, drawn.system, drawn.k, cutoff, [], pick)
        if proof is None:
            continue
        for _ in range(25):
            changed = pick.choice([mutated, regrown])(copy.deepcopy(proof), pick)
            if pick.random() < 0.7:
                changed["cutoff"] = optimum + 1
                changed = mutated(changed, pick)
            claimed, stages = changed["cutoff"], changed["stages"]
            try:
                verdict = drawn.verdict("configuration", claimed, changed)
            except InputError:
                continue
            assert not verdict[0] or (claimed <= optimum and stages == drawn.k), (drawn.seed, changed)
            passed += verdict[0]
            above += claimed > optimum
    assert passed > len(seeds)
    assert above > 4 * len(seeds)


def some_problem(seed: int, *, cyclic: bool = False) -> tuple[Problem, Families]:
    """Make a small graph and limits under which some sets of its ops are stages and others are not."""
    pick = random.Random(seed)
    graph, system, k, together = random_problem(seed, op_count=pick.randint(2, 7))
    merged = claim_of(graph, system, k, together, 0, {}).merged()
    assert not isinstance(merged, str)
    if cyclic:
        back = (0, len(merged.work) - 1, (0,))
        merged = MergedGraph(merged.work, merged.param_bytes, [*merged.tensors, back], merged.group_of)
    total = sum(merged.work)
    problem = Problem(merged, merged.work, pick.randint(total // 4, total), k)
    return problem, Families(Paths(merged), problem.weight, merged.tensors, problem.most, total - problem.rest)


def listed(ops: int) -> frozenset[int]:
    """Return the ops of a set."""
    return frozenset(op for op in range(ops.bit_length()) if ops >> op & 1)


def descents(families: Families, count: int, pick: random.Random) -> list[tuple[Family | None, set[int], set[int]]]:
    """Return a family and some split from it, and what the sets of each were told to hold and not to hold."""
    op, outside = pick.randrange(count), set(pick.sample(range(count), pick.randint(0, count // 2)))
    inside = {op}
    family = families.rooted(op, sum(1 << other for other in outside))
    found = [(family, set(inside), set(outside))]
    while family is not None and len(found) < 5:
        op = pick.randrange(count)
        family_in, family_out = families.split(family, op)
        if pick.random() < 0.5:
            family = family_in
            inside.add(op)
        else:
            family = family_out
            outside.add(op)
        found.append((family, set(inside), set(outside)))
    return found


def test_all_rules_are_applied() -> None:
    """One pass comes to what the rules come to in any order."""
    empty = 0
    for seed in range(300):
        problem, families = some_problem(seed)
        for family, inside, outside in descents(families, len(problem.weight), random.Random(seed)):
            closed = problem.closed((frozenset(inside), frozenset(outside)))
            assert (family is None) is (closed is None), seed
            empty += family is None
            if family is not None:
                assert (listed(family.inside), listed(family.outside)) == closed, seed
    assert 50 < empty < 1000


@pytest.mark.parametrize("cyclic", [False, True])
def test_no_stage_is_lost(cyclic: bool) -> None:
    """Each set that can be a stage and has what it was told to have is still in the family, cycles or not."""
    kept = 0
    for seed in range(300):
        problem, families = some_problem(seed, cyclic=cyclic)
        stages = list(problem.stages())
        for family, inside, outside in descents(families, len(problem.weight), random.Random(seed)):
            for stage in stages:
                if stage >= inside and not stage & outside:
                    assert family is not None, seed
                    assert stage >= listed(family.inside), seed
                    assert not stage & listed(family.outside), seed
                    kept += 1
    assert kept > 150


def test_drawn_ops_come_along() -> None:
    """Each convex set of a family that has an op has what it draws."""
    drawn = 0
    for seed in range(300):
        problem, families = some_problem(seed)
        stages = list(problem.stages())
        count = len(problem.weight)
        for family, inside, outside in descents(families, count, random.Random(seed)):
            if family is None:
                continue
            held = [stage for stage in stages if stage >= inside and not stage & outside]
            for op in range(count):
                for other in range(count):
                    if op != other and families.draws(family, op, other):
                        assert all(other in stage for stage in held if op in stage), seed
                        drawn += 1
    assert drawn > 200


def test_weights_of_sets_are_summed_exactly() -> None:
    """Sets of more than a byte of ops weigh what their ops do."""
    pick = random.Random(1)
    weight = [pick.randrange(2**70) for _ in range(45)]
    graph = MergedGraph(weight, [0] * 45, [], list(range(45)))
    families = Families(Paths(graph), weight, [], sum(weight), 0)
    for _ in range(50):
        ops = pick.getrandbits(45)
        assert families.sum(ops) == sum(weight[op] for op in listed(ops))
