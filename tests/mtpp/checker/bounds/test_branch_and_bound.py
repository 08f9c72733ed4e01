"""Bounds by branch and bound: valid proofs pass, what is wrong is said, nothing above the optimum passes."""

from __future__ import annotations

import copy
import json
import random
from functools import partial
from typing import Any

import oracles
import pytest
from flow_proofs import grouped, judged, mutated, random_problem
from graph_strategies import LINK, chain
from refusals import refusal
from seeds import sampled

from mtpp.checker.bounds.branch_and_bound import KnownPrefixes, SetWeights, members
from mtpp.checker.merged import MergedGraph
from mtpp.checker.paths import Paths
from mtpp.errors import InputError
from mtpp.solvers.bounds.branch_and_bound.bound import bound
from mtpp.solvers.bounds.limits import BoundLimits

DEAR = chain([6, 6, 6], [10, 4], "ps")
"""Three ops of 6: no stage below 16 ticks has the first one without the second, or the second without the third."""


def step(of_block: list[int], *cuts: list[int]) -> list[Any]:
    """Write multipliers of blocks and cuts."""
    return [1, of_block, list(cuts), [], []]


NODES: list[Any] = [
    [[], [1, 1, 1, 2]],
    [[], [0, 1, 3, 4]],
    [[step([1, 0, 0], [1, 1, 1, 2, 4])], None],
    [[], [1, 2, 5, 6]],
    [[step([1, 0, 0], [0, 1, 0, 1, 10])], None],
    [[step([0, 1, 0], [0, 2, 0, 1, 10])], None],
    [[step([0, 1, 0], [1, 2, 1, 2, 4])], None],
]
"""By the stage in which the second op is, and the first one."""

PROOF: dict[str, Any] = {"cutoff": 16, "streamed": False, "blocks": [1, 1, 1], "nodes": NODES}

ANCHORED: dict[str, Any] = {
    "cutoff": 16,
    "streamed": False,
    "blocks": [2, 1, 2],
    "anchor": [1, 2],
    "nodes": [[[step([0, 1, 0], [0, 2, 1, 0, 10], [1, 2, 1, 2, 4])], None]],
}
"""A stage with the second op that has neither neighbour costs 20, with the first one 16, with the last one 22."""

HEAVY: dict[str, Any] = {
    "cutoff": 9,
    "streamed": False,
    "blocks": [1, 1, 1],
    "heavy": 2,
    "nodes": [[[step([0, 1, 0, 1])], None]],
}
"""Of three ops of 6 in two stages, one stage has 9 or more."""


judge = partial(judged, "branch-and-bound")


def with_node(number: int, *node: Any) -> dict[str, Any]:
    """Return a change of one node of :data:`NODES`."""
    nodes = copy.deepcopy(NODES)
    nodes[number] = list(node)
    return {"nodes": nodes}


def test_hand_made_proofs_pass() -> None:
    """Four cases and one anchored case prove the optimum, fewer ticks as well, and one tick more is refused."""
    shown = "branch-and-bound: 4 cases, each refuted by multipliers, cover all partitions below 16 ticks"
    assert oracles.brute_force_optimum(DEAR, LINK, 3) == 16
    assert judge(DEAR, 3, 16, PROOF) == (True, shown)
    assert judge(DEAR, 3, 15, {**PROOF, "cutoff": 15})[0]
    assert judge(DEAR, 3, 17, {**PROOF, "cutoff": 17}) == (False, "branch-and-bound: node 5: its case is not refuted")
    assert judge(DEAR, 9, 16, PROOF)[0]  # no more than three stages have an op
    shown = "branch-and-bound: multipliers refute all partitions below 16 ticks"
    assert judge(DEAR, 3, 16, ANCHORED) == (True, shown)
    assert not judge(DEAR, 3, 17, {**ANCHORED, "cutoff": 17})[0]


def test_a_stage_with_the_average_work_costs_that() -> None:
    """The largest op or the average, in the ticks that stages can cost; without multiplier or block that is nothing."""
    assert judge(DEAR, 2, 9, HEAVY)[0]
    assert judge(DEAR, 2, 10, {**HEAVY, "cutoff": 10})[0]  # all costs are even
    assert judge(DEAR, 2, 11, {**HEAVY, "cutoff": 11}) == (
        False,
        "branch-and-bound: node 0: its case is not refuted",
    )
    assert not judge(DEAR, 2, 9, {**HEAVY, "heavy": None})[0]
    assert not judge(DEAR, 2, 9, {**HEAVY, "nodes": [[[step([0, 1, 0, 0])], None]]})[0]
    assert judge(chain([7, 1], [3], "ps"), 2, 7, {**HEAVY, "cutoff": 7})[0]  # the heaviest op
    assert not judge(chain([7, 1], [3], "ps"), 2, 8, {**HEAVY, "cutoff": 8})[0]


def test_stages_of_work_alone_need_no_multipliers() -> None:
    """Three ops of 6 that cost 18 together are in no single stage below 18 ticks."""
    proof = {"cutoff": 18, "streamed": False, "blocks": [1], "nodes": [[[step([1])], None]]}
    assert judge(DEAR, 1, 18, proof)[0]
    assert not judge(DEAR, 1, 19, {**proof, "cutoff": 19})[0]
    several = {"cutoff": 6, "streamed": False, "blocks": [1, 1], "nodes": [[[], None]]}
    assert judge(DEAR, 2, 6, several)[0]  # the second op is in no block


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"cutoff": 17}, "the proof's cutoff is 17 ticks, the claim's 16"),
        ({"streamed": True}, "nothing is streamed without a fast memory"),
        ({"blocks": [1, 1]}, "the blocks have 2 stages, a partition may need 3"),
        ({"blocks": [3]}, "node 0: there is no boundary 1"),
        ({"anchor": [1, 2]}, "the blocks on a side of the anchor's block have 1 stage, a partition may need 2"),
        ({"anchor": [1, 4]}, "the anchor's block is not one stage"),
        ({"anchor": [1, 1], "blocks": [2, 1, 2]}, "the anchor's block is not one stage"),
        ({"anchor": [3, 2], "blocks": [2, 1, 2]}, "there is no op 3"),
        ({"heavy": 2, "anchor": [1, 2], "blocks": [2, 1, 2]}, "there are both an anchor and a heavy block"),
        ({"heavy": 4}, "the heavy block is not one stage"),
        ({"heavy": 1, "blocks": [2, 1]}, "the heavy block is not one stage"),
        ({"heavy": 2}, "the blocks on a side of the heavy block have 1 stage, a partition may need 2"),
        (
            {"heavy": 2, "blocks": [2, 1, 2], "nodes": [[[step([0, 1, 0])], None]]},
            "node 0: there are 3 blocks and a heavy one among them, and multipliers for 3",
        ),
        (
            {"heavy": 2, "blocks": [2, 1, 2], "nodes": [[[step([0, 1, 0, 9], [1, 4, 1, 2, 4])], None]]},
            "node 0: there is no block 4",
        ),
        ({"nodes": []}, "there is no case"),
        (with_node(0, [], None), "node 0: its case is not refuted"),
        (with_node(0, [], [3, 1, 1, 2]), "node 0: there is no op 3"),
        (with_node(0, [], [1, 3, 1, 2]), "node 0: there is no boundary 3"),
        (with_node(0, [], [1, 1, 0, 2]), "node 0: its cases do not come after it"),
        (with_node(0, [], [1, 1, 1, 7]), "node 0: its cases do not come after it"),
        (with_node(0, [], [1, 1, 2, 2]), "node 2: its case is not refuted"),
        (with_node(3, [], [1, 2, 5, 5]), "node 5 stands for two cases"),
        (with_node(6, [], None), "node 6: its case is not refuted"),
        (with_node(6, [step([0, 1])], None), "node 6: there are 3 blocks, and multipliers for 2"),
        (with_node(6, [step([0, 1, 0], [2, 2, 1, 2, 4])], None), "node 6: there is no tensor 2 between ops"),
        (with_node(6, [step([0, 1, 0], [1, 4, 1, 2, 4])], None), "node 6: there is no block 4"),
        (with_node(6, [step([0, 1, 0], [1, 2, 3, 2, 4])], None), "node 6: there is no op 3"),
        (with_node(6, [step([0, 1, 0], [1, 2, 1, 0, 4])], None), "node 6: op 0 does not touch tensor 1"),
        (with_node(6, [step([0, 1, 0], [1, 2, 2, 1, 4])], None), "node 6: its case is not refuted"),
        (with_node(6, [[1, [0, 1, 0], [], [[2, 1, 1, 1]], []]], None), "node 6: op 2 does not lead to op 1"),
        (with_node(6, [[1, [0, 1, 0], [], [[1, 3, 1, 1]], []]], None), "node 6: there is no op 3"),
        (with_node(6, [[1, [0, 1, 0], [], [[1, 2, 3, 1]], []]], None), "node 6: there is no boundary 3"),
        (with_node(6, [[1, [0, 1, 0], [], [], [[3, 1, 1]]]], None), "node 6: there is no op 3"),
        (with_node(6, [[1, [0, 1, 0], [], [], [[1, 2, 1]]]], None), "node 6: there are no boundaries 2 and 3"),
        ({"merges": [["pull-down", 1, 2]]}, "merge 0 ('pull-down' of op 'op1' to 'op2'): together they cost"),
    ],
)  # fmt: skip
def test_what_is_false_is_named(change: dict[str, Any], fault: str) -> None:
    """One thing wrong with the proof, and it proves nothing."""
    passed, detail = judge(DEAR, 3, 16, {**PROOF, **change})
    assert not passed
    assert detail.startswith(f"branch-and-bound: {fault}")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"blocks": [1, 0, 1]}, "/lower_bound/proof/blocks/1"),
        ({"nodes": [[[]]]}, "/lower_bound/proof/nodes/0"),
        ({"nodes": [[[[0, [1], [], [], []]], None]]}, "/lower_bound/proof/nodes/0/0/0/0"),
        ({"nodes": [[[[1, [-1], [], [], []]], None]]}, "/lower_bound/proof/nodes/0/0/0/1/0"),
        ({"nodes": [[[[1, [1], [[0, 1, 0, 1, -1]], [], []]], None]]}, "/lower_bound/proof/nodes/0/0/0/2/0/4"),
        ({"nodes": [[[[1, [1], [], [[0, 1, 0, 1]], []]], None]]}, "/lower_bound/proof/nodes/0/0/0/3/0/2"),
        ({"nodes": [[[[1, [1], [], [], [[0, 1, 0]]]], None]]}, "/lower_bound/proof/nodes/0/0/0/4/0/2"),
        ({"nodes": [[[], [1, 1, 1]]]}, "/lower_bound/proof/nodes/0/1"),
        ({"anchor": [1]}, "/lower_bound/proof/anchor"),
        ({"heavy": 0}, "/lower_bound/proof/heavy"),
        ({"more": 1}, "/lower_bound/proof/more"),
    ],
)
def test_what_is_malformed_has_a_place(change: dict[str, Any], place: str) -> None:
    """Multipliers are not negative, and rows have all their items."""
    assert refusal(judge, DEAR, 3, 16, {**PROOF, **change}).where == place


def forged(seed: int, times: int) -> tuple[int, int]:
    """Change the proof of a small problem at random, for one tick more than is true; return how many were refused."""
    graph, system, k, together = random_problem(seed)
    instance, groups = grouped(graph, system, k, together)
    optimum = oracles.brute_force_optimum(graph, system, k, groups)
    if optimum >= oracles.NEVER:
        return 0, 0
    lower = bound(instance, BoundLimits(optimum)).lower
    if lower is None:
        return 0, 0
    pick, refused = random.Random(seed), 0
    whole = json.loads(json.dumps(dict(lower.proof)))
    for _ in range(times):
        proof = whole
        for _ in range(pick.randint(0, 4)):
            proof = mutated(proof, pick)
        try:
            refused += not judge(graph, k, optimum + 1, {**proof, "cutoff": optimum + 1}, system, together)[0]
        except InputError:
            refused += 1
    return refused, times


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "times"), [(range(60), 25), (sampled(range(1000, 1400), 200), 40)])
def test_forged_proofs_are_refused(seeds: range, times: int) -> None:
    """Proofs of the optimum with numbers changed never prove one tick more."""
    results = [forged(seed, times) for seed in seeds]
    assert all(refused == tried for refused, tried in results)
    assert sum(tried for _, tried in results) > 8 * len(seeds) * times // 15


def test_what_is_known_spreads_along_edges_and_boundaries() -> None:
    """An op in the first block takes what leads to it along, one that is not in the last what it leads to."""
    graph = MergedGraph([1] * 4, [0] * 4, [(1, 0, (1,)), (1, 1, (2, 3))], [0, 1, 2, 3])
    paths = Paths(graph)
    nothing = KnownPrefixes((0, 0), (0, 0))
    assert nothing.with_more([0b0010, 0], [0, 0b0100], paths) == KnownPrefixes((0b0011, 0b0011), (0b0100, 0b0100))
    assert nothing.with_more([0b0010, 0], [0, 0b0001], paths) is None
    assert list(members(0b1010)) == [1, 3]
    assert SetWeights([5, 0, 3, 8]).of(0b1101) == 16
