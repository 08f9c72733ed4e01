"""Node bounds by flows: valid proofs pass, what is wrong with the others is said, nothing above the optimum passes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from flow_proofs import drawn_problems, judged, mutated, node_proof
from graph_strategies import LINK
from refusals import refusal

from mtpp.checker.claim import Verdict
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device
from mtpp.machine.link import Link

GROUPS = list[list[str]]


def judge(
    graph: CostGraph, system: Device, value: int, proof: dict[str, Any], together: GROUPS | None = None
) -> Verdict:
    """Check a node bound."""
    return judged("node", graph, 2, value, proof, system, together)


def star() -> CostGraph:
    """Make a hub of work 5 that a and b (work 4 and 9) read by one tensor of 6, and c (work 2) by another of 7."""
    return CostGraph.build(
        name="star",
        time_unit="ps",
        ops=[Op("hub", 5, None, 10), Op("a", 4, None, 20), Op("b", 9, None, 30), Op("c", 2, None, 40)],
        tensors=[
            Tensor("unused", "a", (), None, 3),
            Tensor("t", "hub", ("a", "b"), None, 6),
            Tensor("u", "hub", ("c",), None, 7),
        ],
    )


PROOF: dict[str, Any] = {"op": 0, "streamed": False, "flow": [[0, 0, 6, 1, -4, 2, -2], [1, 0, 2, 3, -2]], "drawn": []}
"""The stage of the hub costs 5, 6 for tensor t, and c's work: 13."""

MEMORY = Device("memory", 1, 1, Link(10**12), 25, 5)
"""A tick a byte, 20 of them free of charge."""


def test_the_hand_made_proof_passes() -> None:
    """The stage of the hub costs at least 13 ticks, so that is the bound; less is one too, more is not."""
    assert judge(star(), LINK, 13, PROOF) == (
        True,
        "node: any stage with op 'hub' costs 13 ticks or more, by a flow of 2 tensors",
    )
    assert judge(star(), LINK, 12, PROOF)[0]
    assert judge(star(), LINK, 14, PROOF) == (
        False,
        "node: the flow proves 13 ticks for the stage of op 'hub', not 14",
    )


def test_streamed_parameters_count_beyond_the_memory() -> None:
    """With a tick for each byte, c may absorb 42 of which tensor u carries 7; 20 bytes are free."""
    proof = {"op": 0, "streamed": True, "flow": [[0, 0, 6, 1, -6], [1, 0, 7, 3, -7]], "drawn": []}
    assert judge(star(), MEMORY, 5 + 10 + 6 + 7 - 20, proof)[0]
    assert judge(star(), MEMORY, 5 + 10 + 6 + 7 - 20 + 1, proof) == (
        False,
        "node: the flow proves 8 ticks for the stage of op 'hub', not 9",
    )
    assert judge(star(), LINK, 8, proof) == (False, "node: nothing is streamed without a fast memory")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"op": 9}, "node: there is no op 9"),
        ({"op": 1}, "node: the flow proves 0 ticks for the stage of op 'a', not 13"),
        ({"flow": [[0, 0, 7, 1, -4, 2, -3], [1, 0, 2, 3, -2]]}, "node: 7 goes into tensor 0, whose capacity is 6"),
        ({"flow": [[0, 0, 6, 1, -5, 2, -1], [1, 0, 2, 3, -2]]}, "node: op 'a' gets 5 ticks, it may at most 4"),
        ({"flow": [[0, 0, 6, 1, -4, 2, -1], [1, 0, 2, 3, -2]]}, "node: what goes into tensor 0 and out of it differs"),
        ({"flow": [[0, 0, 6, 1, -4, 3, -2]]}, "node: op 3 does not touch tensor 0"),
        ({"flow": [[0, 0, 6, 7, -6]]}, "node: there is no op 7"),
        ({"flow": [[2, 0, 2, 3, -2]]}, "node: there is no tensor 2 between ops"),
        ({"flow": [[1, 0, 7, 3, -7]]}, "node: op 'c' gets 7 ticks, it may at most 2"),
        ({"flow": [[1, 0, 1, 3, -1], [1, 0, 1, 3, -1]]}, "node: tensor 1 has two rows"),
        ({"flow": []}, "node: the flow proves 5 ticks for the stage of op 'hub', not 13"),
        ({"drawn": [[0, 3, 2]]}, "node: op 0 does not draw op 3"),
        ({"drawn": [[1, 2, 2]]}, "node: op 1 does not draw op 2"),
        ({"drawn": [[1, 8, 2]]}, "node: there is no op 8"),
        ({"merges": [["pull-down", 1, 0]]}, "node: merge 0 ('pull-down' of op 'a' to 'hub'): no edge"),
        ({"merges": [["pull-up", 2, 0]]}, "node: merge 0 ('pull-up' of op 'b' to 'hub'): together they cost"),
    ],
)
def test_what_is_false_is_named(change: dict[str, Any], fault: str) -> None:
    """One thing wrong with the proof, and it proves nothing."""
    passed, detail = judge(star(), LINK, 13, {**PROOF, **change})
    assert not passed
    assert detail.startswith(fault)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"op": "hub"}, "/lower_bound/proof/op"),
        ({"op": -1}, "/lower_bound/proof/op"),
        ({"streamed": 0}, "/lower_bound/proof/streamed"),
        ({"flow": {}}, "/lower_bound/proof/flow"),
        ({"flow": [3]}, "/lower_bound/proof/flow/0"),
        ({"flow": [[]]}, "/lower_bound/proof/flow/0"),
        ({"flow": [[0, 1]]}, "/lower_bound/proof/flow/0"),
        ({"flow": [[0, 1, 1.5]]}, "/lower_bound/proof/flow/0/2"),
        ({"flow": [[-1]]}, "/lower_bound/proof/flow/0/0"),
        ({"flow": [[0, -1, 2]]}, "/lower_bound/proof/flow/0/1"),
        ({"flow": [[0, 1, 2**127]]}, "/lower_bound/proof/flow/0/2"),
        ({"drawn": [[1, 0]]}, "/lower_bound/proof/drawn/0"),
        ({"drawn": [[1, 0, 0]]}, "/lower_bound/proof/drawn/0/2"),
        ({"drawn": [[-1, 0, 1]]}, "/lower_bound/proof/drawn/0/0"),
        ({"merges": [[]]}, "/lower_bound/proof/merges/0"),
        ({"more": 1}, "/lower_bound/proof/more"),
    ],
)
def test_malformed_proofs_are_bad_input(change: dict[str, Any], where: str) -> None:
    """What is not of the proof's shape is refused at its pointer."""
    assert refusal(judge, star(), LINK, 13, {**PROOF, **change}).where == where


def test_missing_keys_are_bad_input() -> None:
    """Only the merges may be missing."""
    for key in PROOF:
        with pytest.raises(InputError) as caught:
            judge(star(), LINK, 13, {other: value for other, value in PROOF.items() if other != key})
        assert caught.value.where == f"/lower_bound/proof/{key}"


def test_groups_count_as_one_op() -> None:
    """With a and the hub together, they cost 9, and b reads t; an op of the group may stand for it."""
    proof = {"op": 1, "streamed": False, "flow": [[0, 0, 6, 2, -6], [1, 1, 2, 3, -2]], "drawn": []}
    together = [["a", "hub"]]
    assert judge(star(), LINK, 17, proof, together)[0]
    assert not judge(star(), LINK, 18, proof, together)[0]
    assert not judge(star(), LINK, 17, proof)[0]


@pytest.mark.parametrize("reduced", [False, True])
def test_best_proofs_pass_and_are_below_the_optimum(reduced: bool) -> None:
    """By a flow as large as the least cut each op's bound is proven exactly, on merged graphs too."""
    for drawn in drawn_problems(range(100), reduced=reduced):
        for here in range(len(drawn.merged.work)):
            value, proof = node_proof(drawn.merged, drawn.system, here, drawn.merges, drawn.pick)
            if value > 0:
                assert value <= drawn.optimum
                passed, detail = drawn.verdict("node", value, proof)
                assert passed, (drawn.seed, here, detail)
            # What is streamed free of charge is rounded up here and down by the verifier.
            slack = 2 if proof["streamed"] else 1
            assert not drawn.verdict("node", max(0, value) + slack, proof)[0]


def test_nothing_above_the_optimum_passes() -> None:
    """Whatever is changed in a proof, what still passes is true."""
    passed = 0
    for drawn in drawn_problems(range(150)):
        pick, optimum = drawn.pick, drawn.optimum
        value, proof = node_proof(drawn.merged, drawn.system, pick.randrange(len(drawn.merged.work)), [], pick)
        for _ in range(20):
            changed = mutated(copy.deepcopy(proof), pick)
            claimed = max(optimum, value) + 1 if pick.random() < 0.7 else max(0, value)
            try:
                verdict = drawn.verdict("node", claimed, changed)
            except InputError:
                continue
            assert not verdict[0] or claimed <= optimum, (drawn.seed, changed)
            passed += verdict[0]
    assert passed > 50
