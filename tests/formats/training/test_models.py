"""Models to be trained, recognised by content: files of both formats, and what is no such model."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from piper_documents import pipeline
from refusals import refusal
from training_documents import fork

from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.json_text import dump_json
from mtpp.formats.io.source import read_source
from mtpp.formats.training.models import read_training_model

NEEDED = "layers with their configurations, as mtpp-training-model or in Piper's JSON (see docs/formats.md)"


def _file(folder: Path, content: Any, name: str = "model.json") -> str:
    path = folder / name
    data = content if isinstance(content, bytes) else dump_json(content).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path)


def test_both_formats(tmp_path: Path) -> None:
    """The content decides, the file's name becomes that of a model without one, and the bytes are hashed."""
    for content, unit, name in ((fork(), None, "m"), (pipeline(), "ms", "model")):
        for file in ("model.json", "model", "model.json.gz"):
            path = _file(tmp_path, content, file)
            model, digest = read_training_model(path, unit)
            assert (model.name, model.time_unit) == (name, "ms")
            assert digest == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash reads it."""
    data = dump_json(pipeline()).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    model, digest = read_training_model("-", "s")
    assert (model.name, len(model.layers), model.places.source) == ("stdin", 2, "<stdin>")
    assert digest == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("content", "unit", "message"),
    [
        (
            pipeline(),
            None,
            "FILE: /nodes: the file does not say what unit its times are in; give it: time_unit s, ms",
        ),
        (pipeline(), "h", "time_unit: unknown unit of time 'h'; use one of ps, ns, us, ms, s"),
        (pipeline(), "1", "time_unit: unknown unit of time '1'; use one of ps, ns, us, ms, s"),
        (fork(), "ms", "time_unit: has no effect on mtpp-training-model: FILE; leave it out"),
    ],
)
def test_units_of_time(content: Any, unit: str | None, message: str, tmp_path: Path) -> None:
    """One is needed where the file names none, and of no effect where it does."""
    path = _file(tmp_path, content)
    assert str(refusal(read_training_model, path, unit)).startswith(message.replace("FILE", path))


NO_MODELS = [
    ({"format": "mtpp-plan"}, "/format: a plan for inference, not a model to be trained"),
    ({"format": "mtpp-training-plan"}, "/format: a training plan, not the model it is for"),
    ({"format": "mtpp-certificates"}, "/format: a table of certificates, not a model to be trained"),
    ({"format": "gexf"}, "/format: unknown format 'gexf'"),
    ({"format": ["x"]}, "/format: unknown format an array"),
    ({"format": "mtpp-stage-graph"}, "/format: stages with their times, which `mtpp simulate` runs, not a model to be"),
    ({"fpgas": [], "cpus": []}, "a split of a placement workload, not a graph"),
    ([], "not a model to be trained"),
    ({}, "not a model to be trained"),
    (b"digraph {}", "dot files are written, not read"),
    (b"hello", "not a model to be trained"),
]


@pytest.mark.parametrize(("content", "message"), NO_MODELS, ids=[message[:40] for _, message in NO_MODELS])
def test_what_is_no_model(content: Any, message: str, tmp_path: Path) -> None:
    """The message says what the file is, where that is clear, and what is needed."""
    path = _file(tmp_path, content)
    with pytest.raises(UnrecognisedInput) as caught:
        read_training_model(path, "s")
    assert str(caught.value).startswith(f"{path}: {message}")
    assert str(caught.value).endswith(f"; planning needs {NEEDED}")


GRAPHS = [
    ({"format": "mtpp-graph", "version": 1}, "a graph"),
    ({"nodes": [{"id": 1, "fpgaLatency": 1}], "edges": []}, "a workload of the placement planner"),
    ({"nodes": [{"id": 1}], "edges": []}, "a node-link graph"),
    (b"<graphml/>", "a GraphML graph"),
]


@pytest.mark.parametrize(("content", "what"), GRAPHS, ids=[what for _, what in GRAPHS])
def test_graphs_are_taken_by_another_planner(content: Any, what: str, tmp_path: Path) -> None:
    """They have no configurations of layers; the message names the planner, as Python and the command line have it."""
    path = _file(tmp_path, content)
    with pytest.raises(UnrecognisedInput) as caught:
        read_training_model(path, "s")
    assert str(caught.value) == f"{path}: {what}, which the planner pfeife takes; write planner=" + (
        "mtpp.Pfeife(micro_batches=8)"
    )
    told = caught.value.told(lambda name: f"--{name}")
    assert told.endswith(f"; type `mtpp plan {path} --planner pfeife --devices 4 --micro-batches 8`")


def test_an_onnx_model_may_have_open_sizes(checkout: Path) -> None:
    """The command takes what is proposed for them."""
    path = next(iter(sorted((checkout / "datasets" / "samples").glob("*.onnx"))))
    with pytest.raises(UnrecognisedInput, match=r": an ONNX model, which the planner pfeife takes; ") as caught:
        read_training_model(str(path))
    assert caught.value.told(lambda name: f"--{name}").endswith(" --micro-batches 8 --dims auto`")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", f": the input is empty; give {NEEDED}"),
        (b'{"format": "mtpp-training-model", "version": 1, ', "line 1, column 49: not valid JSON"),
        (
            b'{"nodes": [{"id": 1, "TMPCs": {"1": [{"timePerSample": NaN}]}}]}',
            "/nodes/0/TMPCs/1/0/timePerSample (line 1, column 56): NaN",
        ),
        (b'{"nodes": [{"id": 1, "TMPCs": {"1": [{"timePerSample": 1e999}]}}]}', "1e999 is out of range"),
        (
            b'{"nodes": [{"id": 1, "TMPCs": {"1": [], "1": []}}]}',
            "/nodes/0/TMPCs/1 (line 1, column 41): duplicate key '1'",
        ),
        (b'{"maxDevices": 4}', "not a model to be trained"),
        (b'{"nodes": [{"id": 1, "TMPCs": {"1": []}}]}', "/: missing key 'edges'"),
        (b'{"nodes": [{"id": 1}, {"id": 2, "TMPCs": {}}], "edges": []}', "/nodes/0: missing key 'TMPCs'"),
        (b'{"nodes": {}, "edges": [], "maxDevices": 4}', "/nodes: must be an array, not an object"),
    ],
)
def test_broken_files(data: bytes, message: str, tmp_path: Path) -> None:
    """What is no strict JSON, or half a model, is refused at the place."""
    path = _file(tmp_path, data)
    with pytest.raises(InputError) as caught:
        read_training_model(path, "s")
    assert path in str(caught.value)
    assert message in str(caught.value)


def test_too_large_a_file(tmp_path: Path) -> None:
    """The limit holds for what is inside a compressed one."""
    path = _file(tmp_path, b" " * 10**6, "model.json.gz")
    with pytest.raises(InputError, match=r"decompressed input is larger than .* raise max_input_size"):
        read_training_model(path, max_bytes=10**5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            fork(),
            "/format: a model to be trained, not a graph for inference; give it to `mtpp plan` with the planner piper, "
            "equi, pipedream-2bw or graphpipe",
        ),
        ({"format": "mtpp-training-plan"}, "/format: a training plan, not a graph; give it to `mtpp verify`"),
    ],
)
def test_models_to_be_trained_are_no_graphs(content: Any, message: str, tmp_path: Path) -> None:
    """Commands that take graphs say which command takes them."""
    path = _file(tmp_path, json.loads(dump_json(content)))
    with pytest.raises(UnrecognisedInput) as caught:
        read_graph(read_source(path))
    assert str(caught.value) == f"{path}: {message}"
