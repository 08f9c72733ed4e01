"""Sizes proposed for what a model leaves open: they fit, its arithmetic needs them, and all are told at once."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_text import nodes_of

import mtpp
from mtpp.cli.flags import flag_of
from mtpp.errors import InputError
from mtpp.formats.modelled.open_sizes import OpenSizes
from mtpp.formats.modelled.size_roles import Role
from mtpp.formats.onnx import read_with_nodes
from mtpp.machine.presets import load_device

node = helper.make_node
I64 = TensorProto.INT64
AUTO = {"*": "auto"}


def _read(model: onnx.ModelProto, dims=None):
    return read_with_nodes(None, model.SerializeToString(), source="model.onnx", dims=dims, system=load_device())


def _proposed(model: onnx.ModelProto, dims=None) -> dict[str, int]:
    """Return the sizes that reading with proposals took, all of which have to be told as such."""
    metadata = _read(model, dims or AUTO).graph.metadata
    named = {name for name in dims or AUTO if name != "*"}
    assert set(metadata.get("proposed_dims", ())) == metadata["dims"].keys() - named
    return metadata["dims"]


def _told(model: onnx.ModelProto, dims=None) -> OpenSizes:
    with pytest.raises(OpenSizes) as caught:
        _read(model, dims)
    return caught.value


def _pyramid(reading, height="h", width="w", **more):
    """Return a net that halves a picture three times, and adds it twice as large to what it was before."""
    nodes, name = [], "x"
    for level in range(3):
        nodes.append(node("Conv", [name, f"W{level}"], [f"c{level}"], pads=[1] * 4, strides=[2, 2]))
        name = f"c{level}"
    nodes += nodes_of(
        'u = Resize <mode = "nearest"> (c2, "", up) s = Add(u, c1) v = Resize <mode = "nearest"> (s, "", up) '
        "y = Add(v, c0)"
    )
    weights = {"W0": [4, 3, 3, 3], "W1": [4, 4, 3, 3], "W2": [4, 4, 3, 3]}
    constants = {"up": np.array([1, 1, 2, 2], np.float32)}
    return reading.model(nodes, {"x": ["n", 3, height, width]}, ["y"], weights, constants, **more)


def test_all_open_sizes_are_told_with_a_line_to_paste(reading):
    """Roles, places, steps in which sizes fit, and flags that a shell takes: with them the model is read."""
    error = _told(_pyramid(reading, "image height", "it's wide"))
    assert [(one.key, one.role, one.places) for one in error.sizes] == [
        ("n", Role.BATCH, (("x", 0),)),
        ("image height", Role.HEIGHT, (("x", 2),)),
        ("it's wide", Role.WIDTH, (("x", 3),)),
    ]
    line = error.told(flag_of)
    assert "'image height' (height, axis 2 of 'x', in steps of 8)" in line
    words = shlex.split(line.partition("set them: ")[2].partition(", or take")[0])
    assert words[::2] == ["--dim"] * 3
    sizes = {name: int(size) for name, _, size in (word.rpartition("=") for word in words[1::2])}
    assert sizes["n"] == 1
    assert _read(_pyramid(reading, "image height", "it's wide"), sizes).graph.op_count == 7
    assert line.endswith(", or take what is proposed: --dims auto")


def test_a_program_is_told_what_a_program_writes(reading):
    """In Python the sizes are a dictionary."""
    text = str(_told(_pyramid(reading)))
    assert "set dims={'n': 1, 'h': 224, 'w': 224}, or dims=\"auto\"" in text


def test_skips_need_sizes_that_divide(reading):
    """What is halved and doubled must meet what it was: the size proposed does, one beside it does not."""
    model = _pyramid(reading)
    sizes = _proposed(model)
    assert sizes["h"] == sizes["w"] == 224
    with pytest.raises(InputError):
        _read(model, {**sizes, "h": sizes["h"] + 4})


def test_a_given_size_stands_and_the_others_follow_from_it(reading):
    """A low picture is a line, four times as wide."""
    assert _proposed(_pyramid(reading), {"h": 48, **AUTO}) == {"h": 48, "n": 1, "w": 192}
    assert _proposed(_pyramid(reading, 64)) == {"n": 1, "w": 256}


def test_two_unknown_sizes_are_not_one(reading):
    """Exporters call every size that they do not know by one name: each is a size of its own."""
    model = _pyramid(reading, "?", "?")
    assert _proposed(model) == {"n": 1, "x:2": 224, "x:3": 224}
    assert _read(model, {"n": 1, "x:2": 32, "x:3": 64}).graph.metadata["outputs"][0]["shape"] == [1, 4, 16, 32]
    assert _read(model, {"n": 1, "?": 32}).graph.metadata["outputs"][0]["shape"] == [1, 4, 16, 16]


def test_a_product_behind_a_convolution_needs_one_size(reading):
    """The rows of a matrix say how many pixels are left."""
    nodes = nodes_of("c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]>(x, W) f = Flatten(c) y = Gemm(f, M)")
    parameters = {"W": [4, 3, 3, 3], "M": [4 * 14 * 14, 10]}
    model = reading.model(nodes, {"x": ["n", 3, "h", "w"]}, ["y"], parameters)
    assert _proposed(model) == {"n": 1, "h": 28, "w": 28}
    assert all("no other near it fits" in one.note for one in _told(model).sizes[1:])


@pytest.mark.parametrize("flattened", ["Flatten", "rows for a batch", "one row"])
@pytest.mark.parametrize(("side", "even"), [(100, 100), (150, 148), (84, 84)])
def test_uncommon_sizes_are_counted_out(reading, flattened, side, even):
    """A side that no list has, from the rows of a matrix or a fixed shape; of several, one that leaves nothing over."""
    left = 5 * (side // 4) ** 2
    shape = np.array([-1 if flattened == "rows for a batch" else 1, left])
    nodes = [
        node("Conv", ["x", "W"], ["c"], pads=[1] * 4),
        node("MaxPool", ["c"], ["p"], kernel_shape=[4, 4], strides=[4, 4]),
        node("Flatten", ["p"], ["f"]) if flattened == "Flatten" else node("Reshape", ["p", "shape"], ["f"]),
        node("MatMul", ["f", "M"], ["y"]),
    ]
    constants = {} if flattened == "Flatten" else {"shape": shape}
    model = reading.model(nodes, {"x": ["n", 3, "h", "w"]}, ["y"], {"W": [5, 3, 3, 3], "M": [left, 10]}, constants)
    assert _proposed(model) == {"n": 1, "h": even, "w": even}


def test_waves_tokens_and_batches_are_counted_out(reading):
    """A second of sound at an uncommon rate, tokens that a fixed shape needs, a batch of six."""
    nodes = nodes_of("c = Conv <strides = [50]>(x, W) f = Flatten(c) y = MatMul(f, M)")
    model = reading.model(nodes, {"x": ["n", 1, "t"]}, ["y"], {"W": [4, 1, 50], "M": [4 * 441, 10]})
    assert _proposed(model) == {"n": 1, "t": 22050}
    nodes = nodes_of("r = Reshape(x, shape) y = MatMul(r, M)")
    model = reading.model(nodes, {"x": ["n", 7, "l"]}, ["y"], {"M": [343, 8]}, {"shape": np.array([1, 343])})
    assert _proposed(model) == {"n": 1, "l": 49}
    model = reading.model(nodes, {"x": ["batch", 4]}, ["y"], {"M": [4, 8]}, {"shape": np.array([2, 3, 4])})
    assert _proposed(model) == {"batch": 6}


def test_a_size_of_one_is_not_stretched_to_what_a_weight_has(reading):
    """One token would be added to every row of a table of positions, one feature to each of many: neither is meant."""
    nodes = nodes_of("e = MatMul(x, M) y = Add(e, P)")
    model = reading.model(nodes, {"x": ["b", "s", 16]}, ["y"], {"M": [16, 32], "P": [1, 197, 32]})
    assert _proposed(model) == {"b": 1, "s": 197}
    model = reading.model("y = Add(x, B)", {"x": ["n", "c"]}, ["y"], {"B": [16]})
    assert _proposed(model) == {"n": 1, "c": 16}


def test_windows_that_come_out_even_are_preferred(reading):
    """Of the common sizes of pictures, a net without padding that halves them leaves nothing over at 299."""
    nodes = nodes_of("a = Conv <strides = [2, 2]> (x, A) b = Conv <strides = [2, 2]> (a, B) y = GlobalAveragePool(b)")
    model = reading.model(nodes, {"x": [1, 3, "h", "w"]}, ["y"], {"A": [4, 3, 3, 3], "B": [4, 4, 3, 3]})
    assert _proposed(model) == {"h": 299, "w": 299}


def test_shapes_in_the_file_suggest_what_it_was_made_for(reading):
    """Of sizes that fit, one that agrees with value_info is taken."""
    nodes = nodes_of("c = Conv <pads = [1, 1, 1, 1]>(x, W) y = GlobalAveragePool(c)")
    model = reading.model(
        nodes, {"x": ["n", 3, "h", "w"]}, ["y"], {"W": [4, 3, 3, 3]}, value_info={"c": [1, 4, 96, 96]}
    )
    assert _proposed(model) == {"n": 1, "h": 96, "w": 96}


def test_a_stream_is_cut_where_its_windows_end(reading):
    """A chunk of 512 leaves 64 samples over; with 64 more none is left, and one frame comes out, as the rest needs."""
    nodes = nodes_of(
        'p = Pad <mode = "reflect"> (x, pads) u = Unsqueeze(p, one) c = Conv <strides = [128]> (u, W0) '
        "d = Conv <pads = [1, 1], strides = [4]> (c, W1) e = Squeeze(d, two) y = Concat <axis = 1> (e, state)"
    )
    constants = {"pads": np.array([0, 0, 0, 64]), "one": np.array([1]), "two": np.array([2])}
    weights = {"W0": [16, 1, 256], "W1": [8, 16, 3]}
    model = reading.model(nodes, {"x": ["b", "sequence"], "state": ["b", 4]}, ["y"], weights, constants)
    assert _proposed(model) == {"b": 1, "sequence": 576}
    assert [one.role for one in _told(model).sizes] == [Role.BATCH, Role.SAMPLES]


def test_tokens_stay_within_the_table_of_positions(reading):
    """Neither a table that is added nor one that rows are picked from by number allows more than it has."""
    added = nodes_of("e = Gather(T, ids) y = Add(e, P)")
    model = reading.model(added, {"ids": (I64, ["b", "s"])}, ["y"], {"T": [1000, 8], "P": [1, 50, 8]})
    assert _proposed(model) == {"b": 1, "s": 50}
    picked = nodes_of(
        "shape = Shape(ids) length = Gather(shape, one) numbers = Range(zero, length, one) p = Gather(P, numbers) "
        "e = Gather(T, ids) y = Add(e, p)"
    )
    constants = {"zero": np.int64(0), "one": np.int64(1)}
    model = reading.model(picked, {"ids": (I64, ["b", "s"])}, ["y"], {"T": [1000, 8], "P": [77, 8]}, constants)
    assert _proposed(model) == {"b": 1, "s": 64}
    assert _read(model, {"b": 1, "s": 77}).graph.op_count == 2
    with pytest.raises(InputError, match="index 77 of 77 rows") as caught:  # ONNX Runtime could not run it
        _read(model, {"b": 1, "s": 78})
    assert "other sizes may fit: --dims auto takes some that do" in caught.value.told(flag_of)


def test_names_that_are_sums_follow_from_their_terms(reading):
    """Cached tokens, one more, and a mask over all of them; a size that is a sum is told as one."""
    nodes = nodes_of(
        f"e = Gather(T, ids) k = Concat <axis = 1>(past_key, e) m = Cast <to = {TensorProto.FLOAT}>(mask) "
        "w = Unsqueeze(m, two) y = Mul(k, w)"
    )
    inputs = {
        "ids": (I64, ["b", "sequence_length"]),
        "past_key": ["b", "past_length", 8],
        "mask": (I64, ["b", "past_length + sequence_length"]),
    }
    model = reading.model(nodes, inputs, ["y"], {"T": [100, 8]}, {"two": np.array([2])})
    sizes = _proposed(model)
    assert sizes["past_length + sequence_length"] == sizes["past_length"] + sizes["sequence_length"]
    assert sizes["sequence_length"] == 1
    assert _told(model).sizes[-1].role is Role.TOTAL


def test_open_channels_are_those_of_the_weights(reading):
    """The first convolution, or the first matrix, says how many there are."""
    nodes = nodes_of("c = Conv <group = 2>(x, W) y = GlobalAveragePool(c)")
    model = reading.model(nodes, {"x": ["n", "c", 32, 32]}, ["y"], {"W": [8, 6, 3, 3]})
    assert _proposed(model) == {"n": 1, "c": 12}
    model = reading.model("y = MatMul(x, M)", {"x": ["n", "features"]}, ["y"], {"M": [37, 5]})
    assert _proposed(model)["features"] == 37


def test_a_size_that_depends_on_data_is_at_most_what_there_is(reading):
    """NonZero finds no more than there are elements; the node that makes it is named."""
    nodes = nodes_of(f"[find] where = NonZero(x) y = Cast <to = {TensorProto.FLOAT}>(where)")
    model = reading.model(nodes, {"x": ["n", 8]}, ["y"])
    assert _proposed(model) == {"n": 1, "where:1": 8}
    assert "'where:1' (depends on data, from NonZero 'find')" in str(_told(model))


def test_boxes_that_are_kept_are_no_more_than_allowed(reading):
    """Per class and batch, as many as the op may keep."""
    nodes = nodes_of(f"kept = NonMaxSuppression(boxes, scores, most) y = Cast <to = {TensorProto.FLOAT}>(kept)")
    model = reading.model(nodes, {"boxes": [1, 50, 4], "scores": [1, 3, 50]}, ["y"], constants={"most": np.array([7])})
    assert _proposed(model) == {"kept:0": 21}


def test_the_size_of_all_others_goes_where_none_is_named(reading):
    """Inputs and what depends on data alike; named ones win."""
    nodes = nodes_of(f"where = NonZero(x) y = Cast <to = {TensorProto.FLOAT}>(where)")
    model = reading.model(nodes, {"x": ["n", None, 8], "unused": ["free"]}, ["y"])
    metadata = _read(model, {"*": 3, "n": 2}).graph.metadata
    assert metadata["dims"] == {"n": 2, "x:1": 3, "where:1": 3}
    assert "proposed_dims" not in metadata
    with pytest.raises(InputError, match="0 is not a positive size"):
        _read(model, {"*": 0})


def test_what_does_not_fit_is_told_with_the_reason(reading):
    """Two weights that no size serves both: the sizes are listed all the same, and nothing is proposed."""
    nodes = nodes_of("[first] a = MatMul(x, A) [second] b = MatMul(x, B) y = Concat <axis = 1>(a, b)")
    model = reading.model(nodes, {"x": ["n", "f"]}, ["y"], {"A": [8, 4], "B": [9, 4]})
    for dims in (None, AUTO):
        error = _told(model, dims)
        assert "no sizes were found that fit (MatMul 'second': operands do not fit" in str(error)
        assert {one.proposal for one in error.sizes} == {None}
        assert "--dim 'f=…'" in error.told(flag_of)
        assert "auto" not in error.told(flag_of)


def test_a_model_without_open_sizes_is_read_as_ever(reading):
    """Nothing is proposed, and nothing is said to be."""
    model = reading.model("y = Relu(x)", {"x": [2, 8]}, ["y"])
    metadata = _read(model, AUTO).graph.metadata
    assert metadata["dims"] == {}
    assert "proposed_dims" not in metadata


def test_sizes_that_were_given_wrong_are_still_told(reading):
    """A name that the model has not is no reason to propose; sizes that do not fit say that others may."""
    model = _pyramid(reading)
    with pytest.raises(InputError, match="the model has no dimension 'hight'"):
        _read(model, {"hight": 32, **AUTO})
    with pytest.raises(InputError) as caught:
        _read(model, {"n": 1, "h": 36, "w": 64})
    assert "other sizes may fit: --dims auto takes some that do" in caught.value.told(flag_of)


def test_many_open_sizes_are_listed_whole(reading):
    """The line is as long as it has to be: none of it is left out."""
    names = [f"a rather long name of an input number {i}" for i in range(40)]
    model = reading.model([node("Sum", names, ["y"])], {name: [f"size of {name}", 4] for name in names}, ["y"])
    line = _told(model).told(flag_of)
    assert line.count("--dim ") == 40
    assert "…" not in line
    assert set(_proposed(model).values()) == {1}


def test_an_operator_without_a_rule_is_told_beside_open_sizes(reading):
    """Its shape follows from no size of an input: sizes are proposed all the same, and with all of that it is read."""
    model = reading.model("r = Relu(x) f = com.microsoft.Foo(r) y = Relu(f)", {"x": ["n", 4]}, ["y"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    line = _told(model).told(flag_of)
    assert "1 size is open: 'n' (batch, axis 0 of 'x'); beside that, Foo 'f': tensor 'f' has an unknown shape" in line
    assert "set it: --dim n=1, or take what is proposed: --dims auto; and give all its axes: --dim f:0=1" in line
    with pytest.raises(InputError) as caught:
        _read(model, AUTO)
    assert not isinstance(caught.value, OpenSizes)
    assert "ORT_ENABLE_BASIC" in str(caught.value)
    assert _proposed(model, {"f:0": 1, "f:1": 4, **AUTO}) == {"f:0": 1, "f:1": 4, "n": 1}


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
