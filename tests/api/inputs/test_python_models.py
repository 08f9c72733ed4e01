"""Models that Python code makes are models like any other; without PyTorch the error says so."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import io
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from planning import plan_with
from processes import environment_with_libraries
from stage_equality import run_program_stages

import mtpp
from mtpp import names
from mtpp.api.inputs.python_models import TORCH


@pytest.fixture
def torch() -> Any:
    """Return PyTorch, or skip."""
    return pytest.importorskip("torch", reason="needs PyTorch")


@pytest.fixture
def models(torch: Any) -> ModuleType:
    """Return the modules that tests share."""
    found: ModuleType = pytest.importorskip("torch_models", reason="needs PyTorch")
    return found


def _of(models: Any, name: str) -> tuple[Any, Any]:
    make, inputs = models.MODELS[name]
    return make().eval(), inputs()


def test_the_format_has_a_name() -> None:
    """It is among those that ``--from`` lists."""
    assert TORCH in names.FORMATS_READ


def test_nothing_is_imported_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the format the text is the path of a file."""
    (tmp_path / "untouched.py").write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mtpp.InputError, match=r"^untouched:build: no such file; check the path$"):
        mtpp.read("untouched:build")
    (tmp_path / "untouched:build").write_text('{"format": "mtpp-graph", "version": 1}')
    with pytest.raises(mtpp.InputError, match=r"^untouched:build: /"):
        mtpp.read("untouched:build")
    assert "untouched" not in sys.modules


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(mtpp.InputError, match=r"^PyTorch is not installed; pip install 'mtpp\[torch\]'$"):
        mtpp.read("package.module:build", from_format="torch")


@pytest.mark.parametrize("name", ["transformer", "u-net", "batch norm", "experts"])
def test_it_is_what_its_file_is(models: Any, torch: Any, name: str) -> None:
    """Ops, tensors, costs and what is said of them are those of the saved program, by all three ways."""
    module, inputs = _of(models, name)
    exported = torch.export.export(module, inputs)
    written = io.BytesIO()
    torch.export.save(exported, written)
    due = mtpp.read(written.getvalue())
    found = mtpp.read(module, args=inputs)
    assert found.graph.op_names == due.graph.op_names
    assert found.graph.work == due.graph.work
    assert list(found.graph.param_bytes) == list(due.graph.param_bytes)
    assert found.graph.metadata == due.graph.metadata
    assert found.graph.name == type(module).__name__
    assert mtpp.read(exported).source.sha256 == found.source.sha256


@pytest.mark.slow
def test_use_cases_take_it(models: Any, tmp_path: Path) -> None:
    """A plan for it is verified against it, and against the module read again."""
    module, inputs = _of(models, "transformer")
    model = mtpp.read(module, args=inputs)
    plan = mtpp.partition(model, 3)
    assert plan.optimal
    assert mtpp.verify(plan, model).passed
    assert mtpp.verify(plan, mtpp.read(module, args=inputs)).passed
    plan.save(tmp_path / "plan.json")
    assert mtpp.verify(tmp_path / "plan.json").passed
    assert mtpp.inspect(model).op_count == model.graph.op_count
    assert mtpp.certify(model, [2, 3], jobs=1)[0].ratio == 1
    assert plan_with(model, planner="pfeife", devices=2, micro_batches=4).ratio >= 1
    mtpp.convert(model, tmp_path / "graph.json")
    assert mtpp.read(tmp_path / "graph.json").graph.op_names == model.graph.op_names


def test_a_program_is_taken_where_a_model_is(models: Any, torch: Any) -> None:
    """As a path is."""
    exported = torch.export.export(*_of(models, "transformer"))
    plan = mtpp.partition(exported, 2)
    assert mtpp.verify(plan, exported).passed
    assert mtpp.inspect(exported).op_count == sum(map(len, (stage.ops for stage in plan.stages)))


def test_an_input_that_is_one_number_is_called_a_scalar(torch: Any) -> None:
    """Among the assumptions of a plan, as in ``mtpp inspect``."""

    class Scaled(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, scale: Any) -> Any:
            return torch.tanh(x * scale)

    found = mtpp.read(Scaled(), args=(torch.ones(2, 3), torch.tensor(2.0)))
    assert "inputs x 2×3, scale scalar" in found.assumptions()


def test_inputs_by_name_and_sizes_that_change(models: Any, torch: Any) -> None:
    """They are what ``torch.export.export`` takes; sizes are set when the program is read."""
    module, ids = models.Transformer(tied=True), models._ids(4, 16)
    fixed = mtpp.read(module, kwargs={"ids": models._ids(2, 16)})
    sizes = {"ids": {0: torch.export.Dim("batch", max=64)}}
    found = mtpp.read(module, args=(ids,), dynamic_shapes=sizes, dims={"ids:0": 2})
    assert sum(found.graph.work) == sum(fixed.graph.work)
    assert found.dims == {"ids:0": 2}
    with pytest.raises(mtpp.InputError, match=r"'ids:0' \(batch, as exported\); set dims={'ids:0': 4}"):
        mtpp.read(module, args=(ids,), dynamic_shapes=sizes)


@pytest.mark.parametrize(
    ("terms", "parameter", "message"),
    [
        ({}, "source", "the module Linear needs example inputs to be exported; read it with mtpp.read(module, args="),
        ({"args": [1]}, "args", "must be a tuple of inputs, not list; write args=(x,)"),
        ({"args": (), "kwargs": [1]}, "kwargs", "must be a mapping of inputs by name"),
        ({"kwargs": {1: 2}}, "kwargs", "must be a mapping of inputs by name"),
        ({"args": ()}, None, "cannot export it: missing a required argument: 'input'"),
        ({"args": (3,), "from_format": "onnx"}, None, "<Linear>: "),
    ],
)
def test_wrong_inputs_of_a_module(torch: Any, terms: dict[str, Any], parameter: str | None, message: str) -> None:
    """The error says which, in one line."""
    with pytest.raises(mtpp.InputError) as caught:
        mtpp.read(torch.nn.Linear(3, 3), **terms)
    assert caught.value.parameter == parameter
    assert message in str(caught.value)


def test_modules_need_inputs_wherever_a_model_is_taken(torch: Any) -> None:
    """The error calls the module what the function calls it."""
    with pytest.raises(mtpp.InputError, match=r"^model: the module Linear needs example inputs .* mtpp\.read\("):
        mtpp.partition(torch.nn.Linear(3, 3), 2)


def test_inputs_of_what_is_no_module(torch: Any, chain_file: Path) -> None:
    """They mean nothing to files, programs and functions."""
    exported = torch.export.export(torch.nn.Linear(3, 3), (torch.ones(3),))
    for source, terms in ((chain_file, {}), (exported, {}), ("a.b:c", {"from_format": "torch"})):
        for name in ("args", "kwargs", "dynamic_shapes"):
            with pytest.raises(mtpp.InputError, match=f"^{name}: has no effect on "):
                mtpp.read(source, **{name: ()}, **terms)


LARGE = """
import json, pathlib, re, torch, mtpp
from mtpp.datasets.export_samples import Gpt2
with torch.device("meta"):
    decoder = Gpt2(layers=80, width=8192, heads=64, words=32_000, context=2048)
    ids = torch.zeros(1, 2048, dtype=torch.int64)
model = mtpp.read(decoder, args=(ids,))
status = pathlib.Path("/proc/self/status").read_text()  # getrusage knows that of the process that began this one
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) * 1024
print(json.dumps([model.graph.op_count, model.graph.metadata["parameter_bytes"], peak]))
"""


@pytest.mark.slow
def test_65_billion_parameters(torch: Any) -> None:
    """A decoder on the device ``meta`` takes less than a gigabyte to read; its tied embedding counts once."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE],
        env=environment_with_libraries(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    ops, parameters, peak = json.loads(done.stdout)
    width, layers = 8192, 80
    assert ops > 20 * layers
    assert parameters == 4 * (layers * (12 * width**2 + 13 * width) + (32_000 + 2048 + 2) * width)
    assert peak < 10**9


BUILT = """
import torch
from torch import nn

def build():
    torch.manual_seed(7)
    layers = [one for _ in range(3) for one in (nn.Linear(8, 8), nn.BatchNorm1d(8), nn.GELU())]
    module = nn.Sequential(*layers, nn.Linear(8, 3)).eval()
    module[1].running_mean.normal_()
    return module, (torch.ones(4, 8),)
"""


@pytest.mark.parametrize("given", ["function", "program"])
def test_stages_have_the_weights_of_the_module(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """A function's module and a program in memory are split with their weights, and compute the same bit for bit."""
    name = f"built_as_{given}"
    (tmp_path / f"{name}.py").write_text(BUILT)
    monkeypatch.syspath_prepend(tmp_path)
    module, inputs = import_module(name).build()
    place = f"{name}:build"
    plan = mtpp.partition(mtpp.read(place, from_format="torch"), 3)
    folder = tmp_path / "stages"
    if given == "function":
        split = mtpp.split(place, plan, folder, from_format="torch", check=True)
        measured = mtpp.profile(place, from_format="torch", warmup=0, repeats=1)
        assert measured.graph.op_names == mtpp.read(place, from_format="torch").graph.op_names
        assert '"format": "mtpp-cuts"' in mtpp.emit(place, plan, "cut-names", from_format="torch")
    else:
        split = mtpp.split(torch.export.export(module, inputs), plan, folder, check=True)
    assert split.passed
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(4, 8)
        (found,) = run_program_stages(folder, {split.manifest.inputs[0].name: x})
        assert torch.equal(found, module(x))


def test_a_function_is_refused_in_place_of_a_file(torch: Any) -> None:
    """Without the format it is a path, and the format says nothing of what is in memory."""
    with pytest.raises(mtpp.InputError, match="no such file"):
        mtpp.split("package.module:build", {"a": 0}, check=True)
    with pytest.raises(mtpp.InputError, match="unknown format 'onnx'; use one of torch"):
        mtpp.split("m.onnx", {"a": 0}, check=True, from_format="onnx")
    with pytest.raises(mtpp.InputError, match=r"^package:: names no function of a module"):
        mtpp.split("package:", {"a": 0}, check=True, from_format="torch")
