"""The least factor by which limits on memory have to grow, against brute force, and how errors tell it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

import pytest
from graph_strategies import chain
from random_devices import NEVER, RandomCase, random_case
from seeds import sampled

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.host.progress import Silent
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.replicas.partition import replicating
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.memory_growth import least_growth, with_growth

LIMITS = SearchLimits(evaluations=1)


def _with_limits(case: RandomCase, limits: list[int]) -> RandomCase:
    rows = zip(case.devices, limits, strict=True)
    return replace(case, devices=tuple((*row[:3], limit, row[4]) for row, limit in rows))


@pytest.mark.parametrize("seed", sampled(range(200), 100))
def test_the_least_factor_is_that_of_brute_force(seed: int) -> None:
    """At the factor there is a plan, with limits a byte below what it gives there is none; replicas change nothing."""
    chance, case = Random(seed), random_case(seed)
    free, most = chance.random() < 0.5, chance.randint(1, len(case.devices))
    least = 3 if case.peak == "reserve" else 1
    limits = [max(least, chance.randint(1, 12)) for _ in case.devices]
    case = _with_limits(case, limits)
    instance = case.instance(most, free=free)
    growth = least_growth(instance, LIMITS)
    assert growth is not None
    assert least_growth(replicating(instance), LIMITS) == growth
    if case.optimum(most, free=free) < NEVER:
        assert growth.factor <= 1
        return
    assert growth.proven
    assert growth.factor > 1
    assert growth.factor == Fraction(growth.held_bytes, growth.limit_bytes)
    assert growth.limit_bytes == limits[growth.device]
    grown = _with_limits(case, [int(limit * growth.factor) for limit in limits])
    assert grown.optimum(most, free=free) < NEVER
    short = _with_limits(case, [ceil(limit * growth.factor) - 1 for limit in limits])
    assert short.optimum(most, free=free) == NEVER


class _Listener(Silent):
    """Keeps the names of phases and the bottlenecks that it is told."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.bottlenecks: list[int] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def incumbent(self, bottleneck: int) -> None:
        self.bottlenecks.append(bottleneck)


def test_progress_shows_no_bottleneck_of_larger_limits() -> None:
    """Partitions found under larger limits take no time: the listener hears of the search, not of their bottlenecks."""
    listener = _Listener()
    assert least_growth(_instance([100, 50], [90, 90, 90]), replace(LIMITS, observer=listener)) is not None
    assert listener.phases == ["memory that would do"]
    assert not listener.bottlenecks


def _instance(limits: list[int | None], params: list[int]) -> Instance:
    machine = Machine.of_devices(len(limits), bandwidth_bytes_per_s=10**9, memory_bytes=limits)
    ops = [Op(f"op{i}", 10, param_bytes=size) for i, size in enumerate(params)]
    tensors = [Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), transfer=1) for i in range(len(params) - 1)]
    return Instance.build(CostGraph.build(name="chain", time_unit="ps", ops=ops, tensors=tensors), machine)


def test_nothing_grows_where_a_device_has_no_limit_or_all_are_zero() -> None:
    """Everything fits on the first, and no factor makes more of nothing."""
    unlimited = Machine.of_devices(2, bandwidth_bytes_per_s=10**9)
    graph = chain([10, 10], [1], "ps")
    assert least_growth(Instance.build(graph, unlimited), LIMITS) is None


def test_a_device_without_memory_stays_so() -> None:
    """Limits just too small for a partition are at least zero."""
    devices = tuple((Fraction(1), Fraction(1), 0, limit, None) for limit in (100, 0))
    case = RandomCase((10, 10), (90, 90), ((0, (1,), 1, 1),), (), devices, "order")
    growth = least_growth(case.instance(free=True), LIMITS)
    assert growth is not None
    assert (growth.factor, growth.proven) == (Fraction(181, 100), True)


def test_errors_tell_the_factor() -> None:
    """Of equal devices as a limit for each, of others with the fullest device; other errors stay as they are."""
    equal = _instance([100, 100], [90, 90, 90])
    error = with_growth(Infeasible("proven infeasible: x", parameter="stage_memory", remedy="more"), equal, LIMITS)
    assert str(error) == (
        "stage_memory: proven infeasible: x; 180 bytes (180 B) for each would do, × 1.800 (the least, proven); more"
    )
    tiny = with_growth(Infeasible("proven infeasible: x", parameter="stage_memory"), _instance([1], [90, 9000]), LIMITS)
    assert "for each would do, × 9,090 (the least, proven)" in tiny.problem
    other = _instance([100, 50], [90, 90, 90])
    error = with_growth(Infeasible("proven infeasible: x", parameter="machine"), other, LIMITS)
    assert error.problem == (
        "proven infeasible: x; all limits × 1.800 would do (the least, proven): device 'd0', the fullest then, would "
        "hold 180 bytes, its limit is 100"
    )
    latency = Infeasible("none", parameter="max_latency")
    assert with_growth(latency, other, LIMITS) is latency
    past = SearchLimits(evaluations=1, deadline=Deadline(0))
    error = Infeasible("none", parameter="machine")
    assert with_growth(error, other, past) is error
