"""What a stage pays for its memory: kernels against big integers and the instance's own arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.stage_cost.cost_arrays import memory_arrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, NEVER, ceil_scaled, memory_ticks, most_held

BANDWIDTHS = [1, 7, 25 * 10**9, 25 * 2**30, 999_999_999_989, 2**41 - 1, 2039 * 10**9]


def _instance(system: Device) -> Instance:
    graph = CostGraph.build(name="g", time_unit="ps", ops=[Op("a", 1, "", 5 * 10**5)], tensors=[])
    return Instance.build(graph, Machine.uniform(1, system))


@given(st.integers(0, 2**44), st.integers(1, 10**12), st.integers(1, 2**40), st.integers(1, 20))
def test_ceil_scaled(count: int, numerator: int, denominator: int, chunk: int) -> None:
    """Long division in int64 equals big integers wherever the result fits."""
    expected = -(-count * numerator // denominator)
    if expected < 2**62 and count // denominator * numerator < 2**62:
        assert ceil_scaled(count, numerator, denominator, chunk) == expected


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_overflow_of_real_bandwidths(bandwidth: int) -> None:
    """Overflow in the kernels equals the instance's, for bandwidths that share few factors with 10^12."""
    instance = _instance(Device("s", 1, 1, Link(bandwidth), 1000, 300, memory_bytes=400_000))
    memory = memory_arrays(instance)
    for params in (0, 699, 700, 701, 12_345, 399_700):
        assert memory_ticks(params, 300, EQUAL, memory) == instance.cost.overflow(params, 300)
    assert memory_ticks(399_701, 300, EQUAL, memory) == NEVER


def test_without_a_memory_nothing_is_paid() -> None:
    """No fast memory: no overflow; no limit: never too much; both alone work."""
    assert memory_ticks(2**60, 2**60, EQUAL, memory_arrays(_instance(Device("s", 1, 1, Link(1))))) == 0
    limited = memory_arrays(_instance(Device("s", 1, 1, Link(1), memory_bytes=10)))
    assert [memory_ticks(params, 4, EQUAL, limited) for params in (6, 7)] == [0, NEVER]
    fast = memory_arrays(_instance(Device("s", 1, 1, Link(10**12), fast_memory_bytes=10)))
    assert [memory_ticks(params, 4, EQUAL, fast) for params in (6, 7, 106)] == [0, 1, 100]


@given(
    st.sampled_from(BANDWIDTHS), st.integers(0, 2**58), st.none() | st.integers(0, 2**40), st.none() | st.just(2**41)
)
def test_most_held_is_never_too_little(bandwidth: int, cutoff: int, fast: int | None, limit: int | None) -> None:
    """A stage that needs a byte more pays the cutoff, or is above the limit."""
    memory = memory_arrays(_instance(Device("s", 1, 1, Link(bandwidth), fast, memory_bytes=limit)))
    held = most_held(cutoff, EQUAL, memory)
    assert held >= min(fast if fast is not None else 2**61, limit or 2**61)
    if held < 2**41:
        assert memory_ticks(held + 1, 0, EQUAL, memory) >= cutoff
