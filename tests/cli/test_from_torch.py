"""``--from torch``: commands that call a function for their model, and plans that name what it built."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from processes import run_with_libraries

pytest.importorskip("torch", reason="needs PyTorch")

MODULE = """
import torch
from torch import nn

def build(width=64):
    print("building")
    layers = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers), (torch.ones(8, width),)

def wider():
    return build(96)

def on_meta():
    with torch.device("meta"):
        return build()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a module that builds models, in a package."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "mlp.py").write_text(MODULE)
    return tmp_path


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_with_libraries(*arguments, cwd=folder)


@pytest.mark.slow
def test_a_plan_is_verified_and_evaluated_with_the_same_function(folder: Path) -> None:
    """Its SHA-256 is that of the program in every process; that of another function is another one."""
    told = ("--from", "torch")
    done = _run(folder, "partition", "zoo.mlp:build", *told, "-k", "3", "-o", "plan.json", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "building" in done.stderr
    plan = json.loads(done.stdout)
    assert plan["model"]["name"] == "zoo.mlp:build"
    assert plan["model"]["ops"] == 12
    done = _run(folder, "verify", "plan.json", "--model", "zoo.mlp:build", *told)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SHA-256 {plan['model']['sha256']}" in done.stdout
    done = _run(folder, "verify", "plan.json", "--model", "zoo.mlp:wider", *told)
    assert done.returncode == 1
    assert "false  model file" in done.stdout
    done = _run(folder, "evaluate", "zoo.mlp:build", *told, "--assignment", "plan.json", "--format", "json")
    assert json.loads(done.stdout)["bottleneck"] == plan["bottleneck"]


@pytest.mark.slow
def test_tables_take_several_functions(folder: Path) -> None:
    """Each is called once; the table is verified with them."""
    told = ("--from", "torch")
    functions = ("zoo.mlp:build", "zoo.mlp:wider")
    done = _run(folder, "certify", *functions, *told, "-k", "2,3", "-j", "1", "-o", "table.json", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5
    assert done.stderr.count("building") == 2
    done = _run(folder, "verify", "table.json", *told, "--model", functions[0], "--model", functions[1])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_graphs_are_converted_and_inspected(folder: Path) -> None:
    """On the device ``meta`` too; standard output has the result alone."""
    done = _run(folder, "inspect", "zoo.mlp:on_meta", "--from", "torch", "--format", "json")
    assert json.loads(done.stdout)["reader"]["parameter_bytes"] == 6 * 4 * (64 * 64 + 64)
    assert _run(folder, "convert", "zoo.mlp:build", "graph.json", "--from", "torch").returncode == 0
    assert len(json.loads((folder / "graph.json").read_text())["ops"]) == 12


@pytest.mark.slow
def test_plans_are_split_and_measured(folder: Path) -> None:
    """With the weights of one call, which leaves nothing behind; a form for another program needs none."""
    told = ("--from", "torch")
    assert _run(folder, "partition", "zoo.mlp:build", *told, "-k", "3", "-o", "plan.json").returncode == 0
    done = _run(folder, "split", "zoo.mlp:build", "plan.json", *told, "-o", "stages", "--check")
    assert done.returncode == 0, done.stderr
    assert "passed: the output is the same bit for bit" in done.stdout
    assert done.stderr.count("building") == 1
    assert (folder / "stages" / "stage-0.pt2").stat().st_size > 2 * 4 * 64 * 64
    done = _run(folder, "run", "stages", "--model", "zoo.mlp:build", *told, "--batches", "3")
    assert done.returncode == 0, done.stderr
    assert "results of the stages compared equal those of the unsplit model bit for bit" in done.stdout
    assert done.stderr.count("building") == 1
    done = _run(folder, "run", "stages", "--model", "zoo.mlp:wider", *told, "--batches", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: zoo.mlp:wider: input 'input" in done.stderr
    done = _run(folder, "run", "stages", *told)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--from: goes with a function as --model" in done.stderr
    done = _run(folder, "split", "zoo.mlp:on_meta", "plan.json", *told, "--emit", "torch")
    assert "split_spec" in done.stdout, done.stderr
    done = _run(folder, "profile", "zoo.mlp:build", *told, "--repeats", "1", "--format", "json")
    assert len(json.loads(done.stdout)["ops"]) == 12
    done = _run(folder, "split", "plan.json", *told, "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--from goes with a function as MODEL" in done.stderr


@pytest.mark.slow
def test_training_is_planned(folder: Path) -> None:
    """With the planner that takes graphs; the plan is verified with the same function."""
    terms = ("--planner", "pfeife", "--devices", "2", "--micro-batches", "4", "-o", "plan.json")
    done = _run(folder, "plan", "zoo.mlp:build", "--from", "torch", *terms)
    assert done.returncode == 0, done.stderr
    done = _run(folder, "verify", "plan.json", "--from", "torch", "--model", "zoo.mlp:build")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("zoo.mlp", "error: zoo.mlp: names no function of a module; write package.module:function\n"),
        ("zoo.none:build", "error: zoo.none:build: there is no module 'zoo.none'; run mtpp in the folder"),
        ("zoo.mlp:none", "error: zoo.mlp:none: module 'zoo.mlp' has no function 'none'; define it"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, model: str, message: str) -> None:
    """Exit code 2, nothing on standard output."""
    done = _run(folder, "inspect", model, "--from", "torch")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith(message)
