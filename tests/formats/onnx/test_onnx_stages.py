"""What is in the stages' files: weights, functions, types, names, and what is left of the whole model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_text import built, function_of
from random_onnx_models import read_model, split_into

from mtpp.errors import InputError
from mtpp.formats.io.new_folder import check_folder, new_folder
from mtpp.formats.onnx.stages import contents, writing
from mtpp.formats.results.stage_manifest import OURS

F = TensorProto.FLOAT


def _model(
    nodes: str | list[onnx.NodeProto], stored: list[TensorProto] | None = None, outputs: Any = None, **more: Any
) -> onnx.ModelProto:
    """Return a model from x (2 × 4) to y (2 × 4)."""
    choices = {"inputs": {"x": [2, 4]}, "opset": 20, "ir_version": 10, "domains": ["local"], **more}
    return built(nodes, outputs=outputs or {"y": [2, 4]}, stored=stored or [], **choices)


def _stored(name: str, *shape: int) -> TensorProto:
    return numpy_helper.from_array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), name)


def _external(name: str, location: str, offset: int = 0) -> TensorProto:
    tensor = TensorProto(name=name, data_type=F, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", str(offset)), ("length", "64")):
        tensor.external_data.add(key=key, value=text)
    return tensor


def _split(model: onnx.ModelProto, tmp_path: Path, labels: list[int], **dims: int) -> list[onnx.ModelProto]:
    """Split a model and return the stages as they stand in their files."""
    path = tmp_path / "model.onnx"
    reading = read_model(model, path, dims)
    manifest, _ = split_into(tmp_path / "stages", path, reading, labels)
    folder = tmp_path / "stages"
    return [onnx.load(folder / stage.file, load_external_data=False) for stage in manifest.stages]


def _run(tmp_path: Path) -> None:
    """Check that the stages compute what the model does, bit for bit."""
    pytest.importorskip("onnxruntime")
    from mtpp.formats.results.stage_manifest import read_manifest
    from mtpp.runtime.checking.split_check import check_split

    path, folder = tmp_path / "model.onnx", tmp_path / "stages"
    found = check_split(path.read_bytes(), tmp_path, read_manifest(folder), folder, display="model.onnx")
    assert all(output.identical and output.finite for output in found.outputs)


def test_external_data_is_shared_under_a_safe_name(tmp_path: Path) -> None:
    """One copy of the file lies beside the stages; each refers to its part of it."""
    (tmp_path / "weights").mkdir()
    data = np.arange(32, dtype=np.float32).tobytes()
    (tmp_path / "weights" / "a..b.bin").write_bytes(data)
    stored = [_external("v", "weights/a..b.bin"), _external("w", "./weights/a..b.bin", 64), _external("u", "gone")]
    stages = _split(_model("a = MatMul(x, v) b = MatMul(a, w) y = MatMul(b, u)", stored), tmp_path, [0, 1, 2])
    placed = [{e.key: e.value for e in stage.graph.initializer[0].external_data} for stage in stages]
    assert [(p["location"], p["offset"]) for p in placed] == [
        ("weights-0.bin", "0"),
        ("weights-0.bin", "64"),
        ("weights-1.bin", "0"),
    ]
    assert (tmp_path / "stages" / "weights-0.bin").read_bytes() == data
    assert os.stat(tmp_path / "stages" / "weights-0.bin").st_nlink == 1  # onnx refuses others
    assert not (tmp_path / "stages" / "weights-1.bin").exists()
    assert onnx.load(tmp_path / "stages" / "stage-1.onnx").graph.initializer[0].raw_data == data[64:]
    _run(tmp_path)


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "link", "C:\\w", ""])
def test_hostile_places_are_refused_and_nothing_is_written(location: str, tmp_path: Path) -> None:
    """A place that leads out of the folder ends the split before it begins, in functions as well."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    function = function_of("F (p) => (q) { w = Constant <value = float[1] {0}>() q = MatMul(p, w) }")
    function.node[0].attribute[0].t.CopyFrom(_external("", location))
    calls, plain = "a = local.F(x) y = Relu(a)", "a = MatMul(x, w) y = Relu(a)"
    for model in (_model(calls, functions=[function]), _model(plain, [_external("w", location)])):
        with pytest.raises(InputError, match="external data of"):
            _split(model, tmp_path, [0, 1])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "model.onnx"]


def test_what_no_protobuf_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model or a stage above 2 GiB, here 2 KiB, is refused before or while it is written; nothing is left."""
    model = _model("a = MatMul(x, w) b = Relu(a) y = Add(b, b)", [_stored("w", 4, 600)], outputs={"y": [2, 600]})
    for module, message in ((writing, "stage 0 would be above 2 GiB"), (contents, "the model is above 2 GiB")):
        with monkeypatch.context() as patch:
            patch.setattr(module, "LARGEST_MESSAGE_BYTES", 2048)
            with pytest.raises(InputError, match=message):
                _split(model, tmp_path, [0, 0, 1])
        assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]
    _split(model, tmp_path, [0, 0, 1])


def test_old_models_list_initializers_among_inputs(tmp_path: Path) -> None:
    """Below IR version 4 each stage lists those that it has, and no others; they are no tensors between stages."""
    stored = [_stored("v", 4, 4), _stored("w", 4, 4)]
    nodes = "a = MatMul(x, v) y = MatMul(a, w)"
    inputs = {"x": [2, 4], "v": [4, 4], "w": [4, 4]}
    first, second = _split(_model(nodes, stored, inputs=inputs, opset=8, ir_version=3), tmp_path, [0, 1])
    assert [value.name for value in first.graph.input] == ["x", "v"]
    assert [value.name for value in second.graph.input] == ["a", "w"]
    assert (first.ir_version, first.opset_import[0].version) == (3, 8)
    _run(tmp_path)


FUNCTIONS = [
    function_of("Inner <slope>(a) => (b) { b = LeakyRelu <alpha: float = @slope>(a) }"),
    function_of("Outer <steep>(p) => (q) { c = Relu(p) d = local.Inner <slope: float = @steep>(c) q = Neg(d) }"),
]


@pytest.mark.parametrize(
    ("labels", "kinds", "functions"),
    [
        ([0, 0, 0, 1, 1, 1], [["Outer"], ["Outer"]], [["Inner", "Outer"], ["Inner", "Outer"]]),
        ([0, 0, 1, 1, 1, 1], [["Relu", "Inner"], ["Neg", "Outer"]], [["Inner"], ["Inner", "Outer"]]),
        ([0, 1, 1, 1, 2, 2], [["Relu"], ["Inner", "Neg", "Relu"], ["Inner", "Neg"]], [[], ["Inner"], ["Inner"]]),
    ],
)
def test_calls_that_no_cut_goes_through_stay_calls(
    labels: list[int], kinds: list[list[str]], functions: list[list[str]], tmp_path: Path
) -> None:
    """A call is replaced by its body only where it is cut; calls in that body may stay, with their attributes."""
    calls = "m = local.Outer <steep = 0.5> (x) y = local.Outer <steep = 0.25> (m)"
    stages = _split(_model(calls, functions=FUNCTIONS), tmp_path, labels)
    assert [[node.op_type for node in stage.graph.node] for stage in stages] == kinds
    assert [[function.name for function in stage.functions] for stage in stages] == functions
    assert {"", "local"} == {entry.domain for entry in stages[0].opset_import}
    _run(tmp_path)


def test_overloads_are_told_apart(tmp_path: Path) -> None:
    """Functions of one name are different ones if their overloads are; each stage gets those that it calls."""
    functions = [function_of(f"F (a) => (b) {{ t = Tanh(a) b = {kind}(t) }}") for kind in ("Relu", "Neg")]
    for function, kind in zip(functions, ("Relu", "Neg"), strict=True):
        function.overload = kind
    calls = "m = local.F:Relu(x) y = local.F:Neg(m)"
    stages = _split(_model(calls, functions=functions), tmp_path, [0, 0, 1, 1])
    assert [[function.overload for function in stage.functions] for stage in stages] == [["Relu"], ["Neg"]]
    assert [[node.op_type for node in stage.graph.node] for stage in stages] == [["F"], ["F"]]


def test_a_call_that_only_needs_a_later_shape_is_inlined(tmp_path: Path) -> None:
    """The plan lets a call run before what it takes the shape of; it cannot stay a call then."""
    function = function_of("Like (a, b) => (c) { s = Shape(b) c = Reshape(a, s) }")
    nodes = "late = Relu(x) early = local.Like(x, late) y = Add(early, late)"
    first, second = _split(_model(nodes, functions=[function]), tmp_path, [1, 0, 1])
    assert [node.op_type for node in first.graph.node] == ["Reshape"]
    assert [value.name for value in second.graph.input] == ["x", "early"]
    _run(tmp_path)


def test_what_is_said_about_the_model_stays(tmp_path: Path) -> None:
    """Producer, documentation and metadata are kept; training information is not; sizes stand where symbols did."""
    nodes = "a = Relu(x) b = Neg(a) y = Tanh(b)"
    sizes = {name: ["batch", 4] for name in "xaby"}
    model = _model(
        nodes, inputs={"x": sizes["x"]}, outputs={"y": sizes["y"]}, value_info={"a": sizes["a"], "b": sizes["b"]}
    )
    model.graph.doc_string = "graph"
    model.producer_name, model.doc_string, model.domain = "maker", "model", "org"
    model.metadata_props.add(key="author", value="someone")
    model.graph.input[0].doc_string = "an image"
    model.training_info.add()
    first, second = _split(model, tmp_path, [0, 0, 1], batch=3)
    for stage in (first, second):
        assert (stage.producer_name, stage.doc_string, stage.domain) == ("maker", "model", "org")
        assert (stage.graph.name, stage.graph.doc_string) == ("graph", "graph")
        assert [(entry.key, entry.value) for entry in stage.metadata_props] == [("author", "someone")]
        assert not stage.training_info
    assert first.graph.input[0].doc_string == "an image"
    declared = [*first.graph.input, *first.graph.value_info, *first.graph.output, *second.graph.input]
    assert [value.name for value in declared] == ["x", "a", "b", "b"]
    for value in declared:
        assert [dim.dim_value for dim in value.type.tensor_type.shape.dim] == [3, 4]
        assert value.type.tensor_type.elem_type == F


def test_constants_that_come_from_shapes_are_stored(tmp_path: Path) -> None:
    """A stage holds the sizes it needs, computes other constants, and makes an identity matrix itself."""
    nodes = (
        f"a = Relu(x) s = Shape(a) f = Cast <to = {F}>(s) g = ReduceSum <keepdims = 0>(f) t = Transpose(x) "
        "square = MatMul(t, x) eye = EyeLike <k = 1>(square) b = MatMul(a, eye) y = Mul(b, g)"
    )
    model = _model(nodes, outputs={"y": [2, 4], "square": [4, 4]})
    first, second = _split(model, tmp_path, [0, 0, 0, 1, 1])
    assert [value.name for value in second.graph.input] == ["a"]
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in second.graph.initializer}
    assert stored["s"].tolist() == [2, 4]
    assert np.array_equal(stored["eye"], np.eye(4, k=1, dtype=np.float32))
    assert [node.op_type for node in second.graph.node] == ["Cast", "ReduceSum", "MatMul", "Mul"]
    assert [value.name for value in first.graph.output] == ["a", "square"]
    _run(tmp_path)


def test_results_that_need_no_op(tmp_path: Path) -> None:
    """Inputs passed through, weights and constants as results, and a result that is also read later."""
    nodes = (
        "c = Constant <value_floats = [1.0, 2.0]> () early = Relu(x) s = Shape(early) m = Add(early, x) "
        "y = Add(m, early)"
    )
    outputs = {"x": [2, 4], "early": [2, 4], "w": [3], "c": [2], "y": [2, 4], "s": (TensorProto.INT64, [2])}
    stages = _split(_model(nodes, [_stored("w", 3)], outputs=outputs), tmp_path, [0, 3, 7])
    assert [[value.name for value in stage.graph.output] for stage in stages] == [
        ["early"],
        ["m"],
        ["y", "w", "c", "s"],
    ]
    assert [[value.name for value in stage.graph.input] for stage in stages] == [["x"], ["x", "early"], ["early", "m"]]
    _run(tmp_path)


def test_dead_ends_are_returned_where_a_stage_makes_nothing_else(tmp_path: Path) -> None:
    """A stage whose ops nobody reads is a model that can be run."""
    _, second = _split(_model("y = Relu(x) dead = Neg(x)"), tmp_path, [0, 1])
    assert [value.name for value in second.graph.output] == ["dead"]
    _run(tmp_path)


def test_sequences_cross_a_cut(tmp_path: Path) -> None:
    """A sequence of tensors is declared with its element type."""
    nodes = "a = Relu(x) s = SequenceConstruct(x, a) c = ConcatFromSequence <axis = 0> (s) y = Slice(c, from, to)"
    bounds = [numpy_helper.from_array(np.array([value]), name) for name, value in (("from", 1), ("to", 3))]
    _, second = _split(_model(nodes, bounds), tmp_path, [0, 0, 1, 1])
    element = second.graph.input[0].type.sequence_type.elem_type.tensor_type
    assert (element.elem_type, [dim.dim_value for dim in element.shape.dim]) == (F, [2, 4])
    _run(tmp_path)


def test_sequences_are_results(tmp_path: Path) -> None:
    """The check takes their tensors out of them, one by one."""
    model = _model("a = Relu(x) s = SequenceConstruct(x, a) y = SequenceInsert(s, x)")
    model.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("y", F, [2, 4]))
    _split(model, tmp_path, [0, 0, 1])
    _run(tmp_path)


def test_half_precision_between_stages_is_rounded(tmp_path: Path) -> None:
    """A cut rounds what kernels keep in single precision: as inexact as that may the result be, and no more."""
    pytest.importorskip("onnxruntime")
    from mtpp.formats.results.stage_manifest import read_manifest
    from mtpp.runtime.checking.split_check import check_split

    nodes = f"a = Cast <to = {TensorProto.FLOAT16}>(x) b = Relu(a) c = Add(b, b) y = Cast <to = {F}>(c)"
    _split(_model(nodes), tmp_path, [0, 0, 1, 1])
    manifest, data = read_manifest(tmp_path / "stages"), (tmp_path / "model.onnx").read_bytes()
    checks = [
        check_split(data, tmp_path, manifest, tmp_path / "stages", display="m", seed=seed).outputs[0]
        for seed in range(8)
    ]
    assert all(check.passed for check in checks)
    assert 0 < max(check.relative_difference for check in checks) < 2**-10


def test_optionals_do_not_cross_a_cut(tmp_path: Path) -> None:
    """They are refused: what is known of them is what is in them."""
    nodes = "o = Optional(x) a = OptionalGetElement(o) y = Relu(a)"
    with pytest.raises(InputError, match="tensor 'o' is an optional"):
        _split(_model(nodes), tmp_path, [0, 1, 1])
    _split(_model(nodes), tmp_path, [0, 0, 1])
    _run(tmp_path)


def test_optionals_that_control_flow_makes_do_not_cross_either(tmp_path: Path) -> None:
    """An optional is one wherever it comes from: the branches of an If, a Loop that carries it, an Identity."""
    text = """
    <ir_version: 10, opset_import: ["": 18]> g (float[2] x, bool c) => (float[2] y) <int64 two = {2}> {
        o = If (c) <
            then_branch = t () => (p) { p = Optional (x) },
            else_branch = e () => (q) { n = Neg (x) q = Optional (n) }
        >
        i = Identity (o)
        l = Loop (two, "", i) <body = b (int64 k, bool go, s) => (bool on, u) { on = Identity (go) u = Identity (s) }>
        a = OptionalGetElement (l)
        y = Relu (a)
    }
    """
    model = onnx.parser.parse_model(text)
    for label, name in enumerate("oil"):
        with pytest.raises(InputError, match=f"tensor '{name}' is an optional"):
            _split(model, tmp_path, [0 if op <= label else 1 for op in range(5)])
    _split(model, tmp_path, [0, 0, 0, 0, 1])
    _run(tmp_path)


def test_functions_of_older_operator_sets(tmp_path: Path) -> None:
    """Where inlining had to convert a body, it is no longer what the function says: no call stays, cut or not."""
    function = function_of("Old (a) => (b) { s = Squeeze <axes = [0]>(a) b = Relu(s) }", opset=11)
    nodes = "u = Unsqueeze(x, zero) m = local.Old(u) y = Neg(m)"
    zero = numpy_helper.from_array(np.array([0]), "zero")
    model = _model(nodes, [zero], functions=[function], value_info={"u": [1, 2, 4], "m": [2, 4]})
    for folder, labels in (("a", [0, 0, 0, 1]), ("b", [0, 0, 1, 1])):
        (tmp_path / folder).mkdir()
        first, second = _split(model, tmp_path / folder, labels)
        assert not [*first.functions, *second.functions]


def test_sparse_weights_and_quantisation_go_where_they_are_used(tmp_path: Path) -> None:
    """Sparse initializers and annotations, with the scales that they name, are in the stages that need them."""
    indices = numpy_helper.from_array(np.array([5]))
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.array([2], np.float32), "w"), indices, [4, 4])
    model = _model("a = Relu(x) y = MatMul(a, w)", [_stored("scale", 1)])
    model.graph.sparse_initializer.append(sparse)
    annotation = model.graph.quantization_annotation.add(tensor_name="y")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    first, second = _split(model, tmp_path, [0, 1])
    assert (len(first.graph.sparse_initializer), len(first.graph.quantization_annotation)) == (0, 0)
    assert not first.graph.initializer
    assert [part.values.name for part in second.graph.sparse_initializer] == ["w"]
    assert [part.tensor_name for part in second.graph.quantization_annotation] == ["y"]
    assert [tensor.name for tensor in second.graph.initializer] == ["scale"]
    _run(tmp_path)


def test_nodes_are_called_what_the_plan_calls_them(tmp_path: Path) -> None:
    """Missing names are made up and repeated ones made different, as the plan has them."""
    (stage,) = _split(_model("[n] a = Relu(x) [n] b = Neg(a) y = Tanh(b)"), tmp_path, [0, 0, 0])
    assert [node.name for node in stage.graph.node] == ["n", "n_2", "Tanh_2"]


def test_nodes_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    """A file that lists nodes before what they read gives stages that are valid models."""
    first, second = _split(_model("y = Tanh(b) b = Neg(a) a = Relu(x)"), tmp_path, [0, 0, 1])
    assert [node.op_type for node in first.graph.node] == ["Relu", "Neg"]
    assert [node.op_type for node in second.graph.node] == ["Tanh"]
    for stage in (first, second):
        onnx.checker.check_model(stage, full_check=True)


def test_tensor_names_never_become_file_names(tmp_path: Path) -> None:
    """Names that climb, hold control characters or are very long stay names of tensors."""
    first, second = "../../\x07\n/etc", "n" * 10_000
    nodes = [
        helper.make_node("Relu", ["x"], [first], name=second),
        helper.make_node("Neg", [first], [second]),
        helper.make_node("Tanh", [second], ["y"]),
    ]
    _split(_model(nodes), tmp_path, [0, 1, 2])
    assert sorted(entry.name for entry in (tmp_path / "stages").iterdir()) == [
        "manifest.json",
        "stage-0.onnx",
        "stage-1.onnx",
        "stage-2.onnx",
    ]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.onnx", "stages"]
    _run(tmp_path)


def test_a_body_that_takes_the_shape_of_something_later_is_refused(tmp_path: Path) -> None:
    """Only the shape matters to the plan, but the body cannot do without the tensor."""
    body = "b () => (r) { s = Shape(late) r = Reshape(x, s) }"
    nodes = (
        "total = ReduceSum <keepdims = 0>(x) condition = Cast <to = 9>(total) late = Relu(x) "
        f"early = If(condition) <then_branch = {body}, else_branch = {body}> y = Add(early, late)"
    )
    with pytest.raises(InputError, match=r"stage 0, If 'early': it reads 'late', if only its shape"):
        _split(_model(nodes), tmp_path, [0, 0, 1, 0, 1])
    _split(_model(nodes), tmp_path, [0, 0, 0, 1, 1])
    _run(tmp_path)


def test_a_folder_is_filled_at_once_or_not_at_all(tmp_path: Path) -> None:
    """An interruption leaves nothing behind; only stages of an earlier run can be replaced."""
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out", OURS):
        raise KeyboardInterrupt
    with pytest.raises(InputError, match="No space left"), new_folder(tmp_path / "out", OURS):
        raise OSError(28, "No space left on device")
    assert not any(tmp_path.iterdir())
    (tmp_path / "out").mkdir()
    with new_folder(tmp_path / "out", OURS) as draft:
        (draft / "manifest.json").write_text("1")
    with pytest.raises(InputError, match="holds stages already"):
        check_folder(tmp_path / "out", OURS)
    with new_folder(tmp_path / "out", OURS, force=True) as draft:
        (draft / "manifest.json").write_text("2")
    assert (tmp_path / "out" / "manifest.json").read_text() == "2"
    (tmp_path / "out" / "mine").touch()
    for force in (False, True):
        with pytest.raises(InputError, match="holds other files, such as 'mine'"):
            check_folder(tmp_path / "out", OURS, force=force)
    with pytest.raises(InputError, match="is a file"):
        check_folder(tmp_path / "out" / "mine", OURS)
    with pytest.raises(InputError, match="there is no directory"):
        check_folder(tmp_path / "none" / "out", OURS)
    with pytest.raises(InputError, match="names no folder"):
        check_folder("", OURS)  # not the one that the program happens to be in
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
