"""``mtpp plan --planner graphpipe``: plans that verify and simulate, what is refused, and what fits nowhere."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.formats.training.native import write_training_model

SYSTEM = ("--devices", "4", "--memory", "16GiB", "--bandwidth", "12.5GB/s")
BATCH = ("--batch-size", "64")
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two branches of three layers and what joins them, costs being listed by size, as a file."""
    path = tmp_path_factory.mktemp("plan") / "branches.json"
    path.write_text(write_training_model(multi_branch_model("mmt", branches=2, layers=3)))
    return path


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the paper's model of four branches of eight layers."""
    path = tmp_path_factory.mktemp("plan") / "mmt.json"
    path.write_text(write_training_model(multi_branch_model("mmt")))
    return path


def _plan(mtpp: Command, model: Path, *options: object) -> dict[str, Any]:
    code, out, err = mtpp("plan", model, "--planner", "graphpipe", *SYSTEM, *BATCH, "--format", "json", *options)
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--sequential",),
        ("--in-flight", "least"),
        ("--per-stage-micro-batch",),
        ("--kfkb", "1,2"),
        ("--latency", "10us", "--micro-batch-sizes", "2,4"),
        ("--no-data-parallel", "--no-recompute"),
    ],
)
def test_plans_verify_and_simulate(mtpp: Command, branches: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Seven layers, so that plans are optimal; the simulation takes what the plan says."""
    target = tmp_path / "plan.json"
    document = _plan(mtpp, branches, "-o", target, *options)
    assert document["optimal"] is True
    assert document["lower_bound"]["method"] == "exhaustive"
    written = json.loads(target.read_text())
    assert (target.parent / written["model"].pop("path")).resolve() == Path(document["model"].pop("path"))
    assert written == document
    code, out, err = mtpp("verify", target, "--model", branches)
    assert code == 0, out + err
    assert "valid, proven optimal" in out
    code, out, err = mtpp("simulate", target, "--model", branches, "--format", "json")
    assert code == 0, err
    simulated = json.loads(out)
    assert simulated["iteration_ticks"] == document["iteration_ticks"]
    assert [one["peak_in_flight"] for one in simulated["stages"]] == [
        min(one["in_flight"], document["mini_batch"] // one["micro_batch"]) for one in document["stages"]
    ]


def test_what_options_ask_for_is_in_the_plan(mtpp: Command, branches: Path) -> None:
    """Rules, system and stages say it."""
    plan = _plan(mtpp, branches, "--latency", "10us", "--micro-batch-sizes", "4,2", "--kfkb", "2", "--sequential")
    assert plan["system"]["latency_ticks"] == 10**7
    assert plan["system"]["sequential"] is True
    assert plan["rules"]["micro_batch_sizes"] == [2, 4]
    assert plan["rules"]["forwards_backwards"] == [2]
    assert {one["forwards_backwards"] for one in plan["stages"]} == {2}
    assert {one["micro_batch"] for one in plan["stages"]} <= {2, 4}
    assert plan["depth"] == len(plan["stages"])
    line = [(one["source"], one["target"]) for one in plan["transfers"]]
    assert all((s, s + 1) in line for s in range(len(plan["stages"]) - 1))


def test_larger_models_have_a_proven_ratio(mtpp: Command, wide: Path, tmp_path: Path) -> None:
    """By chains of downsets, which are searched again; left out by --shallow."""
    target = tmp_path / "plan.json"
    document = _plan(mtpp, wide, "-o", target)
    assert document["lower_bound"]["method"] == "chains"
    assert 1 < document["ratio"] <= 1.08
    assert document["iteration_ticks"] / document["lower_bound"]["value"] == document["ratio"]
    code, out, _ = mtpp("verify", target, "--model", wide)
    assert code == 0
    code, out, _ = mtpp("verify", target, "--model", wide, "--shallow")
    assert code == 3
    assert "unchecked" in out
    document["lower_bound"]["value"] = int(1.03 * document["lower_bound"]["value"])
    document["ratio"] = document["iteration_ticks"] / document["lower_bound"]["value"]
    target.write_text(json.dumps(document))
    code, out, _ = mtpp("verify", target, "--model", wide)
    assert code == 1
    assert "false  lower bound" in out


def test_a_plan_does_not_depend_on_threads(mtpp: Command, wide: Path) -> None:
    """One thread and three; but for the seconds."""
    one, three = (_plan(mtpp, wide, "-j", jobs) for jobs in (1, 3))
    assert one.pop("elapsed_s") >= 0
    assert three.pop("elapsed_s") >= 0
    assert one == three


def test_table_markdown_and_csv_name_the_stages(mtpp: Command, wide: Path) -> None:
    """Stages with what they wait for, the iteration, and the ratio."""
    arguments = ("plan", wide, "--planner", "graphpipe", *SYSTEM, *BATCH)
    code, out, _ = mtpp(*arguments)
    assert code == 0
    assert "after" in out.splitlines()[1]
    assert "planned by graphpipe" in out
    assert "tier enumerated" in out
    code, out, _ = mtpp(*arguments, "--format", "markdown")
    assert "- **iteration**: " in out
    code, out, _ = mtpp(*arguments, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sum(int(row["layers"]) for row in rows) == 33
    assert any(row["reads_from"] for row in rows)


def test_too_little_memory_names_the_least(mtpp: Command, branches: Path, tmp_path: Path) -> None:
    """Exit code 1; with that memory there is a plan, with less there is none; the claim is checked."""
    target = tmp_path / "none.json"
    arguments = ("plan", branches, "--planner", "graphpipe", "--devices", "4", "--bandwidth", "12.5GB/s", *BATCH)
    code, out, err = mtpp(*arguments, "--memory", "100MB", "-o", target)
    assert code == 1
    assert "no plan fits into the memory of 4 devices; --memory " in err
    none = json.loads(target.read_text())
    assert none["feasible"] is False
    assert none["proven"] is True
    least = none["least_memory_bytes"]
    assert none["memory_bound"] == {"value": least, "method": "exhaustive", "tier": "enumerated", "proof": {}}
    code, out, _ = mtpp("verify", target, "--model", branches)
    assert code == 0
    assert "proven that there is no plan" in out
    for memory, fits in ((least, 0), (least - 1, 1)):
        code, _, _ = mtpp(*arguments, "--memory", f"{memory}B")
        assert code == fits


def test_a_bound_of_the_memory_is_not_rounded_up(mtpp: Command, wide: Path, tmp_path: Path) -> None:
    """Where less than what would do may be enough, what is said not to be is below the proven bound."""
    target = tmp_path / "none.json"
    arguments = ("--planner", "graphpipe", *SYSTEM, "--batch-size", "128", "--memory", "100MB", "-o", target)
    code, out, err = mtpp("plan", wide, *arguments)
    assert code == 1
    none = json.loads(target.read_text())
    bound, least = none["memory_bound"]["value"], none["least_memory_bytes"]
    assert bound < least
    assert f"no plan needs less than {bound:,} bytes (chains, tier enumerated)" in out
    assert f"--memory {-(-least // 2**20)}MiB would do, {(bound - 1) // 2**20}MiB would not" in err


BAD = {
    "‹batch_size› must be given": ("--planner", "graphpipe", *SYSTEM),
    "do not divide the mini-batch": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--micro-batch-sizes", "3"),
    "is neither a whole number nor a range": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--micro-batch-sizes", "2,x"),
    "--kfkb: 0 is below 1": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--kfkb", "0"),
    "is above 64": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--kfkb", "65"),
    "the model's times are of": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--micro-batch-size", "3"),
    "--max-micro-batches: has no effect on the planner graphpipe": (
        *("--planner", "graphpipe", *SYSTEM, *BATCH, "--max-micro-batches", "4"),
    ),
    "--no-tensor-parallel: has no effect": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--no-tensor-parallel"),
    "--convention: has no effect": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--convention", "program"),
    "--sweep: the planner graphpipe has none": ("--planner", "graphpipe", *SYSTEM, *BATCH, "--sweep", "4"),
    "--sequential: has no effect on the planner piper": (*SYSTEM, "--max-micro-batches", "4", "--sequential"),
    "--kfkb: has no effect on the planner equi": (
        *("--planner", "equi", *SYSTEM, "--max-micro-batches", "4", "--kfkb", "2"),
    ),
    "no size of micro-batches can be used": (
        *("--planner", "graphpipe", *SYSTEM, "--batch-size", "192", "--micro-batch-sizes", "192"),
    ),
}


@pytest.mark.parametrize("said", list(BAD))
def test_bad_options_are_refused_in_one_line(mtpp: Command, branches: Path, said: str) -> None:
    """Exit code 2, with the option."""
    code, out, err = mtpp("plan", branches, *BAD[said])
    assert code == 2, out
    assert said.replace("‹batch_size›", "--batch-size") in err
    assert "Traceback" not in err


def test_a_topology_is_refused(mtpp: Command, branches: Path, tmp_path: Path) -> None:
    """One level of devices is all that it plans for."""
    topology = tmp_path / "topology.toml"
    topology.write_text("")
    arguments = ("--planner", "graphpipe", "--memory", "16GiB", *BATCH, "--topology", topology)
    code, _, err = mtpp("plan", branches, *arguments)
    assert code == 2
    assert "--topology: has no effect on the planner graphpipe" in err


def test_sizes_of_a_version_2_plan_are_its_own(mtpp: Command, branches: Path, tmp_path: Path) -> None:
    """The options of version 1 are refused by name, and so is a plan without its model."""
    target, model = tmp_path / "plan.json", tmp_path / "model.json"
    model.write_bytes(branches.read_bytes())
    _plan(mtpp, model, "-o", target)
    code, _, err = mtpp("simulate", target, "--model", branches, "--batch-size", "8")
    assert code == 2
    assert "--batch-size: the plan states it itself" in err
    assert mtpp("simulate", target)[0] == 0
    model.unlink()
    code, _, err = mtpp("simulate", target)
    assert code == 2
    assert "--model: must be given with a training plan" in err


def test_costs_in_proportion_are_said_to_be(mtpp: Command, tmp_path: Path) -> None:
    """A model that lists no sizes needs --micro-batch-size, and its plan says what was assumed."""
    path = tmp_path / "chain.json"
    configuration = {
        "id": "plain",
        "time": 9,
        "parameter_bytes": 8,
        "memory_bytes_per_micro_batch": 4,
        "memory_bytes": 16,
    }
    layers = [{"name": name, "configurations": {"1": [configuration]}} for name in "abc"]
    edges = [{"source": a, "target": b, "bytes": 1000} for a, b in ("ab", "bc")]
    model = {"format": "mtpp-training-model", "version": 1, "name": "chain", "time_unit": "us"}
    path.write_text(json.dumps({**model, "layers": layers, "edges": edges}))
    code, _, err = mtpp("plan", path, "--planner", "graphpipe", *SYSTEM, *BATCH)
    assert code == 2
    assert "--micro-batch-size" in err
    plan = _plan(mtpp, path, "--micro-batch-size", "2")
    assert plan["notes"] == ["costs in proportion to those of 2 samples; a backward pass takes twice a forward pass"]
    assert plan["rules"]["times_of"] == 2
    line = _plan(mtpp, path, "--micro-batch-size", "2", "--sequential")
    assert plan["iteration_ticks"] == line["iteration_ticks"]
