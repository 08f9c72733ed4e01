"""``mtpp profile model.pt2`` as a user meets it; skipped where processes find no PyTorch."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
from processes import environment, printed, refused, run

torch = pytest.importorskip("torch")
modules = pytest.importorskip("trained_modules")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program, and the profile of it with backward passes."""
    found = subprocess.run([sys.executable, "-c", "import torch"], env=environment(), capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip("PyTorch is on the path of this process alone")
    place = tmp_path_factory.mktemp("profiled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(modules.Perceptron(), (torch.randn(5, 8),)), place / "model.pt2")
    shown = printed("profile", "model.pt2", "--backward", "--repeats", "3", "-o", "costs.json", cwd=place, stderr="")
    (place / "shown.txt").write_text(shown, encoding="utf-8")
    return place


@pytest.mark.slow
def test_the_table_says_what_was_measured(folder: Path) -> None:
    """Device, runs, both passes against those of the whole program, kinds and ops."""
    text = (folder / "shown.txt").read_text(encoding="utf-8")
    for line in (
        "model     model: 3 ops, 3 tensors",
        f"PyTorch {torch.__version__} on",
        "3 runs after 3 to warm up",
        "ops       ",
        "backward  ",
        "random    inputs x",
        "aten.linear",
    ):
        assert line in text


def test_costs_are_taken_by_partition_and_plan(folder: Path) -> None:
    """Forward as work, backward as the backward pass of each op; the plan verifies with the file."""
    rows = json.loads((folder / "costs.json").read_text(encoding="utf-8"))["ops"]
    assert all(row["work"] > 0 and row["backward"] >= 0 for row in rows)
    given = ("model.pt2", "--costs", "costs.json")
    done = run("partition", *given, "-k", "2", "-o", "plan.json", cwd=folder)
    assert "costs measured: costs.json" in done.stdout, done.stderr
    work = sum(stage["work"] for stage in json.loads((folder / "plan.json").read_text())["stages"])
    assert work == round(sum(row["work"] for row in rows) * 10**6)
    sizes = ("--devices", "1", "--micro-batches", "1", "--loops", "1")
    printed("plan", *given, "--planner", "pfeife", *sizes, "-o", "split.json", cwd=folder)
    ticks = json.loads((folder / "split.json").read_text())["iteration_ticks"]
    assert ticks == round(sum(row["work"] + row["backward"] for row in rows) * 10**6)
    printed("verify", "split.json", "--model", "model.pt2", "--costs", "costs.json", cwd=folder)


@pytest.mark.slow
def test_the_csv_has_both_passes(folder: Path) -> None:
    """One column more than without backward passes."""
    for flags, end in (((), "modelled_us"), (("--backward",), "modelled_us,backward_us")):
        done = run("profile", "model.pt2", *flags, "--repeats", "1", "--format", "csv", cwd=folder)
        assert done.stdout.splitlines()[0].endswith(end), done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["model.pt2", "--optimise"], "--optimise: has no effect"),
        (["model.pt2", "--beside", "1"], "--beside: has no effect"),
        (["model.pt2", "--dim", "x=3"], "model.pt2: --dim: the program has no symbolic size 'x'"),
        (["model.pt2", "--repeats", "0"], "--repeats: 0 is not in the range"),
        (["cut.pt2"], "cut.pt2: the archive is truncated or damaged"),
        (["other.zip"], "other.zip: a zip file without an exported program"),
        (["none.pt2"], "none.pt2: no such file"),
    ],
)
def test_one_line_says_what_is_wrong(folder: Path, arguments: list[str], problem: str) -> None:
    """Exit code 2, and no traceback."""
    data = (folder / "model.pt2").read_bytes()
    (folder / "cut.pt2").write_bytes(data[: len(data) // 2])
    with zipfile.ZipFile(folder / "other.zip", "w") as other:
        other.writestr("notes.txt", "")
    assert problem in refused("profile", *arguments, cwd=folder)
