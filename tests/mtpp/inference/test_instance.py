"""Instance: costs become integers once, exactly, and cannot overflow int64."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import oracles
import pytest
from graph_strategies import problems
from hypothesis import given

from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device

SYSTEM = load_device()


def _graph(unit: str, work: Fraction | int, transfer: Fraction | int | None = 1, size: int | None = None) -> CostGraph:
    return CostGraph.build(
        name="g", time_unit=unit, ops=[Op("a", work), Op("b", 1)], tensors=[Tensor("t", "a", ("b",), size, transfer)]
    )


@given(problems())
def test_ticks_equal_the_definition(problem: tuple[CostGraph, Device, int]) -> None:
    """Ticks equal an independent conversion of every cost."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    ticks = oracles.to_ticks(graph, system, k)
    assert instance.ticks_per_unit == ticks.per_unit
    assert instance.work.tolist() == list(ticks.work)
    assert instance.transfer.tolist() == list(ticks.transfer)


def test_the_unit_of_time_does_not_matter() -> None:
    """One graph written in s, ms, µs, ns and ps gives the same instance."""
    seconds = Fraction("0.000001234567890123")
    instances = [
        Instance.build(
            CostGraph.build(
                name="g",
                time_unit=unit,
                ops=[Op("a", seconds * 10**power), Op("b", seconds * 3 * 10**power)],
                tensors=[Tensor("t", "a", ("b",), transfer=seconds * 10**power / 7 * 7)],
            ),
            Machine.uniform(4, SYSTEM),
        )
        for unit, power in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9), ("ps", 12))
    ]
    assert {tuple(instance.work.tolist()) for instance in instances} == {(1234568, 3703704)}
    assert {tuple(instance.transfer.tolist()) for instance in instances} == {(1234568,)}


def test_bytes_go_over_the_link_rounded_up() -> None:
    """A tensor of 1 byte at 25 GB/s takes 40 ps; at 3 B/s a third of a second, rounded up to a picosecond."""
    assert Instance.build(_graph("ms", 1, None, 1), Machine.uniform(2, SYSTEM)).transfer.tolist() == [40]
    slow = Device("slow", 1, 1, Link(3))
    assert Instance.build(_graph("ms", 1, None, 1), Machine.uniform(2, slow)).transfer.tolist() == [333_333_333_334]


def test_a_given_transfer_wins_over_bytes() -> None:
    """The transfer that a tensor carries is used even where its bytes are known."""
    assert Instance.build(_graph("ns", 1, 5, 10**9), Machine.uniform(2, SYSTEM)).transfer.tolist() == [5000]


@pytest.mark.parametrize(("work", "k", "scale"), [(3, 5, 1), (Fraction(1, 2), 1, 10**15), (Fraction(1, 2), 8, 10**14)])
def test_abstract_costs_keep_as_many_digits_as_fit(work: Fraction | int, k: int, scale: int) -> None:
    """Integers stay as they are; fractions get the largest power of ten with k times the total below 2^53."""
    instance = Instance.build(_graph("1", work), Machine.uniform(k, SYSTEM))
    assert instance.ticks_per_unit == scale
    total = instance.work.sum() + instance.transfer.sum()
    assert scale == 1 or (k * total < 2**53 <= k * total * 10)


@pytest.mark.parametrize(("work", "k"), [(2**62, 1), (2**61, 2), (Fraction("4611686.018427388"), 1)])
def test_totals_that_would_wrap_are_refused(work: Fraction | int, k: int) -> None:
    """The total times k must stay below 2^62 ticks."""
    with pytest.raises(InputError, match="too large"):
        Instance.build(_graph("s" if isinstance(work, Fraction) else "ps", work), Machine.uniform(k, SYSTEM))


@pytest.mark.parametrize("peak", ["reserve", "order"])
def test_sizes_that_would_wrap_are_refused(peak: str) -> None:
    """Everything that could be in one stage together must stay below 2^61 bytes."""
    graph = CostGraph.build(
        name="g",
        time_unit="1",
        ops=[Op("a", 1, param_bytes=2**60), Op("b", 1)],
        tensors=[Tensor("t", "a", ("b",), 2**60, 1)],
    )
    system = Device("s", 1, 1, Link(1), activation_reserve_bytes=2**60, peak=peak)
    with pytest.raises(InputError, match="sizes are too large"):
        Instance.build(graph, Machine.uniform(2, system))
    Instance.build(graph, Machine.uniform(2, Device("s", 1, 1, Link(1), activation_reserve_bytes=2**60 - 1)))


def test_a_fast_memory_needs_a_time_unit() -> None:
    """Overflow is a time, which an abstract graph does not know."""
    with pytest.raises(InputError, match="time unit"):
        Instance.build(_graph("1", 1), Machine.uniform(2, Device("s", 1, 1, Link(1), fast_memory_bytes=5)))


def test_a_memory_matters_if_not_everything_fits() -> None:
    """Parameters and the reserve, or all tensors, against either memory; only then can peaks in order change a cost."""
    ops = [Op("a", 1, param_bytes=30), Op("b", 1)]
    graph = CostGraph.build(name="g", time_unit="ms", ops=ops, tensors=[Tensor("t", "a", ("b",), 7)])
    for memory in ("fast_memory_bytes", "memory_bytes"):
        for peak, needed in (("reserve", 35), ("order", 37)):
            for size in (needed, needed - 1):
                system = Device("s", 1, 1, Link(1), activation_reserve_bytes=5, peak=peak)
                instance = Instance.build(graph, Machine.uniform(2, replace(system, **{memory: size})))
                assert instance.most_bytes == needed
                assert instance.memory_matters is (size < needed)
                assert instance.peaks_in_order is (size < needed and peak == "order")
    assert not Instance.build(graph, Machine.uniform(2, SYSTEM)).memory_matters


def test_k_must_be_positive() -> None:
    """There is no partition into zero stages."""
    with pytest.raises(InputError, match="at least 1"):
        Instance.build(_graph("1", 1), Machine.uniform(0, SYSTEM))
