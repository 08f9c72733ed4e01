"""Certificates from Python: rows, limits, clocks of cells, the store, and agreement with the command."""

from __future__ import annotations

import json
import signal
import threading
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from graph_strategies import chain
from plans_beside_models import without_times
from processes import run
from refusals import refusal

import mtpp
from mtpp.api.cells import session
from mtpp.api.cells.certificate_table import CertificateTable
from mtpp.api.certify import certify
from mtpp.api.inputs.model import Model, read_model
from mtpp.api.inputs.reading import reading_of
from mtpp.api.observer import MtppWarning, Observer
from mtpp.errors import InputError, Interrupted
from mtpp.formats.graphs.native import to_document, write_native

MS = 10**9
"""Ticks in a millisecond."""


def model(path: Path) -> Model:
    """Return a model at hand."""
    return read_model(str(path), reading_of(None), lambda text: None)


def test_rows_are_those_of_the_command(two_chains: Path, tmp_path: Path) -> None:
    """A saved table is the document that the command writes, which it verifies."""
    table = certify(two_chains, [2, 4], jobs=2)
    assert [(Path(row.path).name, row.k, row.upper, row.lower.value) for row in table] == [
        ("a.json", 2, 61 * MS, 61 * MS),
        ("a.json", 4, 41 * MS, 41 * MS),
        ("b.json", 2, 25 * MS, 25 * MS),
        ("b.json", 4, 20 * MS, 20 * MS),
    ]
    assert len(table) == 4
    assert table.stopped == "finished"
    assert not table.problems
    assert not table.missing
    assert all(row.optimal and row.ratio == 1 for row in table)
    done = run("certify", two_chains, "-k", "2,4", "--format", "json")
    assert without_times(json.loads(done.stdout)["rows"]) == without_times(table.to_dicts())
    table.save(tmp_path / "table.json")
    assert without_times(json.loads((tmp_path / "table.json").read_text())["rows"]) == without_times(table.to_dicts())
    assert run("verify", tmp_path / "table.json", "--model", two_chains).returncode == 0


def test_models_at_hand(two_chains: Path) -> None:
    """They need no file any more, and one given twice counts once."""
    first, second = model(two_chains / "a.json"), model(two_chains / "b.json")
    for path in two_chains.iterdir():
        path.unlink()
    table = certify([first, second, first], 2, jobs=1)
    assert [row.upper for row in table] == [61 * MS, 25 * MS]


def test_graphs_in_memory(two_chains: Path) -> None:
    """Whatever can be read can be certified."""
    document = json.loads((two_chains / "a.json").read_text())
    (row,) = certify(document, 2, jobs=1)
    assert row.upper == 61 * MS
    assert len(certify([document, two_chains / "b.json", json.loads(json.dumps(document))], 2, jobs=1)) == 3


def test_a_model_and_its_file_are_two(two_chains: Path) -> None:
    """The model may be for another system than the file is read for."""
    table = certify([model(two_chains / "a.json"), two_chains / "a.json"], 2, jobs=1)
    assert [Path(row.path).name for row in table] == ["a.json (2)", "a.json"]
    with pytest.raises(InputError, match="is given as a model too"):
        certify([model(two_chains / "a.json"), two_chains], 2)


def test_the_table_shows_itself(two_chains: Path) -> None:
    """In a terminal without colours, and in a notebook, with nothing of a file taken for markup."""
    (two_chains / "a.json").write_text(write_native(chain([10, 20], [1], "ms")).replace("chain", "<b>"))
    table = certify(two_chains / "a.json", 2, jobs=1)
    shown = run("certify", two_chains / "a.json", "-k", "2").stdout.splitlines()
    assert repr(table).splitlines()[:2] == shown[:2]
    assert "\x1b" not in repr(table)
    assert "&lt;b&gt;" in table._repr_html_()
    assert "<b>,<" not in table._repr_html_()


def test_the_store_is_shared_with_the_command(two_chains: Path, tmp_path: Path) -> None:
    """What it has is not worked at again."""
    store = tmp_path / "rows.db"
    table = certify(two_chains, 2, jobs=1, store=store)
    done = run("certify", two_chains, "-k", "2", "--store", store, "--format", "json")
    assert json.loads(done.stdout)["rows"] == table.to_dicts()


def test_a_limit_on_memory_is_for_the_workers(two_chains: Path) -> None:
    """The process that asks has none, neither meanwhile nor afterwards."""
    from mtpp.host.memory_limit import limited_memory

    seen = []

    class Watching(Observer):
        def show(self, text: str, done: int = 0, total: int | None = None) -> None:
            seen.append(limited_memory())

    table = certify(two_chains, 2, jobs=1, memory_limit="2GiB", observer=Watching())
    assert [row.upper for row in table] == [61 * MS, 25 * MS]
    assert seen
    assert not any(seen)


def test_no_time_leaves_gaps(two_chains: Path) -> None:
    """Cells without a turn have no row, and the table says so."""
    with pytest.warns(MtppWarning, match="total_time_limit: 4 of 4 cells had no turn"):
        table = certify(two_chains, [2, 4], jobs=1, total_time_limit_s=1e-6)
    assert table.stopped == "time-limit"
    assert len(table.missing) == 4
    assert not len(table)
    assert table.unmet(1.5) == [f"{label}: no certificate" for label in table.missing]
    assert "stopped: time-limit, 4 cells have no row" in repr(table)


def test_without_a_limit_the_work_ends_by_itself(two_chains: Path) -> None:
    """When nothing is left to try, in the same way each time."""
    first, second = (certify(two_chains, [2, 4], jobs=2, time_limit_s=None, algorithm="slice") for _ in range(2))
    assert [row.stopped for row in first] == ["target"] * 4
    assert without_times(first.to_dicts()) == without_times(second.to_dicts())


def test_ctrl_c(two_chains: Path) -> None:
    """It ends the work with the rows there are; without any, it ends the caller's loop."""

    class Impatient(Observer):
        def __init__(self, *moment: int | None) -> None:
            self.moments = [moment]

        def warn(self, text: str) -> None:
            pass

        def show(self, text: str, done: int = 0, total: int | None = None) -> None:
            if (done, total) in self.moments:
                self.moments.clear()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    table = certify(two_chains, [2, 4], jobs=1, observer=Impatient(1, 4))
    assert table.stopped == "interrupted"
    assert 1 <= len(table) < 4
    assert "stopped: interrupted" in repr(table)
    cut = sum(row.stopped == "interrupted" for row in table)
    assert table.unfinished == {"cut_short": cut, "not_begun": 4 - len(table)} == table.document()["unfinished"]
    loaded = mtpp.load(table.document())
    assert isinstance(loaded, CertificateTable)
    assert loaded.unfinished == table.unfinished
    rows = {row.claim: row.verdict for row in mtpp.verify(table, two_chains).rows}
    assert (rows["unfinished"], rows["not begun"]) == ("ok", None)
    forged = table.document() | {"unfinished": {"cut_short": cut + 1, "not_begun": 0}}
    assert {row.claim: row.verdict for row in mtpp.verify(forged, two_chains).rows}["unfinished"] == "false"
    with pytest.raises(Interrupted):
        certify(two_chains, [2, 4], jobs=1, observer=Impatient(0, 4))


def test_problems_of_single_cells(tmp_path: Path) -> None:
    """A cell without a partition is told of, and the others have their rows."""
    from dataclasses import replace

    graph = chain([1, 1], [1], "ms")
    path = tmp_path / "large.json"
    document = json.loads(write_native(graph))
    for op in document["ops"]:
        op["param_bytes"] = 100
    path.write_text(json.dumps(document))
    how = reading_of(None)
    how = replace(how, system=replace(how.device, memory_bytes=150))
    table = certify(path, [1, 2], jobs=1, reading=how)
    assert [row.k for row in table] == [2]
    assert len(table.problems) == 1
    assert table.missing == (f"{path}, k = 1",)


def test_ratios_are_compared_exactly(two_chains: Path) -> None:
    """As the command does with ``--require-ratio``."""
    table = certify(two_chains / "a.json", 2, jobs=1, algorithm="slice", bounds="simple")
    row = table[0]
    assert row.ratio == pytest.approx(61 / 50)
    assert table.unmet(Fraction(61, 50)) == []
    assert table.unmet(1.21) == ["chain k=2: ratio 1.2200 > 1.21"]


def test_missing_files_are_refused(tmp_path: Path) -> None:
    """By their path."""
    assert refusal(certify, tmp_path / "none.onnx", 2).source == str(tmp_path / "none.onnx")


def test_a_cluster_has_its_own_workers(two_chains: Path) -> None:
    """Their number cannot be asked for."""
    assert refusal(certify, two_chains, 2, jobs=2, scheduler="tcp://localhost:1").parameter == "jobs"


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
