"""``mtpp split model.pt2`` as a user meets it; skipped where processes find no PyTorch."""

# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from processes import environment, printed, refused, run_afresh

import mtpp
from mtpp.errors import InputError

torch = pytest.importorskip("torch")
models = pytest.importorskip("torch_models")


class Drawing(torch.nn.Module):
    """Noise on what passes."""

    def forward(self, x: Any) -> Any:
        """Return as many numbers."""
        return (x + torch.rand_like(x)).relu()


class Picking(torch.nn.Module):
    """As many results as there are positive numbers."""

    def forward(self, x: Any) -> Any:
        """Return the positive ones, doubled."""
        return x[x > 0].exp() * 2


@torch.library.custom_op("mtpp_tests::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    """Return half of it."""
    return x / 2


@halved.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Foreign(torch.nn.Module):
    """An operator that PyTorch alone does not have."""

    def forward(self, x: Any) -> Any:
        """Return as many numbers."""
        return halved(x).exp()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with programs, and plans of two stages for them."""
    found = subprocess.run([sys.executable, "-c", "import torch"], env=environment(), capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip("PyTorch is on the path of this process alone")
    place = tmp_path_factory.mktemp("split")
    torch.manual_seed(0)
    for name, module in (
        ("quantised", models.Quantised()),
        ("drawing", Drawing()),
        ("picking", Picking()),
        ("foreign", Foreign()),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.export.save(torch.export.export(module.eval(), (torch.randn(6, 24),)), place / f"{name}.pt2")
    return place


def planned(folder: Path, name: str) -> str:
    """Plan two stages for a program; return the name of the plan."""
    printed("partition", f"{name}.pt2", "-k", "2", "-o", f"{name}.json", cwd=folder)
    return f"{name}.json"


@pytest.mark.slow
def test_a_quantised_program_is_cut_checked_and_run(folder: Path) -> None:
    """Its operators are PyTorch's, though a process that has not seen them must import them first."""
    plan = planned(folder, "quantised")
    done = run_afresh("split", "quantised.pt2", plan, "-o", "stages", "--check", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "passed: the output is the same bit for bit" in done.stdout
    stages = json.loads((folder / "stages" / "manifest.json").read_text(encoding="utf-8"))["stages"]
    assert [(folder / "stages" / stage["file"]).is_file() for stage in stages] == [True, True]
    done = run_afresh("run", "stages", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "equal those of the stages in turn bit for bit" in done.stdout


def test_random_numbers_cannot_be_compared(folder: Path) -> None:
    """The check says so, as that of an ONNX model does, and compares types and shapes."""
    done = run_afresh("split", "drawing.pt2", planned(folder, "drawing"), "--check", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "rand_like draws random numbers: only types and shapes of the outputs were compared" in done.stderr
    assert "are the same; the values are random" in done.stdout


def test_an_operator_that_pytorch_lacks(folder: Path) -> None:
    """One line, and no folder is left."""
    done = run_afresh("split", "foreign.pt2", planned(folder, "foreign"), "-o", "none", "--check", cwd=folder)
    assert done.returncode == 2
    says = "the operator 'mtpp_tests.halved.default' is none of PyTorch's own; name the module that registers"
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "none").exists()


@pytest.mark.slow
def test_operators_of_a_users_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest names the module; the processes of a run import it when they are told to, and not before."""
    monkeypatch.chdir(folder)
    Path("halving.py").write_text(
        "import pathlib, torch\n"
        "pathlib.Path('imported').touch()\n"
        "if not hasattr(torch.ops.mtpp_tests, 'halved'):\n"
        "    library = torch.library.Library('mtpp_tests', 'DEF')\n"
        "    library.define('halved(Tensor x) -> Tensor')\n"
        "    library.impl('halved', lambda x: x / 2, 'CompositeExplicitAutograd')\n"
    )
    split = mtpp.split("foreign.pt2", dict.fromkeys(("halved", "exp"), 0), "halves", check=True, imports=["halving"])
    assert split.passed
    assert split.manifest.imports == ("halving",)
    Path("imported").unlink()
    with pytest.raises(InputError, match=r"'mtpp_tests.halved.default' is none of PyTorch's own; give imports halving"):
        mtpp.run_pipeline("halves", batches=2)
    assert not Path("imported").exists()
    assert mtpp.run_pipeline("halves", batches=2, imports=["halving"]).agrees
    assert Path("imported").exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_module_of_that_name", "there is no module 'no_module_of_that_name'"),
        ("raising", "importing it raised Exit"),
    ],
)
def test_modules_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    """They are named, in one line."""
    monkeypatch.chdir(tmp_path)
    Path("raising.py").write_text("class Exit(Exception): pass\nraise Exit\n")
    with pytest.raises(InputError, match=f"imports: {name}: {problem}"):
        mtpp.profile(mtpp.datasets.sample_path("gpt2", "pt2"), imports=[name])


def test_sizes_that_depend_on_data(folder: Path) -> None:
    """No cost follows from them: they are asked for by their symbol."""
    said = refused("partition", "picking.pt2", "-k", "2", cwd=folder)
    assert "picking.pt2: 1 size is open: 'u0' (depends on data); set it: --dim u0=" in said


def test_a_plan_of_another_program(folder: Path) -> None:
    """The plan names its program by content."""
    said = refused("split", "drawing.pt2", planned(folder, "quantised"), "-o", "none", cwd=folder)
    assert "the plan belongs to another model than drawing.pt2" in said
    assert not (folder / "none").exists()
