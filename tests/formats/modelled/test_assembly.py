"""Weights that count as more than the file holds: told, and no limit that rests on them is called proven."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_text import built
from planning import plan_with
from plans_beside_models import written

import mtpp
from mtpp.errors import Infeasible
from mtpp.formats.modelled.assembly import counted_weights, told_weights


def _model(nodes: str, stored: dict[str, np.ndarray]) -> bytes:
    return built(nodes, {"x": [4, 256]}, {"y": [4, 256]}, stored, opset=21, ir_version=10).SerializeToString()


PACKED = "w = Cast <to = 1>(half) t = Transpose <perm = [1, 0]>(w) y = MatMul(x, t)"
SHARED = "h = MatMul(x, w) y = MatMul(h, w)"
PLAIN = "y = MatMul(x, w)"
FULL, HALF = (np.ones((256, 256), kind) for kind in (np.float32, np.float16))


@pytest.mark.parametrize(
    ("nodes", "stored", "k", "told"),
    [
        (PACKED, {"half": HALF}, 1, "stored in fewer bits count as they are computed with: 256 KiB for 128 KiB"),
        (SHARED, {"w": FULL}, 1, "several ops read count at each of them: 256 KiB more than the file holds"),
        (PLAIN, {"w": FULL}, 1, ""),
    ],
)
def test_a_limit_on_weights_that_count_as_more_is_no_proof(
    nodes: list[onnx.NodeProto], stored: dict[str, np.ndarray], k: int, told: str
) -> None:
    """The difference is an assumption of every plan; without one the limit is proven to be too little."""
    model = mtpp.read(_model(nodes, stored))
    assumed = "; ".join(model.graph.metadata.get("assumptions", []))
    assert told in assumed
    assert bool(told) == bool(assumed)
    assert told in "; ".join(mtpp.partition(model, k).assumptions)
    limited = mtpp.read(_model(nodes, stored), stage_memory="100KiB")
    with pytest.raises(Infeasible) as caught:
        mtpp.partition(limited, k)
    assert ("proven" in str(caught.value)) == (not told)
    assert ("as weights are counted" in str(caught.value)) == bool(told)


@pytest.mark.parametrize(("nodes", "stored", "more"), [(PACKED, {"half": HALF}, True), (PLAIN, {"w": FULL}, False)])
def test_training_plans_say_how_weights_count(
    nodes: list[onnx.NodeProto], stored: dict[str, np.ndarray], more: bool
) -> None:
    """Memory that no plan keeps to is too little as weights are counted; so is the memory of a plan."""
    asked = {"planner": "pfeife", "devices": 1, "micro_batches": 1}
    model = mtpp.read(_model(nodes, stored))
    plan = plan_with(model, **asked)
    assert ("memory as weights are counted (as they are computed with)" in repr(plan)) == more
    with pytest.raises(Infeasible, match="no plan fits") as caught:
        plan_with(model, memory="10KiB", **asked)
    assert ("as weights are counted" in str(caught.value)) == more


@pytest.mark.parametrize(("nodes", "stored", "more"), [(PACKED, {"half": HALF}, True), (PLAIN, {"w": FULL}, False)])
def test_no_such_limit_is_proven_in_a_document(
    tmp_path: Path, nodes: list[onnx.NodeProto], stored: dict[str, np.ndarray], more: bool
) -> None:
    """The document and its verification claim no proof where weights count as more; older ones that do still verify."""
    model, tight = tmp_path / "m.onnx", ("--memory", "10KiB", "--devices", "1", "--micro-batches", "1")
    model.write_bytes(_model(nodes, stored))
    none = written(tmp_path, "plan", model, "--planner", "pfeife", *tight)
    assert none["proven"] is not more
    assert none["costs"]["counted_weights"] == (["unpacked_bytes"] if more else [])
    report = mtpp.verify(none, model)
    assert report.verdict == "ok"
    assert ("proven that there is no plan" in str(report)) is not more
    assert ("no plan fits as weights are counted (as they are computed with)" in str(report)) is more
    assert mtpp.verify({**none, "proven": more}, model).verdict == "false"
    for forged in ([], ["repeated_bytes"], ["unpacked_bytes", "unpacked_bytes"], ["unpacked_bytes"]):
        says = {**none, "costs": {**none["costs"], "counted_weights": forged}}
        assert (mtpp.verify(says, model).verdict == "ok") is (forged == none["costs"]["counted_weights"])
    older = {**none, "costs": {k: v for k, v in none["costs"].items() if k != "counted_weights"}, "proven": True}
    assert mtpp.verify(older, model).verdict == "ok"
    assert ("proven that there is no plan" in str(mtpp.verify(older, model))) is not more


@pytest.mark.parametrize("stated", [5, "unpacked_bytes", ["unpacked_bytes"], {"of my own": 1}, None])
def test_metadata_of_the_same_name_are_no_weights(stated: object) -> None:
    """Metadata of a graph may be anything."""
    graph = {
        "format": "mtpp-graph",
        "version": 1,
        "name": "g",
        "time_unit": "ps",
        "ops": [{"name": "a", "work": 1, "param_bytes": 100}],
        "tensors": [],
        "metadata": {"counted_weights": stated},
    }
    with pytest.raises(Infeasible, match="no plan fits into the memory of 1 device;"):
        plan_with(graph, planner="pfeife", devices=1, micro_batches=1, memory="10B")
    with pytest.raises(Infeasible, match="proven infeasible"):
        mtpp.partition(mtpp.read(graph, stage_memory="10B"), 1)


def test_little_differences_are_not_told() -> None:
    """A number that two ops read is no weight to speak of; a hundredth of all is."""
    readers = {"a": ["p"], "b": ["p", "q"]}
    assert counted_weights({"a": 1000, "b": 9}, readers, {}) == {}
    assert counted_weights({"a": 1000, "b": 99}, readers, {"a": 500}) == {
        "repeated_bytes": 99, "unpacked_bytes": 1000, "packed_bytes": 500,
    }  # fmt: skip
    assert len(told_weights({"repeated_bytes": 99, "unpacked_bytes": 1000, "packed_bytes": 500})) == 2
    assert counted_weights({"a": 500}, {"a": ["p"]}, {"a": 500}) == {}
