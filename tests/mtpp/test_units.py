"""Quantities with units: exact reading, readable writing, errors that say what to write instead."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.errors import InputError
from mtpp.units import (
    ceil_ratio,
    exact_decimal,
    format_bandwidth,
    format_bytes,
    format_compute_rate,
    format_count,
    format_picoseconds,
    format_quantity,
    parse_bandwidth,
    parse_bytes,
    parse_compute_rate,
    parse_duration,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-3", -3),
        ("1e3", 1000),
        ("12.5", Fraction(25, 2)),
        ("1e-9", Fraction(1, 10**9)),
        ("0.1", Fraction(1, 10)),
        ("9007199254740993", 2**53 + 1),
        ("1e400", 10**400),
        ("0e999", 0),
    ],
)
def test_decimals_are_read_exactly(text: str, value: int | Fraction) -> None:
    """A decimal literal becomes the very rational it spells, an int where it is whole."""
    result = exact_decimal(text)
    assert result == value
    assert isinstance(result, int) == (Fraction(value).denominator == 1)


@pytest.mark.parametrize("text", ["", "one", "nan", "inf", "-Infinity", "1e401", "1e999999999", "1e-999999999", "0x10"])
def test_what_is_no_cost_is_refused(text: str) -> None:
    """Words, infinities and magnitudes that no cost has raise ValueError, quickly."""
    with pytest.raises(ValueError, match=r"is not|out of range"):
        exact_decimal(text)


@given(st.fractions(), st.integers(min_value=1, max_value=10**12))
def test_rounding_up_is_exact(ratio: Fraction, scale: int) -> None:
    """ceil_ratio is the least integer that is not below the ratio."""
    result = ceil_ratio(ratio.numerator * scale, ratio.denominator)
    assert result - 1 < ratio * scale <= result


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("24MiB", 24 * 2**20),
        ("1.5GB", 1_500_000_000),
        ("0B", 0),
        ("80 GB", 80 * 10**9),
        (" 8MB ", 8 * 10**6),
        ("0.5KiB", 512),
        ("1kB", 1000),
        ("1KB", 1000),
        ("2TiB", 2 * 2**40),
        ("1e3B", 1000),
        (".5GiB", 2**29),
    ],
)
def test_sizes(text: str, value: int) -> None:
    """Decimal and binary prefixes, fractions and exponents come to a whole number of bytes."""
    assert parse_bytes(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("25GB/s", 25 * 10**9),
        ("25GiB/s", 25 * 2**30),
        ("100Gbit/s", 12_500_000_000),
        ("100Gb/s", 12_500_000_000),
        ("1Kibit/s", 128),
        ("819GBps", 819 * 10**9),
        ("1B/s", 1),
        ("8bit/s", 1),
        ("3.35 TB/s", 3_350_000_000_000),
        ("25GiB/ms", 25_000 * 2**30),
        ("25 MB/us", 25 * 10**12),
        ("1.5kB/µs", 1_500_000_000),
        ("2Gbit/ms", 250_000_000_000),
        ("25Gbps", 3_125_000_000),
        ("25 gbps", 3_125_000_000),
        ("25 GBIT/s", 3_125_000_000),
        ("25GBps", 25_000_000_000),
        ("3B/ns", 3_000_000_000),
        ("0.001B/ms", 1),
    ],
)
def test_bandwidths(text: str, value: int) -> None:
    """Bits and bytes, decimal and binary prefixes, any unit of time come to whole bytes per second."""
    assert parse_bandwidth(text) == value


def test_bandwidths_in_bits_are_shown_in_both() -> None:
    """Readers see that bits were divided by eight; one in bytes is shown as it is."""
    assert format_bandwidth(parse_bandwidth("25Gbps")) == "25 Gbit/s = 3.125 GB/s"
    assert format_bandwidth(parse_bandwidth("3.125GB/s")) == "3.125 GB/s"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20TFLOP/s", 20 * 10**12),
        ("4TOPS", 4 * 10**12),
        ("989.4TFLOPS", 989_400_000_000_000),
        ("1.3 POP/s", 1_300_000_000_000_000),
        ("1FLOP/s", 1),
    ],
)
def test_compute_rates(text: str, value: int) -> None:
    """FLOP/s and OPS are the same unit, with decimal prefixes."""
    assert parse_compute_rate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5ms", 1_500_000_000),
        ("3ns", 3000),
        ("0.25us", 250_000),
        ("0.25µs", 250_000),
        ("0s", 0),
        ("0.5ps", Fraction(1, 2)),
    ],
)
def test_durations(text: str, value: int | Fraction) -> None:
    """Durations are exact numbers of picoseconds, fractions included."""
    assert parse_duration(text) == value


PARSERS = {"size": parse_bytes, "bandwidth": parse_bandwidth, "compute rate": parse_compute_rate}


@pytest.mark.parametrize("what", [*PARSERS, "duration"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("25", "has no unit"),
        ("1e3", "has no unit"),
        ("25 parsecs", "unknown unit"),
        ("25gb/S", "unknown unit"),
        ("", "is not a"),
        ("fast", "is not a"),
        ("1.2.3GB", "unknown unit"),
        ("nanGB/s", "is not a"),
        ("1e9999GB", "unknown unit|has no unit|is not a"),
    ],
)
def test_malformed_quantities(what: str, text: str, problem: str) -> None:
    """Bare numbers, unknown units and words are refused in one line that shows how to write it."""
    parse = PARSERS.get(what, parse_duration)
    with pytest.raises(InputError, match=problem) as caught:
        parse(text)
    assert caught.value.remedy
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("parse", "text", "problem"),
    [
        (parse_bandwidth, "0GB/s", "above zero"),
        (parse_compute_rate, "0TFLOP/s", "above zero"),
        (parse_bandwidth, "-1GB/s", "above zero"),
        (parse_bytes, "-1B", "at least zero"),
        (parse_duration, "-1ms", "at least zero"),
        (parse_bytes, "0.5B", "whole number"),
        (parse_bytes, "1.0000001MB", "whole number"),
        (parse_bandwidth, "1bit/s", "whole number"),
        (parse_bandwidth, "25GB/h", "unknown unit 'GB/h'"),
        (parse_bandwidth, "25GB", "unknown unit 'GB'"),
        (parse_bandwidth, "25/ms", "unknown unit '/ms'"),
        (parse_bandwidth, "25GBps/ms", "unknown unit"),
        (parse_bandwidth, "25GBPS", "unknown unit"),
        (parse_bandwidth, "25TiB/us", "below 2"),
        (parse_bandwidth, "0GB/ms", "above zero"),
        (parse_bytes, "1e30GB", "below 2"),
        (parse_bytes, "1e500B", "out of range"),
        (parse_duration, "1e500s", "out of range"),
    ],
)
def test_impossible_quantities(parse: object, text: str, problem: str) -> None:
    """Zero and negative rates, parts of a byte and what no int64 holds are refused."""
    assert callable(parse)
    with pytest.raises(InputError, match=problem):
        parse(text)


BYTE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@given(st.integers(min_value=1, max_value=10**6), st.sampled_from(sorted(BYTE_UNITS)))
def test_every_unit_scales_exactly(count: int, unit: str) -> None:
    """A whole number of any unit of memory is that many times the unit, and so per second."""
    assert parse_bytes(f"{count}{unit}") == count * BYTE_UNITS[unit]
    assert parse_bandwidth(f"{count} {unit}/s") == count * BYTE_UNITS[unit]


@given(st.decimals(min_value=Decimal(0), max_value=Decimal(10**6), places=12), st.sampled_from(["s", "ms", "us", "ns"]))
def test_durations_do_not_depend_on_the_unit(amount: Decimal, unit: str) -> None:
    """A duration written in a unit and the same duration written in picoseconds are equal."""
    scale = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3}[unit]
    assert parse_duration(f"{amount:f}{unit}") == Fraction(amount) * scale


@given(st.integers(min_value=1, max_value=2**50))
def test_what_is_written_is_read_back(value: int) -> None:
    """Reading what the formatters write gives the value to the digits they show."""
    for text in (format_bytes(value).replace(" ", ""), f"{value}B"):
        assert abs(_approximately(text) - value) <= value * Fraction(1, 1000)
    shown = format_bandwidth(value).removesuffix("B/s")
    assert abs(parse_compute_rate(f"{shown}FLOP/s") - value) <= value * Fraction(1, 1000)
    assert format_compute_rate(value).removesuffix("FLOP/s") == shown


def _approximately(text: str) -> Fraction:
    unit = next(unit for unit in ("TiB", "GiB", "MiB", "KiB", "B") if text.endswith(unit))
    return Fraction(text.removesuffix(unit)) * {**BYTE_UNITS, "TiB": 2**40}[unit]


@pytest.mark.parametrize(
    ("picoseconds", "text"),
    [
        (0, "0 ps"),
        (999, "999 ps"),
        (1500, "1.500 ns"),
        (671_207_081, "671.2 µs"),
        (12_345_678_900, "12.35 ms"),
        (5 * 10**12, "5.000 s"),
        (3600 * 10**12, "3,600 s"),
        (999_999_999, "1.000 ms"),
    ],
)
def test_times_are_shown_with_four_digits(picoseconds: int, text: str) -> None:
    """Times come in the largest unit that leaves a number of at least one, rounding included."""
    assert format_picoseconds(picoseconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (24 * 2**20, "24 MiB"), (80 * 10**9, "74.51 GiB")],
)
def test_sizes_are_shown_in_binary_units(count: int, text: str) -> None:
    """Sizes come in binary units, four digits."""
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (122, "122"), (4_089_184_256, "4.089 G"), (25_557_032, "25.56 M"), (999_999, "1 M")]
)
def test_counts_are_shown_in_decimal_units(count: int, text: str) -> None:
    """Counts come in decimal units, four digits, no stray space."""
    assert format_count(count) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 MAC"), (999, "999 MAC"), (4_110_000_000, "4.11 GMAC")])
def test_quantities_have_a_blank_before_their_unit(count: int, text: str) -> None:
    """With a prefix or without one."""
    assert format_quantity(count, "MAC") == text
