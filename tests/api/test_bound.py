"""Lower bounds from Python: rows, cutoffs, what is refused, and agreement with the command."""

from __future__ import annotations

import json
from pathlib import Path

from graph_strategies import chain
from processes import run

from mtpp.api.bound import bound
from mtpp.formats.graphs.native import write_native

MS = 10**9
"""Ticks in a millisecond."""


def test_rows_by_bound(chain_file: Path, tmp_path: Path) -> None:
    """Each with its value in ticks and seconds and its tier; the same as the command's."""
    table = bound(chain_file, 2, bounds=["downset", "simple"])
    assert [(row.model, row.k, row.bound, row.ticks, row.tier, row.solved) for row in table] == [
        ("chain", 2, "simple", 50 * MS, "exact", True),
        ("chain", 2, "downset", 61 * MS, "enumerated", True),
    ]
    assert [row.lower_s for row in table] == [0.05, 0.061]
    assert len(table) == 2
    assert table[1].bound == "downset"
    done = run("bound", chain_file, "-k", "2", "--bounds", "downset,simple", "--format", "json")
    (printed,), (row,) = json.loads(done.stdout)["rows"], table.to_dicts()
    assert {**printed, "seconds": None} == {**row, "seconds": None}
    table.save(tmp_path / "bounds.json")
    assert run("verify", tmp_path / "bounds.json", "--model", chain_file).returncode == 0


def test_no_seconds_without_a_unit(tmp_path: Path) -> None:
    """An abstract graph has ticks alone."""
    path = tmp_path / "abstract.json"
    path.write_text(write_native(chain([1, 2], [1])))
    assert [row.lower_s for row in bound(path, [1, 2], bounds="simple")] == [None, None]


def test_without_a_limit_each_bound_comes_to_its_end(chain_file: Path) -> None:
    """However long it takes."""
    table = bound(chain_file, [2, 3], bounds=["simple", "node", "crossings", "downset"], time_limit_s=None)
    assert all(row.solved for row in table)
    assert {row.stopped for row in table.cells} == {"finished"}


def test_cutoff(chain_file: Path) -> None:
    """No bound above it is sought, and the table says so."""
    table = bound(chain_file, 2, bounds=["downset"], cutoff=55 * MS)
    assert table.cells[0].lower.value == 55 * MS
    assert "no bound above 55000000000 ticks was sought" in repr(table)
    assert "no bound above" in table._repr_html_()


def test_the_table_shows_itself(chain_file: Path) -> None:
    """As the command shows it."""
    shown = run("bound", chain_file, "-k", "2", "--bounds", "simple").stdout.splitlines()
    assert repr(bound(chain_file, 2, bounds="simple")).splitlines()[:2] == shown[:2]
