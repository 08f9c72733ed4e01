"""The table of bounds given cutoffs counts what was asked, and a false bound fails the run."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from benchmarks import cutoffs


def test_a_run_of_a_few_cases(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A row per bound; none is false."""
    monkeypatch.setattr(sys, "argv", ["cutoffs", "2", "1"])
    assert cutoffs.main() == 0
    told = capsys.readouterr()
    assert "2 cutoffs from seed 1" in told.out
    assert "| exact-mip " in told.out
    assert "2 cases" in told.err


def test_a_false_bound_fails_the_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And is named with its seed."""

    def tallied(seeds: range, tallies: dict[str, Any]) -> int:
        tallies["bottleneck"] = cutoffs.Tally(cases=1, claims=1, largest=1.5, false=[seeds.start])
        return 0

    monkeypatch.setattr(cutoffs, "tallied", tallied)
    monkeypatch.setattr(sys, "argv", ["cutoffs", "1", "7"])
    assert cutoffs.main() == 1
    assert "false: bottleneck, seeds 7" in capsys.readouterr().out
