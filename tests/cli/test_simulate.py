"""``mtpp simulate`` as a process: streams, files and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from processes import LONGEST_S, MTPP, ROOT, environment, printed, refused, run

EXAMPLE = ROOT / "datasets" / "samples" / "three-towers.json"


def test_a_table_and_files(tmp_path: Path) -> None:
    """The table on standard output, JSON, chart and trace where they are asked for."""
    names = {name: tmp_path / name for name in ("s.json", "g.svg", "t.json")}
    done = run("simulate", EXAMPLE, "-o", names["s.json"], "--gantt", names["g.svg"], "--trace", names["t.json"], "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "iteration   36.20 ms" in done.stdout
    assert json.loads(names["s.json"].read_text())["iteration_ticks"] == 36_200_000_000
    assert names["g.svg"].read_text().startswith("<svg")
    shown = printed("simulate", "-", "--format", "json", stdin=EXAMPLE.read_bytes())
    assert json.loads(shown)["iteration_ticks"] == 36_200_000_000


def test_a_narrow_terminal_cuts_and_wraps_nothing() -> None:
    """Standard output that is a terminal of 60 columns: columns are left out and named, and the chart fits."""
    pty = pytest.importorskip("pty")
    termios = pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 60))
    environ = {name: value for name, value in environment().items() if name not in ("COLUMNS", "LINES")}
    command = [*MTPP, "simulate", str(EXAMPLE)]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**environ, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    pieces = []
    with suppress(OSError):  # which is how a terminal says that nobody writes to it any more
        while piece := os.read(ours, 1 << 16):
            pieces.append(piece)
    assert process.wait(timeout=LONGEST_S) == 0
    os.close(ours)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(pieces).decode())
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 60
    assert "…" not in shown
    assert re.search(r"not shown +last B ends", shown)
    assert re.search(r"iteration +36.20 ms", shown)


def test_passes_that_wait_for_each_other(tmp_path: Path) -> None:
    """Exit code 1, and one line names them."""
    text = EXAMPLE.read_text()
    stuck = tmp_path / "stuck.json"
    opposite = text.replace('"in_flight": 2}', '"order": "F2 B2 F1 B1 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 F8 B8"}', 1)
    opposite = opposite.replace('"in_flight": 2}', '"order": "F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 F8 B8"}', 1)
    stuck.write_text(opposite)
    done = run("simulate", stuck)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "passes wait for each other: " in done.stderr
    assert " waits for " in done.stderr


def test_a_plan_with_its_model(tmp_path: Path) -> None:
    """From generating a model to simulating its plan, in four commands; a missing model is asked for."""
    model, plan = tmp_path / "mmt.json", tmp_path / "plan.json"
    assert run("generate", "mmt", "--branches", "2", "--layers", "2", "-o", model).returncode == 0
    system = ("--devices", "2", "--memory", "16GiB", "--bandwidth", "12.5GB/s", "--max-micro-batches", "8")
    assert run("plan", model, *system, "-o", plan).returncode == 0
    sizes = ("--batch-size", "32", "--micro-batch-size", "4")
    shown = printed("simulate", plan, "--model", model, *sizes, "--format", "json")
    assert {stage["micro_batch"] for stage in json.loads(shown)["stages"]} == {4}
    assert printed("simulate", plan, *sizes, "--format", "json") == shown
    model.rename(tmp_path / "elsewhere.json")
    said = refused("simulate", plan, *sizes)
    assert said == "error: --model: must be given with a training plan; give the model that the plan is for\n"


def test_a_plan_of_split_points(tmp_path: Path) -> None:
    """It says all times itself; the picture marks the critical path, and a changed iteration is told."""
    names = {name: tmp_path / name for name in ("graph.json", "plan.json", "g.svg", "g.html", "t.json")}
    assert run("generate", "transformer", "--layers", "2", "-o", names["graph.json"]).returncode == 0
    made = ("--planner", "pfeife", "--devices", "2", "--micro-batches", "4")
    assert run("plan", names["graph.json"], *made, "-o", names["plan.json"], "-q").returncode == 0
    plan = json.loads(names["plan.json"].read_text())
    done = run("simulate", names["plan.json"], "--gantt", names["g.svg"], "--trace", names["t.json"], "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "critical path" in done.stdout
    assert "critical path" in names["g.svg"].read_text()
    events = json.loads(names["t.json"].read_text())["traceEvents"]
    count = sum(map(len, plan["schedule"]["order"]))
    assert sum(event.get("cat") in ("forward", "backward") for event in events) == count
    piped = run("simulate", "-", "--format", "json", stdin=names["plan.json"].read_bytes())
    told = json.loads(piped.stdout)
    assert (told["version"], told["iteration_ticks"]) == (2, plan["iteration_ticks"])
    assert [one["busy_ticks"] for one in told["devices"]] == [one["busy_ticks"] for one in plan["devices"]]
    rows = run("simulate", names["plan.json"], "--format", "csv").stdout.splitlines()
    assert (len(rows), rows[0].split(",")[0]) == (3, "index")
    said = refused("simulate", names["plan.json"], "--model", names["graph.json"])
    assert "--model: has no effect: the plan says all times; leave it out" in said
    plan["iteration_ticks"] -= 1
    names["plan.json"].write_text(json.dumps(plan))
    false = run("simulate", names["plan.json"], "--gantt", names["g.html"])
    assert (false.returncode, false.stdout) == (1, "")
    assert "/iteration_ticks: " in false.stderr
    assert "but its passes take" in false.stderr
    assert not names["g.html"].exists()
