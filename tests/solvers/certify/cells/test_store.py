"""The store: what is put comes back, whatever happens to the process; what is no store is refused."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from certificate_documents import row
from processes import ROOT, environment

from mtpp.errors import InputError
from mtpp.inference.certificate import LowerBound
from mtpp.inference.certificate_table import CertificateRow
from mtpp.solvers.certify.cells.keys import CellKey
from mtpp.solvers.certify.cells.store import VERSION, Store

KEY = CellKey("digest", 2, "{}", "{}", "0")


def some_row(upper: int = 7) -> CertificateRow:
    """Return a row with a partition and two bounds, one of which proved nothing."""
    return row("net", 2, upper, simple=5, node=None)


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    """Also after the file was closed, and only under its own key."""
    path = tmp_path / "results.db"
    with Store(path) as store:
        assert store.get(KEY) is None
        assert store.put(KEY, some_row()) == some_row()
    with Store(path) as store:
        assert store.get(KEY) == some_row()
        for change in ({"graph": "other"}, {"k": 3}, {"system": "x"}, {"parameters": "x"}, {"version": "1"}):
            assert store.get(replace(KEY, **change)) is None  # type: ignore[arg-type]


def test_what_is_proven_beside_a_solvers_bound_comes_back(tmp_path: Path) -> None:
    """And equal numbers of tier solver do not come back as optimal."""
    proven = LowerBound(5, "node", "exact", {"merges": []})
    kept = row("net", 2, 7, simple=4, node=5, exact_mip=7, method="exact-mip", tier_="solver", proven_=proven)
    with Store(tmp_path / "s.db") as store:
        store.put(KEY, kept)
        found = store.get(KEY)
    assert found == kept
    assert found is not None
    assert (found.optimal, found.closed, found.best_proof) == (False, True, proven)


def test_the_first_of_two_rows_stays(tmp_path: Path) -> None:
    """Two runs that share a store report the same row of a cell."""
    with Store(tmp_path / "s.db") as one, Store(tmp_path / "s.db") as other:
        one.put(KEY, some_row(7))
        assert other.put(KEY, some_row(8)) == some_row(7)


def test_names_of_any_characters(tmp_path: Path) -> None:
    """A lone surrogate, which JSON may hold, does not stop a run."""
    odd = replace(some_row(), assignment={"\ud800": 0, "ä'\"": 1})
    with Store(tmp_path / "s.db") as store:
        assert store.put(KEY, odd) == odd


def test_a_row_is_on_the_disk_when_put_returns(tmp_path: Path) -> None:
    """The process may end without closing anything."""
    code = (
        "import os, sys; sys.path.append('tests/solvers/certify/cells'); import test_store as t;"
        f"t.Store({str(tmp_path / 's.db')!r}).put(t.KEY, t.some_row()); os._exit(9)"
    )
    env = environment() | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])}
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env).returncode == 9
    with Store(tmp_path / "s.db") as store:
        assert store.get(KEY) == some_row()


def test_it_is_written_through_to_the_disk(tmp_path: Path) -> None:
    """A write-ahead log, and full synchronisation."""
    with Store(tmp_path / "s.db") as store:
        execute = store._connection.execute
        assert execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert execute("PRAGMA synchronous").fetchone() == (2,)


def test_runs_that_share_a_store_lose_nothing(tmp_path: Path) -> None:
    """Three processes that make the store together and put fifty rows each."""
    code = (
        "import sys; sys.path.append('tests/solvers/certify/cells'); import test_store as t;"
        "own = sys.argv[1]\n"
        f"with t.Store({str(tmp_path / 's.db')!r}) as store:\n"
        "    for k in range(50): store.put(t.replace(t.KEY, graph=own, k=k), t.some_row())"
    )
    env = environment() | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])}
    runs = [subprocess.Popen([sys.executable, "-c", code, str(run)], cwd=ROOT, env=env) for run in range(3)]
    assert [run.wait() for run in runs] == [0, 0, 0]
    with Store(tmp_path / "s.db") as store:
        for run in range(3):
            for k in range(50):
                assert store.get(replace(KEY, graph=str(run), k=k)) == some_row()


def test_another_version_is_refused(tmp_path: Path) -> None:
    """The message says which versions there are; the file stays as it was."""
    path = tmp_path / "s.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(InputError, match=rf"s\.db: is a store of version {VERSION + 1}, .* knows version {VERSION}"):
        Store(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    """A file of something else, a database of another program, a folder, a place that is not there."""
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to have a header of its own " * 20)
    with pytest.raises(InputError, match=r"notes\.txt: is not a store"):
        Store(text)
    assert text.read_text().startswith("not a database")
    foreign = tmp_path / "other.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(InputError, match=r"other\.db: is a database of another program"):
        Store(foreign)
    with pytest.raises(InputError, match="is a directory"):
        Store(tmp_path)
    if Path("/dev/null").exists():
        with pytest.raises(InputError, match="is no regular file"):
            Store("/dev/null")
    with pytest.raises(InputError, match="there is no directory"):
        Store(tmp_path / "nowhere" / "s.db")


def test_a_foreign_database_stays_as_it_is(tmp_path: Path) -> None:
    """Not even a log that another program left beside it is folded into it."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE songs (title TEXT)")
        copy = tmp_path / "crashed.db"
        for ending in ("", "-wal"):  # what a crash would leave
            copy.with_name(copy.name + ending).write_bytes(path.with_name(path.name + ending).read_bytes())
    before = {file.name: file.read_bytes() for file in tmp_path.glob("crashed*")}
    assert before["crashed.db-wal"]
    with pytest.raises(InputError, match=r"crashed\.db: is a database of another program"):
        Store(copy)
    assert {file.name: file.read_bytes() for file in tmp_path.glob("crashed*")} == before


def test_a_damaged_row_is_told_of(tmp_path: Path) -> None:
    """In one line."""
    path = tmp_path / "s.db"
    with Store(path) as store:
        store.put(KEY, some_row())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE certificates SET row = '{}'")
    with Store(path) as store, pytest.raises(InputError, match=r"s\.db: a row is damaged"):
        store.get(KEY)
