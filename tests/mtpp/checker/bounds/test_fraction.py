"""Fraction bounds by multipliers and flows: valid proofs pass, nothing above the optimum does."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from flow_proofs import fraction_proof, held_to_statements, judged, true_after_changes
from graph_strategies import chain
from refusals import refusal

from mtpp.inference.graph import CostGraph, Op

SPREAD = chain([4, 4, 4, 4], [9, 9, 9], "ps")
"""Four ops of 4 that cost 13 or more in any stage but all in one, which costs 16."""

ROWS: list[list[Any]] = [
    [0, 3, 1, 0, [[0, 0, 24, 1, -24], [1, 1, 16, 2, -16], [2, 2, 8, 3, -8]], [], []],
    [1, 3, 1, 0, [[0, 1, 8, 0, -8], [1, 1, 16, 2, -16], [2, 2, 8, 3, -8]], [], []],
    [2, 3, 1, 0, [[0, 1, 8, 0, -8], [1, 2, 16, 1, -16], [2, 2, 8, 3, -8]], [], []],
    [3, 3, 1, 0, [[0, 1, 8, 0, -8], [1, 2, 16, 1, -16], [2, 3, 24, 2, -24]], [], []],
]
"""Under 13 ticks, with a multiplier of 3, a stage holds work of at most 3·12 − 4·8 = 4 with any of them."""

PROOF: dict[str, Any] = {"cutoff": 13, "stages": 3, "ops": ROWS}


judge = partial(judged, "fraction")


def even(count: int) -> CostGraph:
    """Make ops of work 4 with no tensors."""
    return CostGraph.build(name="even", time_unit="ps", ops=[Op(f"op{i}", 4) for i in range(count)], tensors=[])


@pytest.mark.parametrize(("cutoff", "passed"), [(7, True), (8, True), (9, False)])
def test_without_multipliers_it_is_the_average(cutoff: int, passed: bool) -> None:
    """Five ops of 4 in 3 stages: ops of 4 in stages of at most 6 are 10/3 of a stage, of 8 no more than 5/2."""
    assert judge(even(5), 3, cutoff, {"cutoff": cutoff, "stages": 3, "ops": []})[0] is (cutoff < 8)
    assert judge(even(5), 2, cutoff, {"cutoff": cutoff, "stages": 2, "ops": []})[0] is True
    assert judge(even(3), 2, cutoff, {"cutoff": cutoff, "stages": 2, "ops": []})[0] is False


def test_an_op_above_the_limit_is_enough() -> None:
    """Ops of 4 fit no stage that costs at most 3, however many there are."""
    assert judge(even(1), 9, 4, {"cutoff": 4, "stages": 9, "ops": []}) == (
        True,
        "fraction: no stage with op 'op0' costs less than 4 ticks",
    )


def test_multipliers_and_flows_leave_less_room() -> None:
    """Four ops that fill a stage each need four stages; without two of the flows they might do with three."""
    assert judge(SPREAD, 3, 13, PROOF) == (
        True,
        "fraction: the ops' parts of their stages add up to 4.000000, more than 3 stages hold",
    )
    assert not judge(SPREAD, 4, 13, {**PROOF, "stages": 4})[0]
    assert not judge(SPREAD, 3, 13, {**PROOF, "ops": [*ROWS[:2], [3, 3, 1, 0, [], [], []]]})[0]
    assert judge(SPREAD, 2, 13, {**PROOF, "stages": 2, "ops": ROWS[:3]})[0]


def test_one_flow_can_show_that_an_op_has_no_room() -> None:
    """With a multiplier of 4, 4·12 - 4·12 ticks of work are left for the stage of the first op, which takes 4."""
    flow = [[0, 0, 36, 1, -36], [1, 1, 24, 2, -24], [2, 2, 12, 3, -12]]
    proof = {"cutoff": 13, "stages": 9, "ops": [[0, 4, 1, 0, flow, [], []]]}
    assert judge(SPREAD, 9, 13, proof) == (True, "fraction: no stage with op 'op0' costs less than 13 ticks")
    assert not judge(SPREAD, 9, 14, {**proof, "cutoff": 14})[0]


def test_ops_that_are_too_far_apart_take_nothing() -> None:
    """In stages under 13 ticks the first op and the last one are apart: weights of 3 on both fill two."""
    rows = [[op, 0, 1, 0, [], [], apart] for op, apart in ((0, [3]), (3, [0]))]
    assert judge(SPREAD, 1, 13, {"cutoff": 13, "stages": 1, "ops": rows})[0]
    proof = {"cutoff": 13, "stages": 1, "weights": [[0, 3], [3, 3]], "ops": rows}
    assert judge(SPREAD, 1, 13, proof) == (
        True,
        "fraction: the ops' parts of their stages add up to 2.000000, more than 1 stage holds",
    )
    assert not judge(SPREAD, 1, 13, {**proof, "ops": rows[:1], "weights": [[0, 3], [1, 3]]})[0]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"stages": 2}, "fraction: the proof is for 2 stages, the claim for 3"),
        ({"cutoff": 12}, "fraction: the proof's cutoff is 12 ticks, the claim's 13"),
        ({"ops": [[7, 1, 1, 0, [], [], []]]}, "fraction: there is no op 7"),
        ({"ops": [[0, 1, 1, 1, [], [], []]]}, "fraction: nothing is streamed without a fast memory"),
        (
            {"ops": [[0, 2, 1, 0, [[0, 0, 19, 1, -19]], [], []]]},
            "fraction: op 'op0': 19 goes into tensor 0, whose capacity is 18",
        ),
        (
            {"ops": [[0, 1, 1, 0, [[0, 0, 3, 2, -3]], [], []]]},
            "fraction: op 'op0': op 2 does not touch tensor 0",
        ),
        ({"ops": [[0, 1, 1, 0, [], [], [1]]]}, "fraction: op 'op0': op 1 may share a stage with it"),
        ({"ops": [[0, 1, 1, 0, [], [], [3, 2, 1]]]}, "fraction: op 'op0': op 2 may share a stage with it"),
        ({"ops": [[0, 1, 1, 0, [], [], [0]]]}, "fraction: op 'op0': op 0 may share a stage with it"),
        ({"ops": [[0, 1, 1, 0, [], [], [4]]]}, "fraction: op 'op0': there is no op 4"),
        ({"ops": [[0, 1, 1, 0, [], [[0, 1, 1]], []]]}, "fraction: op 'op0': op 0 does not draw op 1"),
        ({"weights": [[4, 1]]}, "fraction: there is no op 4"),
        ({"weights": [[0, 1], [0, 2]]}, "fraction: op 0 has two weights"),
        ({"merges": [["pull-up", 1, 3]]}, "fraction: merge 0"),
        ({"ops": ROWS[2:]}, "fraction: the ops' parts of their stages add up to 2.666667, which 3 stages may hold"),
        ({"ops": []}, "fraction: the ops' parts of their stages add up to 1.333333, which 3 stages may hold"),
    ],
)
def test_what_is_false_is_named(change: dict[str, Any], fault: str) -> None:
    """One thing wrong with the proof, or too little in it."""
    passed, detail = judge(SPREAD, 3, 13, {**PROOF, **change})
    assert not passed
    assert detail.startswith(fault)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"cutoff": 0}, "/lower_bound/proof/cutoff"),
        ({"stages": 1.5}, "/lower_bound/proof/stages"),
        ({"ops": 1}, "/lower_bound/proof/ops"),
        ({"ops": [1]}, "/lower_bound/proof/ops/0"),
        ({"ops": [[0, 1, 1, 0]]}, "/lower_bound/proof/ops/0"),
        ({"ops": [[0, -1, 1, 0, [], [], []]]}, "/lower_bound/proof/ops/0/1"),
        ({"ops": [[0, 1, 0, 0, [], [], []]]}, "/lower_bound/proof/ops/0/2"),
        ({"ops": [[0, 1, 1, 2, [], [], []]]}, "/lower_bound/proof/ops/0/3"),
        ({"ops": [[0, 1, 1, False, [], [], []]]}, "/lower_bound/proof/ops/0/3"),
        ({"ops": [[0, 1, 1, 0, [[0, 1]], [], []]]}, "/lower_bound/proof/ops/0/4/0"),
        ({"ops": [[0, 1, 1, 0, [], [[0, 1]], []]]}, "/lower_bound/proof/ops/0/5/0"),
        ({"ops": [[0, 1, 1, 0, [], [], [-1]]]}, "/lower_bound/proof/ops/0/6/0"),
        ({"weights": [[0]]}, "/lower_bound/proof/weights/0"),
        ({"weights": [[0, -1]]}, "/lower_bound/proof/weights/0/1"),
        ({"merges": 1}, "/lower_bound/proof/merges"),
        ({"more": 1}, "/lower_bound/proof/more"),
    ],
)
def test_malformed_proofs_are_bad_input(change: dict[str, Any], where: str) -> None:
    """What is not of the proof's shape is refused at its pointer."""
    assert refusal(judge, SPREAD, 3, 13, {**PROOF, **change}).where == where


@pytest.mark.parametrize("reduced", [pytest.param(False, marks=pytest.mark.slow), True])
def test_what_the_statement_proves_passes(reduced: bool) -> None:
    """Proofs made from the statement pass exactly where their sums say so, up to the optimum and not above it."""
    for holds, passed, _, case in held_to_statements("fraction", range(40), fraction_proof, 9, reduced=reduced):
        assert passed or not holds, case


def test_nothing_above_the_optimum_passes() -> None:
    """Whatever is changed in a proof, what still passes is true."""
    assert true_after_changes("fraction", range(50), fraction_proof) > 100
