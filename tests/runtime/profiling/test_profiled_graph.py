"""Whose time a node takes: told by names of tensors alone, on graphs written by hand."""

from __future__ import annotations

import onnx
from onnx import helper

from mtpp.runtime.profiling.measured_model import positions_of
from mtpp.runtime.profiling.profiled_graph import owners_by_position


def graph(*nodes: tuple[str, str, str, str]) -> onnx.GraphProto:
    """Return a graph of nodes (name, kind, inputs, outputs), tensors separated by blanks."""
    made = [helper.make_node(kind, reads.split(), makes.split(), name=name) for name, kind, reads, makes in nodes]
    return helper.make_graph(made, "g", [], [])


def executed(original: onnx.GraphProto, run: onnx.GraphProto) -> list[list[int]]:
    """Return what each node that runs computes of the original."""
    return positions_of(original, run.node, [node.name for node in run.node])


MODEL = graph(
    ("n0", "Conv", "x w", "a"),
    ("n1", "Relu", "a", "b"),
    ("n2", "Conv", "b v", "c"),
    ("n3", "Add", "c b", "d"),
    ("n4", "Relu", "d", "y"),
)


def test_a_folded_node_works_for_its_first_reader() -> None:
    """Nodes 0 and 1 are no ops; what they take is time of the op that waits for them."""
    chain = graph(("", "Shape", "x", "s"), ("", "Cast", "s", "t"), ("", "Relu", "x", "r"), ("", "Reshape", "r t", "y"))
    assert owners_by_position(chain, [2, 3]) == [(1,), (1,), (0,), (1,)]


def test_a_node_that_nobody_reads_is_nobodys() -> None:
    """Its result is one of the model."""
    assert owners_by_position(graph(("", "Relu", "x", "y"), ("", "Shape", "x", "s")), [0]) == [(0,), ()]


def test_a_fused_node_computes_what_lies_before_its_tensor() -> None:
    """The tensor of the last op is left; those before it are gone."""
    run = graph(("", "FusedConv", "x w", "b"), ("", "FusedConv", "b v b", "y"))
    assert [sorted(own) for own in executed(MODEL, run)] == [[0, 1], [2, 3, 4]]


def test_activations_in_the_blocked_layout_go_with_their_convolution() -> None:
    """Only names tell, since no tensor of the model is left; the reordering works for who made its input."""
    run = graph(
        ("a_nchwc", "Conv", "x w", "reorder_1"),
        ("c_nchwc_token_3", "Conv", "reorder_1 v reorder_1", "reorder_2"),
        ("ReorderOutput", "ReorderOutput", "reorder_2", "z"),
    )
    assert [sorted(own) for own in executed(MODEL, run)] == [[0, 1], [2, 3, 4], [2, 3, 4]]


def test_casts_and_bodies_work_for_who_reads_them() -> None:
    """Casts before an op, the body in its place, and the cast behind it."""
    model = graph(("n0", "Mish", "x", "m"), ("n1", "Cast", "m", "y"))
    run = graph(
        ("InsertedPrecisionFreeCast_x", "Cast", "x", "InsertedPrecisionFreeCast_x"),
        ("", "Softplus", "InsertedPrecisionFreeCast_x", "_inlfunc_s"),
        ("", "Mul", "InsertedPrecisionFreeCast_x _inlfunc_s", "InsertedPrecisionFreeCast_m"),
        ("n1", "Cast", "InsertedPrecisionFreeCast_m", "y"),
    )
    assert executed(model, run) == [[0], [0], [0], [1]]
