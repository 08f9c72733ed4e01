"""Cells on a real Dask cluster: the same rows as here, workers and schedulers that are lost, and none at all."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_cluster import DaskCluster, kill_all
from graph_strategies import random_graph
from plans_beside_models import without_times
from processes import MTPP, ROOT, environment, run, until

from mtpp.formats.graphs.native import write_native


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    """Return a cluster of two workers."""
    pytest.importorskip("distributed")
    folder = tmp_path / "cluster"
    folder.mkdir()
    started = DaskCluster(folder)
    yield started
    started.stop()


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    """Return a graph whose cells take as long as they may."""
    path = tmp_path / "hard.json"
    path.write_text(write_native(random_graph(3, 3000)))
    return path


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start ``mtpp certify``."""
    return subprocess.Popen(
        [*MTPP, "certify", *map(str, arguments)], cwd=ROOT, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def busy(cluster: DaskCluster, two_chains: Path, hard: Path) -> subprocess.Popen[str]:
    """Start a run and wait until two cells are done and one is worked at."""
    options = ("-k", "4", "--time-limit", "600", "--format", "json", "--scheduler", cluster.address, "-v")
    process = start(two_chains, hard, *options)
    assert process.stderr is not None
    seen = ""
    while seen.count("target") < 2:
        seen += process.stderr.readline()
    until(lambda: len(cluster.cell_processes()) == 1)
    return process


@pytest.mark.slow
def test_rows_are_those_of_this_machine(cluster: DaskCluster, two_chains: Path, tmp_path: Path) -> None:
    """Whichever worker they come from, and they are stored as they come; the scheduler need not have this package."""
    store = tmp_path / "s.db"
    options = ("-k", "2,3,4", "--format", "json", "-q")
    here = json.loads(run("certify", two_chains, *options).stdout)["rows"]
    done = run("certify", two_chains, *options, "--scheduler", cluster.address, "--store", store)
    assert (done.returncode, done.stderr) == (0, "")
    assert without_times(json.loads(done.stdout)["rows"]) == without_times(here)
    with sqlite3.connect(store) as connection:
        assert connection.execute("SELECT count(*) FROM certificates").fetchone() == (6,)


@pytest.mark.slow
def test_a_lost_worker_loses_no_cell(cluster: DaskCluster, two_chains: Path, hard: Path) -> None:
    """Another one takes over what it was at."""
    options = ("-k", "4,8,16", "--time-limit", "5", "--format", "json", "-q", "--scheduler", cluster.address)
    process = start(hard, *options)
    until(lambda: len(cluster.cell_processes()) == 2)
    kill_all(cluster.workers[0])
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (0, "")
    assert [row["k"] for row in json.loads(stdout)["rows"]] == [4, 8, 16]


@pytest.mark.slow
def test_interruption_frees_the_workers(cluster: DaskCluster, two_chains: Path, hard: Path) -> None:
    """What they were at is wanted by nobody; the table has what was done."""
    process = busy(cluster, two_chains, hard)
    os.kill(process.pid, signal.SIGINT)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(json.loads(stdout)["rows"]) == 2
    until(lambda: not cluster.cell_processes())


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_run(cluster: DaskCluster, two_chains: Path, hard: Path) -> None:
    """With one line, exit code 2, and the table of what was done."""
    process = busy(cluster, two_chains, hard)
    kill_all(cluster.scheduler)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 2, stderr
    assert len(json.loads(stdout)["rows"]) == 2
    assert stderr.splitlines()[-1].startswith(f"error: scheduler {cluster.address}: was lost; ")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("tcp://127.0.0.1:1", marks=pytest.mark.slow),
        "nonsense://x:1",
        "tls://127.0.0.1:1",
        pytest.param("tcp://127.0.0.1:99999", marks=pytest.mark.slow),
        "127.0.0.1",
        "",
    ],
)
def test_no_scheduler_there(two_chains: Path, address: str) -> None:
    """One line, exit code 2."""
    pytest.importorskip("distributed")
    done = run("certify", two_chains, "-k", "2", "--scheduler", address)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: --scheduler: ")


def test_without_the_package(two_chains: Path, tmp_path: Path) -> None:
    """One line that says what to install, exit code 2."""
    (tmp_path / "distributed.py").write_text("raise ImportError")
    env = environment() | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [*MTPP, "certify", str(two_chains), "-k", "2", "--scheduler", "tcp://127.0.0.1:1"],
        cwd=ROOT, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --scheduler: needs the package distributed; pip install 'mtpp[dask]'\n"
