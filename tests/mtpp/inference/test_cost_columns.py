"""Costs in a table: one unit for all, and nothing above zero that reads as zero."""

from __future__ import annotations

from fractions import Fraction

import pytest
from graph_strategies import chain

from mtpp.inference.cost_columns import CostColumns
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.units import format_share


@pytest.mark.parametrize(
    ("unit", "work", "shown", "largest"),
    [
        ("ms", 12.5, "ms", "12.5"), ("ms", 2, "µs", "2,000.0"), ("s", 10, "s", "10.0"), ("ps", 3, "ps", "3.0"),
        ("1", 12.5, "", "12.5"), ("1", 3, "", "3.0"), ("1", 7.25, "", "7.250"), ("1", 0.5, "", "0.5000"),
        ("1", 0.0625, "", "0.06250"), ("1", Fraction("0.0095"), "10⁻⁶", "9,500.0"),
        ("1", Fraction("0.000031"), "10⁻⁶", "31.0"), ("1", Fraction("3e-11"), "10⁻¹²", "30.0"),
    ],
)  # fmt: skip
def test_the_largest_cost_decides(unit: str, work: float | Fraction, shown: str, largest: str) -> None:
    """It has three digits or more, whatever the graph is measured in."""
    instance = Instance.build(chain([Fraction(work)], [], unit), Machine.uniform(1, load_device()))
    columns = CostColumns.of(instance, int(instance.work[0]))
    assert (columns.unit, columns.text(int(instance.work[0]))) == (shown, largest)
    assert columns.text(0) == f"{0:.{columns.digits}f}"


@pytest.mark.parametrize(
    ("ticks", "text"), [(0, "0.0"), (49, "0.049"), (50, "0.1"), (1, "0.001"), (-1, "-0.001"), (12_345_678, "12,345.7")]
)
def test_small_costs_keep_two_digits(ticks: int, text: str) -> None:
    """Beside a large one they are still above zero."""
    assert CostColumns("µs", Fraction(1000)).text(ticks) == text


def test_differences_have_a_sign() -> None:
    """Small ones too."""
    columns = CostColumns("µs", Fraction(1000))
    assert [columns.text(ticks, signed=True) for ticks in (1500, -3, 0)] == ["+1.5", "-0.003", "+0.0"]


def test_shares() -> None:
    """A part that is there is above nothing."""
    shares = [format_share(part, 1000) for part in (0, 1e-9, 0.9, 1, 125, 1000)]
    assert shares == ["0.0%", "<0.1%", "<0.1%", "0.1%", "12.5%", "100.0%"]
    assert format_share(0, 0) == "0.0%"
