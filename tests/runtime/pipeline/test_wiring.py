"""Stages know whom they wait for; queues are as long as bypasses need; what cannot be shared is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from stage_folders import bypass, single

from mtpp.errors import InputError
from mtpp.formats.results.stage_manifest import Described, manifest_text, read_manifest
from mtpp.host.deadline import Deadline
from mtpp.runtime.pipeline.crew import RunLimits
from mtpp.runtime.pipeline.measuring import RunRequest, measure
from mtpp.runtime.pipeline.memory import Ring
from mtpp.runtime.pipeline.tokens import PeerGone, make_link
from mtpp.runtime.pipeline.wiring import read_wiring


def test_links_and_slots(tmp_path: Path) -> None:
    """The first stage's tensor that skips two stages needs two slots more; empty stages are counted out."""
    wiring = read_wiring(bypass(tmp_path / "stages"), queue_depth=2)
    assert wiring.producers == ((), (0,), (1,), (0, 2))
    assert wiring.consumers == ((1, 3), (2,), (3,), ())
    assert wiring.slots == (5, 3, 3, 3)
    assert [wiring.label(i) for i in range(4)] == ["stage 0", "stage 1", "stage 3", "stage 4"]
    assert [wiring.results(i) for i in range(4)] == [(), (), ("z",), ("y",)]
    assert read_wiring(single(tmp_path / "one"), queue_depth=1).slots == (2,)


@pytest.mark.parametrize(
    ("dtype", "shape", "problem"),
    [("string", (8, 8), "'string' cannot go through"), ("i4", (8, 8), "cannot go through"),
     ("sequence(float32)", (8,), "cannot go through"), ("object", (8, 8), "cannot go through"),
     ("float32", (8,) * 33, "no memory can hold it")],
)  # fmt: skip
def test_what_cannot_be_shared(tmp_path: Path, dtype: str, shape: tuple[int | None, ...], problem: str) -> None:
    """The tensor is named."""
    folder = single(tmp_path / "one")
    manifest = read_manifest(folder)
    (output,), (stage,) = manifest.outputs, manifest.stages
    stage = replace(stage, outputs=(replace(stage.outputs[0], dtype=dtype, shape=shape),))
    broken = replace(manifest, outputs=(replace(output, dtype=dtype, shape=shape),), stages=(stage,))
    (folder / "manifest.json").write_text(manifest_text(broken))
    with pytest.raises(InputError, match=r"manifest\.json: tensor 'y': .*" + problem.replace("(", r"\(")):
        read_wiring(folder, queue_depth=2)


def test_inputs_that_nothing_reads(tmp_path: Path) -> None:
    """They are no obstacle, whatever they are; the whole model gets those that can be made up."""
    folder = single(tmp_path / "one")
    manifest = read_manifest(folder)
    spare = (Described("text", "string", (1,)), Described("open", "float32", (None,)), Described("flag", "bool", ()))
    (folder / "manifest.json").write_text(manifest_text(replace(manifest, inputs=(*manifest.inputs, *spare))))
    assert [region.name for region in read_wiring(folder, queue_depth=2).inputs.regions] == ["x", "open", "flag"]


def test_tensors_of_open_size_have_room_once_it_is_known(tmp_path: Path) -> None:
    """Before, there is room for their sizes only; an input whose size nobody knows has size 1, as in a check."""
    folder = single(tmp_path / "one")
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    (stage,) = document["stages"]
    for tensor in (*document["inputs"], *document["outputs"], *stage["inputs"], *stage["outputs"]):
        tensor["shape"] = [None, 8]
    path.write_text(json.dumps(document))
    wiring = read_wiring(folder, queue_depth=2)
    assert wiring.is_open
    assert [region.shape for region in wiring.inputs.regions] == [(1, 8)]
    assert [region.room for region in wiring.outputs.regions] == [0]
    roomy = wiring.with_rooms({"y": 5000})
    assert [region.room for region in (*roomy.outputs.regions, *roomy.layouts[0].regions)] == [5000, 5000]
    assert not read_wiring(bypass(tmp_path / "stages"), queue_depth=2).is_open


def test_a_dead_peer_is_heard_of() -> None:
    """Whoever waits for it, or tells it something, hears of it; what it said before is heard first."""
    import os

    out, into = make_link(2)
    out.tell()
    into.wait()
    into.release(0, 3)
    out.wait(0)
    out.wait(2)
    out.tell()
    os.close(out.filled)
    into.wait()
    with pytest.raises(PeerGone):
        into.wait()
    os.close(into.free)
    with pytest.raises(PeerGone):
        out.wait(3)
    os.close(out.free)
    os.close(into.filled)


@pytest.mark.parametrize("shape", [(1 << 14, 1 << 14), (9, 8), (1 << 62, 1 << 62), (8, 8, *[1] * 60), (10**400, 8)])
@pytest.mark.parametrize("name", ["x", "y"])
def test_forged_shapes_are_refused_before_memory_is_set_aside(
    name: str, shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest agrees with itself, and not with the models: one line, and not a byte for its tensors."""

    def never(*_: object) -> Ring:
        raise AssertionError("memory was set aside")

    monkeypatch.setattr(Ring, "make", never)
    folder = single(tmp_path / "one")
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    (stage,) = document["stages"]
    for tensor in (*document["inputs"], *document["outputs"], *stage["inputs"], *stage["outputs"]):
        if tensor["name"] == name:
            tensor["shape"] = list(shape)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        measure(RunRequest(folder, batches=1, warmup=0), RunLimits(Deadline(), lambda: False))
    assert caught.value.exit_code == 2
    assert any(problem in str(caught.value) for problem in ("its shape is [8, 8], not", "no memory can hold it"))


def test_a_forged_type_and_a_forged_output_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Types are compared as well, and results with what the stages make."""
    monkeypatch.setattr(Ring, "make", None)
    folder = single(tmp_path / "one")
    path = folder / "manifest.json"
    genuine = path.read_text()
    path.write_text(genuine.replace('"float32"', '"float64"'))
    with pytest.raises(InputError, match="it is of type float32, not float64, as the manifest says"):
        measure(RunRequest(folder, batches=1, warmup=0), RunLimits(Deadline(), lambda: False))
    document = json.loads(genuine)
    document["outputs"][0]["shape"] = [1 << 20, 1 << 10]
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="has another type among the model's outputs"):
        measure(RunRequest(folder, batches=1, warmup=0), RunLimits(Deadline(), lambda: False))


def test_inputs_for_the_whole_model_alone_take_no_memory_without_it(tmp_path: Path) -> None:
    """What no stage reads is not made up where there is no model to feed it to."""
    folder = single(tmp_path / "one")
    manifest = read_manifest(folder)
    spare = Described("flag", "bool", (1 << 40,))
    (folder / "manifest.json").write_text(manifest_text(replace(manifest, inputs=(*manifest.inputs, spare))))
    assert [region.name for region in read_wiring(folder, 2, whole=False).inputs.regions] == ["x"]
