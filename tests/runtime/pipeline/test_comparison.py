"""Figures of a run follow from its times."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from stage_folders import bypass, single

from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.pipeline_run import run_document
from mtpp.runtime.checking.agreement import Agreement
from mtpp.runtime.pipeline.comparison import Comparison
from mtpp.runtime.pipeline.measuring import Measured, RunRequest
from mtpp.runtime.pipeline.pipeline import PipelineTimes
from mtpp.runtime.pipeline.run_length import RunLength
from mtpp.runtime.pipeline.stage_job import StageTimes
from mtpp.runtime.pipeline.wiring import read_wiring
from mtpp.views.run import run_text

BATCHES = 4


def _measured(
    folder: Path, busy_s: list[float], *, cores: int = 4, whole_s: float | None = None, alone_cpu_share: float = 1.0
) -> Measured:
    """Return a run in which every batch takes the same, alone 80 % of it, one batch every slowest stage's time."""
    period = max(busy_s)
    rows = []
    for stage, busy in enumerate(busy_s):
        table = np.zeros((BATCHES, 7))
        for batch in range(BATCHES):
            start = (stage + batch) * period
            table[batch] = (start, 0, period - busy, busy, busy, start + period, 0)
        rows.append(StageTimes.of(table))
    agreement = Agreement(BATCHES, BATCHES, BATCHES)
    return Measured(
        RunRequest(folder),
        read_wiring(folder, 2),
        np.array([busy_s] * 3) * 0.8,
        alone_cpu_share,
        None if whole_s is None else (np.array([whole_s]), agreement),
        PipelineTimes(tuple(rows), agreement, "finished"),
        None,
        cores,
        True,
        RunLength(BATCHES, 0),
    )


def test_figures(tmp_path: Path) -> None:
    """Predicted 4, 3, 6, 2 µs; measured twice that: correlation 1, ratio 2, seven periods for four batches."""
    folder = bypass(tmp_path / "stages")
    comparison = Comparison(_measured(folder, [8e-6, 6e-6, 12e-6, 4e-6]))
    assert [stage.ratio for stage in comparison.stages] == pytest.approx([2, 2, 2, 2])
    assert comparison.bottleneck_ratio == pytest.approx(2)
    assert (comparison.slowest.index, comparison.predicted_slowest.index) == (3, 3)
    assert comparison.correlation == pytest.approx(1)
    assert comparison.predicted_spread == pytest.approx(4 / 6)
    assert comparison.throughput == pytest.approx(BATCHES / (7 * 12e-6))
    assert comparison.predicted_throughput == pytest.approx(1 / 6e-6)
    assert comparison.unsplit_s == pytest.approx(0.8 * 30e-6)
    assert comparison.speedup == pytest.approx(0.8 * 30e-6 * BATCHES / (7 * 12e-6))
    assert comparison.predicted_speedup == pytest.approx(10 / 6)
    assert comparison.contention == pytest.approx(1.25)
    assert comparison.slowest.share == pytest.approx(BATCHES / 7)
    assert comparison.limits() == ["stages take 1.25× as long beside each other as alone"]
    assert "4 threads share 2 cores" in Comparison(_measured(folder, [1, 1, 1, 1], cores=2)).limits()


def test_other_programs_are_told_of(tmp_path: Path) -> None:
    """Not where stages share the cores among themselves."""
    folder = bypass(tmp_path / "stages")
    disturbed = Comparison(_measured(folder, [1, 1, 1, 1], alone_cpu_share=0.6))
    assert disturbed.limits()[0] == "other programs, which had the cores for 40% of the time"
    assert not Comparison(_measured(folder, [1, 1, 1, 1], alone_cpu_share=0.95)).disturbed
    assert not Comparison(_measured(folder, [1, 1, 1, 1], alone_cpu_share=0.6, cores=2)).disturbed


def test_what_is_undefined_is_left_out(tmp_path: Path) -> None:
    """Stages that all take the same have no correlation, a single one neither; the unsplit model counts if measured."""
    folder = bypass(tmp_path / "stages")
    assert Comparison(_measured(folder, [1, 1, 1, 1])).correlation is None
    one = Comparison(_measured(single(tmp_path / "one"), [1.0], whole_s=2.0))
    assert one.correlation is None
    assert (one.unsplit_s, one.speedup) == (2.0, 2.0)
    assert one.limits() == ["stages take 1.25× as long beside each other as alone", "stage 0, busy 100% of the time"]


def test_waiting_is_a_mean(tmp_path: Path) -> None:
    """A stage that waits for one batch in four waits, and busy and waiting make up the time of the run."""
    measured = _measured(single(tmp_path / "one"), [3.0])
    (times,) = measured.pipeline.stages
    times.wait_in[:] = [6, 0, 0, 0]
    times.started[0] -= 6
    (stage,) = Comparison(measured).stages
    assert (stage.wait_in_s, stage.wait_out_s) == (1.5, 0.0)
    assert (
        stage.share * measured.pipeline.elapsed_s / BATCHES + stage.wait_in_s == measured.pipeline.elapsed_s / BATCHES
    )


def test_costs_without_a_unit_of_time(tmp_path: Path) -> None:
    """Nothing is said of predicted seconds; speed-up and correlation stay."""
    folder = bypass(tmp_path / "stages")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"time_unit": "ps"', '"time_unit": "1"'))
    comparison = Comparison(_measured(folder, [8, 6, 12, 4]))
    assert comparison.predicted_bottleneck_s is comparison.predicted_throughput is comparison.slowest.ratio is None
    assert comparison.predicted_speedup == pytest.approx(10 / 6)
    assert comparison.correlation == pytest.approx(1)
    assert "None" not in run_text(comparison, "table")
    assert run_text(comparison, "markdown").startswith("### toy: 4 stages as a pipeline, 4 batches\n\n| stage | ops |")
    lines = list(csv.DictReader(io.StringIO(run_text(comparison, "csv"))))
    assert [(line["stage"], line["predicted_s"], line["busy_s"]) for line in lines] == [
        ("0", "", "8.0"), ("1", "", "6.0"), ("3", "", "12.0"), ("4", "", "4.0"),
    ]  # fmt: skip
    assert '"predicted_s": null' in document_text(run_document(comparison))
