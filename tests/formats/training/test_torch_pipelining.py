"""Plans and stage graphs for PyTorch's pipelining: its runtime reads the passes, and what it cannot run is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planning import line_of_ops, plan_with
from processes import printed, refused, run
from refusals import refusal
from torch_schedules import rows_of_runtime, torch_runtime

import mtpp
from mtpp.errors import InputError
from mtpp.formats.io.source import read_source
from mtpp.formats.training.pass_schedule import pass_schedule_from_source
from mtpp.formats.training.torch_pipelining import passes_in_line
from mtpp.training.pfeife.precedence import precedence_order
from mtpp.training.pfeife.schedule import PassKind, PassSchedule, read_pass
from mtpp.training.stage_graph import PipelineStage, StageGraph, StageTransfer, interleaved_order


@pytest.mark.parametrize("rules", [{}, {"loops": [1]}, {"schedule": "zero-bubble"}, {"schedule": "bfs", "loops": [3]}])
def test_files_say_what_the_plan_says(rules: dict[str, Any], tmp_path: Path) -> None:
    """The plan verifies from the folder; stages have all ops once, in order, on devices in turn."""
    graph = line_of_ops(20)
    plan = plan_with(graph, planner="pfeife", devices=2, micro_batches=4, **rules)
    plan.emit("torch-pipelining", tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["plan.json", "schedule.csv", "stages.json"]
    assert mtpp.verify(tmp_path / "out" / "plan.json", graph).passed
    stages = json.loads((tmp_path / "out" / "stages.json").read_text())
    assert stages["model"]["sha256"] == plan.document()["model"]["sha256"]
    assert [one["ops"] for one in stages["stages"]] == [list(stage.layers) for stage in plan.stages]
    assert [one["device"] for one in stages["stages"]] == [stage.device for stage in plan.stages]
    rows = [row.split(",") for row in (tmp_path / "out" / "schedule.csv").read_text().splitlines()]
    assert rows == [[one.name for one in row] for row in plan.schedule.rows]


@pytest.mark.parametrize("rules", [{}, {"loops": [1]}, {"schedule": "zero-bubble"}])
def test_pytorch_reads_the_passes(rules: dict[str, Any], tmp_path: Path) -> None:
    """Its runtime has the plan's passes for each rank."""
    plan = plan_with(line_of_ops(20), planner="pfeife", devices=2, micro_batches=4, **rules)
    plan.emit("torch-pipelining", tmp_path / "out")
    runtime = torch_runtime(2, 4, len(plan.stages) // 2, tmp_path / "out" / "schedule.csv")
    assert rows_of_runtime(runtime) == [[one.name for one in row] for row in plan.schedule.rows]


def _passes(*rows: str, dependencies: tuple[tuple[str, str], ...] = ()) -> PassSchedule:
    pairs = [(read_pass(before), read_pass(after)) for before, after in dependencies]
    return PassSchedule.build([[read_pass(name) for name in row.split()] for row in rows], pairs)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"transport": "direct"}, "from neighbour to neighbour"),
        (
            {"schedule": _passes("0F0 0B0", "1F0 1B0", dependencies=(("0F0", "1B0"),)), "micro_batches": 1},
            "dependencies between passes",
        ),
        (
            {"schedule": _passes("0F0 2F0 2B0 0B0", "1F0 1B0"), "micro_batches": 1},
            "3 stages on 2 devices: PyTorch's runtime wants equally many on each",
        ),
    ],
)
def test_what_the_runtime_cannot_run_is_refused(rules: dict[str, Any], words: str, tmp_path: Path) -> None:
    """Nothing is written."""
    sizes: dict[str, Any] = {"devices": 2, "micro_batches": 2, **rules}
    plan = plan_with(line_of_ops(6), planner="pfeife", **sizes)
    with pytest.raises(mtpp.InputError, match=words):
        plan.emit("torch-pipelining", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_of_the_users_is_replaced(tmp_path: Path) -> None:
    """Only files of an earlier call are, and only if asked for; other forms and folders are refused by name."""
    plan = plan_with(line_of_ops(6), planner="pfeife", devices=2, micro_batches=2)
    out = tmp_path / "out"
    plan.emit("torch-pipelining", out)
    with pytest.raises(mtpp.InputError, match="holds stages already"):
        plan.emit("torch-pipelining", out)
    plan.emit("torch-pipelining", out, force=True)
    (out / "notes.txt").touch()
    with pytest.raises(mtpp.InputError, match=r"holds other files, such as 'notes\.txt'"):
        plan.emit("torch-pipelining", out, force=True)
    for form, folder, parameter in (("onnx", out, "form"), ("torch-pipelining", 5, "folder")):
        assert refusal(plan.emit, form, folder).parameter == parameter


def test_buffers_of_all_micro_batches_have_to_fit(tmp_path: Path) -> None:
    """PyTorch makes them before the first pass: a plan whose memory is enough only without them is refused."""
    model = {
        "format": "mtpp-graph", "version": 1, "name": "line", "time_unit": "us",
        "ops": [{"name": f"v{v}", "work": 1} for v in range(6)],
        "tensors": [
            {"name": f"t{v}", "producer": f"v{v}", "consumers": [f"v{v + 1}"], "bytes": 10} for v in range(5)
        ],
    }  # fmt: skip
    asked: dict[str, Any] = {"planner": "pfeife", "devices": 2, "micro_batches": 64, "schedule": "1f1b"}
    tight = max(one.peak_bytes or 0 for one in plan_with(model, **asked).devices)
    plan = plan_with(model, memory=tight, **asked)
    with pytest.raises(
        mtpp.InputError, match=r"makes buffers for what all micro-batches hand over: device \d would need"
    ):
        plan.emit("torch-pipelining", tmp_path / "out")
    ample = max(one.peak_bytes or 0 for one in plan_with(model, buffers="torch-pipelining", **asked).devices)
    plan = plan_with(model, memory=ample, buffers="torch-pipelining", **asked)
    plan.emit("torch-pipelining", tmp_path / "out")


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
    printed("plan", branches, *SIZES, "--no-data-parallel", "--emit", "torch-pipelining", "-o", out)
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
    assert words in refused("plan", branches, *SIZES, *options, "--emit", "torch-pipelining", "-o", tmp_path / "out")
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
