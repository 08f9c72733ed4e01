"""``mtpp certify`` killed again and again: what was reported is in the store, and the end is the same."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import subprocess
import uuid
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain, random_graph
from processes import MARK, MTPP, ROOT, environment, left_over, until
from seeds import ALL_SEEDS

from mtpp.formats.graphs.native import write_native

COUNTS = (2, 3, 4, 5, 6, 8)
GRAPHS = 24
KILLS = 10 if ALL_SEEDS else 5
_NOTE = re.compile(r"(.*), k = (\d+)(?: \(stored\))?: .* (target|finished|time-limit)\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of graphs whose cells close by themselves."""
    path = tmp_path / "models"
    path.mkdir()
    for seed in range(GRAPHS // 2):
        (path / f"random-{seed}.json").write_text(write_native(random_graph(seed, 10)))
        pick = random.Random(seed)
        works, links = [pick.randint(1, 99) for _ in range(40)], [pick.randint(1, 9) for _ in range(39)]
        (path / f"chain-{seed}.json").write_text(write_native(chain(works, links, "ms")))
    return path


def start(folder: Path, store: Path, out: Path, notes: Path, mark: str) -> subprocess.Popen[bytes]:
    """Start a run; its notes go to a file."""
    counts = ",".join(map(str, COUNTS))
    command = [*MTPP, "certify", folder, "-k", counts, "--store", store, "-o", out, "-v", "-j", "2"]
    with notes.open("wb") as stream:
        return subprocess.Popen(
            list(map(str, command)), cwd=ROOT, env=environment() | {MARK: mark}, stdout=subprocess.DEVNULL,
            stderr=stream,
        )  # fmt: skip


def reported(notes: Path) -> set[tuple[str, int]]:
    """Return the cells whose outcomes were told, by file and k."""
    lines = notes.read_text().splitlines(keepends=True)
    return {(found[1], int(found[2])) for found in map(_NOTE.fullmatch, lines) if found}


def stored(store: Path) -> set[tuple[str, int]]:
    """Return the cells that are in the store; there may be none yet."""
    with closing(sqlite3.connect(store)) as connection, suppress(sqlite3.OperationalError):
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = [json.loads(text) for (text,) in connection.execute("SELECT row FROM certificates")]
        return {(row["path"], row["k"]) for row in rows}
    return set()


def table(out: Path) -> list[tuple[Any, ...]]:
    """Return what of a table does not depend on the clock."""
    keys = ("path", "sha256", "ops", "k", "upper", "lower", "ratio", "optimal", "stopped")
    return [tuple(row[key] for key in keys) for row in json.loads(out.read_text())["rows"]]


@pytest.mark.slow
def test_nothing_reported_is_lost(folder: Path, tmp_path: Path) -> None:
    """Kills at random moments: the store opens, has all that was reported, and the last run ends as any other."""
    store, out, notes = tmp_path / "s.db", tmp_path / "certs.json", tmp_path / "notes"
    plain = start(folder, tmp_path / "plain.db", tmp_path / "plain.json", notes, uuid.uuid4().hex)
    assert plain.wait() == 0
    assert len(reported(notes)) == GRAPHS * len(COUNTS)
    assert {row[-1] for row in table(tmp_path / "plain.json")} == {"target"}
    pick, seen, killed = random.Random(5), set[tuple[str, int]](), 0
    while killed < KILLS:
        mark = uuid.uuid4().hex
        process = start(folder, store, out, notes, mark)
        aim = len(seen) + pick.randint(0, 3)
        with suppress(subprocess.TimeoutExpired):
            until(lambda process=process, aim=aim: process.poll() is not None or len(reported(notes)) >= aim)
            process.wait(timeout=pick.uniform(0, 0.1))
        assert process.poll() is None, "the run ended before it could be killed"
        process.kill()
        process.wait()
        killed += 1
        until(lambda mark=mark: not left_over(mark))
        seen |= reported(notes)
        assert seen <= stored(store)
        assert not out.exists()
    last = start(folder, store, out, notes, uuid.uuid4().hex)
    assert last.wait() == 0
    assert seen <= stored(store)
    assert notes.read_text().count("(stored)") >= len(seen)
    assert table(out) == table(tmp_path / "plain.json")
    assert len(table(out)) == GRAPHS * len(COUNTS)
