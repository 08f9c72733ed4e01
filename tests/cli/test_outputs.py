"""Output that goes wrong, and names in tables and CSV files that a terminal or a spreadsheet would obey."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from graph_strategies import chain
from processes import MTPP, ROOT, environment, printed, refused, run

from mtpp.cli.terminal.console import Console
from mtpp.formats.graphs.native import write_native
from mtpp.formats.io.csv_text import csv_rows
from mtpp.inference.graph import CostGraph, Op

POSIX = pytest.mark.skipif(os.name != "posix", reason="shell redirections")


def _shell(line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", line, "sh", *MTPP, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)


@POSIX
def test_a_full_device(chain_file: Path) -> None:
    """What cannot be written is said in one line."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    done = _shell('"$@" > /dev/full', "partition", chain_file, "-k", "2", "-q")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: standard output: cannot be written: ")
    assert done.stderr.count("\n") == 1


@POSIX
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_takes_only_the_beginning(unbuffered: str, tmp_path: Path) -> None:
    """A result that is cut short is an error, whether Python buffers standard output or not."""
    line = f'PYTHONUNBUFFERED={unbuffered}; export PYTHONUNBUFFERED; ulimit -f 8; "$@" > "{tmp_path}/short"'
    done = _shell(line, "generate", "chain", "-n", "2000")
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output: cannot be written: ")


@POSIX
def test_closed_streams(chain_file: Path) -> None:
    """A closed standard output is an error; a closed standard error swallows warnings, never into the result."""
    closed = _shell('"$@" >&-', "partition", chain_file, "-k", "2", "-q")
    assert closed.returncode == 2
    assert closed.stderr.startswith("error: standard output: is closed")
    silent = _shell('"$@" 2>&-', "partition", chain_file, "-k", "9", "--format", "json")
    assert silent.returncode == 0
    assert json.loads(silent.stdout)["k"] == 9


@POSIX
def test_a_reader_that_is_gone(chain_file: Path) -> None:
    """Nobody reads the pipe: exit code 141, as of a program that a closed pipe kills, and not a word."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [*MTPP, "partition", str(chain_file), "-k", "2"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@POSIX
def test_output_into_a_pipe(chain_file: Path) -> None:
    """``-o /dev/stdout`` works though it is a pipe."""
    done = _shell('"$@" | cat', "convert", chain_file, "/dev/stdout")
    assert done.stderr == ""
    assert json.loads(done.stdout)["format"] == "mtpp-graph"


def test_a_ratio_of_one_is_one(tmp_path: Path) -> None:
    """2^53 + 2 over 2^53 + 1 is above 1, though not as a float."""
    ops = [Op("a", 2**53 + 2), Op("b", 2**53)]
    model = tmp_path / "near.json"
    model.write_text(write_native(CostGraph.build(name="near", time_unit="1", ops=ops, tensors=[])))
    plan = tmp_path / "plan.json"
    assert run("partition", model, "-k", "2", "-q", "-o", plan).returncode == 0
    heavier = json.loads(plan.read_text())
    assert heavier["bottleneck"] == heavier["lower_bound"]["value"]
    wide = [Op("a", 2**52 + 1), Op("b", 2**52), Op("c", 2**53 + 2)]
    model.write_text(write_native(CostGraph.build(name="near", time_unit="1", ops=wide, tensors=[])))
    tensors = json.loads(model.read_text())
    tensors["tensors"] = [{"name": "t", "producer": "a", "consumers": ["c"], "transfer": 1}]
    model.write_text(json.dumps(tensors))
    done = run("partition", model, "-k", "2", "--algorithm", "slice", "-q", "--require-ratio", "1")
    assert done.returncode == 1
    assert "just above 1" in done.stdout
    assert done.stderr == "unmet: --require-ratio 1: the proven ratio is above 1\n"


def test_a_malformed_plan_is_refused_before_its_system_is_used(chain_file: Path, tmp_path: Path) -> None:
    """With the model at hand or without, the place in the plan is named."""
    plan = tmp_path / "plan.json"
    assert run("partition", chain_file, "-k", "2", "-q", "-o", plan).returncode == 0
    document = json.loads(plan.read_text())
    for change, where in ((("name", 5), "/system/name"), (("peak_flops_per_s", -1), "/system/peak_flops_per_s")):
        broken = tmp_path / "broken.json"
        broken.write_text(json.dumps({**document, "system": {**document["system"], change[0]: change[1]}}))
        assert f"broken.json: {where}: " in refused("verify", broken, "--model", chain_file)


def test_plans_from_before_there_was_a_stage_memory(chain_file: Path, tmp_path: Path) -> None:
    """Their system lacks the key, which means no limit."""
    plan = tmp_path / "plan.json"
    assert run("partition", chain_file, "-k", "2", "-q", "-o", plan).returncode == 0
    document = json.loads(plan.read_text())
    del document["system"]["stage_memory_bytes"]
    plan.write_text(json.dumps(document))
    assert run("verify", plan, "--model", chain_file).returncode == 0


def test_stages_that_run_backwards_are_renumbered_aloud(chain_file: Path, tmp_path: Path) -> None:
    """The partition is the same, but the reader should know."""
    given = tmp_path / "given.json"
    given.write_text(json.dumps({"op0": 1, "op1": 1, "op2": 0, "op3": 0}))
    done = run("evaluate", chain_file, "--assignment", given)
    assert done.returncode == 0
    assert "numbered anew" in done.stderr


def test_blocks_on_a_cycle_are_named_alone(tmp_path: Path) -> None:
    """Blocks behind the cycle have no part in it."""
    model, given = tmp_path / "chain.json", tmp_path / "given.json"
    model.write_text(write_native(chain([1, 1, 1, 1], [1, 1, 1])))
    given.write_text(json.dumps({"op0": 0, "op1": 1, "op2": 0, "op3": 2}))
    done = run("evaluate", model, "--assignment", given)
    assert done.returncode == 1
    assert "0 -> 1 -> 0" in done.stderr or "1 -> 0 -> 1" in done.stderr


def test_bandwidth_matters_to_a_fast_memory(chain_file: Path) -> None:
    """Overflow is streamed over the link, so the option has an effect though transfers are given."""
    graph = json.loads(chain_file.read_text())
    for tensor in graph["tensors"]:
        tensor.update(transfer=1, bytes=8)
    chain_file.write_text(json.dumps(graph))
    assert "no effect" in run("partition", chain_file, "-k", "2", "--bandwidth", "1GB/s").stderr
    assert run("partition", chain_file, "-k", "2", "--bandwidth", "1GB/s", "--fast-memory", "1B").stderr == ""


NAME = "\x1b[31mred\nok  optimal  proven"

COMMANDS = (
    ("partition", "-k", "2"),
    ("inspect",),
    ("inspect", "--ops"),
    ("certify", "-k", "2"),
    ("certify", "-k", "2,3", "-q"),
    ("bound", "-k", "2", "--bounds", "simple"),
    ("compare", "-k", "2", "--algorithms", "slice"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("shape", ["table", "markdown"])
def test_a_name_stays_in_its_cell(command: tuple[str, ...], shape: str, tmp_path: Path) -> None:
    """Of a graph, an op, a kind and a tensor, on a pipe, which gets no colours."""
    ops = [{"name": f"{NAME}{v}", "kind": NAME, "work": v + 1} for v in range(3)]
    tensors = [{"name": NAME, "producer": ops[0]["name"], "consumers": [ops[1]["name"]], "transfer": 1, "bytes": 1}]
    graph = {"format": "mtpp-graph", "version": 1, "name": NAME, "time_unit": "us", "ops": ops, "tensors": tensors}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    done = run(command[0], "graph.json", *command[1:], "--format", shape, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert not [line for line in done.stdout.split("\n") if line.startswith("ok")]
    assert "red\\nok  optimal" in done.stdout


def test_a_name_beside_a_bar_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being done is shown beside a bar on a terminal, names of models in it."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with Console(quiet=False, verbose=False).steps() as bar:
        bar.show(f"{NAME} · k = 2", 1, 2)
    assert "\\x1b[31mred\\nok" in screen.getvalue()
    assert "\x1b[31mred" not in screen.getvalue()


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
        _refuse_formulas(printed(*command, "-q", "--format", "csv", cwd=folder))
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
    said = refused("evaluate", chain_file, "--assignment", table)
    assert said.startswith(f"error: {table}: ")
    assert problem in said
    assert said.count("\n") == 1
