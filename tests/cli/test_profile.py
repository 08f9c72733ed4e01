"""``mtpp profile`` and ``--costs`` as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from processes import run as run_mtpp
from profiled_models import chain, kernel, looped, run

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, and the profile of it."""
    place = tmp_path_factory.mktemp("profiled")
    onnx.save(chain(4), place / "model.onnx")
    done = run_mtpp("profile", "model.onnx", "--dim", "batch=2", "--repeats", "3", "-o", "graph.json", cwd=place)
    assert done.returncode == 0, done.stderr
    (place / "shown.txt").write_text(done.stdout, encoding="utf-8")
    return place


def test_the_table_says_what_was_measured_and_made_up(folder: Path) -> None:
    """Machine, runs, kinds and most expensive ops, and that the input is random."""
    text = (folder / "shown.txt").read_text(encoding="utf-8")
    for line in ("model     model: 4 ops, 4 tensors", "3 runs after 3 to warm up", "random    inputs x", "MatMul"):
        assert line in text


def test_the_graph_is_one_like_any_other(folder: Path) -> None:
    """What was written can be read."""
    document = json.loads(run_mtpp("inspect", "graph.json", "--ops", "--format", "json", cwd=folder).stdout)
    assert document["time_unit"] == "us"
    assert [op["name"] for op in document["ops"]] == ["MatMul_1", "MatMul_2", "MatMul_3", "MatMul_4"]


@pytest.mark.parametrize(("form", "beginning"), [("csv", "op,kind,work_us,"), ("markdown", "### model"), ("json", "{")])
def test_other_formats(folder: Path, form: str, beginning: str) -> None:
    """As in the other commands."""
    done = run_mtpp(
        "profile", "model.onnx", "--dim", "batch=2", "--repeats", "1", "--warmup", "0", "--format", form, cwd=folder
    )
    assert done.stdout.startswith(beginning), done.stderr


def test_costs_go_into_the_plan_and_its_verification(folder: Path) -> None:
    """The plan names the file by its digest; without the file, or with another one, it does not verify."""
    model = ("model.onnx", "--dim", "batch=2", "--costs", "graph.json")
    done = run_mtpp("partition", *model, "-k", "2", "-o", "plan.json", cwd=folder)
    assert "costs measured: graph.json" in done.stdout, done.stderr
    measured = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert sum(stage["work"] for stage in plan["stages"]) == round(sum(op["work"] for op in measured["ops"]) * 10**6)

    verify = ("verify", "plan.json", "--model", "model.onnx")
    good = run_mtpp(*verify, "--costs", "graph.json", cwd=folder)
    assert good.returncode == 0
    assert re.search("^ok +measured costs", good.stdout, re.MULTILINE)
    without = run_mtpp(*verify, cwd=folder)
    assert without.returncode == 2
    assert "plan.json: was made with measured costs; give them with --costs" in without.stderr
    other = (folder / "graph.json").read_text(encoding="utf-8").replace('"name": "model"', '"name": "other"')
    (folder / "other.json").write_text(other, encoding="utf-8")
    wrong = run_mtpp(*verify, "--costs", "other.json", cwd=folder)
    assert wrong.returncode == 1
    assert re.search("^false +measured costs", wrong.stdout, re.MULTILINE)


@pytest.mark.slow
def test_costs_go_into_tables_of_bounds(folder: Path) -> None:
    """Rows name the file too."""
    model = ("model.onnx", "--dim", "batch=2", "--costs", "graph.json")
    done = run_mtpp("bound", *model, "-k", "2", "--bounds", "simple", "-o", "table.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert run_mtpp("verify", "table.json", "--costs", "graph.json", cwd=folder).returncode == 0
    without = run_mtpp("verify", "table.json", cwd=folder)
    assert without.returncode == 2
    assert "was made with measured costs" in without.stderr


def test_other_sizes_are_refused(folder: Path) -> None:
    """Times of a batch of two are none of a batch of three."""
    done = run_mtpp("inspect", "model.onnx", "--dim", "batch=3", "--costs", "graph.json", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: graph.json: tensor 't0' has 512 bytes there, and 768 in model")


def test_a_profile_of_onnx_runtime_gives_costs_and_is_no_graph(folder: Path) -> None:
    """Alone it is refused with a hint; cut off, in one line."""
    shape: dict[str, Any] = {"output_type_shape": [{"float": [2, 64]}]}
    events = [kernel(f"MatMul_{i}", 10 * i, i, "MatMul", i, **shape) for i in range(1, 5)]
    text = json.dumps([*events, run(0, 100)])
    (folder / "trace.json").write_text(text, encoding="utf-8")
    (folder / "cut.json").write_text(text[:-20], encoding="utf-8")
    model = ("model.onnx", "--dim", "batch=2")
    done = run_mtpp("inspect", *model, "--costs", "trace.json", "--format", "json", cwd=folder)
    assert json.loads(done.stdout)["work"] == 10 * 10**6
    alone = run_mtpp("inspect", "trace.json", cwd=folder)
    assert alone.returncode == 2
    assert "give the model, and this with --costs" in alone.stderr
    cut = run_mtpp("convert", *model, "out.json", "--costs", "cut.json", cwd=folder)
    assert cut.returncode == 2
    assert cut.stderr.startswith("error: cut.json: the profile is cut off")
    assert not (folder / "out.json").exists()


def test_given_inputs_are_used(tmp_path: Path) -> None:
    """Nothing is said to be random then."""
    onnx.save(looped(), tmp_path / "loop.onnx")
    np.savez(tmp_path / "data.npz", x=np.ones(8, dtype=np.float32))
    done = run_mtpp("profile", "loop.onnx", "--inputs", "data.npz", "--repeats", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "random" not in done.stdout
