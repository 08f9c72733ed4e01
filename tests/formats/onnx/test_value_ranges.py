"""Ranges of whole numbers for inputs that are made up: rows of tables, lengths, modes, alphabets."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_text import built, nodes_of

from mtpp.formats.onnx import read_with_nodes
from mtpp.formats.onnx.reader import only_branches
from mtpp.formats.onnx.value_ranges import ranges_of
from mtpp.machine.presets import load_device

node = helper.make_node
FLOAT, I64, I32, U8, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.UINT8,
    TensorProto.BOOL,
)


def _ranges(model, dims=None):
    reading = read_with_nodes(None, model.SerializeToString(), source="m", dims=dims, system=load_device())
    return ranges_of(reading.model.graph, reading.scope, only_branches(reading))


def test_numbers_of_rows_are_those_of_the_smallest_table(reading):
    """Through casts and reshapes, and of two tables that share indices the smaller one counts."""
    nodes = nodes_of(
        f"wide = Cast <to = {I64}>(ids) apart = Unsqueeze(wide, one) a = Gather(T, apart) "
        "b = Gather <axis = 1>(P, wide) c = ReduceSum(a) d = ReduceSum(b) y = Add(c, d)"
    )
    inputs = {"ids": (I32, [2, 5]), "unused": (I64, [3]), "x": [4]}
    model = reading.model(nodes, inputs, ["y"], {"T": [900, 8], "P": [3, 70]}, {"one": np.array([1])})
    assert _ranges(model) == {"ids": (0, 69)}


@pytest.mark.parametrize(("kind", "by", "limits"), [("Add", 2, (0, 6)), ("Sub", 1, (1, 9)), ("Sub", -3, (0, 5))])
def test_offsets_before_a_table_are_taken_off(reading, kind, by, limits):
    """What is added to numbers of rows leaves fewer of them, and what is taken from them asks for larger ones."""
    nodes = [node(kind, ["ids", "k"], ["shifted"]), node("Gather", ["T", "shifted"], ["y"])]
    model = reading.model(nodes, {"ids": (I64, [2, 5])}, ["y"], {"T": [9, 8]}, {"k": np.array(by)})
    assert _ranges(model) == {"ids": limits}


def test_no_number_is_larger_than_its_type_holds(reading):
    """Bytes pick rows of a larger table."""
    nodes = nodes_of(f"wide = Cast <to = {I64}>(ids) y = Gather(T, wide)")
    model = reading.model(nodes, {"ids": (U8, [2, 5])}, ["y"], {"T": [900, 8]})
    assert _ranges(model) == {"ids": (0, 255)}


def test_lengths_are_those_of_what_they_measure(reading):
    """Of a recurrent layer its steps; by their name, the open axis of another input."""
    nodes = nodes_of(
        f'h = LSTM <hidden_size = 4>(x, W, R, "", long) l = Cast <to = {FLOAT}>(lengths) s = ReduceSum(l) y = Add(h, s)'
    )
    inputs = {"x": ["time", 1, 3], "long": (I32, [1]), "lengths": (I64, [1])}
    model = reading.model(nodes, inputs, ["y"], {"W": [1, 16, 3], "R": [1, 16, 4]})
    assert _ranges(model, {"time": 7}) == {"long": (7, 7), "lengths": (7, 7)}


def test_a_number_compared_with_one_constant_is_that_constant(reading):
    """A single number is a mode; many, compared with an alphabet, are letters of it."""
    nodes = nodes_of("is_fast = Equal(rate, fast) hit = Equal(bytes, alphabet) y = And(is_fast, hit)")
    constants = {"fast": np.int64(16000), "alphabet": np.arange(257)}
    model = reading.model(nodes, {"rate": (I64, []), "bytes": (I64, [4, 1])}, ["y"], constants=constants)
    assert _ranges(model) == {"rate": (16000, 16000), "bytes": (0, 256)}


@pytest.mark.parametrize(("samples", "rate"), [(16, 16000), (4, 0)])
def test_a_mode_is_one_whose_branch_can_run(reading, samples, rate):
    """Equal to the constant for the first branch, another number for the second."""

    def branch(name):
        return (
            f"{name} () => ({name}y) <float[1, 2] {name}M = {{1.0, 1.0}}> "
            f"{{ {name}c = Conv(x, {name}W) {name}f = Flatten({name}c) {name}y = MatMul({name}f, {name}M) }}"
        )

    nodes = nodes_of(
        "is_fast = Equal(rate, fast) condition = Squeeze(is_fast) "
        f"y = If(condition) <then_branch = {branch('t')}, else_branch = {branch('e')}>"
    )
    for name, size, attribute in zip("te", (16, 4), nodes[2].attribute, strict=True):
        attribute.g.initializer.append(helper.make_tensor(f"{name}W", FLOAT, [1, 1, size], [1.0] * size))
    inputs = {"x": [1, 1, samples], "rate": (I64, [1])}
    model = reading.model(nodes, inputs, ["y"], constants={"fast": np.int64(16000)})
    assert _ranges(model) == {"rate": (rate, rate)}


def test_masks_over_tokens_let_all_of_them_through(reading):
    """Rows that are masked as a whole have no mean, and no softmax."""
    nodes = nodes_of(f"y = Cast <to = {FLOAT}>(attention_mask)")
    assert _ranges(reading.model(nodes, {"attention_mask": (I64, [1, 8])}, ["y"])) == {"attention_mask": (1, 1)}
    assert _ranges(reading.model(nodes, {"attention_mask": (BOOL, [1, 8])}, ["y"])) == {}


def test_positions_of_attention_are_those_of_its_keys() -> None:
    """With a past of 3 and 5 more there are 8, the last of them at 7; ONNX Runtime refuses other numbers."""
    nodes = (
        "o, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>(q, k, v, pk, pv, last, total)"
    )
    inputs = {"q": [1, 5, 32], "k": [1, 5, 16], "v": [1, 5, 16], "pk": [1, 2, 3, 8], "pv": [1, 2, 3, 8]}
    numbers = {"last": (I32, [1]), "total": (I32, [])}
    model = built(nodes, inputs | numbers, {"o": [1, 5, 32]}, opset=17, domains=["com.microsoft"])
    reading = read_with_nodes(None, model.SerializeToString(), source="m", dims={}, system=load_device())
    found = ranges_of(reading.model.graph, reading.scope, only_branches(reading))
    assert found == {"last": (7, 7), "total": (8, 8)}
