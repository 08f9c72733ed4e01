"""Stages of plans for machines: split and run one by one against the whole, emitted, and put where devices say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtpp
from mtpp.errors import InputError
from mtpp.names import EXPORTERS

MACHINE = """
[[device]]
name = "slow"
bandwidth = "10GB/s"
[[device]]
name = "useless"
speed = "1/1000"
[[device]]
name = "fast"
count = 2
speed = 3
bandwidth = "10GB/s"
place = ["cpu", "cuda:1"]
"""
DIMS = {"batch": 1, "sequence": 16}
ORDER = {"fixed": ["slow", "fast", "fast"], "free": ["fast", "slow", "fast"]}
"""Devices of the stages with ops, in the order of the pipeline."""


@pytest.fixture(scope="module", params=sorted(ORDER))
def planned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return an order of devices, and a plan for a machine in it with a device on which no stage stands."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "machine.toml").write_text(f'order = "{request.param}"\n{MACHINE}')
    model = mtpp.read(mtpp.datasets.sample_path("gpt2"), machine=folder / "machine.toml", dims=DIMS)
    plan = mtpp.partition(model, together_blocks=True)
    assert plan.optimal
    plan.save(folder / "plan.json")
    return request.param, folder


def _feeds(session: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {one.name: rng.random(one.shape, dtype=np.float32) for one in session.get_inputs()}


def test_stages_compute_what_the_whole_does(planned: tuple[str, Path], tmp_path: Path) -> None:
    """Each file is run by itself on what the files before it made; results are those of the unsplit model."""
    ort = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    _, folder = planned
    model, stages = _with_weights(onnx, tmp_path), tmp_path / "stages"
    plan = mtpp.partition(mtpp.read(model, machine=folder / "machine.toml"))
    mtpp.split(model, plan, stages)
    manifest = json.loads((stages / "manifest.json").read_text())
    busy = [stage for stage in plan.document()["stages"] if stage["ops"]]
    assert [stage["device"] for stage in manifest["stages"]] == [stage["device"]["name"] for stage in busy]
    assert 1 < len(busy) < len(plan.document()["stages"])
    whole = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feeds = _feeds(whole)
    due = whole.run(None, feeds)
    values: dict[str, Any] = dict(feeds)
    for stage in manifest["stages"]:
        part = ort.InferenceSession(str(stages / stage["file"]), providers=["CPUExecutionProvider"])
        made = [one.name for one in part.get_outputs()]
        values |= zip(made, part.run(made, {one.name: values[one.name] for one in part.get_inputs()}), strict=True)
    for output, expected in zip(whole.get_outputs(), due, strict=True):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(values[output.name], expected, rtol=1e-4, atol=1e-5)


def _with_weights(onnx: Any, folder: Path) -> Path:
    """Return the sample with small random weights inside."""
    from mtpp.formats.onnx.loading import parse_model
    from mtpp.runtime.random_values import absent_weights

    path = Path(mtpp.datasets.sample_path("resnet50"))
    proto = parse_model(path.read_bytes(), str(path))
    weights = absent_weights(proto, path.parent, str(path), 1, limit=None)
    for tensor in proto.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.asarray(weights[tensor.name]), tensor.name))
    onnx.save(proto, folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("form", EXPORTERS)
def test_every_form_has_the_stages_in_pipeline_order(planned: tuple[str, Path], form: str) -> None:
    """Devices without a stage are left out, and the names of the others are told."""
    order, folder = planned
    plan = json.loads((folder / "plan.json").read_text())
    text = mtpp.emit(mtpp.datasets.sample_path("gpt2"), folder / "plan.json", form)
    busy = [stage for stage in plan["stages"] if stage["ops"]]
    assert [stage["device"]["name"] for stage in busy] == ORDER[order]
    if form == "cut-names":
        document = json.loads(text)
        due = [{"stage": stage["index"], "device": stage["device"]["name"]} for stage in busy]
        assert document["devices"] == due
        assert [one["before"] for one in document["boundaries"]] == [stage["index"] for stage in busy[1:]]
    elif form == "tflite-segments":
        segments = json.loads(text)["segments"]
        due = [(stage["device"]["name"], stage["ops"]) for stage in busy]
        assert [(one["device"], one["ops"]) for one in segments] == due
    else:
        assert text.startswith(f"# devices of the stages in order: {', '.join(map(json.dumps, ORDER[order]))}\n")
        empty = next(stage["index"] for stage in plan["stages"] if not stage["ops"])
        assert f"# stage {empty} of the plan runs nothing and is left out: 3 of 4 stages" in text
        blocks = [_blocks(plan["assignment"], stage["index"]) for stage in busy]
        if form == "vllm":
            assert text.rstrip().endswith("=" + ",".join(map(str, blocks)))
        elif form == "torch":
            firsts = [f'"blocks.{sum(blocks[:i])}": SplitPoint.BEGINNING' for i in (1, 2)]
            assert all(first in text for first in firsts)


def _blocks(assignment: Mapping[str, int], stage: int) -> int:
    return len(
        {name.split("/")[0].split(".")[1] for name, at in assignment.items() if at == stage and "blocks." in name}
    )


def test_a_graph_s_plan_is_emitted_with_devices(planned: tuple[str, Path], tmp_path: Path) -> None:
    """In place of the model a graph may stand."""
    order, folder = planned
    model = mtpp.read(mtpp.datasets.sample_path("gpt2"), dims=DIMS)
    mtpp.convert(model, tmp_path / "graph.json")
    document = json.loads(mtpp.emit(tmp_path / "graph.json", folder / "plan.json", "cut-names"))
    assert [one["device"] for one in document["devices"]] == ORDER[order]


def test_stages_are_put_where_their_devices_say(planned: tuple[str, Path], tmp_path: Path) -> None:
    """A place that ONNX Runtime does not have is refused in one line, before any work; "cpu" runs."""
    ort = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" in ort.get_available_providers():
        pytest.skip("there is a GPU")
    _, folder = planned
    parts = mtpp.split(mtpp.datasets.sample_path("gpt2"), folder / "plan.json", tmp_path / "stages")
    places = [stage.place for stage in parts.manifest.stages]
    assert sorted(places) == ["cpu", "cpu", "cuda:1"]
    with pytest.raises(InputError) as refused:
        mtpp.run_pipeline(parts, batches=1, warmup=0)
    file = parts.manifest.stages[places.index("cuda:1")].file
    assert str(refused.value) == (
        f"{tmp_path / 'stages' / file}: is to run on cuda:1, and ONNX Runtime here has no CUDA; put its device "
        "elsewhere, and split the plan again"
    )
    manifest = tmp_path / "stages" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("cuda:1", "gpu"))
    with pytest.raises(InputError, match=r"/stages/\d/place: 'gpu' is no place"):
        mtpp.run_pipeline(tmp_path / "stages", batches=1, warmup=0)


def test_providers_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU's number is told to ONNX Runtime, which keeps to the CPU what the GPU cannot run."""
    pytest.importorskip("onnxruntime")
    from mtpp.runtime.session import CUDA_PROVIDER, _providers

    assert _providers("cpu") == ["CPUExecutionProvider"]
    assert _providers("cuda:2") == [(CUDA_PROVIDER, {"device_id": "2"}), "CPUExecutionProvider"]
