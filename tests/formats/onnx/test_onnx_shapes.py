"""Shapes: symbolic dimensions, computed shapes, and what the messages say where one stays unknown."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_text import nodes_of
from refusals import refusal

from mtpp.errors import InputError

node = helper.make_node


def _bytes(graph, tensor):
    return int(graph.tensor_bytes[graph.tensor_names.index(tensor)])


def test_a_symbolic_dimension_takes_the_size_given(reading):
    """One size for every place the symbol stands at; it is kept in the metadata."""
    model = reading.model("y = MatMul(x, W)", {"x": ["batch", "seq", 8]}, ["y"], {"W": [8, 4]})
    graph = reading.read(model, dims={"batch": 3, "seq": 5})
    assert graph.metadata["macs"] == 3 * 5 * 8 * 4
    assert graph.metadata["dims"] == {"batch": 3, "seq": 5}
    assert graph.metadata["symbolic_dims"] == ["batch", "seq"]
    assert graph.metadata["inputs"] == [{"name": "x", "shape": [3, 5, 8], "dtype": "float32", "bytes": 480}]
    assert graph.metadata["outputs"] == [{"name": "y", "shape": [3, 5, 4], "dtype": "float32", "bytes": 240}]


def test_a_missing_size_names_the_input_the_dimension_and_the_flag(reading):
    """The message can be acted upon, and lists all that is open at once."""
    model = reading.model("y = Add(x, z)", {"x": ["batch", 8], "z": ["batch", "n", 8]}, ["y"])
    with pytest.raises(InputError) as caught:
        reading.read(model)
    assert str(caught.value) == (
        "model.onnx: 2 sizes are open: 'batch' (batch, axis 0 of 'x' and axis 0 of 'z'), 'n' (tokens, axis 1 of 'z'); "
        "set dims={'batch': 1, 'n': 128}, or dims=\"auto\""
    )


def test_an_unnamed_dimension_of_an_input_is_given_by_its_axis(reading):
    """INPUT:AXIS stands in for a name; the name itself may hold colons."""
    model = reading.model([node("Relu", ["x:0"], ["y"])], {"x:0": [None, 8]}, ["y"])
    with pytest.raises(InputError, match=r"open: 'x:0:0' \(batch\); set dims={'x:0:0': 1}"):
        reading.read(model)
    assert _bytes(reading.read(model, dims={"x:0:0": 2}), "y") == 64


def test_a_size_that_depends_on_data_is_given_by_tensor_and_axis(reading):
    """NonZero's output has no static size: the message names it, and everything behind it follows from the flag."""
    model = reading.model("[find] where = NonZero(x) t = Transpose(where) y = Relu(t)", {"x": [4, 8]}, ["y"])
    with pytest.raises(InputError) as caught:
        reading.read(model)
    assert str(caught.value) == (
        "model.onnx: 1 size is open: 'where:1' (depends on data, from NonZero 'find'); "
        "set dims={'where:1': 32}, or dims=\"auto\""
    )
    assert _bytes(reading.read(model, dims={"where:1": 6}), "t") == 8 * 6 * 2


def test_a_symbol_declared_inside_fixes_a_size_that_depends_on_data(reading):
    """An exporter's own name for such a size works as a flag."""
    nodes = nodes_of(f"where = NonZero(x) y = Cast <to = {TensorProto.FLOAT}>(where)")
    model = reading.model(nodes, {"x": [8]}, ["y"], value_info={"where": (TensorProto.INT64, [1, "hits"])})
    with pytest.raises(InputError, match=r"'hits' \(depends on data, axis 1 of 'where', .*dims={'hits': 8}"):
        reading.read(model)
    assert _bytes(reading.read(model, dims={"hits": 5}), "y") == 20


def test_an_unknown_rank_can_be_given_axis_by_axis(reading):
    """A custom op that says nothing of its output: all its axes make the shape, its input the element type."""
    nodes = nodes_of("m = acme.Mystery(x) y = Relu(m)")
    model = reading.model(nodes, {"x": [8]}, ["y"], domains=["acme"], value_info={"y": [2, 3]})
    model.graph.ClearField("value_info")
    with pytest.raises(InputError, match=r"Mystery 'm': tensor 'm' has an unknown shape.*dims m:0=1"):
        reading.read(model)
    graph = reading.read(model, dims={"m:0": 4, "m:1": 2})
    assert _bytes(graph, "m") == 32


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"bath": 1}, "model.onnx: dims: the model has no dimension 'bath'; did you mean 'batch'?"),
        ({"x:7": 1, "batch": 1}, "'x' has only 2 axes"),
        ({"x:1": 9, "batch": 1}, "the model fixes this dimension at 8; leave it out"),
        ({"batch": 0}, "dims: batch: 0 is not a positive size"),
        ({"batch": -3}, "-3 is not a positive size"),
        ({"batch": True}, "True is not a positive size"),
        ({"batch": 2**40}, "is not a positive size"),
    ],
)
def test_a_wrong_size_is_refused(reading, dims, message):
    """Unknown names list the known ones; sizes are positive."""
    assert message in str(refusal(reading.graph, nodes_of("y = Relu(x)"), {"x": ["batch", 8]}, ["y"], dims=dims))


def test_a_size_for_a_model_without_symbols_says_so(reading):
    """There is nothing to set."""
    with pytest.raises(InputError, match="it has no symbolic dimensions"):
        reading.graph("y = Relu(x)", {"x": [8]}, ["y"], dims={"batch": 1})


def test_an_input_that_nobody_reads_needs_no_size(reading):
    """Its shape is told as far as it is known."""
    graph = reading.graph("y = Relu(x)", {"x": [8], "unused": ["n", None]}, ["y"])
    assert graph.metadata["inputs"][1] == {"name": "unused", "shape": ["n", "?"], "dtype": "float32"}


def test_computed_shapes_are_followed(reading):
    """Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as PyTorch writes a view: it folds away, the view remains."""
    nodes = nodes_of(
        "shape = Shape(x) batch = Gather(shape, zero) doubled = Mul(batch, two) "
        "head = Unsqueeze(doubled, axis) target = Concat <axis = 0>(head, rest) [view] y = Reshape(x, target)"
    )
    constants = {"zero": np.int64(0), "two": np.int64(2), "axis": np.array([0]), "rest": np.array([-1, 2])}
    graph = reading.graph(nodes, {"x": ["batch", 8]}, ["y"], constants=constants, dims={"batch": 6})
    assert graph.op_names == ("view",)
    assert graph.metadata["outputs"][0]["shape"] == [12, 2, 2]
    assert graph.metadata["folded_constants"] == 5
    assert graph.param_bytes.tolist() == [0]


def test_shapes_computed_with_floats_and_comparisons_are_followed(reading):
    """Floor of a scaled size, a size chosen by Where, a Range sliced backwards."""
    nodes = nodes_of(
        f"shape = Shape(x) f = Cast <to = {TensorProto.FLOAT}>(shape) scaled = Mul(f, half) "
        f"floored = Floor(scaled) i = Cast <to = {TensorProto.INT64}>(floored) same = Equal(i, minus) "
        "chosen = Where(same, i, i) reversed = Slice(chosen, last, before, axis, back) "
        "e = Expand(one, reversed) sized = Add(e, total) total = ReduceSum <keepdims = 0>(x) y = Relu(sized)"
    )
    constants = {
        "half": np.float32(0.5),
        "minus": np.int64(-1),
        "last": np.array([-1]),
        "before": np.array([-(2**63)]),
        "axis": np.array([0]),
        "back": np.array([-1]),
        "one": np.float32(1),
    }
    graph = reading.graph(nodes, {"x": [9, 4]}, ["y"], constants=constants)
    assert graph.metadata["outputs"][0]["shape"] == [2, 4]


def test_stale_value_info_does_not_mislead(reading):
    """A declared size that contradicts the inferred one is left aside."""
    graph = reading.graph("h = Relu(x) y = Relu(h)", {"x": [2, 8]}, ["y"], value_info={"h": [7, 8]})
    assert _bytes(graph, "h") == 64


def test_inference_goes_on_after_an_op_unknown_to_onnx(reading):
    """Fused ops have shape rules of their own; what follows them is inferred as usual."""
    nodes = nodes_of(
        'c = com.microsoft.FusedConv <activation = "Relu", kernel_shape = [3, 3]> (x, W) '
        's, "", "", sum = com.microsoft.SkipLayerNormalization(c, c, G) '
        "m = com.microsoft.FusedMatMul <transB = 1> (s, s) y = Softmax(m)"
    )
    graph = reading.graph(nodes, {"x": [1, 3, 8, 8]}, ["y"], {"W": [4, 3, 3, 3], "G": [6]}, domains=["com.microsoft"])
    assert graph.metadata["outputs"][0]["shape"] == [1, 4, 6, 6]
    assert graph.op_kinds[:3] == (
        "com.microsoft:FusedConv",
        "com.microsoft:SkipLayerNormalization",
        "com.microsoft:FusedMatMul",
    )


def test_operands_that_do_not_fit_say_why(reading):
    """The sizes that contradict each other are named, with the place."""
    with pytest.raises(InputError, match=r"MatMul 'bad': operands do not fit .*: rows of 3 meet columns of 4"):
        reading.graph("[bad] y = MatMul(x, W)", {"x": [2, 3]}, ["y"], {"W": [4, 5]})


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (node("LayerNormalization", ["x", "W"], ["y"], axis=-9), "axis -9 is no axis of a tensor of rank 2"),
        (node("Split", ["x"], ["y", "z"], num_outputs=1), "num_outputs is 1, but the node has 2 outputs"),
        (node("Einsum", ["x", "x"], ["y"], equation="ij,\xffjk->ik"), "the equation is not one of letters"),
        (node("Softmax", ["x"], ["y"], axis=2**62), "is no axis of a tensor of rank 2"),
    ],
)
def test_faults_that_crash_the_inference_of_onnx_are_caught_before_it(reading, broken, reason):
    """These nodes end the process, or never end, if onnx's own inference is run on them."""
    with pytest.raises(InputError, match=reason):
        reading.graph([broken], {"x": [4, 4]}, ["y"], {"W": [4]})


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 15, 17, 18, 20, 21, 22, 23])
def test_operator_sets_from_7_on_are_read(reading, opset):
    """The same small network in every set: attributes become inputs over time."""
    old = opset < 13
    squeeze = node("Squeeze", ["p"], ["s"], axes=[2, 3]) if old else node("Squeeze", ["p", "axes"], ["s"])
    nodes = [
        node("Conv", ["x", "W"], ["c"], kernel_shape=[3, 3]),
        node("BatchNormalization", ["c", "S", "B", "M", "V"], ["b"]),
        node("Relu", ["b"], ["r"]),
        node("GlobalAveragePool", ["r"], ["p"]),
        squeeze,
        node("Gemm", ["s", "F", "G"], ["g"]),
        node("Softmax", ["g"], ["y"], axis=1),
    ]
    graph = reading.graph(
        nodes,
        {"x": [2, 3, 8, 8]},
        ["y"],
        {"W": [4, 3, 3, 3], "S": [4], "B": [4], "M": [4], "V": [4], "F": [4, 10], "G": [10]},
        {} if old else {"axes": np.array([2, 3])},
        opset=opset,
    )
    assert graph.metadata["macs"] == 2 * 4 * 36 * 27 + 2 * 4 * 10
    assert graph.metadata["opsets"] == {"ai.onnx": opset}
    assert graph.op_count == 7


def test_ops_that_left_the_standard_are_read(reading):
    """Scatter (gone since opset 11) in a set that no longer has it, LayerNormalization in one that had not."""
    nodes = nodes_of("s = Scatter <axis = 0> (x, i, u) y = LayerNormalization(s, W)")
    inputs = {"x": [4, 4], "i": (TensorProto.INT64, [1, 4]), "u": [1, 4]}
    graph = reading.graph(nodes, inputs, ["y"], {"W": [4]}, opset=12)
    assert graph.metadata["outputs"][0]["shape"] == [4, 4]


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("FLOAT", 40),
        ("FLOAT16", 20),
        ("BFLOAT16", 20),
        ("DOUBLE", 80),
        ("INT8", 10),
        ("BOOL", 10),
        ("INT4", 5),
        ("UINT4", 5),
        ("FLOAT4E2M1", 5),
        ("FLOAT8E4M3FN", 10),
        ("COMPLEX64", 80),
        ("STRING", 80),
        ("INT2", 3),
    ],
)
def test_sizes_follow_the_element_type(reading, dtype, size):
    """Elements below a byte are packed and rounded up; a string counts as a pointer."""
    if not hasattr(TensorProto, dtype):
        pytest.skip(f"this onnx has no {dtype}")
    number = TensorProto.DataType.Value(dtype)
    model = reading.model(
        "h = Identity(x) y = Identity(h)",
        {"x": (number, [10])},
        ["y"],
        opset=25 if dtype == "INT2" else 23,
    )
    assert _bytes(reading.read(model), "h") == size


def test_a_map_is_refused_where_it_is_read_and_tolerated_as_an_output(reading):
    """ZipMap at the end of a scikit-learn model costs nothing."""
    nodes = nodes_of("p = Softmax(x) z = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2]> (p)")
    model = reading.model(nodes, {"x": [1, 3]}, ["z"], domains=["ai.onnx.ml"])
    graph = reading.read(model)
    assert graph.metadata["not_modelled"] == {"ai.onnx.ml:ZipMap": 1}
    assert graph.tensor_names == ("p",)
    mapped = onnx.ModelProto.FromString(model.SerializeToString())
    mapped.graph.node.append(node("Mystery", ["z"], ["y"], domain="ai.onnx.ml"))
    with pytest.raises(InputError, match="tensor 'z' is a sequence, which has no static size"):
        reading.read(mapped)


def test_sequences_of_known_tensors_have_sizes(reading):
    """SplitToSequence -> SequenceAt, as TorchScript writes a split."""
    nodes = nodes_of("s = SplitToSequence <axis = 0> (x, parts) second = SequenceAt(s, one) y = Relu(second)")
    graph = reading.graph(nodes, {"x": [6, 4]}, ["y"], constants={"parts": np.array([1, 3, 2]), "one": np.int64(1)})
    assert _bytes(graph, "s") == 96
    assert _bytes(graph, "second") == 48
