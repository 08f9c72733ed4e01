"""Proofs by scans on devices that differ: sums by hand, and the faults that are named."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from flow_proofs import judged
from graph_strategies import LINK
from random_devices import RandomCase
from scanned_devices import judged_on

from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op

ONE = Fraction(1)

DEVICES = tuple((speed, ONE, 0, None, None) for speed in (Fraction(1), Fraction(3), Fraction(1)))

EVEN = RandomCase((12,) * 10, (0,) * 10, (), (), DEVICES, "reserve")
"""Ten ops of 12 ticks on three devices, the second three times as fast: 6 of them there, 2 on each other one."""

SHARES: dict[str, Any] = {
    "order": "fixed",
    "cutoff": 24,
    "stages": 3,
    "streamed": [False, False],
    "scan": list(range(10)),
    "forgotten": [],
    "weights": [[op, 1] for op in range(10)],
    "capacities": [1, 5],
    "slopes": [[0, 0], [1, 0]],
}
"""Below 24 ticks the slow ones hold one op each, and the fast one five: 7 of 10."""

CHAIN = RandomCase((12,) * 10, (0,) * 10, tuple((v, (v + 1,), 1, 0) for v in range(9)), (), DEVICES, "reserve")
"""The same in a chain, whose tensors take a tick."""

STEP: dict[str, Any] = {
    "weights": [[op, [1, 1, 1]] for op in range(10)],
    "slopes": [[0, 0], [1, 0], [1, 0]],
    "floors": [0, 0, 0],
}

PROOF: dict[str, Any] = {
    **{key: SHARES[key] for key in ("order", "stages", "streamed", "scan", "forgotten")},
    "cutoff": 26,
    "tree": {"steps": [STEP], "branch": None},
}


def judge(proof: dict[str, Any], *, case: RandomCase = EVEN, most: int = 3, free: bool = False) -> tuple[bool, str]:
    """Check a proof of either bound."""
    method = "convex-weights" if "capacities" in proof else "position-weights"
    return judged_on(case, case.machine(free=free), most, method, proof["cutoff"], proof)


def test_capacities_of_classes() -> None:
    """Two devices of one op, and one of five, are too few for ten; of two devices the largest count."""
    held = (
        "convex-weights: convex sets below 24 ticks hold no more than 7 of the ops' weight of 10 on 3 devices together"
    )
    assert judge(SHARES) == (True, held)
    assert judge({**SHARES, "order": "free"}, free=True)[0]
    assert EVEN.optimum(3, free=False) == EVEN.optimum(3, free=True) == 24
    assert not judge({**SHARES, "cutoff": 25, "capacities": [2, 6]})[0]
    assert judge({**SHARES, "capacities": [2, 6], "stages": 2, "weights": [[0, 2], *SHARES["weights"][1:]]}, most=2)[0]


def test_stages_on_their_devices() -> None:
    """Of a chain the first device holds two ops below 26 ticks, and so the last one; the second one has no six."""
    assert judge(PROOF, case=CHAIN) == (
        True,
        "position-weights: no 3 stages on these devices below 26 ticks are worth enough, by 1 step in 1 case",
    )
    assert CHAIN.optimum(3, free=False) == 26
    assert not judge({**PROOF, "cutoff": 27}, case=CHAIN)[0]


@pytest.mark.parametrize(
    ("proof", "change", "fault"),
    [
        (SHARES, {"stages": 2}, "the proof is for 2 stages, the claim for 3"),
        (
            SHARES,
            {"streamed": [False]},
            "the proof does not say of each class of devices whether parameters are streamed",
        ),
        (SHARES, {"streamed": [False, True]}, "nothing is streamed without a fast memory"),
        (SHARES, {"capacities": [1]}, "there is not one capacity and one slope for each class of devices"),
        (SHARES, {"slopes": [[0, 0]] * 3}, "there is not one capacity and one slope for each class of devices"),
        (SHARES, {"capacities": [2, 6]}, "the ops have 10 in all, and 3 devices may hold 10"),
        (SHARES, {"capacities": [0, 5]}, "a convex set may hold 1, more than 0"),
        (SHARES, {"capacities": [1, 4]}, "a convex set may hold 5, more than 4"),
        (PROOF, {"stages": 2, "tree": {"steps": [], "branch": None}}, "the proof is for 2 stages, the claim for 3"),
        (PROOF, {"streamed": []}, "the proof does not say of each class of devices whether parameters are streamed"),
        (PROOF, {"tree": {"steps": [], "branch": None}}, "case 0 is not refuted: no weights"),
    ],
)
def test_faults_are_named(proof: dict[str, Any], change: dict[str, Any], fault: str) -> None:
    """The first thing that is wrong is said."""
    passed, said = judge({**proof, **change}, case=EVEN if proof is SHARES else CHAIN)
    assert not passed
    assert said.endswith(f"-weights: {fault}")


def test_position_weights_are_of_a_fixed_order() -> None:
    """Stages on any device are another problem, and capacities are no single one."""
    for proof, change in ((PROOF, {"order": "free"}), (PROOF, {"streamed": False}), (SHARES, {"capacity": 1})):
        with pytest.raises(InputError):
            judge({**proof, **change}, free=change.get("order") == "free")
    assert not judge(PROOF, case=CHAIN, free=True)[0]
    assert not judge(SHARES, free=True)[0]


LIMITED = replace(
    EVEN,
    params=(1,) * 10,
    devices=tuple((*row[:3], limit, None) for row, limit in zip(DEVICES, (9, 7, 9), strict=True)),
)
"""The reserve takes 3 bytes, so that the fast device holds 4 of the ops, and the slow ones need 3 each."""


def test_memory_has_a_price() -> None:
    """A stage pays for the bytes of its ops in place of its ticks, up to the limit less the reserve."""
    proof = {**SHARES, "cutoff": 36, "capacities": [2, 4], "prices": [[1, 0], [0, 1]]}
    assert judge(proof, case=LIMITED)[0]
    assert LIMITED.optimum(3, free=False) == 36
    assert not judge({**proof, "cutoff": 37}, case=LIMITED)[0]
    assert not judge({**proof, "capacities": [2, 3]}, case=LIMITED)[0]
    assert judge({**proof, "prices": [[2, 0], [0, 5]]}, case=LIMITED)[0]
    assert judge({**proof, "prices": [[1, 0], [0, 0]]}, case=LIMITED)[1].endswith(
        "a convex set may hold 10, more than 4"
    )
    assert judge({**proof, "prices": [[1, 0]]}, case=LIMITED)[1].endswith(
        "there are not prices for each class of devices"
    )
    assert judge({**proof, "prices": [[1, 0], [0, 1]]})[1].endswith("memory without a limit has a price")
    with pytest.raises(InputError):
        judge({**proof, "prices": [[1, 0], [0, -1]]}, case=LIMITED)


def test_memory_of_equal_devices_has_a_price() -> None:
    """Three ops of 5 bytes do not fit into two stages of 9 bytes, of which a reserve takes one."""
    graph = CostGraph.build(name="three", time_unit="ps", ops=[Op(f"op{v}", 2, None, 5) for v in range(3)], tensors=[])
    system = replace(LINK, memory_bytes=9, activation_reserve_bytes=1)
    proof = {
        "cutoff": 99, "stages": 2, "streamed": False, "scan": [0, 1, 2], "forgotten": [],
        "weights": [[0, 1], [1, 1], [2, 1]], "capacity": 1, "slope": [0, 0], "prices": [[0, 1]],
    }  # fmt: skip
    assert judged("convex-weights", graph, 2, 99, proof, system)[0]
    assert not judged("convex-weights", graph, 2, 99, {**proof, "prices": [[1, 0]]}, system)[0]
    assert not judged("convex-weights", graph, 2, 99, proof, replace(system, memory_bytes=11))[0]
    assert not judged("convex-weights", graph, 2, 99, proof, LINK)[0]


def test_devices_that_may_be_left_out() -> None:
    """Position weights have a stage for each device, however few may be used."""
    assert judge(PROOF, case=CHAIN, most=2)[0]
    fewer = {**PROOF, "stages": 2, "tree": {"steps": [], "branch": None}}
    said = "position-weights: the proof is for 2 stages, the claim for 3"
    assert judge(fewer, case=CHAIN, most=2) == (False, said)
