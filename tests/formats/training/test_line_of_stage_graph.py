"""Stage graphs written for PyTorch's pipelining: in a line, a process for each stage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from processes import run

from mtpp.errors import InputError
from mtpp.formats.io.source import read_source
from mtpp.formats.training.pass_schedule import pass_schedule_from_source
from mtpp.formats.training.torch_pipelining import passes_in_line
from mtpp.training.pass_order import interleaved_order
from mtpp.training.pfeife.passes import PassKind
from mtpp.training.pfeife.precedence import precedence_order
from mtpp.training.stage_graph import PipelineStage, StageGraph, StageTransfer

SIZES = (
    "--planner",
    "graphpipe",
    "--devices",
    "6",
    "--memory",
    "16GiB",
    "--bandwidth",
    "12.5GB/s",
    "--batch-size",
    "16",
)


@pytest.fixture
def branches(tmp_path: Path) -> Path:
    """Return a model of two branches."""
    path = tmp_path / "model.json"
    path.write_text(run("generate", "mmt", "--branches", "2", "--layers", "2", "--micro-batch-sizes", "2,4").stdout)
    return path


def test_stage_graphs_are_written_as_a_line(branches: Path, tmp_path: Path) -> None:
    """The passes are those of the plan, they can run in a line, and every layer has its stage."""
    out = tmp_path / "out"
    done = run("plan", branches, *SIZES, "--no-data-parallel", "--emit", "torch-pipelining", "-o", out)
    assert done.returncode == 0, done.stderr
    plan = json.loads((out / "plan.json").read_text())
    stages = json.loads((out / "stages.json").read_text())
    schedule = pass_schedule_from_source(read_source(str(out / "schedule.csv"), max_bytes=1 << 20))
    precedence_order(schedule)
    assert schedule.devices == schedule.stages == len(plan["stages"]) == len(stages["stages"])
    for row, passes in zip(plan["stages"], schedule.rows, strict=True):
        assert row["micro_batch"] * schedule.micro_batches == plan["mini_batch"]
        ahead = min(row["in_flight"], schedule.micro_batches)
        assert [one.kind for one in passes[: ahead + 1]] == [PassKind.FORWARD] * ahead + [PassKind.BACKWARD]
    assert [row["ops"] for row in stages["stages"]] == [row["layers"] for row in plan["stages"]]
    assert stages["model"]["kind"] == "layers"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--no-data-parallel: PyTorch's runtime runs a stage in one process"),
        (("--no-data-parallel", "--per-stage-micro-batch"), "one size of micro-batches for all stages"),
    ],
)
def test_what_the_runtime_cannot_run_is_refused_before_the_work(
    branches: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    """In one line; nothing is written."""
    done = run("plan", branches, *SIZES, *options, "--emit", "torch-pipelining", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "out").exists()


def test_stages_that_would_wait_for_each_other_in_a_line_are_refused() -> None:
    """A branch with one micro-batch in flight stands before one that wants two."""

    def stage(name: str, in_flight: int) -> PipelineStage:
        return PipelineStage(name, 1, 1, 1, 0, np.array(interleaved_order(3, in_flight)))

    graph = StageGraph(
        "g",
        "ps",
        3,
        [stage("a", 1), stage("b", 2), stage("c", 1)],
        [StageTransfer(0, 2, 0, 0), StageTransfer(1, 2, 0, 0)],
    )
    with pytest.raises(InputError, match="with the stages in a line"):
        passes_in_line(graph)
