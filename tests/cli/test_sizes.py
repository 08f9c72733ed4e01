"""``--dim`` and ``--dims auto`` as a process, in every command that reads a model whose sizes are open."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_text import built
from processes import printed, refused, run

import mtpp
from mtpp.api.inspect import OpenInspection

ONE = "a height"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of open sizes, and nothing else."""
    random = np.random.default_rng(0)
    stored = {name: random.normal(size=(4, filters, 3, 3)).astype(np.float32) for name, filters in (("A", 3), ("B", 4))}
    nodes = (
        "[one] a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]>(x, A) "
        "[two] b = Conv <pads = [1, 1, 1, 1], strides = [2, 2]>(a, B) "
        '[up] u = Resize <mode = "nearest">(b, "", up) [sum] y = Add(a, u)'
    )
    stored["up"] = np.array([1, 1, 2, 2], np.float32)
    model = built(nodes, {"x": ["n", 3, ONE, None]}, {"y": None}, stored)
    path: Path = tmp_path_factory.mktemp("sizes")
    (path / "bed").mkdir()
    onnx.save(model, path / "bed" / "pyramid.onnx")
    (path / "bed" / "tokenizer.json").write_text("{}")
    return path


def test_the_line_that_is_printed_can_be_pasted(folder: Path) -> None:
    """All open sizes stand in it, quoted as a shell needs them; with it the command works."""
    said = refused("partition", "bed/pyramid.onnx", "-k", "2", cwd=folder)
    assert said.startswith("error: bed/pyramid.onnx: 3 sizes are open: 'n' (batch, axis 0 of 'x'), 'a height' (height,")
    assert said.count("\n") == 1
    pasted = shlex.split(said.partition("set them: ")[2].partition(", or take")[0])
    assert len(pasted) == 6
    shown = printed("partition", "bed/pyramid.onnx", "-k", "2", *pasted, cwd=folder)
    assert "dims n = 1, a height = 224, x:3 = 224" in shown


def test_proposed_sizes_are_said_everywhere(folder: Path) -> None:
    """In tables, in JSON, and by what verifies, splits and scores a plan, none of which asks for them again."""
    shown = printed("partition", "bed", "-k", "2", "--dims", "auto", "-o", "plan.json", cwd=folder)
    assert "dims proposed: n = 1, a height = 224, x:3 = 224; inputs x 1×3×224×224" in shown
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["model"]["dims"] == {"n": 1, ONE: 224, "x:3": 224}
    assert plan["model"]["proposed_dims"] == ["n", ONE, "x:3"]
    shown = printed("verify", "plan.json", "--model", "bed", cwd=folder)
    assert "n = 1 (proposed), a height = 224 (proposed), x:3 = 224 (proposed)" in shown
    assert run("split", "bed", "plan.json", "--emit", "cut-names", cwd=folder).returncode == 0
    done = run("evaluate", "bed", "--assignment", "plan.json", "--format", "json", cwd=folder)
    assert json.loads(done.stdout)["bottleneck"] == plan["bottleneck"]
    assert run("convert", "bed", "stages.csv", "--assignment", "plan.json", cwd=folder).returncode == 0
    inspected = run("inspect", "bed", "--dims", "auto", cwd=folder).stdout
    assert "n = 1 (proposed), a height = 224 (proposed), x:3 = 224 (proposed)" in inspected
    for command in (["certify", "bed", "-k", "2"], ["compare", "bed", "-k", "2", "--algorithms", "slice"]):
        document = json.loads(printed(*command, "--dims", "auto", "--format", "json", cwd=folder))
        about = document["rows"][0] if "certify" in command else document["models"][0]
        assert about["proposed_dims"] == ["n", ONE, "x:3"]
    (folder / "table.json").write_text(
        run("certify", "bed", "-k", "2", "--dims", "auto", "--format", "json", cwd=folder).stdout
    )
    assert "dims n = 1 (proposed)" in printed("verify", "table.json", cwd=folder)


@pytest.mark.parametrize("piped", [False, True])
def test_inspect_does_not_stop_at_open_sizes(folder: Path, piped: bool) -> None:
    """The figures are those of ``--dims auto``, from standard input too; table, JSON and standard error say so."""
    model, text = ("-", (folder / "bed" / "pyramid.onnx").read_bytes()) if piped else ("bed/pyramid.onnx", b"")
    done = run("inspect", model, "--format", "json", cwd=folder, stdin=text)
    assert "3 sizes are open; the figures are with the proposed n = 1, a height = 224, x:3 = 224" in done.stderr
    found = json.loads(done.stdout)
    due = json.loads(run("inspect", "bed/pyramid.onnx", "--dims", "auto", "--format", "json", cwd=folder).stdout)
    assert [(one["name"], one["proposal"]) for one in found.pop("open_sizes")] == [("n", 1), (ONE, 224), ("x:3", 224)]
    assert found["work"] == due["work"]
    assert found["reader"] == due["reader"]
    shown = run("inspect", model, "--dim", "n=2", "-q", cwd=folder, stdin=text)
    (told,) = (line for line in shown.stdout.splitlines() if line.startswith("open sizes"))
    assert told.startswith(f"open sizes    {ONE} (height, axis 2 of 'x'")
    assert told.endswith(": not given, taken as proposed")
    assert "n = 2, a height = 224 (proposed)" in shown.stdout
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("nodes", "sizes", "says"),
    [
        ("a = MatMul(x, A) b = MatMul(x, B) y = Concat <axis = 1>(a, b)", ["n", "f"], "no sizes were found with which"),
        ("a = foo.Custom(x) y = Relu(a)", ["n", 4], "with the proposed sizes, Custom 'a': tensor 'a' has an unknown"),
        ("a = foo.Custom(x) y = Relu(a)", [2, 4], "tensor 'a' has an unknown shape (no shape rule for this operator)"),
    ],
)
def test_inspect_shows_models_that_no_size_fits(tmp_path: Path, nodes: str, sizes: list[object], says: str) -> None:
    """Inputs, open sizes and one sentence in place of costs, and exit code 0; in each format."""
    stored = {"A": np.zeros((8, 4), np.float32), "B": np.zeros((9, 4), np.float32)} if "MatMul" in nodes else {}
    onnx.save(built(nodes, {"x": sizes}, {"y": None}, stored), tmp_path / "m.onnx")
    shown = printed("inspect", "m.onnx", cwd=tmp_path)
    assert f"inputs    x {sizes[0]}×{sizes[1]} float32" in shown
    assert f"no costs  {says}" in shown
    document = json.loads(printed("inspect", "m.onnx", "--format", "json", cwd=tmp_path))
    assert [one["name"] for one in document["open_sizes"]] == [size for size in sizes if isinstance(size, str)]
    found = mtpp.inspect(tmp_path / "m.onnx")
    assert isinstance(found, OpenInspection)
    assert (found.name, found.open_sizes, found.obstacle) == ("m", document["open_sizes"], document["obstacle"])
    assert found.inputs == document["inputs"] == [{"name": "x", "shape": sizes, "dtype": "float32"}]


def test_training_plans_and_bounds_take_proposals(folder: Path) -> None:
    """The planner of any graph, and bounds alone."""
    plan = ["plan", "bed/pyramid.onnx", "--planner", "pfeife", "--devices", "2", "--micro-batches", "2"]
    shown = printed(*plan, "--dims", "auto", "--format", "json", cwd=folder)
    (folder / "training.json").write_text(shown)
    assert json.loads(shown)["model"]["proposed_dims"] == ["n", ONE, "x:3"]
    assert run("verify", "training.json", "--model", "bed/pyramid.onnx", cwd=folder).returncode in (0, 3)
    done = run("bound", "bed/pyramid.onnx", "-k", "2", "--dims", "auto", "--bounds", "simple", cwd=folder)
    assert "dims proposed: n = 1" in done.stdout


def test_one_size_for_all_others(folder: Path) -> None:
    """A star stands for whatever is not named."""
    done = run("partition", "bed", "-k", "2", "--dim", "*=64", "--dim", "n=2", "-o", "star.json", cwd=folder)
    assert done.returncode == 0
    assert json.loads((folder / "star.json").read_text())["model"]["dims"] == {"n": 2, ONE: 64, "x:3": 64}
    held = [
        run("verify", "star.json", "--model", "bed", "--dim", size, "--dim", "n=2", cwd=folder)
        for size in ("*=64", "*=65")
    ]
    assert [done.returncode for done in held] == [0, 1]


def test_a_plan_is_held_to_proposals(folder: Path) -> None:
    """Proposals are made anew for the model, which has to be at hand."""
    sizes = ["--dim", "n=1", "--dim", "a height=224", "--dim", "x:3=224"]
    assert run("partition", "bed", "-k", "2", *sizes, "-o", "given.json", "--embed", cwd=folder).returncode == 0
    assert run("verify", "given.json", "--model", "bed", "--dims", "auto", cwd=folder).returncode == 0
    assert run("verify", "given.json", "--dims", "auto", cwd=folder).returncode == 0
    document = json.loads((folder / "given.json").read_text())
    del document["model"]["path"]
    (folder / "alone.json").write_text(json.dumps(document))
    said = refused("verify", "alone.json", "--dims", "auto", cwd=folder)
    assert "--dims: are proposed for a file; give the model with --model" in said
    assert "it has to be 1" in printed("verify", "star.json", "--model", "bed", "--dims", "auto", cwd=folder, code=1)


def test_a_graph_with_costs_has_no_sizes_to_propose(folder: Path) -> None:
    """As with every size for such a file."""
    assert run("convert", "bed", "graph.json", "--dims", "auto", cwd=folder).returncode == 0
    said = refused("partition", "graph.json", "-k", "2", "--dims", "auto", cwd=folder)
    assert "--dims: has no effect on a native graph" in said


def test_errors_name_the_flag_that_was_given(chain_file: Path) -> None:
    """``--dims`` where sizes are to be proposed, ``--dim`` where one is given, with or without that."""
    why = f"has no effect on a native graph: {chain_file}; "
    for given, named in (
        (("--dims", "auto"), "--dims"),
        (("--dims=auto",), "--dims"),
        (("--dim", "batch=1"), "--dim"),
        (("--dim", "batch=1", "--dims", "auto"), "--dim"),
    ):
        assert refused("inspect", chain_file, *given).startswith(f"error: {named}: {why}")
