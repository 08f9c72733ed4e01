"""Checks of splits draw inputs that reach what depends on data, take given ones, and say what they do not compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from observers import Heard
from onnx import TensorProto, helper
from onnx_text import nodes_of

pytest.importorskip("onnxruntime")

import mtpp
from mtpp.formats.results.stage_manifest import Described, read_manifest
from mtpp.runtime.checking.draws import draw_count, explored_limits, leaning_of
from mtpp.runtime.checking.split_check import check_split
from mtpp.runtime.random_values import Leaning, drawn_input

FLOAT, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
BFLOAT16 = TensorProto.BFLOAT16


def saved(folder: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], **more: Any) -> Path:
    """Write a model."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, more.get("initializers", []))
    opset = helper.make_opsetid("", more.get("opset", 18))
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=more.get("ir", 10)), path)
    return path


def value(name: str, kind: int, *shape: int) -> Any:
    """Describe a tensor."""
    return helper.make_tensor_value_info(name, kind, shape)


def chosen(folder: Path, condition: list[Any], inputs: list[Any], stored: list[Any]) -> Path:
    """Write a model that negates x where *condition* computes that ``c`` holds, and then takes the root of |·|."""
    branches = {
        key: helper.make_graph(
            [helper.make_node(kind, ["x"], [f"{key}_out"])], key, [], [value(f"{key}_out", FLOAT, 4)]
        )
        for key, kind in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    nodes = [*condition, helper.make_node("If", ["c"], ["b"], name="choice", **branches)]
    nodes += nodes_of("[last] y = Tanh(b)")
    return saved(folder, nodes, [value("x", FLOAT, 4), *inputs], [value("y", FLOAT, 4)], initializers=stored)


def number(name: str, content: Any) -> Any:
    """Return an initializer."""
    return onnx.numpy_helper.from_array(np.asarray(content), name)


def sum_above(threshold: float) -> tuple[list[Any], list[Any], list[Any]]:
    """Decide by the sum of x."""
    nodes = nodes_of("s = ReduceSum <keepdims = 0>(x) [above] c = Greater(s, t)")
    return nodes, [], [number("t", np.float32(threshold))]


def mode_is(constant: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Decide by an input of its own."""
    return nodes_of("c = Equal(mode, k)"), [value("mode", INT64)], [number("k", np.int64(constant))]


def flag() -> tuple[list[Any], list[Any], list[Any]]:
    """Decide by a truth value that is an input itself."""
    return [], [value("c", BOOL)], []


@pytest.mark.parametrize("condition", [sum_above(2.0), sum_above(-2.0), mode_is(3), flag()])
@pytest.mark.parametrize("branch", ["then_branch", "else_branch"])
def test_a_fault_in_either_branch_is_found(tmp_path: Path, condition: Any, branch: str) -> None:
    """Whichever branch the first input takes, a stage that gets the other one wrong does not pass."""
    path = chosen(tmp_path, *condition)
    names = mtpp.read(path).graph.op_names
    mtpp.split(path, {name: int(name == "last") for name in names}, tmp_path / "stages")
    manifest = read_manifest(tmp_path / "stages")

    def check() -> Any:
        return check_split(path.read_bytes(), tmp_path, manifest, tmp_path / "stages", display="m.onnx")

    right = check()
    assert right.passed
    assert not right.notes
    stage = onnx.load(tmp_path / "stages" / manifest.stages[0].file)
    for node in stage.graph.node:
        for attribute in node.attribute:
            if attribute.name == branch:
                attribute.g.node[0].op_type = "Ceil"
    onnx.save(stage, tmp_path / "stages" / manifest.stages[0].file)
    assert not check().passed


def test_branches_that_nothing_reaches_are_said(tmp_path: Path) -> None:
    """A condition that no draw fulfils leaves its branch uncompared, and the warning names it."""
    heard = Heard()
    path = chosen(tmp_path, *sum_above(1e9))
    result = mtpp.split(path, mtpp.partition(path, 2), check=True, observer=heard)
    assert result.passed
    assert heard.warnings == ["the then_branch of If 'choice' ran for none of 16 inputs: it was not compared"]


def test_outputs_without_elements_are_said(tmp_path: Path) -> None:
    """That none of no elements differs says nothing."""
    nodes = nodes_of("a = Neg(x) b = Slice(a, end, end) y = Neg(b) z = Abs(a)")
    path = saved(
        tmp_path, nodes, [value("x", FLOAT, 4)], [value("y", FLOAT, 0), value("z", FLOAT, 4)],
        initializers=[number("end", [4])],
    )  # fmt: skip
    heard = Heard()
    assert mtpp.split(path, mtpp.partition(path, 2), check=True, observer=heard).passed
    assert heard.warnings == ["output 'y' has no elements for any of the inputs: nothing of it was compared"]


def test_branches_in_bodies_and_functions_that_nothing_reaches_are_said(tmp_path: Path) -> None:
    """The warning names those that data decide, each with its place, and no others."""
    path, heard = looping(tmp_path, 1e9), Heard()
    assert mtpp.split(path, mtpp.partition(path, 2), check=True, observer=heard).passed
    assert heard.warnings == [
        f"the then_branch of If 'inner' in {place} ran for none of 16 inputs: it was not compared"
        for place in ("Loop 'loop'", "function Chosen", "If 'outer'", "Scan 'scan'")
    ]


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("kind", ["Loop", "Chosen", "If", "Scan"])
def test_a_fault_in_a_nested_branch_is_found(tmp_path: Path, kind: str, opset: int) -> None:
    """Inputs are looked for that reach the branches of an If in a body, in a branch or in a function."""
    path = looping(tmp_path, 2.0, opset)
    names = mtpp.read(path).graph.op_names
    mtpp.split(path, {name: int(name == "last") for name in names}, tmp_path / "stages")
    manifest, heard = read_manifest(tmp_path / "stages"), Heard()
    right = check_split(path.read_bytes(), tmp_path, manifest, tmp_path / "stages", display="m.onnx")
    assert right.passed
    assert not right.notes
    assert not heard.warnings
    file = tmp_path / "stages" / manifest.stages[0].file
    stage = onnx.load(file)
    holders = [one for one in stage.functions if one.name == kind] + [n for n in stage.graph.node if n.op_type == kind]
    bodies = (
        [[*holders[0].node]]
        if kind == "Chosen"
        else [[*one.g.node] for one in holders[0].attribute if one.HasField("g")]
    )
    inner = next(node for nodes in bodies for node in nodes if node.name == "inner")
    next(one for one in inner.attribute if one.name == "then_branch").g.node[0].op_type = "Ceil"
    onnx.save(stage, file)
    assert not check_split(path.read_bytes(), tmp_path, manifest, tmp_path / "stages", display="m.onnx").passed


def looping(folder: Path, least: float, opset: int = 17) -> Path:
    """Write a model with Ifs that large sums decide in a loop, a function, a branch and a scan, and a constant one."""
    sides = {
        f"{side}_branch": helper.make_graph([helper.make_node(op, ["x"], ["b"])], side, [], [value("b", FLOAT, 4)])
        for side, op in (("then", "Neg"), ("else", "Floor"))
    }
    decided = [
        helper.make_node("ReduceMax", ["s"], ["r"], keepdims=0),
        helper.make_node("Constant", [], ["t"], value=number("least", np.float32(least))),
        helper.make_node("Greater", ["r", "t"], ["c"]),
        helper.make_node("If", ["c"], ["d"], name="inner", **sides),
    ]
    body = helper.make_graph(
        [*decided, helper.make_node("If", ["on"], ["e"], name="constant", **sides),
         helper.make_node("Sum", ["s", "d", "e"], ["f"]), helper.make_node("Identity", ["go"], ["on_next"])],
        "body",
        [value("i", INT64), value("go", BOOL), value("s", FLOAT, 4)],
        [value("on_next", BOOL), value("f", FLOAT, 4)],
    )  # fmt: skip
    plain = helper.make_graph(nodes_of("d = Neg(s)"), "plain", [], [value("d", FLOAT, 4)])
    branch = helper.make_graph(decided, "branch", [], [value("d", FLOAT, 4)])
    row = helper.make_graph(
        [*decided, helper.make_node("Identity", ["d"], ["k"])], "row", [value("s", FLOAT, 4)], [value("k", FLOAT, 4)]
    )
    nodes = [
        helper.make_node("Loop", ["trips", "on", "x"], ["l"], name="loop", body=body),
        helper.make_node("Chosen", ["x", "l"], ["g"], domain="own"),
        helper.make_node("ReduceMin", ["x"], ["low"], keepdims=0),
        helper.make_node("Less", ["low", "zero"], ["below"]),
        helper.make_node("Identity", ["x"], ["s"]),
        helper.make_node("If", ["below"], ["h"], name="outer", then_branch=branch, else_branch=plain),
        helper.make_node(
            "Unsqueeze", ["x", "axis"] if opset >= 13 else ["x"], ["rows"], **({} if opset >= 13 else {"axes": [0]})
        ),
        helper.make_node("Scan", ["rows"], ["q"], name="scan", body=row, num_scan_inputs=1),
        helper.make_node("Sum", ["g", "h", "q"], ["m"]),
        helper.make_node("Neg", ["m"], ["y"], name="last"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", FLOAT, 4)],
        [value("y", FLOAT, 1, 4)],
        [number("trips", 3), number("on", True), number("zero", np.float32(0)), number("axis", [0])],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Chosen", ["s", "x"], ["d"], decided, imports[:1])
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8, functions=[function]), path)
    return path


def picking(folder: Path) -> Path:
    """Write a model that runs if its number is 0 only, which nothing of it tells."""
    nodes = nodes_of("i = Mul(n, five) p = Gather(x, i) y = Neg(p)")
    return saved(
        folder,
        nodes,
        [value("x", FLOAT, 4), value("n", INT64)],
        [value("y", FLOAT)],
        initializers=[number("five", 5)],
    )


def test_draws_that_the_whole_model_cannot_run_are_replaced(tmp_path: Path) -> None:
    """The first one as well, by others; what cannot be run on any of them is an error."""
    path = picking(tmp_path)
    plan = mtpp.partition(path, 2)
    mtpp.split(path, plan, tmp_path / "stages")
    manifest = read_manifest(tmp_path / "stages")
    for seed in range(4):
        found = check_split(path.read_bytes(), tmp_path, manifest, tmp_path / "stages", display="m.onnx", seed=seed)
        assert (found.passed, found.inputs) == (True, 5)
        assert "sets of inputs" in found.notes[0]
    with pytest.raises(mtpp.InputError, match="ONNX Runtime cannot run it"):
        mtpp.split(path, plan, check=True, inputs={"n": np.array(1), "x": np.zeros(4, np.float32)})


def test_a_stage_that_fails_fails_the_check(tmp_path: Path) -> None:
    """Where the whole model runs, it is the stage that is wrong: it is named, be it read, loaded or run."""
    path = picking(tmp_path)
    mtpp.split(path, mtpp.partition(path, 2), tmp_path / "stages")
    manifest = read_manifest(tmp_path / "stages")
    last = tmp_path / "stages" / manifest.stages[-1].file
    right = last.read_bytes()
    for op in (None, "Nonsense", "Reshape", "gone"):
        if op is None:
            last.write_bytes(b"no model")
        elif op == "gone":
            last.unlink()
        else:
            model = onnx.ModelProto.FromString(right)
            model.graph.node[-1].op_type = op
            last.write_bytes(model.SerializeToString())
        found = check_split(path.read_bytes(), tmp_path, manifest, tmp_path / "stages", display="m.onnx")
        assert not found.passed
        assert found.failure is not None
        assert found.failure.startswith(last.name + ": ")


def text_model(folder: Path) -> Path:
    """Write a model of a text and a number."""
    nodes = nodes_of("e = Equal(text, word) y = Not(e)")
    return saved(
        folder,
        nodes,
        [value("text", STRING, 2)],
        [value("y", BOOL, 2)],
        initializers=[helper.make_tensor("word", STRING, [1], [b"stop"])],
        opset=19,
    )


def test_texts_are_not_made_up(tmp_path: Path) -> None:
    """It is said, the stages are written all the same, and given texts are compared."""
    path, heard = text_model(tmp_path), Heard()
    names = mtpp.read(path).graph.op_names
    plan = {name: place for place, name in enumerate(names)}
    result = mtpp.split(path, plan, tmp_path / "stages", check=True, observer=heard)
    assert result.passed is None
    assert (tmp_path / "stages" / "manifest.json").exists()
    assert "not checked: no values can be made up for input 'text', a string" in heard.warnings[0]
    np.savez(tmp_path / "given.npz", text=np.array(["stop", "go"]))
    for inputs in (tmp_path / "given.npz", {"text": np.array(["stop", "go"], object)}):
        assert mtpp.split(path, plan, check=True, inputs=inputs, observer=Heard()).passed


def test_texts_that_no_stage_reads_are_no_obstacle(tmp_path: Path) -> None:
    """ONNX Runtime asks for them all the same: stages are checked and run beside the whole model."""
    nodes = nodes_of("h = Neg(x) y = Relu(h)")
    inputs = [value("x", FLOAT, 4), value("text", STRING, 2), value("open", FLOAT, "n"), value("low", BFLOAT16, 3)]
    path = saved(tmp_path, nodes, inputs, [value("y", FLOAT, 4)])
    split = mtpp.split(path, mtpp.partition(mtpp.read(path, dims="auto"), 2), tmp_path / "stages", check=True)
    assert split.passed
    assert mtpp.run_pipeline(split, model=path, batches=2, warmup=0, observer=Heard()).agrees


def test_texts_are_given_to_a_run(tmp_path: Path) -> None:
    """Stages and the whole model read them; without them, the input and the option are named."""
    path = text_model(tmp_path)
    mtpp.split(path, {name: place for place, name in enumerate(mtpp.read(path).graph.op_names)}, tmp_path / "stages")
    for texts in (np.array(["stop", "grüße"]), np.array(["stop", "go"], object), np.array([b"stop", b"go"])):
        given = {"text": texts}
        run = mtpp.run_pipeline(tmp_path / "stages", model=path, batches=2, warmup=0, inputs=given, observer=Heard())
        assert run.agrees
    with pytest.raises(mtpp.InputError, match=r"tensor 'text': no texts can be made up; give some: inputs FILE\.npz"):
        mtpp.run_pipeline(tmp_path / "stages", batches=2, warmup=0)
    with pytest.raises(mtpp.InputError, match="input 'text' holds string 3, the stages take string 2"):
        mtpp.run_pipeline(tmp_path / "stages", batches=2, warmup=0, inputs={"text": np.array(["a", "b", "c"])})


def test_maps_are_not_compared(tmp_path: Path) -> None:
    """It is said, and the stages are written all the same."""
    nodes = nodes_of("n = Neg(x) z = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2, 3]> (n)")
    kind = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    output = helper.make_value_info("z", helper.make_sequence_type_proto(kind))
    graph = helper.make_graph(nodes, "g", [value("x", FLOAT, 1, 4)], [output])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    path, heard = tmp_path / "m.onnx", Heard()
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    result = mtpp.split(path, mtpp.partition(path, 2), tmp_path / "stages", check=True, observer=heard)
    assert result.passed is None
    assert (tmp_path / "stages" / "manifest.json").exists()
    (warning,) = heard.warnings
    assert "not checked: outputs of type seq(map(int64,tensor(float))) cannot be compared" in warning


def test_given_inputs_have_to_fit(tmp_path: Path) -> None:
    """Names, types and sizes are those of the stages."""
    path = chosen(tmp_path, *flag())
    plan = mtpp.partition(path, 2)
    for inputs, problem in (
        ({"z": np.zeros(4, np.float32)}, "the model has no input 'z'; it has: x, c"),
        ({"x": np.zeros(5, np.float32)}, "input 'x' holds float32 5, the stages take float32 4"),
        ({"x": np.zeros(4, np.float64)}, "input 'x' holds float64 4, the stages take float32 4"),
    ):
        with pytest.raises(mtpp.InputError, match=problem):
            mtpp.split(path, plan, check=True, inputs=inputs)
    with pytest.raises(mtpp.InputError, match="are for a check"):
        mtpp.split(path, plan, tmp_path / "stages", inputs={"x": np.zeros(4, np.float32)})


def test_ops_that_onnx_runtime_lacks_are_evaluated(tmp_path: Path) -> None:
    """A cast to four bits runs in onnx's reference evaluator, and the warning says so."""
    four = TensorProto.FLOAT4E2M1
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=four),
        helper.make_node("Cast", ["q"], ["d"], to=FLOAT),
        helper.make_node("Neg", ["d"], ["y"]),
    ]
    path = saved(tmp_path, nodes, [value("x", FLOAT, 4)], [value("y", FLOAT, 4)], opset=23, ir=11)
    heard = Heard()
    names = mtpp.read(path).graph.op_names
    for cut in range(len(names)):
        plan = {name: int(place > cut) for place, name in enumerate(names)}
        assert mtpp.split(path, plan, check=True, observer=heard).passed
    assert "ONNX Runtime cannot run the model: compared by onnx's reference evaluator" in heard.warnings


def test_what_run_cannot_hand_on_is_said(tmp_path: Path) -> None:
    """A sequence between stages passes the check, which says that ``run`` takes none."""
    nodes = nodes_of("s = SplitToSequence <axis = 0> (x) c = ConcatFromSequence <axis = 0> (s) y = Neg(c)")
    path, heard = saved(tmp_path, nodes, [value("x", FLOAT, 4)], [value("y", FLOAT, 4)]), Heard()
    names = mtpp.read(path).graph.op_names
    plan = {name: place for place, name in enumerate(names)}
    assert mtpp.split(path, plan, check=True, observer=heard).passed
    (warning,) = heard.warnings
    assert warning.startswith("`mtpp run` cannot hand on tensor 's'")


def test_draws_lean_to_different_sides() -> None:
    """Numbers are mostly above or below zero, whole ones the largest or the least, and single ones make room."""
    assert {leaning_of(number) for number in range(5)} == set(Leaning)
    high = drawn_input("x", [1000], 0, whole=False, leaning=Leaning.HIGH)
    low = drawn_input("x", [1000], 0, whole=False, leaning=Leaning.LOW)
    assert (high > 0).mean() > 0.7 > 0.3 > (low > 0).mean()
    for leaning, only in ((Leaning.HIGH, 9), (Leaning.LOW, 3)):
        assert set(drawn_input("n", [20], 0, whole=True, limits=(3, 9), leaning=leaning)) == {only}
    mode = Described("mode", "int64", (), limits=(3, 3))
    assert {explored_limits(mode, number) for number in range(5)} == {(3, 3)}
    assert len({explored_limits(mode, number) for number in range(5, 16)}) > 5


def test_the_number_of_draws_depends_on_the_work(tmp_path: Path) -> None:
    """Five of a small model, one where all inputs are given."""
    path = chosen(tmp_path, *sum_above(0.0))
    manifest = mtpp.split(path, mtpp.partition(path, 1), tmp_path / "stages").manifest
    assert draw_count(manifest, ()) == 5
    assert draw_count(manifest, {"x"}) == 1


def test_given_texts_are_profiled(tmp_path: Path) -> None:
    """Arrays of texts, of whatever length NumPy keeps them in, reach ONNX Runtime."""
    profile = mtpp.profile(text_model(tmp_path), inputs={"text": np.array(["stop", "go"])}, repeats=1, warmup=0)
    assert profile.graph.op_count == 2


def test_given_inputs_go_through_a_pipeline(tmp_path: Path) -> None:
    """Every batch gets them, and what does not fit is refused."""
    path = chosen(tmp_path, *flag())
    stages = mtpp.split(path, mtpp.partition(path, 2), tmp_path / "stages")
    inputs = {"c": np.array(True), "x": np.ones(4, np.float32)}
    assert mtpp.run_pipeline(stages, model=path, batches=2, warmup=0, inputs=inputs, observer=Heard()).agrees
    with pytest.raises(mtpp.InputError, match="the model has no input 'd'"):
        mtpp.run_pipeline(stages, inputs={"d": np.array(True)})
