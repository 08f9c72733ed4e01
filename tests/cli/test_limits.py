"""Limits of whole commands: refused, reached while reading, and of no effect where they do not strike."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from processes import refused, run

from mtpp.datasets.layered import layered_network
from mtpp.formats.graphs.native import write_native
from mtpp.inference.certificate_table import BoundFigure
from mtpp.views.certificate_texts import bounds_cut_short, runs_cut_short

COMMANDS = {
    "partition": ("-k", "2"),
    "bound": ("-k", "2"),
    "certify": ("-k", "2"),
    "compare": ("-k", "2"),
    "plan": (),
    "verify": (),
    "evaluate": ("--cuts", "op0"),
    "inspect": (),
    "convert": ("-",),
    "profile": (),
    "split": ("plan.json",),
    "run": (),
}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Return the file of a layered network."""
    path = tmp_path / "graph.json"
    path.write_text(write_native(layered_network(300)), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_too_little_memory_is_refused(command: str, graph: Path) -> None:
    """Less than 512 MiB is an error of one line, exit code 2, before anything is read."""
    said = refused(command, graph, *COMMANDS[command], "--memory-limit", "511MiB")
    assert said == "error: --memory-limit: 511MiB is too little to work with; give at least 512MiB\n"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a graph that takes seconds to be read."""
    path = tmp_path_factory.mktemp("long") / "graph.json"
    ops = ",".join(f'{{"name":"o{v}","work":{v}.25}}' for v in range(400_000))
    path.write_text(
        f'{{"format":"mtpp-graph","version":1,"name":"long","time_unit":"us","ops":[{ops}],"tensors":[]}}',
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("command", ["partition", "bound", "certify", "compare"])
def test_time_that_ends_while_reading(command: str, long: Path) -> None:
    """What ends while the model is read is one line with its name, exit code 1."""
    done = run(command, long, "-k", "2", "--time-limit", "0.001")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    passed = "the time limit of 0.001 s passed while reading; raise it, or give a smaller model"
    assert line == f"error: {long}: {passed}"


def test_the_whole_run_of_bounds_has_a_limit(long: Path) -> None:
    """--total-time-limit holds while reading, for bounds as well."""
    done = run("bound", long, "-k", "2", "--total-time-limit", "0.001")
    assert done.returncode == 1
    assert "passed while reading" in done.stderr


def test_limits_that_do_not_strike_change_nothing(graph: Path) -> None:
    """With memory enough the plan is the same, apart from times."""

    def plan(*extra: str) -> dict[str, object]:
        done = run("partition", graph, "-k", "4", "--format", "json", "--work-limit", "300", *extra)
        document: dict[str, object] = json.loads(done.stdout)
        del document["elapsed_s"]
        return document

    assert plan("--memory-limit", "2GiB") == plan()


def test_bounds_that_were_cut_short_are_named() -> None:
    """Bounds that more time would raise, and those asked for that had no turn; not those that were not needed."""
    done, cut = BoundFigure(3, 0.1, solved=True), BoundFigure(None, 0.1, solved=False)
    row = SimpleNamespace(stopped="time-limit", bounds={"simple": done, "node": cut})
    closed = SimpleNamespace(stopped="target", bounds={"simple": done})
    asked = ("node", "fraction")
    assert list(bounds_cut_short([row], asked)) == [("cut short", "node; no turn: fraction")]  # type: ignore[list-item]
    both = bounds_cut_short([row, closed], asked)  # type: ignore[list-item]
    assert list(both) == [("cut short", "node (1 of 2); no turn: fraction (1 of 2)")]
    assert list(bounds_cut_short([closed], asked)) == []  # type: ignore[list-item]


def test_runs_that_were_cut_short_are_counted() -> None:
    """By algorithm, those that a limit ended."""
    stops = ("time-limit", "budget", "memory-limit")
    cells = [SimpleNamespace(algorithm="slice", stopped=stop) for stop in stops]
    assert list(runs_cut_short(cells)) == [("cut short", "slice (2 of 3 runs)")]  # type: ignore[arg-type]
    assert list(runs_cut_short(cells[1:2])) == []  # type: ignore[arg-type]
