"""Stages know whom they wait for; queues are as long as bypasses need; what cannot be shared is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from stage_folders import bypass, single

from mtpp.errors import InputError
from mtpp.formats.stage_manifest import Described, manifest_text, read_manifest
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
    [("bfloat16", (8, 8), "'bfloat16' cannot go through"), ("string", (8, 8), "'string' cannot go through"),
     ("complex64", (8, 8), "cannot go through"), ("i4", (8, 8), "cannot go through"),
     ("sequence(float32)", (8,), "cannot go through"), ("object", (8, 8), "cannot go through"),
     ("float32", (None, 8), "its size is not known")],
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
    assert [region.name for region in read_wiring(folder, queue_depth=2).inputs.regions] == ["x", "flag"]


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
