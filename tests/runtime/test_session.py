"""Sessions run what they are told to, ops under their own names, with weights from where they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx_text import built

from mtpp.errors import InputError

pytest.importorskip("onnxruntime")

from mtpp.runtime.random_values import absent_weights, random_input, random_weight
from mtpp.runtime.session import SessionChoices, open_session


def _model(*, external: str | None = None) -> onnx.ModelProto:
    """Return y = relu(batch-normalised x·W) with W of 2 × 2 and constants that are computed."""
    weight = numpy_helper.from_array(np.array([[1, 2], [3, 4]], dtype=np.float32), "w")
    if external is not None:
        weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2])
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=external)
    nodes = (
        "[fill] ones = ConstantOfShape <value = float[1] one {1.0}>(shape) [product] h = MatMul(x, w) "
        "[sum] a = Add(h, ones) [same] b = Identity(a) [clip] y = Relu(b)"
    )
    return built(nodes, {"x": [1, 2]}, {"y": [1, 2]}, {"shape": np.array([2])}, stored=[weight], opset=17)


def test_a_model_runs_from_bytes_and_from_a_file(tmp_path: Path) -> None:
    """x·W + 1 with x = (1, 1) is (5, 7)."""
    model = _model()
    onnx.save(model, tmp_path / "m.onnx")
    x = np.ones((1, 2), dtype=np.float32)
    for source in (model.SerializeToString(), tmp_path / "m.onnx"):
        (y,) = open_session(source, display="m.onnx").run(None, {"x": x})
        assert y.tolist() == [[5, 7]]


def test_ops_keep_their_names_and_constants_are_folded(tmp_path: Path) -> None:
    """Every op that depends on an input runs, the Identity too; the constant that is computed does not."""
    choices = SessionChoices(profile_prefix=str(tmp_path / "trace"))
    session = open_session(_model().SerializeToString(), choices, display="m.onnx")
    session.run(None, {"x": np.ones((1, 2), dtype=np.float32)})
    events = json.loads(Path(session.end_profiling()).read_text())
    ran = [event["name"] for event in events if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]
    assert ran == [f"{name}_kernel_time" for name in ("product", "sum", "same", "clip")]


def test_weights_are_taken_from_the_file_beside_the_model(tmp_path: Path) -> None:
    """From a file and from bytes with the folder named."""
    (tmp_path / "w.data").write_bytes(np.array([[1, 2], [3, 4]], dtype=np.float32).tobytes())
    model = _model(external="w.data")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    x = np.ones((1, 2), dtype=np.float32)
    assert absent_weights(model, tmp_path, "m.onnx") == {}
    for source in (model.SerializeToString(), tmp_path / "m.onnx"):
        (y,) = open_session(source, display="m.onnx", folder=tmp_path).run(None, {"x": x})
        assert y.tolist() == [[5, 7]]


def test_absent_weights_are_made_up(tmp_path: Path) -> None:
    """The result is that of the random matrix; the same name gives the same one again."""
    model = _model(external="w.data")
    weights = absent_weights(model, tmp_path, "m.onnx", seed=3)
    assert list(weights) == ["w"]
    assert np.array_equal(weights["w"], random_weight("w", TensorProto.FLOAT, (2, 2), 3))
    assert not np.array_equal(weights["w"], random_weight("w", TensorProto.FLOAT, (2, 2), 4))
    x = np.ones((1, 2), dtype=np.float32)
    (y,) = open_session(model.SerializeToString(), display="m.onnx", weights=weights).run(None, {"x": x})
    assert np.allclose(y, np.maximum(x @ weights["w"] + 1, 0))


def test_a_damaged_file_is_said_without_codes(tmp_path: Path) -> None:
    """What ONNX Runtime says begins with the number of the kind of error, which helps nobody."""
    (tmp_path / "m.onnx").write_bytes(_model().SerializeToString()[:60])
    with pytest.raises(InputError) as caught:
        open_session(tmp_path / "m.onnx", display="m.onnx")
    assert str(caught.value).startswith("m.onnx: ONNX Runtime cannot load it: Load model from ")


def test_absent_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Before anything is made up: 16 bytes, and as many again for ONNX Runtime."""
    model = _model(external="w.data")
    assert list(absent_weights(model, tmp_path, "m.onnx", limit=32)) == ["w"]
    with pytest.raises(InputError, match=r"m\.onnx: running it with random weights .* takes 32 B, and 31 B are free"):
        absent_weights(model, tmp_path, "m.onnx", limit=31)


def test_what_cannot_be_run_is_one_line(tmp_path: Path) -> None:
    """An op that does not exist, and contents that a session cannot be given."""
    broken = _model()
    broken.graph.node[1].op_type = "NoSuchOp"
    with pytest.raises(InputError, match=r"broken\.onnx: ONNX Runtime cannot load it: .*NoSuchOp") as caught:
        open_session(broken.SerializeToString(), display="broken.onnx")
    assert "\n" not in str(caught.value)
    constant = _model()
    tensor = constant.graph.node[0].attribute[0].t
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="gone.data")
    with pytest.raises(InputError, match=r"m\.onnx: tensor 'one': 'gone\.data'.* does not exist"):
        absent_weights(constant, tmp_path, "m.onnx")


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(TensorProto.FLOAT, "float32"), (TensorProto.FLOAT16, "float16"), (TensorProto.INT64, "int64"),
     (TensorProto.BOOL, "bool"), (TensorProto.UINT8, "uint8"), (TensorProto.BFLOAT16, "bfloat16")],
)  # fmt: skip
def test_values_have_the_type_and_shape_asked_for(dtype: int, kind: str) -> None:
    """They are the same for the same name and seed, and others otherwise; whole numbers are 0 or 1."""
    for make in (random_input, random_weight):
        values = make("name", dtype, (4, 8), 1)
        assert values.shape == (4, 8)
        assert values.dtype.name == kind
        assert np.array_equal(values, make("name", dtype, (4, 8), 1))
        assert not np.array_equal(values, make("other", dtype, (4, 8), 1))
        assert not np.array_equal(values, make("name", dtype, (4, 8), 2))
        if values.dtype.kind in "iub":
            assert set(np.unique(values).tolist()) == {0, 1}
        assert np.isfinite(values.astype(np.float64)).all()


def test_strings_have_no_random_values() -> None:
    """A clear refusal."""
    with pytest.raises(InputError, match="no values can be made up for tensor 'text'"):
        random_input("text", TensorProto.STRING, (1,))
