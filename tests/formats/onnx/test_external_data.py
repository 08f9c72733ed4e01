"""Weights beside a model are found where they may lie, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, external_data_helper, helper
from onnx_text import built
from stage_equality import runtime_version

import mtpp
from mtpp.errors import InputError
from mtpp.formats.onnx.external_data import all_tensors, external_place


def _tensor(*dims: int, **entries: str) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.UINT8, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def test_contents_are_read_from_offset_and_length(tmp_path: Path) -> None:
    """Exactly the bytes named are read; without a length, the rest of the file."""
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "w.data").write_bytes(b"0123456789")
    place = external_place(_tensor(3, location="part/w.data", offset="2", length="3"), tmp_path, "m.onnx")
    assert place is not None
    assert place.is_there
    assert place.read() == b"234"
    rest = external_place(_tensor(2, location="./part/w.data", offset="8"), tmp_path, "m.onnx")
    assert rest is not None
    assert rest.read() == b"89"
    assert rest.location == "part/w.data"
    back = external_place(_tensor(2, location="part/../part/w.data", offset="8"), tmp_path, "m.onnx")
    assert back is not None
    assert back.read() == b"89"


def test_absent_and_embedded_contents_are_told_apart(tmp_path: Path) -> None:
    """A file that does not exist is no error; a tensor that is embedded has no place."""
    place = external_place(_tensor(2, location="w.data"), tmp_path, "m.onnx")
    assert place is not None
    assert not place.is_there
    assert external_place(helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]), tmp_path, "m.onnx") is None


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ({}, "names no file"),
        ({"location": "."}, "names no file"),
        ({"location": "a\0b"}, "names no file"),
        ({"location": "/etc/passwd"}, "absolute path"),
        ({"location": "C:\\weights"}, "absolute path"),
        ({"location": "\\\\host\\share\\w"}, "absolute path"),
        ({"location": "../w.data"}, "leads out"),
        ({"location": "part/../../w.data"}, "leads out"),
        ({"location": "part\\..\\..\\w.data"}, "leads out"),
        ({"location": "w.data", "offset": "-1"}, "no number of bytes"),
        ({"location": "w.data", "length": "1e3"}, "no number of bytes"),
        ({"location": "w.data", "length": "9" * 30}, "no number of bytes"),
        ({"location": "w.data", "offset": "8", "length": "3"}, "has 10 bytes"),
        ({"location": "w.data", "offset": "8"}, "has 10 bytes"),
        ({"location": "w.data", "length": "2"}, "length is 2 bytes, but its shape and type take 3"),
        ({"location": "absent.data", "length": "4"}, "length is 4 bytes"),
        ({"location": "link.data"}, "symbolic link"),
        ({"location": "out/w.data"}, "symbolic link"),
        ({"location": "part"}, "no regular file"),
        ({"location": "pipe"}, "no regular file"),
        ({"location": "w.data/more"}, "cannot be read"),
        ({"location": "n" * 5000}, "cannot be read"),
    ],
)
def test_places_that_are_refused(tmp_path: Path, entries: dict[str, str], problem: str) -> None:
    """Whatever leads out of the folder, is no file, or is too short is named in one line."""
    folder = tmp_path / "model"
    (folder / "part").mkdir(parents=True)
    (folder / "w.data").write_bytes(b"0123456789")
    (tmp_path / "outside.data").write_bytes(b"0123456789")
    (folder / "link.data").symlink_to(tmp_path / "outside.data")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with pytest.raises(InputError, match=problem) as caught:
        external_place(_tensor(3, **entries), folder, "m.onnx")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("m.onnx: external data of 'w': ")


def _with_weights(path: Path, location: str) -> None:
    """Write a model whose weights lie in a file."""
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [2048], np.ones(2048, np.float32).tobytes(), raw=True)
    model = built("t = Add(x, w) y = Neg(t)", {"x": [2048]}, {"y": [2048]}, stored=[tensor], opset=13)
    external_data_helper.set_external_data(model.graph.initializer[0], location, length=8192)
    model.graph.initializer[0].ClearField("raw_data")
    path.write_bytes(model.SerializeToString())


def _linked(folder: Path, kind: str) -> Path:
    """Make a folder with a model and its weights, and links among them; return the model's path."""
    weights = np.ones(2048, np.float32).tobytes()
    blobs, snapshot = folder / "blobs", folder / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    model, data = snapshot / "model.onnx", snapshot / "model.data"
    if kind == "hub":  # both are links to files that lie beside each other under other names
        _with_weights(blobs / "1f", "model.data")
        (blobs / "2e").write_bytes(weights)
        model.symlink_to("../../blobs/1f")
        data.symlink_to("../../blobs/2e")
        return model
    _with_weights(model, "model.data")
    if kind == "inside":
        (snapshot / "part").mkdir()
        (snapshot / "part" / "w").write_bytes(weights)
        data.symlink_to("part/w")
    elif kind == "outside":
        (blobs / "2e").write_bytes(weights)
        data.symlink_to("../../blobs/2e")
    else:  # the folder itself is a link
        data.write_bytes(weights)
        (folder / "link").symlink_to(snapshot)
        return folder / "link" / "model.onnx"
    return model


@pytest.mark.parametrize("kind", ["hub", "inside", "folder", "outside"])
def test_links_are_taken_by_the_rule_of_onnx_runtime(tmp_path: Path, kind: str) -> None:
    """What ONNX Runtime loads is split, checked and profiled; what it refuses is refused in one line."""
    onnxruntime = pytest.importorskip("onnxruntime")
    path = _linked(tmp_path, kind)
    plan = mtpp.partition(path, 2)
    if kind == "outside":
        if runtime_version() >= (1, 32):  # 1.23 loads it all the same
            with pytest.raises(Exception, match="escapes model directory"):
                onnxruntime.InferenceSession(str(path))
        with pytest.raises(InputError, match="leads out of the model's folder through a symbolic link"):
            mtpp.split(path, plan, check=True)
        return
    onnxruntime.InferenceSession(str(path))
    assert mtpp.split(path, plan, tmp_path / "stages", check=True).passed
    assert mtpp.profile(path, repeats=1, warmup=0).graph.op_count == 2


def test_shapes_that_are_none_are_refused(tmp_path: Path) -> None:
    """A size below zero would make the bytes that are needed fewer than none."""
    with pytest.raises(InputError, match=r"external data of 'w': \[3, -1\] is no shape"):
        external_place(_tensor(3, -1, location="w.data"), tmp_path, "m.onnx")


def test_all_tensors_come_with_initializers_first() -> None:
    """Initializers, attributes and what the bodies of control flow hold."""
    body = "b () => (float[1] c) <float[1] inner = {1.0}> { c = Constant <value = float[1] within {1.0}>() }"
    graph = onnx.parser.parse_graph(
        "main (bool x) => (float[1] y) <float[1] outer = {1.0}> { k = Constant <value = float[1] constant {1.0}>() "
        f"y = If(x) <then_branch = {body}, else_branch = {body}> }}"
    )
    onnx.checker.check_graph(graph)
    names = [tensor.name for tensor in all_tensors(graph)]
    assert names == ["outer", "constant", "inner", "within", "inner", "within"]
