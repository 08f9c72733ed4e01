"""If, Loop, Scan and local functions."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_text import function_of, nodes_of
from refusals import refusal

from mtpp.errors import InputError

BOOL, INT64, FLOAT = TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT


def _consumers(graph, tensor):
    return [graph.op_names[v] for v in graph.tensor_consumers(graph.tensor_names.index(tensor))]


@pytest.fixture
def branching(reading):
    """Return a model whose then-branch multiplies by W twice, whose else-branch only adds a captured tensor."""
    nodes = (
        "[h] h = Relu(x) [g] g = Neg(x) [choose] y = If(c) <"
        "then_branch = t () => (then_out) { t = MatMul(h, W) then_out = MatMul(t, W) }, "
        "else_branch = e () => (else_out) { else_out = Add(h, g) }>"
    )
    return reading.model(nodes, {"x": [64, 64], "c": (BOOL, [])}, ["y"], {"W": [64, 64]})


def test_an_if_costs_its_dearer_branch_and_reads_what_both_capture(reading, branching):
    """Tensors of either branch are inputs of the one op, its parameters are in memory whichever is taken."""
    graph = reading.read(branching)
    assert graph.op_names == ("h", "g", "choose")
    assert graph.metadata["macs"] == 2 * 64**3
    assert _consumers(graph, "h") == ["choose"]
    assert _consumers(graph, "g") == ["choose"]
    assert graph.param_bytes.tolist() == [0, 0, 4 * 64 * 64]
    note = graph.metadata["control_flow"]
    assert [(entry["op"], entry["kind"], entry["trip_count"]) for entry in note] == [("choose", "If", 1)]
    assert "then_branch" in note[0]["note"]


def test_a_branch_that_a_constant_condition_rules_out_is_not_there(reading, branching):
    """PyTorch writes such an If around a squeeze: the other branch may not even fit."""
    branching.graph.input.pop()
    branching.graph.initializer.append(helper.make_tensor("c", BOOL, [], [False]))
    graph = reading.read(branching)
    assert graph.metadata["macs"] == 0
    assert graph.param_bytes.tolist() == [0, 0, 0]
    assert graph.metadata["outputs"][0]["shape"] == [64, 64]


def _looping(reading, trips, *, condition=True, inputs=None, goes_on="cond", carried="v2"):
    operands = ("M" if trips != "" else '""', "C" if condition is not None else '""', "x")
    nodes = (
        f"[h] h = Relu(x) [loop] y, norms = Loop({', '.join(operands)}) <"
        f"body = b (i, cond, v) => (again, {carried}, norm) {{ vw = MatMul(v, W) v2 = Add(vw, h) "
        f"again = Identity({goes_on}) norm = ReduceSum <keepdims = 0>(v2) grown = Concat <axis = 0>(v, v) }}>"
    )
    constants = {} if trips in ("", None) else {"M": np.int64(trips)}
    if condition is not None:
        constants["C"] = np.array(condition)
    return reading.model(nodes, {"x": [8, 8], **(inputs or {})}, ["y", "norms"], {"W": [8, 8]}, constants)


def test_a_loop_costs_its_body_times_a_constant_trip_count(reading):
    """The body's parameters count once, what it captures is an input of the op, scan outputs are stacked."""
    graph = reading.read(_looping(reading, 12))
    once = reading.read(_looping(reading, 1))
    assert graph.op_names == ("h", "loop")
    assert graph.metadata["macs"] == 12 * 8**3
    assert graph.work[1] == 12 * once.work[1]
    assert graph.param_bytes.tolist() == [0, 256]
    assert _consumers(graph, "h") == ["loop"]
    assert [port["shape"] for port in graph.metadata["outputs"]] == [[8, 8], [12]]
    assert graph.metadata["control_flow"] == [{"op": "loop", "kind": "Loop", "trip_count": 12, "note": "12 trips"}]


UNKNOWN = "the trip count is not known: one trip counted, set it with --trips loop=64"


@pytest.mark.parametrize(
    ("trips", "options", "counted", "note"),
    [
        (None, {"inputs": {"M": (INT64, [])}}, 1, UNKNOWN),
        (2**63 - 1, {}, 1, UNKNOWN),
        ("", {}, 1, UNKNOWN),
        (5, {"condition": None}, 5, "5 trips"),
        (5, {"condition": False}, 0, "no trip: the condition is false from the start"),
        (5, {"goes_on": "flag", "inputs": {"flag": (BOOL, [])}}, 5, "at most 5 trips: it may stop earlier"),
    ],
)
def test_trip_counts_are_known_bounded_or_one(reading, trips, options, counted, note):
    """What was assumed is told, among the assumptions of every command too, with the sizes that follow from it."""
    graph = reading.read(_looping(reading, trips, **options))
    assert graph.metadata["macs"] == counted * 8**3
    entry = graph.metadata["control_flow"][0]
    assert (entry["trip_count"], entry["note"]) == (counted, note)
    known = note == "5 trips" or note.startswith("no trip")
    estimated = f"norms:0 = {counted}: estimated, since only a run tells; open in stages"
    assert graph.metadata.get("assumptions", []) == ([] if known else [f"loop: {note}", estimated])
    assert graph.metadata["not_modelled"] == ({"trips of 'loop'": 1} if note == UNKNOWN else {})


def test_a_value_that_grows_in_a_loop_has_the_size_of_its_trips(reading):
    """It is known where their number is; what contradicts it is refused."""
    nodes = (
        '[loop] y = Loop(M, "", x) <'
        "body = b (i, cond, v) => (again, v2) { v2 = Concat <axis = 0>(v, x) again = Identity(cond) }>"
    )
    model = reading.model(nodes, {"x": [2, 8]}, ["y"], constants={"M": np.int64(4)})
    assert reading.read(model).metadata["outputs"][0]["shape"] == [10, 8]
    assert reading.read(model, dims={"y:0": 10}).metadata["outputs"][0]["bytes"] == 320
    with pytest.raises(InputError, match="the model fixes this dimension at 10"):
        reading.read(model, dims={"y:0": 12})


def test_captures_reach_through_nested_bodies(reading):
    """An If inside a Loop captures from the main graph and from the loop; only the former is an input of the op."""
    nodes = (
        '[h] h = Relu(x) [start] start = Sigmoid(x) [outer] y = Loop(M, "", start) <'
        "body = b (i, cond, v) => (again, v2) { local = Neg(v) s = ReduceSum <keepdims = 0>(v) c = Cast <to = 9>(s) "
        "[inner] v2 = If(c) <then_branch = t () => (t) { t = MatMul(v, h) }, "
        "else_branch = e () => (e) { e = Add(local, V) }> again = Identity(cond) }>"
    )
    graph = reading.graph(nodes, {"x": [64, 64]}, ["y"], {"V": [64]}, {"M": np.int64(3)})
    assert graph.op_names == ("h", "start", "outer")
    assert _consumers(graph, "h") == ["outer"]
    assert graph.metadata["macs"] == 3 * 64**3
    assert graph.param_bytes.tolist() == [0, 0, 256]
    assert [entry["op"] for entry in graph.metadata["control_flow"]] == ["outer", "outer/inner"]


def test_parameters_stored_inside_a_body_count(reading):
    """Also when both branches call theirs the same."""
    nodes = nodes_of(
        "[h] h = Relu(x) [choose] y = If(c) <"
        "then_branch = b () => (o0) { o0 = Mul(h, w) }, else_branch = b () => (o1) { o1 = Mul(h, w) }>"
    )
    for branch in nodes[1].attribute:
        branch.g.initializer.append(reading.parameter("w", [8, 8]))
    graph = reading.graph(nodes, {"x": [8, 8], "c": (BOOL, [])}, ["y"])
    assert graph.param_bytes.tolist() == [0, 512]


def test_control_flow_on_constants_folds(reading):
    """A Loop that depends on no input is a parameter of its reader."""
    nodes = (
        'w = Loop(M, "", W) <body = b (i, cond, v) => (again, v2) { v2 = Add(v, v) again = Identity(cond) }> '
        "[scale] y = Mul(x, w)"
    )
    graph = reading.graph(nodes, {"x": [8]}, ["y"], {"W": [8]}, {"M": np.int64(3)})
    assert graph.op_names == ("scale",)
    assert graph.param_bytes.tolist() == [32]


@pytest.mark.parametrize(("axis", "length"), [(0, 7), (1, 3)])
def test_a_scan_costs_its_body_times_the_length_of_the_sequence(reading, axis, length):
    """Each trip sees one slice along the scan axis."""
    width = 3 if axis == 0 else 7
    scan = (
        f"[scan] last, all = Scan(zero, x) <num_scan_inputs = 1, scan_input_axes = [{axis}], body = b (state, slice) "
        f"=> (next, out) {{ p = MatMul(slice, W{axis}) next = Add(state, p) out = Identity(next) }}>"
    )
    graph = reading.graph(scan, {"x": [7, 3], "zero": [4]}, ["last", "all"], {f"W{axis}": [width, 4]})
    assert graph.metadata["macs"] == length * width * 4
    assert [port["shape"] for port in graph.metadata["outputs"]] == [[4], [length, 4]]
    assert graph.metadata["control_flow"][0]["trip_count"] == length


def test_a_scan_of_opset_8_has_a_batch_axis(reading):
    """Batch first, then the sequence."""
    scan = (
        'last, all = Scan("", start, x) <num_scan_inputs = 1, '
        "body = b (state, slice) => (next, out) { next = Add(state, slice) out = Relu(next) }>"
    )
    graph = reading.graph(scan, {"start": [2, 4], "x": [2, 5, 4]}, ["last", "all"], opset=8)
    assert graph.metadata["flops"] == 2 * 5 * (4 + 4)
    assert [port["shape"] for port in graph.metadata["outputs"]] == [[2, 4], [2, 5, 4]]


def test_a_sequence_map_costs_each_element(reading):
    """Elements of different sizes cost differently."""
    nodes = (
        "s = SequenceConstruct(a, b) [map] m = SequenceMap(s) <body = b (e) => (r) { r = Relu(e) }> "
        "y = ConcatFromSequence <axis = 0>(m)"
    )
    graph = reading.graph(nodes, {"a": [3, 4], "b": [5, 4]}, ["y"])
    assert graph.metadata["flops"] == 12 + 20
    assert graph.metadata["outputs"][0]["shape"] == [8, 4]


def test_local_functions_are_inlined(reading):
    """Calls inside functions too; the ops of a body appear once per call, under names of their own."""
    dense = function_of("Dense (a, w) => (r) { [mm] m = MatMul(a, w) [act] r = Relu(m) }")
    twice = function_of("Twice (a, w) => (o) { h = local.Dense(a, w) o = local.Dense(h, w) }")
    graph = reading.graph(
        "[t] h = local.Twice(x, W) [d] y = local.Dense(h, W)",
        {"x": [2, 8]},
        ["y"],
        {"W": [8, 8]},
        domains=["local"],
        functions=[dense, twice],
    )
    assert graph.op_kinds == ("MatMul", "Relu") * 3
    assert len(set(graph.op_names)) == 6
    assert graph.metadata["macs"] == 3 * 2 * 64
    assert graph.metadata["not_modelled"] == {}


def test_functions_that_call_each_other_in_a_circle_are_refused(reading):
    """Inlining them would never end."""
    functions = [function_of("A (a) => (b) { b = local.B(a) }"), function_of("B (a) => (b) { b = local.A(a) }")]
    with pytest.raises(InputError, match="functions call each other in a circle: A -> B -> A"):
        reading.graph("y = local.A(x)", {"x": [8]}, ["y"], domains=["local"], functions=functions)


def test_functions_that_explode_are_refused(reading):
    """Forty functions that call the one before twice would be 2^40 nodes."""
    functions = [function_of("F0 (a) => (b) { b = Relu(a) }")]
    for i in range(40):
        functions.append(function_of(f"F{i + 1} (a) => (b) {{ h = local.F{i}(a) b = local.F{i}(h) }}"))
    with pytest.raises(InputError, match="gives 1099511627776 nodes, more than 1000000"):
        reading.graph("y = local.F40(x)", {"x": [8]}, ["y"], domains=["local"], functions=functions)


@pytest.fixture
def two_rates(reading):
    """Return a model of two branches, by a rate: windows of 256 samples or of 128, of which one frame may be left."""

    def branch(name: str, size: int, addend: str) -> str:
        return (
            f"b () => ({name}_y) {{ {name}_c = Conv <strides = [{size}]>(u, {name}_W) "
            f"{name}_s = Squeeze({name}_c, {name}_axis) {name}_y = Add({name}_s, {addend}) }}"
        )

    nodes = nodes_of(
        "[u] u = Unsqueeze(x, one) [g] g = Neg(v) [is_fast] is_fast = Equal(rate, fast) [choose] y = If(is_fast) "
        f"<then_branch = {branch('t', 256, 't_s')}, else_branch = {branch('e', 128, 'g')}>"
    )
    for name, size, attribute in zip("te", (256, 128), nodes[-1].attribute, strict=True):
        attribute.g.initializer.extend(
            [
                helper.make_tensor(f"{name}_W", FLOAT, [4, 1, size], [0.1] * (4 * size)),
                helper.make_tensor(f"{name}_axis", INT64, [1], [2]),
            ]
        )
    inputs = {"x": ["b", "samples"], "v": [1, 4], "rate": (INT64, [])}
    return reading.model(nodes, inputs, ["y"], constants={"one": np.array([1]), "fast": np.int64(16000)})


def test_a_branch_that_cannot_run_with_the_sizes_is_left_out(reading, two_rates):
    """The other one is counted, and said to be; what either captures and stores stays with the op."""
    graph = reading.read(two_rates, dims={"b": 1, "samples": 300})
    assert graph.metadata["assumptions"] == ["choose: else_branch cannot run with these sizes: then_branch counted"]
    assert graph.metadata["macs"] == 4 * 256
    assert _consumers(graph, "g") == ["choose"]
    assert _consumers(graph, "u") == ["choose"]
    both = reading.read(two_rates, dims={"b": 1, "samples": 256}).metadata  # 128 leaves two frames
    assert both["assumptions"] == graph.metadata["assumptions"]
    small = reading.read(two_rates, dims={"b": 1, "samples": 200})
    assert small.metadata["assumptions"] == ["choose: then_branch cannot run with these sizes: else_branch counted"]
    assert small.metadata["macs"] == 4 * 128
    axis = 8  # settled where a branch is walked over, and no parameter
    assert graph.param_bytes[-1] == small.param_bytes[-1] == 4 * (4 * 256 + 4 * 128) + axis


def test_a_model_no_branch_of_which_can_run_is_refused(reading, two_rates):
    """The first branch says what does not fit."""
    with pytest.raises(InputError, match=r"Conv 't_c': .*the window 256 does not fit into 100"):
        reading.read(two_rates, dims={"b": 1, "samples": 100})


def test_sizes_with_which_both_branches_run_are_proposed_first(reading, two_rates):
    """None are here: then one branch is left out, and that is said."""
    graph = reading.read(two_rates, dims={"*": "auto"})
    assert graph.metadata["dims"]["b"] == 1
    assert len(graph.metadata["assumptions"]) == 1


@pytest.mark.parametrize(
    ("kind", "attributes", "shape", "weights", "words"),
    [
        ("Conv", {}, [1, 1, 2, 8], {"W": [4, 1, 3, 3]}, "the window 3×3 does not fit into 2×8"),
        ("Conv", {"dilations": [4, 4]}, [1, 1, 8, 8], {"W": [4, 1, 3, 3]}, "the window 3×3 does not fit into 8×8"),
        ("Pad", {"mode": "reflect"}, [1, 3], {}, "3 elements cannot be reflected from 3 (axis 1)"),
    ],
)
def test_what_onnx_runtime_refuses_is_refused(reading, kind, attributes, shape, weights, words):
    """Windows without a place and reflections of what is not there: shape inference lets both pass."""
    operands = ["x", *(weights or ["pads"])]
    model = reading.model(
        [helper.make_node(kind, operands, ["y"], **attributes)],
        {"x": shape},
        ["y"],
        weights,
        {"pads": np.array([0, 0, 0, 3])},
    )
    assert words in str(refusal(reading.read, model))
