"""``mtpp.api.profile``: the command's measurements in Python, and parameters refused at the door."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from observers import Heard
from processes import run
from profiled_models import chain, looped

from mtpp.api.inputs.model import read_model
from mtpp.api.options.reading import Reading
from mtpp.api.profile import profile
from mtpp.datasets import sample_path
from mtpp.errors import InputError

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a model with a symbolic dimension."""
    path = tmp_path_factory.mktemp("profiled") / "model.onnx"
    onnx.save(chain(4), path)
    return path


def test_the_graph_is_the_one_that_the_command_writes(model: Path, tmp_path: Path) -> None:
    """All but the times: ops, sizes, and what is recorded of the measurement; what is saved is what it says."""
    runs = Heard()
    measured = profile(model, dims={"batch": 2}, warmup=0, repeats=2, seed=3, observer=runs)
    assert runs.shown[-1] == (2, 2)
    measured.save(tmp_path / "graph.json")
    own = json.loads((tmp_path / "graph.json").read_text())
    flags = ("--dim", "batch=2", "--warmup", "0", "--repeats", "2", "--seed", "3")
    done = run("profile", model, *flags, "-o", tmp_path / "other.json")
    due = json.loads((tmp_path / "other.json").read_text())
    for document in (own, due):
        for op in document["ops"]:
            assert op.pop("work") > 0
        document["metadata"].pop("machine", None)
        document["metadata"]["profile"] = {
            key: document["metadata"]["profile"][key] for key in ("model_sha256", "repeats", "warm_up", "seed")
        }
    assert own == due
    assert [op["name"] for op in measured.document()["ops"]] == [op["name"] for op in due["ops"]]
    assert repr(measured).splitlines()[0] == done.stdout.splitlines()[0]


def test_a_model_as_read_brings_its_sizes(model: Path) -> None:
    """Unless others are asked for."""
    read = read_model(str(model), Reading(dims={"batch": 2}), print)
    graphs = [profile(read, repeats=1, dims=dims).graph for dims in (None, {"batch": 4})]
    assert [int(graph.tensor_bytes[0]) for graph in graphs] == [512, 1024]


def test_inputs_may_be_arrays_or_their_file(tmp_path: Path) -> None:
    """Nothing is random then."""
    onnx.save(looped(), tmp_path / "loop.onnx")
    arrays = {"x": np.ones(8, dtype=np.float32)}
    np.savez(tmp_path / "data.npz", **arrays)
    for inputs in (arrays, tmp_path / "data.npz"):
        assert profile(tmp_path / "loop.onnx", inputs=inputs, repeats=1).measured.random_inputs == ()


def test_what_is_no_onnx_model_is_refused(tmp_path: Path) -> None:
    """Only ONNX models can be run; a size that is not set is named."""
    (tmp_path / "graph.json").write_text("{}")
    with pytest.raises(InputError, match="only ONNX models and exported PyTorch programs can be run"):
        profile(tmp_path / "graph.json")


def test_onnx_models_have_no_backward_pass(model: Path) -> None:
    """The message says which file has."""
    with pytest.raises(InputError, match=r"has no backward pass; export the module .*\.pt2") as caught:
        profile(model, backward=True)
    assert caught.value.parameter == "backward"


@pytest.mark.parametrize(("parameter", "value"), [("optimise", True), ("beside", 2)])
def test_options_of_onnx_runtime_mean_nothing_to_exported_programs(parameter: str, value: Any) -> None:
    """They are refused before anything is run, with PyTorch or without it."""
    with pytest.raises(InputError, match="PyTorch runs the nodes of an exported program as they are") as caught:
        profile(sample_path("gpt2", "pt2"), **{parameter: value})
    assert caught.value.parameter == parameter


def test_without_pytorch_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of a traceback."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"PyTorch is not installed; pip install 'mtpp\[torch\]'"):
        profile(sample_path("gpt2", "pt2"), dims={"batch": 1})


def test_a_size_that_is_not_set_is_asked_for(model: Path) -> None:
    """By the parameter's name."""
    with pytest.raises(InputError, match=r"set dims=\{'batch': 1\}"):
        profile(model)
