"""Bases of sizes that operators do not settle, among the assumptions: estimates, declarations, or the caller's word."""

from __future__ import annotations

import onnx
import pytest

from mtpp.errors import InputError
from mtpp.formats.onnx.reader import read_with_nodes
from mtpp.machine.presets import load_device


def _assumptions(text: str, dims: dict[str, int | str]) -> list[str]:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 17, "other": 1]> {text}')
    found = read_with_nodes(None, model.SerializeToString(), source="m", system=load_device(), dims=dims)
    return found.graph.metadata.get("assumptions", [])


UNRULED = "b = other.Foo (a) c = Relu (b)"
KEPT = "f = Flatten <axis = 0> (a) r = Squeeze (f) m = Greater (r, r) b = Compress (r, m) c = Relu (b)"


@pytest.mark.parametrize(
    ("declared", "body", "dims", "told"),
    [
        ("float[4,4] b", UNRULED, {}, ["b:0 = 4, b:1 = 4: as the file declares; open in stages"]),
        ("float[4,rows] b", UNRULED, {"rows": 3}, ["b:0 = 4: as the file declares; open in stages",
                                                   "b:1 = 3: as given; open in stages"]),
        ("float[4,4] d", UNRULED, {"b:0": 2, "b:1": 5}, ["b:0 = 2, b:1 = 5: as given; open in stages"]),
        ("float[4,rows] b", UNRULED, {"*": "auto"}, ["b:0 = 4: as the file declares; open in stages",
                                                     "b:1 = 1: estimated, as proposed; open in stages"]),
        ("float[4,4] d", KEPT, {"b:0": 5}, ["b:0 = 5: as given; open in stages"]),
        ("float[8] b", KEPT, {}, ["b:0 = 8: as the file declares; open in stages"]),
    ],
)  # fmt: skip
def test_each_size_is_told_with_who_says_it(declared, body, dims, told):
    """A size that a file declares for an op without a rule is no estimate, and nor is one that the caller gives."""
    assert _assumptions(f"g (float[4,4] a) => (c) <{declared}> {{ {body} }}", dims) == told


def test_an_axis_is_asked_for_by_one_key():
    """One that has a name is listed by that, not by its place as well."""
    text = f"g (float[4,4] a) => (c) <float[rows,cols] b> {{ {UNRULED} }}"
    with pytest.raises(InputError) as caught:
        _assumptions(text, {})
    assert "'rows'" in str(caught.value)
    assert "b:0" not in str(caught.value)
