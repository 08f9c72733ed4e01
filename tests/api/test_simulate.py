"""``mtpp.simulate``: from a path, bytes, a document or a stage graph; charts, traces and documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mtpp
from mtpp.training.pass_order import interleaved_order
from mtpp.training.stage_graph import PipelineStage, StageGraph

STAGE = {"micro_batch": 1, "forward": 1, "backward": 2}
PIPELINE: dict[str, Any] = {
    "format": "mtpp-stage-graph",
    "version": 1,
    "name": "two",
    "time_unit": "us",
    "mini_batch": 4,
    "stages": [{**STAGE, "in_flight": 2}, {**STAGE, "in_flight": 1}],
    "transfers": [{"source": 0, "target": 1, "forward": 0, "backward": 0}],
}


def test_every_kind_of_input_gives_the_same(tmp_path: Path) -> None:
    """A path, gzipped bytes or not, a parsed document, and the graph itself."""
    path = tmp_path / "two.json"
    path.write_text(json.dumps(PIPELINE))
    for given in (path, str(path), path.read_bytes(), PIPELINE):
        simulated = mtpp.simulate(given)
        assert (simulated.iteration_ticks, simulated.iteration_s) == (15_000_000, 15e-6)
    stage = PipelineStage("only", 2, 3, 4, 5, interleaved_order(2, 1))
    assert mtpp.simulate(StageGraph.build("x", "ps", 4, [stage], [])).iteration_ticks == 2 * 7 + 5


def test_results_are_saved_and_drawn(tmp_path: Path) -> None:
    """The document reads as it is documented; charts by their endings, traces as JSON."""
    simulated = mtpp.simulate(PIPELINE)
    document = simulated.document()
    assert (document["format"], document["version"], document["iteration_ticks"]) == ("mtpp-simulation", 1, 15_000_000)
    assert document["warm_up_ticks"] + document["steady_ticks"] + document["cool_down_ticks"] == 15_000_000
    simulated.save(tmp_path / "simulation.json")
    simulated.save(tmp_path / "simulation.json")  # over an earlier result
    assert json.loads((tmp_path / "simulation.json").read_text()) == document
    for name, begins in (("a.svg", "<svg "), ("a.html", "<!DOCTYPE html>"), ("a.txt", "stage 0 |")):
        simulated.gantt(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(begins)
    simulated.trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "iteration" in repr(simulated)
    assert simulated._repr_html_().startswith("<svg ")


def test_bad_calls(tmp_path: Path) -> None:
    """The message names the parameter, or the place in the file."""
    with pytest.raises(mtpp.InputError, match="pipeline: 7 is no stage graph"):
        mtpp.simulate(7)  # type: ignore[arg-type]
    with pytest.raises(mtpp.InputError, match=r"path: .*has none of the endings"):
        mtpp.simulate(PIPELINE).gantt(tmp_path / "a.png")
    with pytest.raises(mtpp.InputError, match="<dict>: /stages/0/micro_batch"):
        mtpp.simulate({**PIPELINE, "mini_batch": 4, "stages": [{**STAGE, "micro_batch": 3, "in_flight": 1}]})
    with pytest.raises(mtpp.InputError, match="not a stage graph"):
        mtpp.simulate(b"\x08\x07onnx")
    with pytest.raises(mtpp.Deadlock, match="<dict>: passes wait for each other"):
        mtpp.simulate({**PIPELINE, "stages": [{**STAGE, "in_flight": 1, "k": 2}] * 2})
