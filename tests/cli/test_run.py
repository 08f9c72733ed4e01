"""``mtpp run`` as a process: its table, its JSON, and that it ends in order, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from processes import MARK, MTPP, ROOT, environment, left_over, run, until
from stage_folders import bypass, whole_bypass

import mtpp

pytest.importorskip("onnxruntime")

LINUX = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def test_what_is_measured(tmp_path: Path) -> None:
    """The table has a line per stage and the document every figure; they fit together."""
    folder, model = bypass(tmp_path / "stages"), whole_bypass(tmp_path / "whole.onnx")
    done = run("run", folder, "--model", model, "--batches", 12, "--warmup", 1, "-o", tmp_path / "run.json", "--pin",
               "--write-machine", tmp_path / "machine.toml")  # fmt: skip
    assert (done.returncode, done.stderr.count("error")) == (0, 0)
    title, header, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert title == "toy: 4 stages as a pipeline, 12 batches"
    assert header.split("  ")[0] == "stage"
    assert [row.split()[0] for row in rows] == ["0", "1", "3", "4"]
    assert "all 24 results of the pipeline compared equal those of the stages in turn bit for bit" in done.stdout
    assert "of the unsplit model bit for bit" in done.stdout
    document = json.loads((tmp_path / "run.json").read_text())
    assert (document["format"], document["version"], document["batches"]) == ("mtpp-run", 1, 12)
    assert document["bottleneck"]["predicted_stage"] == 3
    assert document["bottleneck"]["predicted_s"] == 6e-6
    assert document["bottleneck"]["measured_s"] == max(stage["held_s"] for stage in document["stages"])
    assert document["throughput_per_s"]["measured"] == pytest.approx(12 / document["elapsed_s"], rel=1e-4)
    speedup = document["unsplit"]["measured_s"] * document["throughput_per_s"]["measured"]
    assert document["speedup"]["measured"] == pytest.approx(speedup, rel=1e-4)
    assert document["speedup"]["predicted"] == pytest.approx(10 / 6, rel=1e-4)
    assert document["outputs"]["pipeline"] == {"compared": 24, "exact": 24, "near": 24, "largest_difference": 0.0}
    for stage in document["stages"]:
        assert stage["ratio"] == pytest.approx(stage["held_s"] / stage["predicted_s"], rel=1e-4)
        assert 0 < stage["busy_s"] < stage["held_s"]
        assert 0 < stage["share"] <= 1
    assert document["pays"] is (document["period_s"] < document["unsplit"]["measured_s"])
    _check_hand_overs(document["hand_overs"])
    machine = mtpp.read(whole_bypass(tmp_path / "again.onnx"), machine=tmp_path / "machine.toml").machine
    assert machine is not None
    assert machine.count == len(os.sched_getaffinity(0))
    assert machine.devices[0].link.latency_ps == pytest.approx(document["hand_overs"]["line"]["latency_s"] * 1e12, 1e-3)
    refused = run("run", folder, "--write-machine", tmp_path / "machine.toml")
    assert (refused.returncode, refused.stdout, refused.stderr) == (
        2, "", f"error: {tmp_path / 'machine.toml'}: is there already; name another file\n"
    )  # fmt: skip


def _check_hand_overs(found: dict[str, Any]) -> None:
    """Of three tensors between stages, 8 · 8 floats each, one of which is read by two."""
    assert (found["tensors"], found["messages"], found["bytes"]) == (4, 4, 4 * 256)
    line = found["line"]
    assert 0 < line["latency_s"] < 1
    assert line["bandwidth_bytes_per_s"] is None or line["bandwidth_bytes_per_s"] > 0
    assert line["residual"] >= 0
    assert [one["bytes"] for one in line["messages"]] == 2 * [1 << i for i in (10, 12, 14, 16, 18)]
    assert {one["side"] for one in line["messages"]} == {"sent", "received"}


def test_runs_that_cannot_begin(tmp_path: Path) -> None:
    """One line, exit code 2, nothing on standard output."""
    folder = bypass(tmp_path / "stages")
    done = run("run", str(folder), "--time-limit", "0.01")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("error: --time-limit: 0.01 s were up before every stage had done a batch")
    (folder / "s1.onnx").unlink()
    assert "there is no file 's1.onnx' beside it" in run("run", folder).stderr


def _start(folder: Path, mark: str, *options: str) -> subprocess.Popen[str]:
    """Start a run that would take hours."""
    command = [*MTPP, "run", str(folder), "--batches", "1000000", "-v", *options]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment() | {MARK: mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _workers(process: subprocess.Popen[str], mark: str) -> list[int]:
    """Return the worker processes once the pipeline runs, in the order of the stages."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("the pipeline: running"):
            break
    else:
        pytest.fail("the run ended before its pipeline ran")
    return sorted(pid for pid, command in left_over(mark).items() if "pipeline.worker" in command)


def _nameless(pid: int) -> bool:
    """Return whether a process shares memory, and none that has a name: such goes with its processes."""
    mapped = Path(f"/proc/{pid}/maps").read_text()
    return "/memfd:mtpp" in mapped and "/dev/shm" not in mapped


@pytest.fixture
def slow_stages(tmp_path: Path) -> Path:
    """Return stages of which one takes a moment."""
    return bypass(tmp_path / "stages", rounds=2000)


@LINUX
@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_worker_that_is_killed_ends_the_run(slow_stages: Path, victim: int) -> None:
    """The stage and the signal are named, exit code 2, and no process is left, nor memory, which has no name."""
    mark = uuid.uuid4().hex
    process = _start(slow_stages, mark)
    workers = _workers(process, mark)
    assert len(workers) == 4
    assert all(map(_nameless, workers))
    os.kill(workers[victim], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    label = ("stage 0 (s0.onnx)", "stage 3 (s3.onnx)")[victim // 2]
    assert err.splitlines()[-1].startswith(f"error: {label}: its process was killed by SIGKILL")
    assert not left_over(mark)


@LINUX
def test_ctrl_c_gives_what_is_done(slow_stages: Path) -> None:
    """A table, a warning, exit code 130, and nothing left."""
    mark = uuid.uuid4().hex
    process = _start(slow_stages, mark, "--format", "json", "--warmup", "0")
    last = _workers(process, mark)[-1]
    before = _switches(last)
    until(lambda: process.poll() is not None or _switches(last) > before + 20)  # it waits once for every batch
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["stopped"] == "interrupted"
    assert json.loads(out)["batches"] > 0
    assert "warning: interrupted after " in err
    assert "Traceback" not in err
    assert "resource_tracker" not in err
    assert not left_over(mark)


def _switches(pid: int) -> int:
    """Return how often a process has waited for something."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("voluntary_ctxt")).split()[1])
    return 0


@LINUX
def test_nothing_outlives_a_run_that_is_killed(slow_stages: Path) -> None:
    """The workers go with it, and so does the memory, which has no name."""
    mark = uuid.uuid4().hex
    process = _start(slow_stages, mark)
    assert all(map(_nameless, (*_workers(process, mark), process.pid)))
    process.kill()
    out, err = process.communicate(timeout=60)
    until(lambda: not left_over(mark))
    assert out == ""
    assert "resource_tracker" not in err
