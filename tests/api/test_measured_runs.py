"""Plans for machines as measured: where a pipeline does not pay, and predicted times beside those of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from processes import run

import mtpp
from mtpp.api.run_pipeline import compare_run
from mtpp.errors import InputError

GRAPH = {
    "format": "mtpp-graph", "version": 1, "name": "pair", "time_unit": "ms",
    "ops": [{"name": "a", "work": 10}, {"name": "b", "work": 8}],
    "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 1_000_000}],
}  # fmt: skip
RUN = {
    "format": "mtpp-run", "version": 1, "model": {"name": "pair", "sha256": "0" * 64, "ops": 2}, "batches": 50,
    "unsplit": {"of": "model", "measured_s": 0.019}, "period_s": 0.0125,
    "stages": [
        {"stage": 0, "file": "stage-0.onnx", "ops": 1, "busy_s": 0.012, "held_s": 0.0121},
        {"stage": 1, "file": "stage-1.onnx", "ops": 1, "busy_s": 0.0099},
    ],
}  # fmt: skip


def _machine(folder: Path, latency: str, count: int = 2) -> Path:
    path = folder / "machine.toml"
    path.write_text(f'[[device]]\nname = "core"\ncount = {count}\nlatency = "{latency}"\nbandwidth = "1GB/s"\n')
    return path


@pytest.mark.parametrize(
    ("latency", "count", "told"),
    [
        ("1ms", 2, None),  # 10 + 1 + 1 ms in the slower stage, 18 ms in one
        ("1ms", 3, "stages used        2 of 3: more are no faster, proven"),
        ("6999us", 2, None),  # 17.999 ms
        ("7ms", 2, "no: one stage takes 18.00 ms, 55.6/s, as much as any cut into at most 2 stages, proven"),
        ("9ms", 2, "no: one stage takes 18.00 ms, 55.6/s, as much as any cut into at most 2 stages, proven"),
    ],
)
def test_where_a_pipeline_does_not_pay(tmp_path: Path, latency: str, count: int, told: str | None) -> None:
    """A cut costs the latency and a millisecond for the megabyte on either side."""
    text = mtpp.partition(mtpp.read(GRAPH, machine=_machine(tmp_path, latency, count))).text()
    assert (told in text) if told else ("pipeline pays" not in text and "stages used" not in text)


def test_a_given_cut_that_does_not_pay(tmp_path: Path) -> None:
    """10 + 9 + 1 ms against 18 ms; nothing is said of other cuts."""
    text = mtpp.evaluate(mtpp.read(GRAPH, machine=_machine(tmp_path, "9ms")), {"a": 0, "b": 1}).text()
    assert "no: 18.00 ms in one stage, 20.00 ms in the slowest of 2 (55.6/s against 50/s)" in text


def test_predicted_beside_measured(tmp_path: Path) -> None:
    """Seconds of each stage, the slowest, and whether the pipeline pays; in the document and in the table."""
    plan = mtpp.evaluate(mtpp.read(GRAPH, machine=_machine(tmp_path, "1ms")), {"a": 0, "b": 1})
    found = compare_run(plan, RUN)
    document = found.document()
    assert [(row["predicted_s"], row["measured_s"]) for row in document["stages"]] == [(0.012, 0.0121), (0.01, 0.0099)]
    assert document["bottleneck"] == {
        "predicted_stage": 0, "predicted_s": 0.012, "stage": 0, "measured_s": 0.0121, "ratio": 1.00833,
    }  # fmt: skip
    assert document["speedup"] == {"predicted": 1.5, "measured": 1.52}
    assert document["pays"] == {"predicted": True, "measured": True}
    assert "12.00 ms predicted (stage 0), 12.10 ms measured (stage 0): 1.01× the predicted" in found.text()
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    command = ("evaluate", tmp_path / "graph.json", "--cuts", "a", "--machine", tmp_path / "machine.toml")
    done = run(*command, "--run", tmp_path / "run.json", "--format", "json")
    assert json.loads(done.stdout) == document
    refused = run(*command, "--run", tmp_path / "run.json", "--against", "auto")
    assert (refused.returncode, refused.stdout) == (2, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "mtpp-plan"}, "/format"),
        ({"model": {"name": "pair", "sha256": "0" * 64, "ops": 3}}, "is of a model of 3 ops, not of one of 2"),
        ({"stages": RUN["stages"][:1]}, "stage 1 has 0 ops in the run, and 1 here"),  # type: ignore[index]
        ({"stages": 2 * RUN["stages"]}, "/stages: must list each stage once"),  # type: ignore[operator]
        ({"unsplit": {"measured_s": 0}}, "/unsplit/measured_s: must be above zero"),
    ],
)
def test_runs_of_something_else(change: dict[str, Any], message: str) -> None:
    """One line says why they are no runs of these stages."""
    with pytest.raises(InputError) as refused:
        compare_run(mtpp.evaluate(GRAPH, {"a": 0, "b": 1}), RUN | change)
    assert message in str(refused.value)
