"""Constants that sizes depend on, held against ONNX Runtime: computed, stored beside the model, replaceable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from random_onnx_models import read_model, split_into
from stage_equality import assert_equal, random_feeds, run_onnx, run_onnx_stages

from mtpp.errors import InputError
from mtpp.formats.onnx.constants.on_demand import evaluated

OPSET = 17


def _boxes(rng: np.random.Generator) -> tuple[str, list[Any], dict[str, Any]]:
    batch, boxes, classes = (int(rng.integers(1, most)) for most in (3, 12, 3))
    corners = np.round(3 * rng.random((batch, boxes, 4)), int(rng.integers(0, 3))).astype(np.float32)
    scores = np.round(rng.random((batch, classes, boxes)), 1).astype(np.float32)
    given: list[Any] = [corners, scores]
    if rng.random() < 0.7:
        given += [np.array([rng.integers(0, boxes + 2)]), np.array([rng.random()], np.float32)]
        given += [np.array([0.3], np.float32)] if rng.random() < 0.5 else []
    return "NonMaxSuppression", given, {"center_point_box": int(rng.integers(0, 2))}


def _mask(rng: np.random.Generator) -> tuple[str, list[Any], dict[str, Any]]:
    axis = int(rng.integers(-2, 2))
    flat = rng.random() < 0.4
    data = rng.random((3, 5)).astype(np.float32)
    mask = rng.random(int(rng.integers(1, 1 + (15 if flat else data.shape[axis])))) < 0.5
    return "Compress", [data, mask], {} if flat else {"axis": axis}


def _different(rng: np.random.Generator) -> tuple[str, list[Any], dict[str, Any]]:
    data = rng.integers(0, 3, (4, 3)).astype([np.int64, np.float32][int(rng.integers(0, 2))])
    axis = {} if rng.random() < 0.5 else {"axis": int(rng.integers(-2, 2))}
    return "Unique", [data % 2 if axis else data], {"sorted": int(rng.integers(0, 2)), **axis}


@pytest.mark.parametrize("make", [_boxes, _mask, _different])
def test_ops_whose_sizes_data_tell(make: Any) -> None:
    """What is kept, found and different is what ONNX Runtime keeps, in its order."""
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    for _ in range(25):
        kind, arrays, attributes = make(rng)
        names = [f"i{place}" for place in range(len(arrays))]
        made = ["values", "first", "inverse", "counts"] if kind == "Unique" else ["out"]
        node = helper.make_node(kind, names, made, **attributes)
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name=name) for name in made])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        found = evaluated(node, arrays, OPSET)
        assert found is not None
        assert_equal(found, session.run(None, dict(zip(names, arrays, strict=True))), str(node))


HEADER = '<ir_version: 8, opset_import: ["": 17]>'


def _read(text: str, tmp_path: Path, *more: TensorProto) -> tuple[Any, Path]:
    model = onnx.parser.parse_model(HEADER + text)
    model.graph.initializer.extend(more)
    path = tmp_path / "model.onnx"
    return read_model(model, path), path


def _cuts_equal(reading: Any, path: Path, feeds: list[dict[str, Any]]) -> None:
    for cut in range(reading.graph.op_count):
        folder = path.with_name(f"cut{cut}")
        split_into(folder, path, reading, [int(place >= cut) for place in range(reading.graph.op_count)])
        for values in feeds:
            assert_equal(run_onnx_stages(folder, values), run_onnx(path, values))


def test_constants_of_constants_decide_sizes(tmp_path: Path) -> None:
    """A mask that ops compute from stored numbers, by rules that are no shape's, is run only where it is needed."""
    pytest.importorskip("onnxruntime")
    text = """
    g (float[2,8] x) => (float[2,c] y) <float[8] w = {0.1, -2, 3, 0.2, -0.5, 7, 0, 1}, float limit = {0.3}> {
        s = Sigmoid(w) m = Greater(s, half) k = And(m, m)
        c = Compress <axis = 1>(x, k) t = Tanh(c) y = Mul(t, t)
        half = Mul(limit, two) two = Constant <value_float = 2.0>()
    }"""
    reading, path = _read(text, tmp_path)
    assert reading.graph.metadata["outputs"][0]["shape"] == [2, 3]
    assert "assumptions" not in reading.graph.metadata
    _cuts_equal(reading, path, [random_feeds(path, seed) for seed in range(2)])


def test_what_another_constant_folds_to_is_known_behind_it(tmp_path: Path) -> None:
    """The number of different elements of a stored tensor goes on as a size."""
    pytest.importorskip("onnxruntime")
    text = """
    g (float[2,8] x) => (float[n,m] y) <int64[8] ids = {4, 1, 4, 2, 2, 9, 1, 1}, int64[1] rest = {-1}> {
        u = Unique <sorted = 0>(ids) n = Shape(u) target = Concat <axis = 0>(n, rest)
        h = Tanh(x) r = Reshape(h, target) y = Neg(r)
    }"""
    reading, path = _read(text, tmp_path)
    assert reading.graph.metadata["outputs"][0]["shape"] == [4, 4]
    _cuts_equal(reading, path, [random_feeds(path, 0)])


def _beside(name: str, array: np.ndarray, offset: int) -> TensorProto:
    tensor = numpy_helper.from_array(array, name)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "data.bin"), ("offset", str(offset)), ("length", str(array.nbytes))):
        tensor.external_data.add(key=key, value=value)
    return tensor


BESIDE = "g (float[2,8] x) => (float[a,b] y) { h = Tanh(x) r = Reshape(h, t) y = Neg(r) }"


def test_a_shape_beside_the_model_is_read_and_goes_into_the_stage(tmp_path: Path) -> None:
    """ONNX Runtime takes no shape from another file: the stage holds the numbers itself."""
    pytest.importorskip("onnxruntime")
    (tmp_path / "data.bin").write_bytes(b"\0" * 8 + np.array([4, 4]).tobytes())
    reading, path = _read(BESIDE, tmp_path, _beside("t", np.array([4, 4]), 8))
    assert reading.graph.metadata["outputs"][0]["shape"] == [4, 4]
    split_into(tmp_path / "stages", path, reading, [0, 1, 1])
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    (found,) = run_onnx_stages(tmp_path / "stages", {"x": x})
    assert_equal(found, -np.tanh(x).reshape(4, 4))


def test_without_the_file_the_tensor_is_named(tmp_path: Path) -> None:
    """Tensor and file are said, unless the caller gives the sizes, or the model declares them."""
    tensor = _beside("t", np.array([4, 4]), 0)
    with pytest.raises(
        InputError, match=r"size of 'r' depends on 't', which lies in 'data\.bin': there is no such file"
    ):
        _read(BESIDE, tmp_path, tensor)
    model = onnx.parser.parse_model(HEADER + BESIDE)
    model.graph.initializer.append(tensor)
    given = read_model(model, tmp_path / "model.onnx", {"r:0": 4, "r:1": 4})
    assert given.graph.metadata["outputs"][0]["shape"] == [4, 4]
    model.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [4, 4]))
    assert read_model(model, tmp_path / "model.onnx").graph.metadata["outputs"][0]["shape"] == [4, 4]


REPLACED = """
g (float[2,8] x, int64[1] k, bool[8] m, float[n] s) => (float[2,c] y, float[p,q] z)
<int64[1] k = {3}, bool[8] m = {1, 0, 1, 1, 0, 0, 1, 0}, float[1] s = {0.5}> {
    h = Tanh(x) v, i = TopK(h, k) w = Neg(v) y = Abs(w)
    d = Compress <axis = 1>(h, m) e = Exp(d) f = Mul(s, two) two = Constant <value_float = 2.0>() z = Mul(e, f)
}"""


def test_defaults_of_inputs_can_be_replaced_in_every_stage(tmp_path: Path) -> None:
    """Costs take the defaults; with other values, of other sizes where they may have them, stages equal the whole."""
    pytest.importorskip("onnxruntime")
    reading, path = _read(REPLACED, tmp_path)
    outputs = [port["shape"] for port in reading.graph.metadata["outputs"]]
    assert outputs == [[2, 3], [2, 4]]
    x = random_feeds(path, 0)["x"]
    others = [
        {"k": np.array([1])},
        {"m": np.array([True] * 8)},
        {"k": np.array([8]), "m": np.arange(8) % 3 == 0, "s": np.array([-1], np.float32)},
        {"s": np.array([1, 2, 3, 4], np.float32)},
    ]
    _cuts_equal(reading, path, [{"x": x}, *({"x": x, **given} for given in others)])


def test_below_version_4_the_same_are_constants(tmp_path: Path) -> None:
    """Where every initializer had to be an input, sizes that they decide are certain."""
    model = onnx.parser.parse_model(HEADER.replace("8,", "3,") + REPLACED)
    reading = read_model(model, tmp_path / "model.onnx")
    assert "assumptions" not in reading.graph.metadata
