"""A pipeline computes what the model computes, batch by batch; what does not fit together is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_text import built
from stage_folders import SIZE, bypass, bypassed, single, whole_bypass

import mtpp
from mtpp.errors import InputError
from mtpp.formats.results.stage_manifest import manifest_text, read_manifest
from mtpp.host.deadline import Deadline
from mtpp.host.ending import EndedEarly
from mtpp.runtime.pipeline.crew import RunLimits
from mtpp.runtime.pipeline.measuring import RunRequest, measure
from mtpp.runtime.pipeline.memory import Ring
from mtpp.runtime.pipeline.pipeline import PipelineChoices, PipelineTimes, run_pipeline, stage_models
from mtpp.runtime.pipeline.wiring import Wiring, read_wiring

pytest.importorskip("onnxruntime")

from mtpp.runtime.pipeline.measuring import spread
from mtpp.runtime.session import SessionChoices

SETS = 7
ENDLESS = RunLimits(Deadline(), lambda: False)


def _choices(batches: int, warmup: int = 2) -> PipelineChoices:
    return PipelineChoices(batches, warmup, SessionChoices(spin=False), None, 0)


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    """Return four stages with a bypass and queues of the least depth."""
    return read_wiring(bypass(tmp_path / "stages"), queue_depth=1)


@pytest.fixture
def rings(wiring: Wiring) -> Iterator[tuple[Ring, Ring]]:
    """Return different inputs for batches in turn, and what the whole model makes of them."""
    inputs, expected = (Ring.make(layout, SETS, "a test") for layout in (wiring.inputs, wiring.outputs))
    random = np.random.default_rng(1)
    for views, results in zip(inputs.views(), expected.views(), strict=True):
        views["x"][...] = random.standard_normal((SIZE, SIZE))
        for name, array in bypassed(views["x"]).items():
            results[name][...] = array
    yield inputs, expected
    inputs.close()
    expected.close()


def test_every_batch_gets_what_is_its_own(wiring: Wiring, rings: tuple[Ring, Ring]) -> None:
    """All results of 50 batches of 7 kinds are right, through the bypass too; the same held against others is wrong."""
    inputs, expected = rings
    run = run_pipeline(wiring, _choices(50), inputs, expected, ENDLESS)
    assert (run.stopped, run.batches) == ("finished", 50)
    assert (run.agreement.compared, run.agreement.near) == (100, 100)  # of two stages
    views = expected.views()
    for name in ("y", "z"):
        views[0][name][...] = views[1][name]
    wrong = run_pipeline(wiring, _choices(14, 0), inputs, expected, ENDLESS)
    assert (wrong.agreement.compared, wrong.agreement.near) == (28, 24)


def _check_times(run: PipelineTimes) -> None:
    for times in run.stages:
        parts = times.wait_in + times.wait_out + times.busy
        assert (parts <= times.ended - times.started + 1e-6).all()
        assert (np.diff(times.ended) > 0).all()
        assert (times.started[1:] >= times.ended[:-1]).all()
        assert float(times.ended[-1] - times.started[0]) <= run.elapsed_s


def test_times_add_up(wiring: Wiring, rings: tuple[Ring, Ring]) -> None:
    """Waiting and work are parts of a batch's time; no stage begins before its producers are done."""
    run = run_pipeline(wiring, _choices(20), *rings, ENDLESS)
    _check_times(run)
    for i, producers in enumerate(wiring.producers):
        for producer in producers:
            began = run.stages[i].ended - run.stages[i].busy
            assert (began + 1e-6 >= run.stages[producer].ended).all()


def test_the_whole_measurement(tmp_path: Path) -> None:
    """Stages, the unsplit model and the pipeline all give the same, with weights absent from none."""
    folder, model = bypass(tmp_path / "stages"), whole_bypass(tmp_path / "whole.onnx")
    said: list[str] = []
    measured = measure(RunRequest(folder, model, batches=20, warmup=1, pin=()), ENDLESS, said.append)
    assert measured.agrees
    assert measured.alone.shape == (20, 4)
    assert measured.whole is not None
    assert measured.whole[0].shape == (20,)
    assert measured.whole[1].exact == 4
    assert measured.pipeline.agreement.exact == 40
    assert measured.cores is not None
    assert len(measured.cores) == 4
    assert len(said) == 4


def test_absent_weights_are_the_same_in_every_process(tmp_path: Path) -> None:
    """A stage whose weight's file is missing gets random ones: the same in the pipeline as alone."""
    folder = single(tmp_path / "one")
    model = onnx.load(folder / "s0.onnx")
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.data")
    (folder / "s0.onnx").write_bytes(model.SerializeToString())
    measured = measure(RunRequest(folder, batches=4, warmup=0), ENDLESS)
    assert (measured.pipeline.agreement.compared, measured.pipeline.agreement.exact) == (4, 4)


def test_models_that_draw_random_numbers_are_not_compared(tmp_path: Path) -> None:
    """They give something else every time, which is nothing wrong."""
    folder = single(tmp_path / "one")
    model = onnx.load(folder / "s0.onnx")
    model.graph.node[0].CopyFrom(helper.make_node("RandomNormalLike", ["x"], ["y"]))
    onnx.save(model, folder / "s0.onnx")
    measured = measure(RunRequest(folder, batches=4, warmup=0), ENDLESS)
    assert not measured.repeatable
    assert measured.agrees
    assert measured.pipeline.agreement.compared == 0


def test_one_stage_is_a_pipeline(tmp_path: Path) -> None:
    """K = 1, one batch."""
    measured = measure(RunRequest(single(tmp_path / "one"), batches=1, warmup=0), ENDLESS)
    assert measured.agrees
    assert measured.pipeline.batches == measured.pipeline.agreement.exact == 1


def test_stages_without_readers_and_without_inputs(tmp_path: Path) -> None:
    """Nobody waits for them, and they wait for nobody."""
    folder = bypass(tmp_path / "stages")
    manifest = read_manifest(folder)
    first = manifest.stages[0]
    fill = "k = Constant <value = float[2] {3.0, 4.0}>()"
    onnx.save(built(fill, {}, {"k": [2]}, opset=17), folder / "s5.onnx")
    made = replace(first.outputs[0], name="k", shape=(2,), readers=())
    lonely = replace(first, index=5, file="s5.onnx", inputs=(), outputs=(made,))
    (folder / "manifest.json").write_text(manifest_text(replace(manifest, k=6, stages=(*manifest.stages, lonely))))
    measured = measure(RunRequest(folder, batches=30), ENDLESS)
    assert measured.agrees
    assert len(measured.pipeline.stages) == 5
    _check_times(measured.pipeline)


def test_the_end_of_the_time_leaves_what_is_done(wiring: Wiring, rings: tuple[Ring, Ring]) -> None:
    """The batches that all stages did are there, with their times."""
    said: list[str] = []
    looks = iter(range(10**6))
    limits = RunLimits(Deadline(), lambda: len(said) > 1 and next(looks) > 200)  # two: it starts, it runs
    run = run_pipeline(wiring, _choices(10**6), *rings, limits, said.append)
    assert run.stopped == "interrupted"
    assert 0 < run.batches < 10**6
    assert run.agreement.holds
    _check_times(run)
    with pytest.raises(EndedEarly, match="time-limit"):
        run_pipeline(wiring, _choices(10), *rings, RunLimits(Deadline(0), lambda: False))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"input": "q"}, r"s1\.onnx: input 'a': it has none, and 'q' instead, as the manifest says; split the model"),
        ({"output": "q"}, r"s1\.onnx: output 'b': it has none"),
        ({"type": TensorProto.DOUBLE}, r"s1\.onnx: input 'a': it is of type float64, not float32"),
        ({"shape": [SIZE, 3]}, r"s1\.onnx: input 'a': its shape is \[8, 3\], not \[8, 8\]"),
        ({"extra": "more"}, r"s1\.onnx: input 'more': the manifest does not say what to feed it"),
        ({"node": "NoSuchOp"}, r"s1\.onnx: ONNX Runtime cannot load it: .*NoSuchOp"),
        ({"bytes": b"nothing"}, r"s1\.onnx: ONNX Runtime cannot load it: "),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_the_manifest(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    """One line names the file and the tensor."""
    wiring = read_wiring(bypass(tmp_path / "stages"), queue_depth=1)
    _write_changed(wiring.folder / "s1.onnx", **change)
    with pytest.raises(InputError, match=problem) as caught:
        stage_models(wiring, 0)[1].open(SessionChoices())
    assert "\n" not in str(caught.value)


def test_outputs_of_another_size(wiring: Wiring, rings: tuple[Ring, Ring]) -> None:
    """Alone and in the pipeline: a tensor never overruns its slot."""
    _write_changed(wiring.folder / "s1.onnx", double_rows=True)
    with pytest.raises(InputError, match=r"s1\.onnx: output 'b': its shape is \[16, 8\], not \[8, 8\] as the manifest"):
        measure(RunRequest(wiring.folder, batches=2, warmup=0), ENDLESS)
    with pytest.raises(InputError, match=r"s1\.onnx: ONNX Runtime cannot run it: .*shape"):
        run_pipeline(wiring, _choices(5), *rings, ENDLESS)


def _write_changed(path: Path, **change: object) -> None:
    if "bytes" in change:
        path.write_bytes(bytes(change["bytes"]))  # type: ignore[call-overload]
        return
    type_, shape = change.get("type", TensorProto.FLOAT), change.get("shape", ["n", SIZE])
    source, target = change.get("input", "a"), change.get("output", "b")
    inputs = {str(name): (type_, shape) for name in (source, change.get("extra", source))}
    if change.get("double_rows"):
        node = f"{target} = Concat <axis = 0>({source}, {source})"
    else:
        node = f"{target} = {change.get('node', 'Neg')}({source})"
    onnx.save(built(node, inputs, {str(target): (type_, None)}, opset=17), path)


def test_cores_in_turn() -> None:
    """As many as a worker has threads, from those given, else from all that may be used."""
    assert spread((), 3, 1, (0, 1)) == ((0,), (1,), (0,))
    assert spread((4, 2), 2, 1, (0, 2, 4)) == ((4,), (2,))
    assert spread((), 2, 2, (0, 1, 2)) == ((0, 1), (0, 2))
    with pytest.raises(InputError, match="pin: core 7 is not to be had; choose among 0, 1"):
        spread((7,), 2, 1, (0, 1))


pytest.importorskip("onnxruntime")


def _split(tmp_path: Path, *, random: bool = False) -> tuple[Path, Path]:
    """Return a model that keeps the rows which are positive, and its stages, cut before and behind."""
    marks = "drawn" if random else "row"
    nodes = (
        "[first] h = MatMul(x, w) [sum] row = ReduceSum <keepdims = 0>(h, axes) "
        f"{'drawn = RandomNormal <shape = [64]>()' if random else ''} [mark] kept = Greater({marks}, zero) "
        "[compress] open = Compress <axis = 0>(h, kept) [relu] y = Relu(open) [neg] z = Neg(y)"
    )
    weights = {
        "w": np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32),
        "axes": np.array([1]),
        "zero": np.float32(0),
    }
    path = tmp_path / "model.onnx"
    onnx.save(built(nodes, {"x": [64, 8]}, {"z": ["n", 8], "y": ["n", 8]}, weights, opset=17), path)
    reading = mtpp.read(path, dims="auto")
    plan = {name: int(name in ("relu",)) + 2 * (name == "neg") for name in reading.graph.op_names}
    assert mtpp.split(reading, plan, tmp_path / "stages", check=True).passed
    return path, tmp_path / "stages"


def test_sizes_differ_between_batches(tmp_path: Path) -> None:
    """Every batch has a number of rows of its own, in the pipeline as in the model."""
    model, stages = _split(tmp_path)
    measured = measure(RunRequest(stages, model, batches=20, warmup=1), ENDLESS)
    assert measured.agrees
    assert measured.whole is not None
    assert (measured.whole[1].compared, measured.whole[1].exact) == (4, 4)
    assert (measured.pipeline.agreement.compared, measured.pipeline.agreement.exact) == (40, 40)  # of two stages


def test_random_sizes_have_room(tmp_path: Path) -> None:
    """A batch may have more rows than those that were measured."""
    _, stages = _split(tmp_path, random=True)
    measured = measure(RunRequest(stages, batches=30), ENDLESS)
    assert measured.agrees
    assert not measured.repeatable


KINDS = ["bfloat16", "float16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "int4", "uint4"]


def _of_few_bits(tmp_path: Path) -> tuple[Path, Path]:
    """Return a model in which tensors of each kind go in, cross a cut and come out, one of open size, and its stages.

    Nine elements, so that those of four bits fill no whole number of bytes.
    """
    kinds = {kind: TensorProto.DataType.Value(kind.upper()) for kind in KINDS}
    nodes = [helper.make_node("Cast", ["x"], [f"q {kind}"], f"to {kind}", to=own) for kind, own in kinds.items()]
    nodes += [
        helper.make_node("Compress", ["x", "kept"], ["rows"], "compress", axis=0),
        helper.make_node("Cast", ["rows"], ["open"], "to open", to=TensorProto.INT4),
    ]
    nodes += [helper.make_node("Cast", [f"q {kind}"], [f"y {kind}"], f"from {kind}", to=1) for kind in kinds]
    nodes += [
        helper.make_node("Cast", ["open"], ["y open"], "from open", to=1),
        helper.make_node("Cast", ["given"], ["y given"], "from given", to=TensorProto.INT8),
    ]
    inputs = [("x", 1, [3, 3]), ("kept", TensorProto.BOOL, [3]), ("given", TensorProto.INT4, [3, 1])]
    results = [(f"y {kind}", 1, [3, 3]) for kind in kinds]
    results += [("y open", 1, ["n", 3]), ("y given", TensorProto.INT8, [3, 1]), ("q int4", TensorProto.INT4, [3, 3])]
    describe = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "few bits", [describe(*one) for one in inputs], [describe(*one) for one in results]
    )
    path = tmp_path / "few.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    reading = mtpp.read(path, dims="auto")
    stage = {name: int("from" in name) for name in reading.graph.op_names}
    assert mtpp.split(reading, stage, tmp_path / "few", check=True).passed
    return path, tmp_path / "few"


def test_elements_of_few_bits_are_handed_on(tmp_path: Path) -> None:
    """Bytes are bytes: ONNX Runtime makes the same of them in the pipeline as in the whole model."""
    model, stages = _of_few_bits(tmp_path)
    given = {"kept": np.array([True, False, True]), "given": np.array([[-8], [7], [3]]).astype("int4")}
    measured = measure(RunRequest(stages, model, batches=9, warmup=1, inputs=given), ENDLESS)
    assert measured.agrees
    assert measured.repeatable
    assert measured.whole is not None
    assert measured.whole[1].exact == measured.whole[1].compared == 4
    assert measured.pipeline.agreement.exact == measured.pipeline.agreement.compared == 18  # of two stages


def test_too_much_for_its_room_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage's worker refuses, and the tensor is named."""
    _, stages = _split(tmp_path)
    monkeypatch.setattr("mtpp.runtime.pipeline.measuring.rooms", lambda *_: {"open": 4, "y": 4, "z": 4})
    with pytest.raises(InputError, match=r"tensor '.*': it takes .* B, more than in the runs before"):
        measure(RunRequest(stages, batches=2, warmup=0), ENDLESS)
