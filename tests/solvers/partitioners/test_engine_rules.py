"""Rules of engines: ranges of the file's order by ops, by memory, and device after device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from random_devices import random_case

from mtpp.errors import Infeasible, InputError
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.inference.weights import Weight
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine
from mtpp.names import ENGINE_RULES
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.registry import partitioner

PLAIN = Device("d", 10**12, 10**12, Link(10**12))


def stages_of(
    rule: str,
    params: Sequence[int],
    memory: Sequence[int | None],
    most_used: int | None = None,
    weights: Sequence[Weight] = (),
) -> list[int]:
    """Return the stages of a chain of ops without tensors, of that many bytes each, by a rule."""
    ops = [Op(f"o{v}", 10 + v, param_bytes=size) for v, size in enumerate(params)]
    graph = CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=[], weights=weights)
    devices = [replace(PLAIN, memory_bytes=size, speed=i + 1) for i, size in enumerate(memory)]
    machine = Machine(tuple(DeviceGroup(one, 1) for one in devices), (Level(len(devices), PLAIN.link),))
    instance = Instance.build(graph, machine, most_used=most_used)
    found = partitioner(rule).load()(instance, SearchLimits(evaluations=1))
    assert found.found_by == rule
    stages: list[int] = found.partition.assignment.tolist()
    work = [sum(-(-(10 + v) // (i + 1)) for v, stage in enumerate(stages) if stage == i) for i in range(len(devices))]
    assert found.bottleneck == max(work)
    return stages


def test_even_gives_longer_ranges_first() -> None:
    """Seven ops on three devices: three, two, two; on two of them: four and three."""
    assert stages_of("even", [0] * 7, [None] * 3) == [0, 0, 0, 1, 1, 2, 2]
    assert stages_of("even", [0] * 7, [None] * 3, most_used=2) == [0, 0, 0, 0, 1, 1, 1]
    assert stages_of("even", [0] * 2, [None] * 3) == [0, 1]


def test_memory_divides_ops_by_the_share_of_each_device() -> None:
    """Ten ops on devices of 10, 20 and 50 bytes end at round(10/8), round(30/8) and 10."""
    assert stages_of("memory", [1] * 10, [10, 20, 50]) == [0] + [1] * 3 + [2] * 6


def test_fill_fills_one_device_after_the_other() -> None:
    """Each holds what fits, the last the rest; one that can hold nothing is left out."""
    assert stages_of("fill", [4, 4, 4, 4, 4], [9, 3, 12]) == [0, 0, 2, 2, 2]
    assert stages_of("fill", [4, 4, 4], [4, None, 4]) == [0, 1, 1]
    assert stages_of("fill", [4, 4, 4], [12, 4, 4]) == [0, 0, 0]


def test_fill_counts_a_shared_weight_once() -> None:
    """Three ops that read eight bytes fit together into what holds eight, and one byte each."""
    shared = [Weight("w", 8, ("o0", "o1", "o2"))]
    assert stages_of("fill", [1, 1, 1], [10, 20], weights=shared) == [0, 0, 1]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("rule", ENGINE_RULES)
def test_the_bottleneck_is_the_real_one(rule: str, seed: int) -> None:
    """On random graphs and devices; a rule that breaks a limit has no partition."""
    case = random_case(seed)
    count = len(case.devices)
    try:
        found = partitioner(rule).load()(case.instance(), SearchLimits(evaluations=1))
    except (Infeasible, InputError):
        return
    assert found.bottleneck == case.bottleneck(found.partition, range(count))
    assert found.bottleneck >= case.optimum(count, free=False)


def test_without_limits_there_is_nothing_to_go_by() -> None:
    """One line says so."""
    for rule in ("memory", "fill"):
        with pytest.raises(InputError, match="none has a limit"):
            stages_of(rule, [1, 1], [None, None])
    with pytest.raises(InputError, match="a limit on the memory of each"):
        stages_of("memory", [1, 1], [None, 4])


def test_a_rule_that_breaks_a_limit_has_no_partition() -> None:
    """Even ranges do not look at memory, and the last device of fill has to hold the rest."""
    for rule in ("even", "fill"):
        with pytest.raises(Infeasible, match="exceeds the memory of its device"):
            stages_of(rule, [4] * 6, [8, 8])
