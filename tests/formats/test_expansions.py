"""Files that would take far more memory than they are large: refused before anything is made of them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from processes import environment

from mtpp.errors import InputError
from mtpp.formats.onnx import read_onnx
from mtpp.inference.system import load_system

ON_LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system tells no peak of a process")

_PEAK = """
import sys
import mtpp
from mtpp.errors import MtppError
try:
    mtpp.read(sys.argv[1])
except MtppError as error:
    lines = open("/proc/self/status").read().splitlines()
    peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    print(error.exit_code, peak)
    print(error, file=sys.stderr)
"""


def _inspected(path: Path) -> tuple[int, int, str]:
    """Return the exit code for a file that cannot be read, the memory that it took in KiB, and the message.

    The system's own peak of that process: the one that ``getrusage`` tells starts with that of its parent.
    """
    command = [sys.executable, "-c", _PEAK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=300)
    code, peak = done.stdout.split()[-2:]
    return int(code), int(peak), done.stderr


def _crowded(filling: bytes) -> bytes:
    """Return a model of one node, with *filling* in its graph."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", TensorProto.FLOAT, [1])],
        [value("y", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    inner = model.graph.SerializeToString() + filling
    model.ClearField("graph")
    length, size = bytearray(), len(inner)
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return model.SerializeToString() + b"\x3a" + bytes([*length, size]) + inner


FILLINGS = {
    "nodes": b"\x0a\x00",
    "nodes with an operator": b"\x0a\x03\x22\x01A",
    "initializers": b"\x2a\x00",
    "types": b"\x6a\x00",
}


@pytest.mark.parametrize("filling", FILLINGS)
def test_crowds_of_empty_messages_are_refused(filling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they are of, and with as many as are always read they are."""
    monkeypatch.setattr("mtpp.formats.onnx.loading._FEWEST_FIELDS", 5_000)
    with pytest.raises(InputError, match="most of them are empty"):
        read_onnx(None, _crowded(FILLINGS[filling] * 10_000), source="m", system=load_system())


def test_attributes_of_a_node_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages within messages take memory as well."""
    monkeypatch.setattr("mtpp.formats.onnx.loading._FEWEST_FIELDS", 5_000)
    node = b"\x22\x04Relu" + b"\x2a\x00" * 8_000
    length = bytes([len(node) & 0x7F | 0x80, len(node) >> 7])
    with pytest.raises(InputError, match="most of them are empty"):
        read_onnx(None, _crowded(b"\x0a" + length + node), source="m", system=load_system())


@ON_LINUX
@pytest.mark.slow
def test_six_megabytes_of_empty_nodes_take_little_memory(tmp_path: Path) -> None:
    """Three million of them are refused at less than a gigabyte."""
    path = tmp_path / "crowded.onnx"
    path.write_bytes(_crowded(FILLINGS["nodes"] * 3_000_000))
    code, peak, said = _inspected(path)
    assert code == 2
    assert "most of them are empty" in said
    assert peak < 1 << 20


@ON_LINUX
def test_an_archive_of_zeros_is_refused_with_its_size(tmp_path: Path) -> None:
    """A megabyte that says that it unpacks to 1.2 GB is not unpacked."""
    path = tmp_path / "zeros.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("m/archive_format", "pt2")
        with written.open("m/models/model.json", "w") as file:
            for _ in range(100):
                file.write(bytes(1_000_000))
    # Zeros deflate to a thousandth: the directory says twelve times as much.
    data = bytearray(path.read_bytes())
    size = (100_000_000).to_bytes(4, "little")
    while (place := data.find(size)) >= 0:
        data[place : place + 4] = (1_200_000_000).to_bytes(4, "little")
    path.write_bytes(data)
    code, peak, said = _inspected(path)
    assert code == 2
    assert "unpacks to 1.118 GiB (1,200,000,003 bytes)" in said
    assert peak < 300 << 10
