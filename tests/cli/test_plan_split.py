"""``mtpp plan --planner pfeife``: plans that verify, what is refused with its place, and what fits nowhere."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from planning import line_of_ops
from processes import printed, refused, run

PLAN = ("--planner", "pfeife")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Return the file of fifteen equal ops, as in the paper's figure 4."""
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(line_of_ops(15, param_bytes=100)))
    return path


def test_figure_4(graph: Path, tmp_path: Path) -> None:
    """Three devices and micro-batches: 72 for 1F1B at its best split, 69 with prefetch; even stages take longer."""
    sizes = ("--devices", "3", "--micro-batches", "3", "--loops", "1")
    fixed = run("plan", str(graph), *PLAN, *sizes, "--prefetch", "0,0,0", "--format", "json")
    document = json.loads(fixed.stdout)
    assert (fixed.returncode, document["iteration_ticks"]) == (0, 72)
    assert [len(stage["layers"]) for stage in document["stages"]] == [6, 5, 4]
    plan = tmp_path / "plan.json"
    assert "69 for 3 micro-batches" in printed("plan", str(graph), *PLAN, *sizes, "-o", str(plan))
    assert json.loads(plan.read_text())["iteration_ticks"] == 69
    verified = run("verify", str(plan), "--model", str(graph))
    assert (verified.returncode, "lower bound" in verified.stdout) == (0, True), verified
    printed("evaluate", str(graph), "--assignment", str(plan), "-k", "3")


def test_uneven_stages_that_gain_nothing(graph: Path) -> None:
    """With four micro-batches and no prefetch the best split is no faster than an even one, and the table says so."""
    shown = run("plan", str(graph), *PLAN, "--devices", "3", "--micro-batches", "4", "--schedule", "1f1b")
    assert "90 for 4 micro-batches" in shown.stdout
    assert "gain nothing" in shown.stdout


def test_formats(graph: Path) -> None:
    """A row a stage as CSV; Markdown and JSON have the same numbers; standard input is read once."""
    sizes = ("--devices", "2", "--micro-batches", "2")
    text = graph.read_bytes()
    document = json.loads(run("plan", "-", *PLAN, *sizes, "--format", "json", stdin=text).stdout)
    rows = list(csv.DictReader(io.StringIO(run("plan", "-", *PLAN, *sizes, "--format", "csv", stdin=text).stdout)))
    assert [int(row["forward_ticks"]) for row in rows] == [stage["forward_ticks"] for stage in document["stages"]]
    markdown = run("plan", "-", *PLAN, *sizes, "--format", "markdown", stdin=text).stdout
    assert f"{document['iteration_ticks']} for 2 micro-batches" in markdown


def test_schedule_files(graph: Path, tmp_path: Path) -> None:
    """Passes from CSV are kept to; passes that wait for each other end with exit code 1 and are named."""
    good = tmp_path / "good.csv"
    good.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    sizes = ("--devices", "2", "--micro-batches", "2")
    plan = run("plan", str(graph), *PLAN, *sizes, "--schedule", str(good), "--format", "json")
    assert json.loads(plan.stdout)["schedule"]["order"][1] == ["1F0", "1B0", "1F1", "1B1"]
    refused("plan", str(graph), *PLAN, *sizes, "--schedule", str(good), "-o", str(good))
    assert good.read_text().startswith("0F0")
    waiting = tmp_path / "waiting.csv"
    waiting.write_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n")
    dead = run("plan", str(graph), *PLAN, *sizes, "--schedule", str(waiting))
    assert (dead.returncode, "waits for" in dead.stderr) == (1, True), dead
    assert dead.stderr.startswith(f"error: {waiting}: passes wait for each other: ")
    piped = run("plan", str(graph), *PLAN, *sizes, "--schedule", "-", stdin=good.read_bytes())
    assert (piped.returncode, "<stdin>, 2 stages" in piped.stdout) == (0, True), piped
    dead = run("plan", str(graph), *PLAN, *sizes, "--schedule", "-", stdin=waiting.read_bytes())
    assert (dead.returncode, dead.stderr.startswith("error: <stdin>: passes wait")) == (1, True), dead
    both = run("plan", "-", *PLAN, *sizes, "--schedule", "-", stdin=good.read_bytes())
    assert (both.returncode, "only one of model and schedule can be standard input" in both.stderr) == (2, True), both
    one = tmp_path / "one.csv"
    one.write_text("0F0,1F0,1B0,0B0\n")
    other = run("plan", str(graph), *PLAN, *sizes, "--schedule", str(one))
    assert (other.returncode, "one.csv has 1 device, not 2; set --devices 1" in other.stderr) == (2, True), other


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--devices", "0", "--micro-batches", "2"), "--devices"),
        (("--devices", "2", "--micro-batches", "0"), "--micro-batches"),
        (("--devices", "2"), "--micro-batches must be given"),
        (("--micro-batches", "2"), "--devices must be given"),
        (("--devices", "16", "--micro-batches", "2"), "16 stages need as many ops, and the model has 15"),
        (("--devices", "8", "--micro-batches", "2", "--loops", "2"), "fewer devices or loops"),
        (("--devices", "2", "--micro-batches", "4", "--loops", "1", "--prefetch", "0,3"), "may not grow"),
        (("--devices", "2", "--micro-batches", "4", "--prefetch", "1"), "give one for each device"),
        (("--devices", "2", "--micro-batches", "4", "--prefetch", "a,b"), "--prefetch"),
        (("--devices", "2", "--micro-batches", "4", "--memory", "1GB,1GB,1GB"), "3 values for 2 devices"),
        (("--devices", "2", "--micro-batches", "4", "--memory", "0B"), "--memory: must be above zero"),
        (("--devices", "2", "--micro-batches", "4", "--speed", "0"), "--speed"),
        (("--devices", "2", "--micro-batches", "4", "--schedule", "none.csv"), "there is no file 'none.csv'"),
        (("--devices", "2", "--micro-batches", "4", "--schedule", "1f1b", "--prefetch", "1,0"), "--prefetch"),
        (("--devices", "2", "--micro-batches", "4", "--schedule", "bfs", "--loop-batch", "any"), "through loops"),
        (("--devices", "2", "--micro-batches", "4", "--state", "1e9"), "above 0 and at most 1,000,000"),
        (("--devices", "2", "--micro-batches", "4", "--state", "1.0000000001"), "too many digits; round it to nine"),
        (("--devices", "2", "--micro-batches", "4", "--batch-size", "4"), "--batch-size"),
        (("--devices", "2", "--micro-batches", "4", "--latency", "1us"), "--latency"),
    ],
)
def test_bad_input(graph: Path, options: tuple[str, ...], said: str) -> None:
    """What cannot be is told in one line with the option, and exit code 2."""
    refused = run("plan", str(graph), *PLAN, *options)
    assert refused.returncode == 2, refused
    assert said in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("passes", "said"),
    [
        ("0F0,0B0,0F1\n1F0,1B0,1F1,1B1\n", "0B1 is missing"),
        ("0F0,0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n", "0F0 is there twice"),
        ("0F0,0B0,1F0,1B0\n1F1,1B1,0F1,0B1\n", "stage 1 of 2 devices is on device 0"),
        ("0F0,0X0\n1F0,1B0\n", "0X0"),
    ],
)
def test_bad_schedules(graph: Path, tmp_path: Path, passes: str, said: str) -> None:
    """A broken schedule is refused with the line and column of the fault."""
    path = tmp_path / "schedule.csv"
    path.write_text(passes)
    shown = refused("plan", str(graph), *PLAN, "--devices", "2", "--micro-batches", "2", "--schedule", str(path))
    assert said in shown
    assert "schedule.csv: line" in shown


def test_memory(graph: Path, tmp_path: Path) -> None:
    """Nothing fits: exit code 1 with the memory that would do, which does; sizes that are not known are refused."""
    sizes = ("--devices", "3", "--micro-batches", "2", "--loops", "1")
    none = run("plan", str(graph), *PLAN, *sizes, "--memory", "1kB", "--format", "json")
    document = json.loads(none.stdout)
    assert (none.returncode, document["feasible"], document["proven"]) == (1, False, True)
    least = document["least_memory_bytes"]
    assert f"--memory {least}B would do" in none.stderr
    table = run("plan", str(graph), *PLAN, *sizes, "--memory", "1kB")
    assert f"--memory {least}B would do" in table.stdout
    assert run("plan", str(graph), *PLAN, *sizes, "--memory", f"{least}B").returncode == 0
    unknown = line_of_ops(15)
    for tensor in unknown["tensors"]:
        del tensor["bytes"]
    path = tmp_path / "unknown.json"
    path.write_text(json.dumps(unknown))
    refused = run("plan", str(path), *PLAN, *sizes, "--memory", "1kB")
    assert (refused.returncode, "bytes of all tensors, such as that of op 'v0'" in refused.stderr) == (2, True)
    assert run("plan", str(path), *PLAN, *sizes).returncode == 0


def test_options_of_other_planners(graph: Path) -> None:
    """Options that mean nothing to a planner are refused by name."""
    refused = run("plan", str(graph), "--devices", "2", "--micro-batches", "2")
    assert (refused.returncode, "--micro-batches: has no effect on the planner piper" in refused.stderr) == (2, True)


def test_a_folder_for_pytorch(graph: Path, tmp_path: Path) -> None:
    """Plan, passes and stages, all or nothing; nothing where there is no plan."""
    sizes = ("--planner", "pfeife", "--devices", "2", "--micro-batches", "4")
    out = tmp_path / "out"
    assert "iteration" in printed("plan", graph, *sizes, "--emit", "torch-pipelining", "-o", out, "-q", stderr="")
    assert sorted(file.name for file in out.iterdir()) == ["plan.json", "schedule.csv", "stages.json"]
    plan = json.loads((out / "plan.json").read_text())
    assert (out / "schedule.csv").read_text().splitlines() == [",".join(row) for row in plan["schedule"]["order"]]
    rows = tmp_path / "rows.csv"
    rows.write_text("0F0,2F0,2B0,0B0\n1F0,1B0\n")
    other = ("--planner", "pfeife", "--devices", "2", "--micro-batches", "1", "--schedule", rows)
    for options, code, words in (
        ((*sizes, "-o", out), 2, "holds stages already; choose another folder, or --force"),
        ((*sizes,), 2, "--emit writes a folder: give -o FOLDER"),
        ((*sizes, "-o", "-"), 2, "--emit writes a folder: give -o FOLDER"),
        ((*sizes, "-o", graph), 2, "is a model too"),
        ((*sizes, "-o", tmp_path / "new", "--transport", "direct"), 2, "--transport: "),
        ((*other, "-o", tmp_path / "new"), 2, "--schedule: 3 stages on 2 devices"),
        (("--devices", "2", "--memory", "1GB", "-o", tmp_path / "new"), 2, "--emit: has no effect on the planner"),
        ((*sizes, "-o", tmp_path / "new", "--memory", "1B"), 1, "no plan fits"),
    ):
        failed = run("plan", graph, "--emit", "torch-pipelining", *options)
        assert (failed.returncode, words in failed.stderr) == (code, True), failed.stderr
        assert not (tmp_path / "new").exists()
    assert run("plan", graph, *sizes, "--force").stderr.startswith("error: --force goes with --emit")
    assert run("plan", graph, *sizes, "--emit", "torch-pipelining", "-o", out, "--force").returncode == 0


def test_measured_costs_give_both_passes(tmp_path: Path) -> None:
    """Of a graph: forward as work, backward where the file has it; the plan verifies with the file alone."""
    modelled, measured = line_of_ops(4), line_of_ops(4)
    for document in (modelled, measured):
        document["time_unit"] = "us"
    for row, (work, backward) in zip(measured["ops"], [(3, 10), (5, 20), (7, 30), (9, 40)], strict=True):
        row |= {"work": work, "backward": backward}
    for name, document in (("graph.json", modelled), ("costs.json", measured)):
        (tmp_path / name).write_text(json.dumps(document))
    given = (*PLAN, "--devices", "1", "--micro-batches", "1", "--loops", "1", "--costs", "costs.json")
    printed("plan", "graph.json", *given, "-o", "plan.json", cwd=tmp_path)
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["iteration_ticks"] == (3 + 5 + 7 + 9 + 10 + 20 + 30 + 40) * 10**6
    assert "costs_sha256" in plan["model"]
    verify = ("verify", "plan.json", "--model", "graph.json")
    assert run(*verify, "--costs", "costs.json", cwd=tmp_path).returncode == 0
    without = run(*verify, cwd=tmp_path)
    assert (without.returncode, "was made with measured costs" in without.stderr) == (2, True)


def test_measured_costs_are_of_graphs(tmp_path: Path) -> None:
    """Layers and other planners have none."""
    (tmp_path / "costs.json").write_text(json.dumps(line_of_ops(2)))
    assert run("generate", "transformer-training", "-o", "model.json", cwd=tmp_path).returncode == 0
    for planner in ("pfeife", "piper"):
        given = ("--planner", planner, "--devices", "2", "--memory", "1GiB", "--costs", "costs.json")
        said = refused("plan", "model.json", *given, "--bandwidth", "1GB/s", *_BATCHES[planner], cwd=tmp_path)
        assert "--costs: has no effect on" in said


_BATCHES = {"pfeife": ("--micro-batches", "2"), "piper": ("--max-micro-batches", "2")}
"""Numbers of micro-batches as planners ask for them."""
