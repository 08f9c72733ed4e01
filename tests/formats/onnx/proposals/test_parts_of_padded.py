"""Proposals for what is padded by computed widths and cut again: as large as the declared result asks for."""

from __future__ import annotations

from pathlib import Path

import onnx

import mtpp

PADDED_AND_CUT = """<ir_version: 10, opset_import: ["" : 18]>
g (float[4,8] x, int64[4] pads, int64[2] starts, int64[2] ends) => (float[9,8] y) {
    p = Pad (x, pads)
    y = Slice (p, starts, ends)
}"""


def test_a_part_is_no_larger_than_what_it_is_cut_from(tmp_path: Path) -> None:
    """A result of nine rows is cut from nine at least, though four are padded."""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(PADDED_AND_CUT), path)
    assert dict(mtpp.read(path, dims="auto").dims) == {"p:0": 9, "p:1": 8}
