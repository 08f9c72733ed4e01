"""Crossings bounds step by step: valid proofs pass, nothing above the optimum does."""

from __future__ import annotations

from functools import partial
from typing import Any

import oracles
import pytest
from flow_proofs import crossings_proof, held_to_statements, judged, true_after_changes
from graph_strategies import LINK, chain
from refusals import refusal

from mtpp.inference.graph import CostGraph, Op, Tensor

PAIR = chain([6, 6], [3], "ps")
"""Two ops of 6 that cost 9 each in two stages, and 12 in one."""

STEPS: list[list[Any]] = [["made", 1, 3, [[0, 0, 3, 1, -3]], []]]
PROOF: dict[str, Any] = {"cutoff": 9, "stages": 2, "streamed": False, "steps": STEPS}


judge = partial(judged, "crossings")


def test_what_crosses_leaves_no_room() -> None:
    """Under 9 ticks neither stage holds both ops, so that 3 ticks cross: 5 are left for the first stage."""
    passed, detail = judge(PAIR, 2, 9, PROOF)
    assert passed
    assert detail.startswith("crossings: in 1 steps, ")
    assert not judge(PAIR, 2, 9, {**PROOF, "steps": []})[0]
    assert not judge(PAIR, 2, 10, {**PROOF, "cutoff": 10})[0]


def test_what_is_read_counts_for_the_later_stage() -> None:
    """The second stage has 5 ticks left as well."""
    for kind, i in (("read", 2), ("across", 1)):
        assert judge(PAIR, 2, 9, {**PROOF, "steps": [[kind, i, 3, [[0, 0, 3, 1, -3]], []]]})[0]


def test_drawn_flow_goes_to_where_an_op_reads_from() -> None:
    """Op a has to be before b, and both tensors of a lead out of the first stage: b's reading c proves the second."""
    graph = CostGraph.build(
        name="drawn",
        time_unit="ps",
        ops=[Op("a", 0), Op("b", 10), Op("c", 10)],
        tensors=[
            Tensor("t", "a", ("b",), None, 4),
            Tensor("u", "a", ("c",), None, 5),
            Tensor("v", "b", ("c",), None, 1),
        ],
    )
    flow = [[1, 0, 5, 2, -5], [2, 1, 1, 2, -1]]
    proof = {"cutoff": 16, "stages": 2, "streamed": False, "steps": [["across", 1, 6, flow, [[1, 0, 5]]]]}
    assert judge(graph, 2, 16, proof)[0]
    assert oracles.brute_force_optimum(graph, LINK, 2) == 16
    undrawn = {**proof, "steps": [["across", 1, 6, flow, [[0, 1, 5]]]]}
    assert judge(graph, 2, 16, undrawn) == (False, "crossings: step 0: op 0 does not read from op 1")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"stages": 3}, "the proof is for 3 stages, the claim for 2"),
        ({"cutoff": 8}, "the proof's cutoff is 8 ticks, the claim's 9"),
        ({"streamed": True}, "nothing is streamed without a fast memory"),
        ({"steps": [["made", 2, 3, [], []]]}, "step 0: there is no such number as made 2"),
        ({"steps": [["read", 1, 3, [], []]]}, "step 0: there is no such number as read 1"),
        ({"steps": [["read", 3, 3, [], []]]}, "step 0: there is no such number as read 3"),
        ({"steps": [["made", 1, 4, [[0, 0, 3, 1, -3]], []]]}, "step 0: the flow proves 3 ticks for made 1, not 4"),
        ({"steps": [["made", 1, 3, [[0, 0, 4, 1, -4]], []]]}, "step 0: 4 goes into tensor 0, whose capacity is 3"),
        ({"steps": [["made", 1, 3, [[0, 0, 3, 1, -2]], []]]}, "step 0: 3 goes into tensor 0 and 2 out of it"),
        ({"steps": [["made", 1, 3, [[0, 1, 3, 0, -3]], []]]}, "step 0: tensor 0 is given 3 by an op that does not"),
        ({"steps": [["made", 1, 3, [[1, 0, 3, 1, -3]], []]]}, "step 0: there is no tensor 1 between ops"),
        ({"steps": [["made", 1, 3, [[0, 7, 3, 1, -3]], []]]}, "step 0: there is no op 7"),
        ({"steps": [["made", 1, 3, [[0, 0, 3, 1, -3]] * 2, []]]}, "step 0: tensor 0 has two rows"),
        ({"steps": [["made", 1, 3, [[0, 0, 3, 0, -3]], []]]}, "step 0: 3 is taken from tensor 0 by an op that does"),
        ({"steps": [["made", 1, 3, [], [[0, 1, 3]]]]}, "step 0: op 0 does not read from op 1"),
        ({"steps": [["made", 1, 3, [], [[1, 0, 3]]]]}, "step 0: op 1, which may be in a stage after 1, gives more"),
        ({"merges": [["pull-up", 0, 1]]}, "merge 0"),
        ({"steps": []}, "what has to cross leaves room for a partition"),
    ],
)
def test_what_is_false_is_named(change: dict[str, Any], fault: str) -> None:
    """One thing wrong with the proof, or too little in it."""
    passed, detail = judge(PAIR, 2, 9, {**PROOF, **change})
    assert not passed
    assert detail.startswith(f"crossings: {fault}")


def test_producers_and_readers_must_be_known_to_be_in_the_stage() -> None:
    """In a chain of three with plenty of room nothing is known of where an op is."""
    graph = chain([5, 5, 5], [3, 3], "ps")
    for kind, i, fault in (("made", 2, "may be made in a stage before 2"), ("read", 2, "may be in a stage after 2")):
        steps = [[kind, i, 3, [[0, 0, 3, 1, -3]], []]]
        passed, detail = judge(graph, 3, 14, {"cutoff": 14, "stages": 3, "streamed": False, "steps": steps})
        assert not passed
        assert fault in detail


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"cutoff": 0}, "/lower_bound/proof/cutoff"),
        ({"streamed": 1}, "/lower_bound/proof/streamed"),
        ({"steps": [1]}, "/lower_bound/proof/steps/0"),
        ({"steps": [["made", 1, 3, []]]}, "/lower_bound/proof/steps/0"),
        ({"steps": [["sent", 1, 3, [], []]]}, "/lower_bound/proof/steps/0/0"),
        ({"steps": [["made", 0, 3, [], []]]}, "/lower_bound/proof/steps/0/1"),
        ({"steps": [["made", 1, -3, [], []]]}, "/lower_bound/proof/steps/0/2"),
        ({"steps": [["made", 1, 3, [[0, 1]], []]]}, "/lower_bound/proof/steps/0/3/0"),
        ({"steps": [["made", 1, 3, [], [[0, 1]]]]}, "/lower_bound/proof/steps/0/4/0"),
        ({"more": 1}, "/lower_bound/proof/more"),
    ],
)
def test_malformed_proofs_are_bad_input(change: dict[str, Any], where: str) -> None:
    """What is not of the proof's shape is refused at its pointer."""
    assert refusal(judge, PAIR, 2, 9, {**PROOF, **change}).where == where


def test_more_stages_than_can_be_counted_are_refused() -> None:
    """A number of stages that would fill the memory costs none."""
    k = 2**62
    assert not judge(PAIR, k, 9, {**PROOF, "stages": k})[0]


@pytest.mark.parametrize("reduced", [False, True])
def test_what_the_statement_proves_passes(reduced: bool) -> None:
    """Proofs made from the statement pass exactly where they come to a contradiction, which is below the optimum."""
    for holds, passed, proof, case in held_to_statements("crossings", range(80), crossings_proof, 8, reduced=reduced):
        # What is streamed free of charge is rounded up here and down by the verifier.
        assert passed is holds or proof["streamed"], case


def test_nothing_above_the_optimum_passes() -> None:
    """Whatever is changed in a proof, what still passes is true."""
    assert true_after_changes("crossings", range(150), crossings_proof) > 100
