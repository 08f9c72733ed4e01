"""The room for work that devices which differ have within a time: never above the optimum, and checked."""

from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from random_devices import RandomCase, random_case

import mtpp
from mtpp.checker.bounds.simple import check_simple
from mtpp.checker.claim import BoundClaim
from mtpp.inference.certificate import LowerBound
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.device_room import device_room_bound


def drawn(seed: int) -> tuple[RandomCase, Instance]:
    """Return a random case, and its instance with a number of devices that may be used."""
    case = random_case(seed)
    return case, replace(case.instance(), spare=Random(seed).randrange(len(case.devices)))


def claim_of(instance: Instance, lower: LowerBound, **proof: Any) -> BoundClaim:
    """Return the claim of a bound, with other entries of its proof."""
    cost, machine = instance.cost, instance.machine
    by_class = []
    for row, device in zip(cost.work.tolist(), machine.classes, strict=True):
        graph: Any = SimpleNamespace(op_names=instance.op_names, work=row, param_bytes=cost.param_bytes.tolist())
        by_class.append((graph, device.to_document()))
    stated = {**lower.proof, **proof}
    value = stated["cutoff"]
    return BoundClaim(
        *by_class[0], instance.most_used, [], value, stated, by_class=by_class, class_of=list(machine.class_of)
    )


@pytest.mark.parametrize("seed", range(200))
def test_never_above_the_optimum_and_checked(seed: int) -> None:
    """In free order, and so in fixed; one tick more is not proven by the same words."""
    case, instance = drawn(seed)
    lower = device_room_bound(instance)
    assert lower.value <= case.optimum(instance.most_used, free=True)
    assert check_simple(claim_of(instance, lower))[0]
    if lower.value:  # 0: the memories are too small for all ops, which no time makes up for
        passed, said = check_simple(claim_of(instance, lower, cutoff=lower.value + 1))
        assert not passed
        assert "may hold all" in said
    assert not check_simple(claim_of(instance, lower, k=instance.most_used + 1))[0]
    assert not check_simple(claim_of(instance, lower, measure=len(instance.machine.classes)))[0]


def test_speeds_add_up() -> None:
    """Work of 60 on speeds 1, 2 and 3 takes 10, in whole ticks of the fastest 11; on the two best of them 12."""
    plain = (Fraction(1), 0, None, None)
    devices = tuple((Fraction(speed), *plain) for speed in (1, 2, 3))
    case = RandomCase((6,) * 10, (0,) * 10, (), (), devices, "reserve")
    assert device_room_bound(case.instance()).value == 11
    assert device_room_bound(replace(case.instance(), spare=1)).value == 12


def test_memory_leaves_less_room() -> None:
    """A fast device that can hold half an op's parameters does not take all of its work off the slow one."""
    devices = ((Fraction(1), Fraction(1), 0, None, None), (Fraction(9), Fraction(1), 0, 13, None))
    case = RandomCase((90, 90), (10, 20), (), (), devices, "reserve")
    assert device_room_bound(case.instance()).value == 90


GRAPH = {
    "format": "mtpp-graph",
    "version": 1,
    "name": "apart",
    "time_unit": "ps",
    "ops": [{"name": f"op{i}", "work": 6} for i in range(9)],
    "tensors": [],
}


def test_plans_are_verified_by_it(tmp_path: Path) -> None:
    """A plan that meets the bound is optimal at once, and the bound is held to the machine."""
    (tmp_path / "machine.toml").write_text("[[device]]\nname = 'a'\n[[device]]\nname = 'b'\nspeed = 2\n")
    plan = mtpp.partition(mtpp.read(GRAPH, machine=tmp_path / "machine.toml"))
    document = plan.document(embed=True)
    assert (document["bottleneck"], document["optimal"]) == (18, True)
    assert document["lower_bound"]["proof"]["rule"] == "device-room"
    assert mtpp.verify(document).passed
    forged = copy.deepcopy(document)
    forged["machine"]["devices"][1]["speed"] = "3"
    assert not mtpp.verify(forged).passed
