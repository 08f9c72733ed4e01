"""Tables of lower bounds without partitions."""

from __future__ import annotations

import io

import pytest
from certificate_documents import row
from rich.console import Console

from mtpp.views import terminal as terminals
from mtpp.views.certificates import certificates_text

ASSUMED = "assumptions  system reference: 20 TFLOP/s, memory 200 GB/s, link 25 GB/s, no fast-memory limit"


def test_one_cell_shows_how_each_bound_did() -> None:
    """Value, share of the best, tier, seconds, and whether it completed."""
    rows = [row(simple=1000, slow=None, strong=-1250, method="strong", tier_="solver")]
    assert certificates_text(rows, "table", with_upper=False).splitlines() == [
        "Lower bounds: net, 12 ops, k = 2",
        "bound   lower bound  of best  tier    seconds  solved",
        "simple     1.000 ns   0.8000  exact     0.250  yes",
        "slow              –        –  –         0.250  no",
        "strong   ≥ 1.250 ns     best  solver    0.250  no",
        "",
        "≥            not finished: the bound itself may be higher",
        "tier         solver: HiGHS's word, or a proof too long to be kept: nobody can check it",
        ASSUMED,
    ]


def test_several_k_have_a_column_each() -> None:
    """The best of each column is marked; a bound that was not run has a dash."""
    rows = [
        row(k=2, simple=1000, node=1100, method="node"),
        row(k=16, simple=1000, node=900, late=-1500, method="late", tier_="enumerated", total_seconds_=12.5),
    ]
    assert certificates_text(rows, "table", with_upper=False).splitlines() == [
        "Lower bounds: net, 12 ops, k = 2, 16",
        "bound        k = 2       k = 16",
        "simple    1.000 ns     1.000 ns",
        "node     1.100 ns*       900 ps",
        "late             –  ≥ 1.500 ns*",
        "best      1.100 ns     1.500 ns",
        "tier         exact   enumerated",
        "seconds       1.00         12.5",
        "",
        "*            the best bound",
        "≥            not finished: the bound itself may be higher",
        "tier         exact: mtpp verify checks the proof; enumerated: mtpp verify runs the search again",
        ASSUMED,
        "",
        "Lower bound / simple lower bound",
        "bound        k = 2       k = 16",
        "node   1.100 (100)  0.900 (100)",
        "late             –    1.500 (0)",
        "each bound alone, in whole ticks (percent of runs completed)",
    ]


def test_several_graphs_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each graph has its name above its table, whose columns are split where they do not fit."""

    def terminal(*, endless: bool = False) -> Console:
        return Console(file=io.StringIO(), width=1000 if endless else 30, no_color=True, highlight=False)

    monkeypatch.setattr(terminals, "result_terminal", terminal)
    rows = [row("a", k, simple=10 * k) for k in (2, 4, 8)] + [row("b", 2, simple=3, time_unit_="1")]
    assert certificates_text(rows, "table", with_upper=False).splitlines()[:20] == [
        "Lower bounds: 2 graphs, k = 2,",
        "4, 8",
        "",
        "a: 12 ops",
        "bound     k = 2   k = 4",
        "simple   20 ps*  40 ps*",
        "best      20 ps   40 ps",
        "tier      exact   exact",
        "seconds   0.750   0.750",
        "",
        "bound     k = 8",
        "simple   80 ps*",
        "best      80 ps",
        "tier      exact",
        "seconds   0.750",
        "",
        "b: 12 ops",
        "bound   lower bound  of best  tier   seconds  solved",
        "simple            3     best  exact    0.250  yes",
        "",
    ]


def test_markdown_has_every_bound_as_a_column() -> None:
    """One line per cell, the best bound and what proved it at its end."""
    rows = [row("a", 2, simple=10, node=-12, method="node"), row("b", 2, simple=3, time_unit_="1", ticks_per_unit_=2)]
    assert certificates_text(rows, "markdown", with_upper=False).splitlines()[:6] == [
        "### Lower bounds: 2 graphs, k = 2",
        "",
        "| model | ops | k | simple | node | best | by | tier | seconds |",
        "|---|---:|---:|---:|---|---:|---|---|---:|",
        "| a | 12 | 2 | 10 ps | ≥ 12 ps | 12 ps | node | exact | 1.00 |",
        "| b | 12 | 2 | 1.5 | – | 1.5 | simple | exact | 0.750 |",
    ]
