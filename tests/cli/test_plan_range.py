"""``mtpp partition -k 1-4`` as a process: table, CSV, file, requirements, refusals, Ctrl-C, and the way on."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from graph_strategies import random_graph
from processes import MTPP, ROOT, environment, printed, refused, run

from mtpp.api.partitioning.next_step import NEAR
from mtpp.cli.terminal.next_command import with_options
from mtpp.formats.graphs.native import write_native


def test_table_file_and_csv(chain_file: Path, tmp_path: Path) -> None:
    """A line for each number, once each and ascending, with the gain of each step; verify reads the file."""
    out = tmp_path / "range.json"
    shown = printed("partition", chain_file, "-k", "3,1-2,3", "-o", out, stderr="").splitlines()
    assert shown[0] == "chain: 4 ops, 3 tensors (times in ms)"
    assert shown[1].split() == ["k", "bottleneck", "inferences/s", "latency", "gain", "ratio", "bound"]
    assert [line.split()[0] for line in shown[2:5]] == ["1", "2", "3"]
    assert shown[3].split()[4:6] == ["+63.9%", "1"]
    assert "knee         none up to 3: the last step brings a tenth or more per device" in shown
    assert all(len(line) <= 80 for line in shown[:5])
    document = json.loads(out.read_text())
    assert [plan["k"] for plan in document["plans"]] == [1, 2, 3]
    checked = run("verify", out, "--model", chain_file)
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (
        0, "valid: all 3 plans hold, every bound checked again",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(printed("partition", chain_file, "-k", "1-3", "--format", "csv"))))
    assert [row["gain_per_device"] for row in rows] == [
        "" if row["gain_per_device"] is None else str(row["gain_per_device"]) for row in document["rows"]
    ]
    assert printed("partition", chain_file, "-k", "2-2").startswith("chain: 4 ops, 3 tensors, k = 2 (times in ms)\n")


def test_refusals(chain_file: Path) -> None:
    """In one line each."""
    for words, said in (
        (("-k", "1-2", "--emit", "cut-names"), "--emit: is of one plan"),
        (("-k", "1-2", "--frontier"), "--frontier: is of one plan"),
        (("-k", "2-1"), "2-1 is a range that ends before it begins"),
        (("-k", "1-2-3"), "'1-2-3' is neither a number of stages nor a range"),
        (("-k", "0-2"), "0 is not in the range"),
        (("-k", "1-5000"), "1-5000 has 5,000 numbers, more than 1,000"),
        (("-k", "1,2", "--max-bottleneck", "1s"), "give either -k or --max-bottleneck"),
    ):
        assert said in refused("partition", chain_file, *words)


def test_requirements_are_of_every_plan(tmp_path: Path) -> None:
    """A number without a plan, and one whose plan is not proven, are named."""
    path = tmp_path / "pair.json"
    ops = [{"name": name, "work": 2, "param_bytes": 60} for name in "ab"]
    path.write_text(
        json.dumps({"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ms", "ops": ops, "tensors": []})
    )
    done = run("partition", path, "-k", "1,2", "--stage-memory", "100B", "--require-optimal")
    assert (done.returncode, done.stderr) == (1, "unmet: k = 1: no plan\n")
    assert "no plan      k = 1: proven infeasible: " in done.stdout
    assert run("partition", path, "-k", "1,2", "--stage-memory", "100B").returncode == 0


def test_ctrl_c_writes_the_plans_there_are(tmp_path: Path) -> None:
    """The others are named as missing, and the file is valid as far as it goes."""
    path, out = tmp_path / "hard.json", tmp_path / "range.json"
    path.write_text(write_native(random_graph(3, 2000)))
    command = [*MTPP, "partition", path, "-k", "1,2-40", "-o", out, "-v", "--time-limit", "600"]
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    while "search: " not in process.stderr.readline():
        pass
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    document = json.loads(out.read_text())
    asked = [plan["k"] for plan in document["plans"]] + [one["k"] for one in document["missing"]]
    assert sorted(asked) == list(range(1, 41))
    assert {one["why"] for one in document["missing"]} == {"interrupted before its turn"}


@pytest.mark.parametrize(
    ("words", "options", "due"),
    [
        ("a -k 4", {("--time-limit",): "30"}, "a -k 4 --time-limit 30"),
        ("a --time-limit 5 -k 4", {("--time-limit",): "30"}, "a -k 4 --time-limit 30"),
        ("a --time-limit=5 -k1-4 -q", {("-k", "--stages"): "2,3", ("--time-limit",): "9"}, "a -q -k 2,3 --time-limit 9",
        ),
        ("a --stages 1-4", {("-k", "--stages"): "2"}, "a -k 2"),
        ("a --stages=1-4 -k=3", {("-k", "--stages"): "2"}, "a -k 2"),
    ],
)  # fmt: skip
def test_other_values_of_options(words: str, options: dict[tuple[str, ...], str], due: str) -> None:
    """They stand at the end, and what was given before is gone, however it was written."""
    assert " ".join(with_options(words.split(), options)) == due


def test_the_way_on_is_told(tmp_path: Path) -> None:
    """Where plans are near their bounds and not proven, the command that is likely to prove them; -q hides it."""
    path = tmp_path / "near.json"
    graph = random_graph(7, 60, largest_cost=1000, consumers_per_tensor=3)
    path.write_text(write_native(replace(graph, transfer=tuple(1 for _ in graph.transfer))))
    words = ("partition", path, "-k", "2,3", "--work-limit", "1")
    done = run(*words, "--format", "json")
    plans = json.loads(done.stdout)["plans"]
    near = [plan["k"] for plan in plans if not plan["optimal"] and plan["ratio"] <= NEAR]
    assert near
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"likely to close the gap{'s' if len(near) > 1 else ''} of k = {', '.join(map(str, near))}")
    assert line.endswith(f"--format json --time-limit {60 * len(near)} -k {','.join(map(str, near))}")
    assert run(*words, "-q").stderr == ""
