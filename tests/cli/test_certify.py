"""``mtpp certify`` as a process: cells, limits, the store, exit codes, bad input, interruption."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import random_graph
from plans_beside_models import without_times
from processes import MTPP, ROOT, environment, printed, refused, run

from mtpp.formats.graphs.native import write_native

MS = 10**9
"""Ticks in a millisecond."""


def table(*arguments: str | Path, code: int = 0) -> list[dict[str, Any]]:
    """Return the rows that a run prints as JSON."""
    done = run("certify", *arguments, "--format", "json")
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    assert (document["format"], document["version"]) == ("mtpp-certificates", 1)
    rows: list[dict[str, Any]] = document["rows"]
    return rows


def figures(rows: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Return file, k, bottleneck and bound, the latter in ms."""
    return [(Path(row["path"]).name, row["k"], row["upper"] // MS, row["lower"] // MS) for row in rows]


OPTIMA = [("a.json", 2, 61, 61), ("a.json", 4, 41, 41), ("b.json", 2, 25, 25), ("b.json", 4, 20, 20)]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_rows_by_model_and_k(two_chains: Path, jobs: str) -> None:
    """Whatever the number of processes, and whichever cell ends first."""
    rows = table(two_chains, "-k", "2,4", "--jobs", jobs)
    assert figures(rows) == OPTIMA
    for row in rows:
        assert row["optimal"]
        assert row["stopped"] == "target"
        assert set(row["assignment"]) == {f"op{v}" for v in range(row["ops"])}


@pytest.mark.slow
def test_output_file_and_notes(two_chains: Path, tmp_path: Path) -> None:
    """The table goes to standard output, the JSON to the file, a note for each cell to standard error."""
    out = tmp_path / "certs.json"
    done = run("certify", two_chains / "a.json", "-k", "2,4", "-o", out, "-v", "-j", "1")
    assert done.returncode == 0
    assert "61.00 ms" in done.stdout
    assert figures(json.loads(out.read_text())["rows"]) == OPTIMA[:2]
    notes = [line for line in done.stderr.splitlines() if "k = " in line]
    assert [note.partition(": ")[0] for note in notes] == [f"{two_chains / 'a.json'}, k = {k}" for k in (2, 4)]
    assert notes[0].endswith("target")


def test_target_ratio(two_chains: Path) -> None:
    """A ratio of 1.25 is proven by the simple bound, 61 / 50: nothing more is asked for."""
    (row,) = table(two_chains / "a.json", "-k", "2", "--target-ratio", "1.25", "--algorithm", "slice")
    assert (row["upper"], row["lower"], row["lower_method"]) == (61 * MS, 50 * MS, "simple")
    assert row["stopped"] == "target"


def test_required_ratio(two_chains: Path) -> None:
    """Cells above it are named, and the exit code is 1; the table is still printed."""
    options = ("-k", "2,4", "--algorithm", "slice", "--bounds", "simple")
    done = run("certify", two_chains, *options, "--require-ratio", "1.1", "-q", "--format", "csv")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 5
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("unmet: ") for line in lines)
    assert run("certify", two_chains, *options, "--require-ratio", "2", "-q").returncode == 0


@pytest.mark.slow
def test_store_is_resumed(two_chains: Path, tmp_path: Path) -> None:
    """What is there is not worked at again; other limits are other cells; the same graph elsewhere is the same."""
    store = tmp_path / "results.db"
    options = ("--store", store, "-v", "-j", "1", "--format", "json")
    first = run("certify", two_chains, "-k", "2", *options)
    assert (first.returncode, first.stderr.count("(stored)")) == (0, 0)
    again = run("certify", two_chains, "-k", "4,2", *options)
    assert again.stderr.count("(stored)") == 2
    rows = json.loads(again.stdout)["rows"]
    old = json.loads(first.stdout)["rows"]
    assert [row for row in rows if row["k"] == 2] == old
    copy = tmp_path / "copy.json"
    copy.write_text((two_chains / "a.json").read_text() + "\n")
    elsewhere = run("certify", copy, "-k", "2,4", *options)
    assert elsewhere.stderr.count("(stored)") == 2
    (row, _) = json.loads(elsewhere.stdout)["rows"]
    assert (row["path"], row["upper"]) == (str(copy), 61 * MS)
    assert row["sha256"] != old[0]["sha256"]
    other = run("certify", two_chains, "-k", "2", "--seed", "1", *options)
    assert other.stderr.count("(stored)") == 0


def test_two_runs_share_a_store(two_chains: Path, tmp_path: Path) -> None:
    """At the same time: each ends with all rows, and they are the same rows."""
    command = [*MTPP, "certify", two_chains, "-k", "2,3,4", "--store", tmp_path / "s.db", "--format", "json", "-j", "1"]
    runs = [
        subprocess.Popen(list(map(str, command)), cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    tables = [json.loads(process.communicate(timeout=120)[0])["rows"] for process in runs]
    assert [process.returncode for process in runs] == [0, 0]
    assert len(tables[0]) == 6
    assert tables[0] == tables[1]


def test_time_limit_of_the_run(two_chains: Path, tmp_path: Path) -> None:
    """Cells that had no turn have no row; a requirement names them. A table without any row is not written."""
    options = ("-k", "2,4", "--total-time-limit", "0.001", "--store", tmp_path / "s.db")
    done = run("certify", two_chains, *options, "-o", tmp_path / "table.json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert not (tmp_path / "table.json").exists()
    assert done.stderr == "warning: --total-time-limit: 4 of 4 cells had no turn\n"
    required = run("certify", two_chains, *options, "--require-ratio", "2", "-q")
    assert required.returncode == 1
    assert required.stderr.count("no certificate") == 4


@pytest.mark.slow
def test_a_cell_cut_short_by_the_run_is_not_stored(tmp_path: Path) -> None:
    """It is in the table; a later run works at it for as long as a cell may take."""
    hard, store = tmp_path / "hard.json", tmp_path / "s.db"
    hard.write_text(write_native(random_graph(3, 600)))
    limits = ("--time-limit", "100", "--total-time-limit", "10")
    done = run("certify", hard, "-k", "4", *limits, "--store", store, "--format", "json")
    (row,) = json.loads(done.stdout)["rows"]
    assert row["stopped"] == "time-limit"
    assert done.stderr.splitlines()[-1] == "warning: --total-time-limit: the last cells were cut short"
    with sqlite3.connect(store) as connection:
        assert connection.execute("SELECT count(*) FROM certificates").fetchone() == (0,)


@pytest.mark.slow
def test_a_file_that_vanishes_is_told_of(two_chains: Path) -> None:
    """A run of hours does not end for it, but its exit code is 1."""
    gone = two_chains / "z.json"
    gone.write_text(write_native(random_graph(3, 3000)))
    command = [*MTPP, "certify", two_chains, "-k", "2", "--format", "json", "-v", "-j", "1", "--time-limit", "3"]
    late = two_chains / "zz.json"
    late.write_text((two_chains / "a.json").read_text())
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    while "target" not in process.stderr.readline():
        pass
    late.unlink()
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 1
    assert [Path(row["path"]).name for row in json.loads(stdout)["rows"]] == ["a.json", "b.json", "z.json"]
    assert f"error: {late}, k = 2: its file is not what it was when the run began" in stderr


def test_model_from_standard_input(two_chains: Path) -> None:
    """Read once, used for every k."""
    shown = printed("certify", "-", "-k", "2,4", "--format", "json", stdin=(two_chains / "a.json").read_bytes())
    rows = json.loads(shown)["rows"]
    assert figures(rows) == [("-", 2, 61, 61), ("-", 4, 41, 41)]


@pytest.mark.slow
def test_infeasible_cells(two_chains: Path) -> None:
    """A stage memory that nothing meets is told of for each cell; the exit code is 1."""
    graph = two_chains / "c.json"
    document = json.loads((two_chains / "a.json").read_text())
    document["ops"][0]["param_bytes"] = 100
    graph.write_text(json.dumps(document))
    done = run("certify", two_chains, "-k", "2", "--stage-memory", "50B", "-q", "--format", "csv")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {graph}, k = 2: ")


def test_bad_files(two_chains: Path, tmp_path: Path) -> None:
    """A missing file, a broken graph, a folder without graphs, a file that is no store: before the first cell."""
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "mtpp-graph", "version": 1}')
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (tmp_path / "missing.json", broken, empty):
        assert refused("certify", two_chains, path, "-k", "2").startswith(f"error: {path}")
    model = two_chains / "a.json"
    assert (
        refused("certify", model, "-k", "2", "-o", model)
        == f"error: --output: {model} is a model too; name another file\n"
    )
    said = refused("certify", two_chains, "-k", "2", "--store", broken)
    assert said == f"error: {broken}: is not a store; name another file\n"


@pytest.mark.slow
def test_full_disk_keeps_what_was_stored(two_chains: Path, tmp_path: Path) -> None:
    """The error names the store, the table shows what is in it, and the next run goes on there."""
    store = tmp_path / "s.db"
    counts = ",".join(map(str, range(1, 33)))
    command = [
        *MTPP,
        "certify",
        two_chains / "a.json",
        "-k",
        counts,
        "--store",
        store,
        "--format",
        "json",
        "-q",
        "-j",
        "1",
    ]
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment(), capture_output=True, preexec_fn=_no_large_files
    )
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"error: {store}: cannot be used: ")
    shown = json.loads(done.stdout)["rows"]
    with sqlite3.connect(store) as connection:
        kept = [json.loads(text) for (text,) in connection.execute("SELECT row FROM certificates ORDER BY k")]
    assert 0 < len(kept) < 32
    assert kept == shown
    resumed = table(two_chains / "a.json", "-k", counts, "--store", store, "-q", "-j", "1")
    assert resumed[: len(kept)] == kept
    assert [row["k"] for row in resumed] == list(range(1, 33))


def _no_large_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, 80_000))


def test_full_disk_keeps_the_old_output(two_chains: Path, tmp_path: Path) -> None:
    """The file of an earlier run stays whole, the table is shown all the same, and the exit code is 2."""
    out = tmp_path / "certs.json"
    out.write_text("an earlier table")
    command = [*MTPP, "certify", two_chains, "-k", "2", "-o", out, "--format", "csv", "-j", "1"]
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment(), capture_output=True, preexec_fn=_no_files_at_all
    )
    assert done.returncode == 2
    assert out.read_text() == "an earlier table"
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr.decode().startswith(f"error: {out}: cannot be written")
    assert list(tmp_path.glob(".certs*")) == []


def _no_files_at_all() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_interruption_shows_what_is_done(two_chains: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 130 with the table so far; the cell at work is in it, but not in the store."""
    hard = tmp_path / "hard.json"
    hard.write_text(write_native(random_graph(3, 3000)))
    out, store = tmp_path / "certs.json", tmp_path / "s.db"
    command = [*MTPP, "certify", two_chains, hard, "-k", "4", "-o", out, "--store", store, "--format", "json", "-v"]
    process = subprocess.Popen(
        list(map(str, [*command, "-j", "1", "--time-limit", "300"])), cwd=ROOT, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    seen = ""
    while seen.count("target") < 2:
        seen += process.stderr.readline()
    os.kill(process.pid, number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    rows = json.loads(stdout)["rows"]
    assert figures(rows)[:2] == [("a.json", 4, 41, 41), ("b.json", 4, 20, 20)]
    assert all(row["stopped"] == "interrupted" for row in rows[2:])
    assert without_times(json.loads(out.read_text())["rows"]) == without_times(rows)
    cut = len(rows) - 2
    assert json.loads(stdout)["unfinished"] == {"cut_short": cut, "not_begun": 1 - cut}
    assert "warning: interrupted with 1 unfinished" in stderr
    assert run("verify", out, "--model", two_chains, "--shallow").returncode in (0, 3)
    with sqlite3.connect(store) as connection:
        assert connection.execute("SELECT count(*) FROM certificates").fetchone() == (2,)


@pytest.mark.slow
def test_assumptions_of_readers_are_told(two_chains: Path) -> None:
    """In the table and in the model's rows, of certificates, bounds and comparisons."""
    text = (two_chains / "a.json").read_text()
    assumed = "Loop_0: the trip count is not known: one trip counted"
    (two_chains / "a.json").write_text(text.rstrip()[:-1] + f', "metadata": {{"assumptions": ["{assumed}"]}}}}')
    for command in (("certify",), ("bound",), ("compare", "--algorithms", "slice")):
        assert assumed in printed(*command, two_chains, "-k", "2", "-q").partition("assumptions")[2]
    rows = table(two_chains, "-k", "2")
    assert [row.get("assumptions") for row in rows] == [[assumed], None]
    done = run("certify", two_chains / "a.json", "-k", "2", "-q", "-o", two_chains.parent / "table.json")
    assert run("verify", two_chains.parent / "table.json").returncode == done.returncode == 0
