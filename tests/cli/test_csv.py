"""Names that a spreadsheet would run, through every CSV that a command writes, and back."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from processes import run

from mtpp.formats.io.csv_text import csv_rows

NAMES = [
    "+1",
    "-1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    " =1",
    "=1",
    "|x",
    "a|b`<script>",
    "\n=2",
    "'=1",
    "＝1",
    "\u00a0-1",
    "ok",
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a chain whose ops, kinds and name are formulas; so is the name of its file."""
    ops = [{"name": name, "work": i + 1, "kind": "=K"} for i, name in enumerate(NAMES)]
    tensors = [
        {"name": f"={i}", "producer": NAMES[i], "consumers": [NAMES[i + 1]], "transfer": 1, "bytes": 8}
        for i in range(len(NAMES) - 1)
    ]
    graph = {"format": "mtpp-graph", "version": 1, "name": "=cmd|x", "time_unit": "us", "ops": ops, "tensors": tensors}
    path = tmp_path / "=model.json"
    path.write_text(json.dumps(graph))
    return path


def _refuse_formulas(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) > 1
    for row in rows:
        for cell in row:
            seen = cell.strip()
            assert not seen.startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠")), row
            assert not cell.startswith(("\t", "\r", "\n")), row


def test_every_csv_of_a_graph(model: Path, tmp_path: Path) -> None:
    """Nothing that any command prints or writes as CSV is a formula."""
    folder = model.parent
    plan = tmp_path / "plan.json"
    assert run("partition", model, "-k", "3", "-q", "-o", plan).returncode == 0
    (folder / "hand.json").write_text(json.dumps({name: min(i, 2) for i, name in enumerate(NAMES)}))
    commands = (
        ("partition", "=model.json", "-k", "3"),
        ("evaluate", "=model.json", "--assignment", plan),
        ("evaluate", "=model.json", "--assignment", plan, "--against", "hand.json"),
        ("inspect", "=model.json"),
        ("inspect", "=model.json", "--ops"),
        ("compare", "=model.json", "-k", "2", "--algorithms", "slice,random-10"),
        ("bound", "=model.json", "-k", "2", "--bounds", "simple,node"),
        ("certify", "=model.json", "-k", "2", "-j", "1", "--plot", "p.svg"),
    )
    for command in commands:
        done = run(*command, "-q", "--format", "csv", cwd=folder)
        assert done.returncode == 0, done.stderr
        _refuse_formulas(done.stdout)
    _refuse_formulas((folder / "p.csv").read_text())


@pytest.mark.parametrize("graph", ["own", "shared"])
def test_names_come_back_from_a_csv_of_stages(graph: str, model: Path, request: pytest.FixtureRequest) -> None:
    """``convert --to csv`` and ``evaluate --assignment`` undo each other, whatever the ops are called."""
    folder = model.parent
    if graph == "shared":
        shutil.copy(request.getfixturevalue("shared_data") / "trust" / "csv_formula.json", model)
    names = [op["name"] for op in json.loads(model.read_text())["ops"]]
    plan, table = folder / "plan.json", folder / "stages.csv"
    assert run("partition", model, "-k", "3", "-q", "-o", plan).returncode == 0
    assert run("convert", model, table, "--assignment", plan).returncode == 0
    text = table.read_bytes().decode()
    _refuse_formulas(text)
    header, *rows = csv_rows(text)
    assert sorted(row[header.index("op")] for row in rows) == sorted(names)
    assert {row[header.index("kind")] for row in rows} == {"=K"}
    again = run("evaluate", model, "--assignment", table, "--format", "json")
    assert json.loads(again.stdout)["assignment"] == json.loads(plan.read_text())["assignment"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stage,op\n0,a\n0,a\n", "row 3: the op 'a' stands there twice"),
        ("stage,op\nx,a\n", "row 2: 'x' is not the number of a stage"),
        ("stage,op\n0\n", "row 2: has 1 cells"),
        ('stage,op\n0,"a\n', "not comma-separated values"),
        ("stage,name\n0,a\n", "not valid JSON"),
    ],
)
def test_broken_tables_of_stages(text: str, problem: str, chain_file: Path, tmp_path: Path) -> None:
    """One line that names the row, exit code 2."""
    table = tmp_path / "stages.csv"
    table.write_text(text)
    done = run("evaluate", chain_file, "--assignment", table)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {table}: ")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
