"""Checks of splits draw inputs that reach what depends on data, take given ones, and say what they do not compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from observers import Heard
from onnx import TensorProto, helper
from onnx_text import built, function_of

pytest.importorskip("onnxruntime")

import mtpp
from mtpp.formats.results.stage_manifest import Described, read_manifest
from mtpp.runtime.checking.draws import draw_count, explored_limits, leaning_of
from mtpp.runtime.checking.split_check import check_split
from mtpp.runtime.random_values import Leaning, drawn_input

FLOAT, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
BFLOAT16 = TensorProto.BFLOAT16


def saved(folder: Path, nodes: Any, inputs: Any, outputs: Any, constants: Any = None, **more: Any) -> Path:
    """Write a model."""
    onnx.save(built(nodes, inputs, outputs, constants, **{"ir_version": 10, **more}), folder / "m.onnx")
    return folder / "m.onnx"


def chosen(folder: Path, condition: str, inputs: dict[str, Any], stored: dict[str, Any]) -> Path:
    """Write a model that negates x where *condition* computes that ``c`` holds, and then takes the root of |·|."""
    nodes = (
        f"{condition} [choice] b = If(c) <then_branch = t () => (float[4] then_out) {{ then_out = Neg(x) }}, "
        "else_branch = e () => (float[4] else_out) { else_out = Abs(x) }> [last] y = Tanh(b)"
    )
    return saved(folder, nodes, {"x": [4], **inputs}, {"y": [4]}, stored)


def sum_above(threshold: float) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Decide by the sum of x."""
    return "s = ReduceSum <keepdims = 0>(x) [above] c = Greater(s, t)", {}, {"t": np.float32(threshold)}


def mode_is(constant: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Decide by an input of its own."""
    return "c = Equal(mode, k)", {"mode": (INT64, [])}, {"k": np.int64(constant)}


def flag() -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Decide by a truth value that is an input itself."""
    return "", {"c": (BOOL, [])}, {}


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
    nodes = "a = Neg(x) b = Slice(a, end, end) y = Neg(b) z = Abs(a)"
    path = saved(tmp_path, nodes, {"x": [4]}, {"y": [0], "z": [4]}, {"end": [4]})
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
    sides = ", ".join(
        f"{side}_branch = {side} () => (float[4] b) {{ b = {op}(x) }}"
        for side, op in (("then", "Neg"), ("else", "Floor"))
    )
    decided = (
        f"r = ReduceMax <keepdims = 0>(s) t = Constant <value = float {{{least}}}>() c = Greater(r, t) "
        f"[inner] d = If(c) <{sides}>"
    )
    nodes = (
        "[loop] l = Loop(trips, on, x) <body = b (int64 i, bool go, float[4] s) => (bool on_next, float[4] f) "
        f"{{ {decided} [constant] e = If(on) <{sides}> f = Sum(s, d, e) on_next = Identity(go) }}> "
        "g = own.Chosen(x, l) low = ReduceMin <keepdims = 0>(x) below = Less(low, zero) s = Identity(x) "
        f"[outer] h = If(below) <then_branch = t () => (float[4] d) {{ {decided} }}, "
        "else_branch = e () => (float[4] d) { d = Neg(s) }> "
        f"rows = Unsqueeze {'(x, axis)' if opset >= 13 else '<axes = [0]>(x)'} [scan] q = Scan(rows) "
        f"<num_scan_inputs = 1, body = b (float[4] s) => (float[4] k) {{ {decided} k = Identity(d) }}> "
        "m = Sum(g, h, q) [last] y = Neg(m)"
    )
    constants = {"trips": 3, "on": True, "zero": np.float32(0), "axis": [0]}
    function = function_of(f"Chosen (s, x) => (d) {{ {decided} }}", opset)
    function.domain = "own"
    more: dict[str, Any] = {"opset": opset, "domains": ["own"], "functions": [function], "ir_version": 8}
    return saved(folder, nodes, {"x": [4]}, {"y": [1, 4]}, constants, **more)


def picking(folder: Path) -> Path:
    """Write a model that runs if its number is 0 only, which nothing of it tells."""
    nodes = "i = Mul(n, five) p = Gather(x, i) y = Neg(p)"
    return saved(folder, nodes, {"x": [4], "n": (INT64, [])}, {"y": []}, {"five": 5})


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
    words = [helper.make_tensor("word", STRING, [1], [b"stop"])]
    nodes = "e = Equal(text, word) y = Not(e)"
    return saved(folder, nodes, {"text": (STRING, [2])}, {"y": (BOOL, [2])}, stored=words, opset=19)


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
    inputs = {"x": [4], "text": (STRING, [2]), "open": ["n"], "low": (BFLOAT16, [3])}
    path = saved(tmp_path, "h = Neg(x) y = Relu(h)", inputs, {"y": [4]})
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
    nodes = "n = Neg(x) z = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2, 3]> (n)"
    model = built(nodes, {"x": [1, 4]}, ["z"], opset=17, domains=["ai.onnx.ml"])
    model.opset_import[1].version = 3
    kind = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    path, heard = tmp_path / "m.onnx", Heard()
    onnx.save(model, path)
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
    nodes = f"q = Cast <to = {TensorProto.FLOAT4E2M1}>(x) d = Cast <to = {FLOAT}>(q) y = Neg(d)"
    path = saved(tmp_path, nodes, {"x": [4]}, {"y": [4]}, opset=23, ir_version=11)
    heard = Heard()
    names = mtpp.read(path).graph.op_names
    for cut in range(len(names)):
        plan = {name: int(place > cut) for place, name in enumerate(names)}
        assert mtpp.split(path, plan, check=True, observer=heard).passed
    assert "ONNX Runtime cannot run the model: compared by onnx's reference evaluator" in heard.warnings


def test_what_run_cannot_hand_on_is_said(tmp_path: Path) -> None:
    """A sequence between stages passes the check, which says that ``run`` takes none."""
    nodes = "s = SplitToSequence <axis = 0> (x) c = ConcatFromSequence <axis = 0> (s) y = Neg(c)"
    path, heard = saved(tmp_path, nodes, {"x": [4]}, {"y": [4]}), Heard()
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
