"""Weights beside a model are found where they may lie, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

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
    (folder / "link.data").symlink_to(folder / "w.data")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with pytest.raises(InputError, match=problem) as caught:
        external_place(_tensor(3, **entries), folder, "m.onnx")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("m.onnx: external data of 'w': ")


def test_shapes_that_are_none_are_refused(tmp_path: Path) -> None:
    """A size below zero would make the bytes that are needed fewer than none."""
    with pytest.raises(InputError, match=r"external data of 'w': \[3, -1\] is no shape"):
        external_place(_tensor(3, -1, location="w.data"), tmp_path, "m.onnx")


def test_all_tensors_come_with_initializers_first() -> None:
    """Initializers, attributes and what the bodies of control flow hold."""
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=helper.make_tensor("inner constant", 1, [1], [1.0]))],
        "body",
        [],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [1])],
        [helper.make_tensor("inner", TensorProto.FLOAT, [1], [1.0])],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Constant", [], ["k"], value=helper.make_tensor("constant", 1, [1], [1.0])),
            helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner),
        ],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [helper.make_tensor("outer", TensorProto.FLOAT, [1], [1.0])],
    )
    onnx.checker.check_graph(graph)
    names = [tensor.name for tensor in all_tensors(graph)]
    assert names == ["outer", "constant", "inner", "inner constant", "inner", "inner constant"]
