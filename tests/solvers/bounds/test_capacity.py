"""Work of convex sets that devices have time and memory for: the bound is that by brute force, and checked."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from random_devices import NEVER, RandomCase, random_case
from random_neighbours import random_neighbours
from reference_machines import machine_text
from seeds import sampled

import mtpp
from mtpp.checker.bounds.capacity import check_capacity
from mtpp.checker.claim import BoundClaim
from mtpp.inference.certificate import LowerBound
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.capacity import bound as capacity
from mtpp.solvers.bounds.capacity.bound import Effort, capacity_bound
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.recheck.capacity import recheck_capacity

UPPER = 10**6


def drawn(seed: int) -> tuple[RandomCase, Instance]:
    """Return a random case, and its instance in one of the orders with a number of devices that may be used."""
    chance, case = Random(seed), random_case(seed)
    instance = case.instance(free=chance.random() < 0.5)
    return case, replace(instance, spare=chance.randrange(len(case.devices)))


def found(instance: Instance, labels: int = 2**62) -> LowerBound | None:
    """Return the bound as far as it goes, as documents hold it."""
    lower = capacity_bound(instance, 0, UPPER, Effort(lambda: False, labels)).lower
    return lower and replace(lower, proof=json.loads(json.dumps(lower.proof)))


def value(lower: LowerBound | None) -> int:
    """Return the ticks of a bound, 0 where there is none."""
    return 0 if lower is None else lower.value


def capacity_of(case: RandomCase, most: int) -> int:
    """Return the least ticks within which devices have room for all work in convex sets, at most :data:`UPPER`."""
    slowest = min(speed for speed, *_ in case.devices)
    exact = any(speed == 1 for speed, *_ in case.devices) or slowest < 1  # whole multiples of the graph's own work
    measure = case.work if exact else [ceil(work / slowest) for work in case.work]
    downsets = case.downsets()
    stages = {end & ~begin for begin in downsets for end in downsets}
    rows = [[v for v in range(case.ops) if bits >> v & 1] for bits in stages]
    pairs = [
        sorted((case.cost(stage, j), sum(measure[v] for v in stage)) for stage in rows)
        for j in range(len(case.devices))
    ]
    for ticks in sorted({0, *(cost for row in pairs for cost, _ in row if cost < NEVER)}):
        rooms = sorted((max((y for cost, y in row if cost <= ticks), default=0) for row in pairs), reverse=True)
        if sum(rooms[:most]) >= sum(measure):
            return ticks
    return UPPER


def claim_of(instance: Instance, proof: dict[str, Any]) -> BoundClaim:
    """Return the claim of a bound with a proof."""
    cost, machine = instance.cost, instance.machine
    offsets, pins = instance.pin_offsets.tolist(), instance.pins.tolist()
    rows = [pins[begin:end] for begin, end in pairwise(offsets)]
    by_class: list[tuple[Any, dict[str, Any]]] = []
    for c, device in enumerate(machine.classes):
        graph = SimpleNamespace(
            op_count=instance.op_count,
            order=instance.order.tolist(),
            work=cost.work[c].tolist(),
            param_bytes=cost.param_bytes.tolist(),
            transfer=cost.transfer[cost.link_of[c]].tolist(),
            producer=[row[0] for row in rows],
            consumers=[row[1:] for row in rows],
            tensor_bytes=[],
            live_inputs=[],
        )
        graph.holding_states = lambda systems, graph=graph: graph
        rate = device.link.rate
        by_class.append((graph, {**device.to_document(), "bandwidth_bytes_per_s": rate}))
    class_of = list(machine.class_of)
    return BoundClaim(*by_class[0], proof["k"], [], proof["cutoff"], proof, by_class=by_class, class_of=class_of)


def holds(instance: Instance, proof: dict[str, Any]) -> bool:
    """Return whether a proof is right, by its sum and a search for each room."""
    return check_capacity(claim_of(instance, proof), lambda claim, _: recheck_capacity(claim))[0] is True


@pytest.mark.parametrize("seed", sampled(range(10_000), 200))
def test_is_the_capacity_and_checked(seed: int) -> None:
    """Where no bytes are shared or live; else no more. No other number proves one tick more."""
    case, instance = drawn(seed)
    lower, due = found(instance), capacity_of(case, instance.most_used)
    plain = not case.weights and (case.peak == "reserve" or not instance.memory_matters)
    assert value(lower) == due if plain else value(lower) <= due
    optimum = case.optimum(instance.most_used, free=instance.machine.free)
    assert value(lower) <= optimum
    if lower is None:
        return
    assert holds(instance, lower.proof)
    if not plain or lower.value == UPPER:
        return
    chance = Random(seed)
    for _ in range(5):
        forged = copy.deepcopy(lower.proof)
        forged["cutoff"] += 1
        forged["rooms"][chance.randrange(len(forged["rooms"]))] += chance.choice([-40, -5, -1, 0, 1, 5])
        forged["rooms"] = [max(0, room) for room in forged["rooms"]]
        forged["counted"] = [chance.choice(["both", "time", "bytes"]) for _ in forged["rooms"]]
        assert not holds(instance, forged)
    for key, other in (("measure", 9), ("rooms", [0] * 9), ("counted", []), ("forgotten", [99])):
        assert not holds(instance, {**lower.proof, key: other})
    assert not check_capacity(replace(claim_of(instance, lower.proof), k=lower.proof["k"] + 1), None)[0]


@pytest.mark.parametrize("seed", sampled(range(5_000), 100))
def test_forgotten_tensors_and_early_ends_leave_bounds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left out: it is at most the capacity, and checked."""
    case, instance = drawn(seed)
    due = capacity_of(case, instance.most_used)
    chance = Random(seed)
    for widths, passes, labels in ((2, 99, 99), (20, 20, 99), (20, 99, 40)):
        monkeypatch.setattr(capacity, "_WIDTHS", (chance.randint(0, widths),))
        monkeypatch.setattr(capacity, "_LABELS", (chance.randint(4, passes),))
        lower = found(instance, labels)
        assert value(lower) <= due
        assert lower is None or holds(instance, lower.proof)


@pytest.mark.parametrize("seed", sampled(range(5_000), 100))
def test_neighbours_pay_over_their_best_links_at_least(seed: int) -> None:
    """Tensors that pass from neighbour to neighbour: never above the optimum, and checked."""
    chance, case = Random(seed), random_neighbours(seed)
    free = chance.random() < 0.5
    most = chance.randint(1, case.count)
    instance = case.instance(most, free=free)
    lower = found(instance)
    assert value(lower) <= case.optimum(most, free=free)
    assert lower is None or holds(instance, lower.proof)


def test_equal_devices() -> None:
    """Three ops in a row cannot be halved: two equal devices need the time of two ops and of a tensor."""
    tensors = ((0, (1,), 5, 0), (1, (2,), 5, 0))
    device = (Fraction(1), Fraction(1), 0, None, None)
    instance = RandomCase((30, 30, 30), (0, 0, 0), tensors, (), (device, device), "reserve").instance()
    lower = capacity.bound(instance, BoundLimits(95)).lower
    assert lower is not None
    assert lower.value == 65
    assert holds(instance, lower.proof)


def test_one_device_that_holds_all() -> None:
    """A device that holds everything in the time has room for all: nothing is refuted from there on."""
    devices = ((Fraction(100), Fraction(1), 0, None, None), (Fraction(1), Fraction(1), 0, None, None))
    case = RandomCase((100, 100, 100), (0, 0, 0), ((0, (1, 2), 60, 0),), (), devices, "reserve")
    assert value(found(case.instance())) == 3


def test_work_that_takes_no_time() -> None:
    """An op that takes no time on some device is no more than itself."""
    instance = replace(random_case(0).instance(), spare=0)
    cost = replace(instance.cost, work=instance.cost.work.copy())
    cost.work[-1] = 0
    lower = found(replace(instance, cost=cost))
    assert lower is None or holds(replace(instance, cost=cost), lower.proof)


def test_reference_values(shared_data: Path, shared_reference: Path, tmp_path: Path) -> None:
    """The capacity of real graphs on machines is that of the reference, and tables with it are verified."""
    reference = json.loads((shared_reference / "machine.json").read_text())
    for name, by_machine in reference["graphs"].items():
        path = shared_data / "instances" / f"{name}.json"
        params = sum(op.get("param_bytes", 0) for op in json.loads(path.read_text())["ops"])
        for machine, values in by_machine.items():
            file = tmp_path / f"{name}-{machine}.toml"
            file.write_text(machine_text(reference["about"]["machines"][machine], "free", params))
            table = mtpp.bound(mtpp.read(path, machine=file), bounds="capacity")
            assert {row.bound: row.ticks for row in table}["capacity"] == values["capacity"]
            assert mtpp.verify(table.document(), model=path).passed
