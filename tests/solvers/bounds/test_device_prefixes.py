"""Devices that cannot come first for their memories: bounds never above the optimum, and checked."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from random_devices import RandomCase, random_case
from seeds import sampled

import mtpp
from mtpp.checker.bounds.crossings import check_crossings
from mtpp.checker.claim import BoundClaim
from mtpp.inference.certificate import LowerBound
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.device_prefixes import device_prefixes_bound

UPPER = 10**6


def drawn(seed: int) -> tuple[RandomCase, Instance]:
    """Return a random case with limits on memory, and its instance in one of the orders."""
    chance, case = Random(seed), random_case(seed)
    devices = []
    for speed, link, latency, limit, fast in case.devices:
        low = chance.randint(3, 3 + sum(case.params) + sum(size for size, _ in case.weights))
        devices.append((speed, link, latency, limit if limit is None and chance.random() < 0.2 else low, fast))
    case = replace(case, devices=tuple(devices))
    return case, case.instance(free=chance.random() < 0.5)


def claim_of(instance: Instance, proof: dict[str, Any], value: int) -> BoundClaim:
    """Return the claim of a bound with a proof."""
    cost, machine = instance.cost, instance.machine
    pins = [row.tolist() for row in (instance.pin_offsets, instance.pins)]
    rows = [pins[1][begin:end] for begin, end in zip(pins[0], pins[0][1:], strict=False)]
    by_class: list[tuple[Any, dict[str, Any]]] = []
    for c, device in enumerate(machine.classes):
        graph = SimpleNamespace(
            op_names=instance.op_names,
            work=cost.work[c].tolist(),
            param_bytes=cost.param_bytes.tolist(),
            transfer=cost.transfer[cost.link_of[c]].tolist(),
            producer=[row[0] for row in rows],
            consumers=[row[1:] for row in rows],
            edges=lambda: [(t, row[0], v) for t, row in enumerate(rows) for v in row[1:]],
        )
        by_class.append((graph, device.to_document()))
    class_of = list(machine.class_of)
    return BoundClaim(*by_class[0], instance.most_used, [], value, proof, by_class=by_class, class_of=class_of)


def found(instance: Instance) -> LowerBound | None:
    """Return the bound as far as it goes, as documents hold it."""
    lower = device_prefixes_bound(instance, 0, UPPER, lambda: False)
    return lower and replace(lower, proof=json.loads(json.dumps(lower.proof)))


@pytest.mark.parametrize("seed", sampled(range(10_000), 200))
def test_never_above_the_optimum_and_checked(seed: int) -> None:
    """One tick more is not proven by the same words, and by no other number in them."""
    case, instance = drawn(seed)
    lower = found(instance)
    if lower is None:
        return
    optimum = case.optimum(instance.most_used, free=instance.machine.free)
    assert lower.value <= optimum
    assert check_crossings(claim_of(instance, lower.proof, lower.value))[0]
    if optimum > UPPER:  # there is no plan: any cutoff is right
        return
    chance = Random(seed)
    for _ in range(10):
        forged = copy.deepcopy(lower.proof)
        forged["cutoff"] = optimum + 1
        for one in forged["knapsacks"]:
            for case_ in one["cases"]:
                if isinstance(case_, dict):
                    key = chance.choice(["work", "bytes"])
                    case_[key] = max(1, case_[key] + chance.choice([-1, 1, 5]))
                    rows = chance.choice([case_["flow"], case_["drawn"]])
                    if rows:
                        rows[0][-1] += chance.choice([-1, 1])
        assert not check_crossings(claim_of(instance, forged, optimum + 1))[0]


def test_work_that_has_to_come_first() -> None:
    """A slow device that has to hold the weights in the middle takes the work before them too."""
    devices = ((Fraction(1), Fraction(1), 0, 20, None), (Fraction(10), Fraction(1), 0, 10, None))
    tensors = tuple((v, (v + 1,), 0, 0) for v in range(5))
    case = RandomCase((100, 100, 100, 1, 1, 1), (0, 0, 0, 10, 10, 10), tensors, (), devices, "order")
    lower = found(case.instance())
    assert lower is not None
    assert lower.value == case.optimum(2, free=False) == 302


def test_plans_are_verified_by_it(tmp_path: Path) -> None:
    """A proof of a plan is held to the memories of its devices."""
    ops = [{"name": f"op{v}", "work": 100 if v < 12 else 1, "param_bytes": 0 if v < 12 else 10} for v in range(18)]
    tensors = [{"name": f"t{v}", "producer": f"op{v}", "consumers": [f"op{v + 1}"], "transfer": 0} for v in range(17)]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps", "ops": ops, "tensors": tensors}
    machine = tmp_path / "machine.toml"
    machine.write_text("[[device]]\nname = 'a'\nmemory = '40B'\n[[device]]\nname = 'b'\nspeed = 10\nmemory = '30B'\n")
    read = mtpp.read(graph, machine=machine)
    instance = Instance.build(read.graph, read.machine)
    lower = found(instance)
    assert lower is not None
    document = json.loads(json.dumps(mtpp.partition(read).document(embed=True)))
    assert lower.value == document["bottleneck"] == 1203
    document["lower_bound"] = {
        "value": lower.value, "method": lower.method, "tier": str(lower.tier), "proof": lower.proof
    }  # fmt: skip
    assert mtpp.verify(document).verdict == "ok"
    document["machine"]["devices"][1]["stage_memory_bytes"] = 60
    assert mtpp.verify(document).verdict == "false"
