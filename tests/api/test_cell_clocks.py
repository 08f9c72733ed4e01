"""Clocks of cells that are worked at one after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from graph_strategies import chain

import mtpp
from mtpp.api.cells import session
from mtpp.formats.graphs.native import to_document


@pytest.mark.parametrize("function", [mtpp.bound, mtpp.certify])
def test_the_work_on_a_cell_is_not_on_the_clock_of_the_next(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit of each cell is short of the reading of its model alone."""
    now, counted = 0.0, []
    limits_now, ended = session.CertifiedCells._limits_now, session.CertifiedCells.ended

    def limited(self: Any, number: int, read_s: float, ops: int) -> Any:
        counted.append(read_s)
        return limits_now(self, number, read_s, ops)

    def late(self: Any, outcome: Any) -> None:
        nonlocal now
        now += 1000
        ended(self, outcome)

    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(session.CertifiedCells, "_limits_now", limited)
    monkeypatch.setattr(session.CertifiedCells, "ended", late)
    function(to_document(chain([1, 2, 3, 4], [0, 0, 0])), [1, 2, 3], bounds="simple", time_limit_s=60)
    assert len(counted) == 3
    assert max(counted) < 1000
