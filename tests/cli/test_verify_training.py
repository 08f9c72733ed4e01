"""``mtpp verify`` of training plans, of levels of devices and of stage graphs, as a process."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import training_oracles
from given_plans import chain_model
from graph_plan_documents import Planned, diamond, graph_plan_document, no_graph_plan_document, planned_stages
from graph_plan_oracles import best_pipeline, random_graph_case
from machines import on_machine, on_other_devices
from processes import printed, run
from training_models import random_problem
from training_plan_documents import no_plan_document, training_plan_document

import mtpp
from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document, write_training_model
from mtpp.training.problem import PlanningProblem
from mtpp.units import format_bytes


def named(seed: int) -> PlanningProblem:
    """Return a random problem of a model whose layers are called what the native format calls them."""
    problem = random_problem(seed, most_layers=5)
    text = write_training_model(problem.model)
    return replace(problem, model=training_model_from_document(parse_json(text.encode(), "model"), "model"))


def with_a_device_less(problem: PlanningProblem) -> Any:
    """Return the best plan with one device less, and its time; None if there is none, or no such problem."""
    try:
        return training_oracles.best_plan(on_other_devices(problem, devices=problem.devices - 1))
    except InputError:
        return None


def with_plan() -> tuple[PlanningProblem, dict[str, Any]]:
    """Return a problem with an optimal plan of several stages; with one device less, there is only a slower one."""
    for seed in range(100):
        problem = named(seed)
        best = training_oracles.best_plan(problem)
        fewer = with_a_device_less(problem)
        if best is not None and len(best[1]) == 3 and fewer is not None and fewer[0] > best[0]:
            return problem, training_plan_document(problem, best[1])
    raise AssertionError("none of the problems needs three stages")


def without_plan() -> tuple[PlanningProblem, dict[str, Any]]:
    """Return a problem that more memory would help."""
    for seed in range(100):
        problem = named(seed)
        least = training_oracles.least_memory(problem)
        if least is not None and least > problem.memory_bytes:
            return problem, no_plan_document(problem, least)
    raise AssertionError("none of the problems lacks memory")


def verify(
    problem: PlanningProblem, plan: dict[str, Any], folder: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """Write a plan and its model, and verify it."""
    text = write_training_model(problem.model).encode()
    (folder / "model.json").write_bytes(text)
    plan["model"]["sha256"] = hashlib.sha256(text).hexdigest()
    (folder / "plan.json").write_text(json.dumps(plan, default=float))
    return run("verify", folder / "plan.json", *options)


def test_true_plans_pass(tmp_path: Path) -> None:
    """A line for each claim, and what rests on a search is unchecked without it."""
    problem, plan = with_plan()
    model = ("--model", str(tmp_path / "model.json"))
    done = verify(problem, plan, tmp_path, *model)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert (
        lines[-1] == "valid, proven optimal: no pipeline of stages in a line by these rules takes less time per sample"
    )
    assert all(line[:2] in ("ok", "– ") for line in lines[:-2])
    shown = printed("verify", tmp_path / "plan.json", *model, "--shallow", code=3)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "unchecked lower bound downset: the search behind it was left out by --shallow" in lines
    assert lines[-1] == "NOT PROVEN: lower bound, ratio and optimal are merely claimed; all else holds"
    wanted = ("--require-tier", "enumerated", "--format", "json")
    unmet = run("verify", tmp_path / "plan.json", *model, "--shallow", *wanted)
    assert unmet.returncode == 1
    assert unmet.stderr == "unmet: --require-tier enumerated: the bound is of tier enumerated, and was not checked\n"
    assert json.loads(unmet.stdout)["valid"] is None


def test_training_plans_are_held_to_a_bandwidth(tmp_path: Path) -> None:
    """The one that they were made for passes, another one does not, and what they do not have is bad input."""
    problem, plan = with_plan()
    bandwidth = plan["system"]["bandwidth_bytes_per_s"]
    model = ("--model", str(tmp_path / "model.json"))
    assert verify(problem, plan, tmp_path, *model, "--bandwidth", f"{bandwidth}B/s").returncode == 0
    assert ", it has to be 77 B/s" in printed("verify", tmp_path / "plan.json", *model, "--bandwidth", "77B/s", code=1)
    assert run("verify", tmp_path / "plan.json", *model, "--fast-memory", "1MiB").returncode == 2


def test_false_plans_are_found_out(tmp_path: Path) -> None:
    """Exit code 1, and which claim is false."""
    problem, plan = with_plan()
    plan["stages"][1]["memory_bytes"] += 1
    done = verify(problem, plan, tmp_path, "--model", str(tmp_path / "model.json"))
    assert done.returncode == 1
    wrong = [" ".join(line.split()) for line in done.stdout.splitlines() if line.startswith("false")]
    memory = plan["stages"][1]["memory_bytes"]
    assert wrong == [f"false stage figures stage 1: the plan says memory {memory} B, it is {memory - 1} B"]
    assert done.stdout.splitlines()[-1].startswith("INVALID: stage figures is false")


def test_no_plan_passes(tmp_path: Path) -> None:
    """What is said of there being none is confirmed by a search."""
    problem, plan = without_plan()
    done = verify(problem, plan, tmp_path, "--model", str(tmp_path / "model.json"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "valid, proven that there is no plan within the memory of the devices"


def test_malformed_plans_are_bad_input(tmp_path: Path) -> None:
    """Before anything is asked of the model."""
    problem, plan = with_plan()
    plan["stages"][0]["data_parallel"] = -1
    done = verify(problem, plan, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "plan.json: /stages/0/data_parallel: -1 is out of range" in done.stderr


def test_units_of_piper_files_are_the_plan_s(tmp_path: Path) -> None:
    """Piper's files name none: what the plan says counts, unless the command line does."""
    configuration = {"id": "vanilla", "timePerSample": 3, "parameterSize": 0, "memoryUsageA": 1, "memoryUsageB": 1}
    document = {"nodes": [{"id": 5, "TMPCs": {"1": [configuration]}}], "edges": []}
    (tmp_path / "model.json").write_text(json.dumps(document))
    from mtpp.formats.training.models import read_training_model

    model, sha256 = read_training_model(str(tmp_path / "model.json"), "ms")
    limits = {"devices": 1, "memory_bytes": 2, "bandwidth_bytes_per_s": 10**9, "micro_batches": 1}
    problem = PlanningProblem(model, **on_machine(**limits))
    best = training_oracles.best_plan(problem)
    assert best is not None
    plan = training_plan_document(problem, best[1])
    plan["model"]["sha256"] = sha256
    (tmp_path / "plan.json").write_text(json.dumps(plan, default=float))
    given = ("verify", tmp_path / "plan.json", "--model", tmp_path / "model.json")
    assert run(*given).returncode == 0
    assert "the plan's time unit is 'ms', the model's 's'" in run(*given, "--time-unit", "s").stdout


def test_deep_runs_the_search_again(tmp_path: Path) -> None:
    """With it the bound meets its tier; a bound above what some plan takes is found out."""
    problem, plan = with_plan()
    options = ("--model", str(tmp_path / "model.json"), "--deep", "-v")
    done = verify(problem, plan, tmp_path, *options, "--require-tier", "enumerated")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "downset: no plan takes less than" in done.stdout
    assert "searched again: 0 of " in done.stderr
    with_fewer = with_a_device_less(problem)
    assert with_fewer is not None
    false = training_plan_document(problem, with_fewer[1])
    done = verify(problem, false, tmp_path, *options)
    assert done.returncode == 1
    assert "downset: there is a plan that takes less than" in done.stdout
    assert done.stdout.splitlines()[-1] == "INVALID: lower bound, ratio and optimal are false"


def test_deep_looks_for_any_plan(tmp_path: Path) -> None:
    """What says that there is none, and how much memory would do."""
    problem, plan = without_plan()
    options = ("--model", str(tmp_path / "model.json"), "--deep")
    done = verify(problem, plan, tmp_path, *options, "--require-tier", "enumerated")
    assert done.returncode == 0, done.stdout + done.stderr
    least = plan["least_memory_bytes"]
    assert f"there is a plan with {least} B, and none with less" in done.stdout
    plan["least_memory_bytes"] = least + 1
    done = verify(problem, plan, tmp_path, *options)
    assert done.returncode == 1
    assert f"there is a plan with {least + 1} B, and one with less as well" in done.stdout
    plan["least_memory_bytes"] = least - 1
    done = verify(problem, plan, tmp_path, *options)
    assert done.returncode == 1


TOPOLOGY = """
[[levels]]
devices = 2
bandwidth = "300GB/s"

[[levels]]
devices = 3
bandwidth = "25GB/s"
"""


def planned(folder: Path, memory: str) -> tuple[Any, list[str]]:
    """Return what is written of a chain on three machines of two devices, and what verifies it."""
    (folder / "model.json").write_text(write_training_model(chain_model()))
    (folder / "cluster.toml").write_text(TOPOLOGY)
    plan, model = str(folder / "plan.json"), str(folder / "model.json")
    done = run(
        "plan",
        model,
        "--topology",
        str(folder / "cluster.toml"),
        "--memory",
        memory,
        "--max-micro-batches",
        "64",
        "-o",
        plan,
    )
    document = json.loads(Path(plan).read_text())
    assert done.returncode == (0 if document["feasible"] else 1), done.stderr
    return document, ["verify", plan, "--model", model, "--deep"]


def test_optimal_plans_are_confirmed_and_false_bounds_refuted(tmp_path: Path) -> None:
    """What is the best with little memory is not with more: only the search finds that out."""
    plan, verify = planned(tmp_path, "1500MiB")
    assert plan["optimal"]
    assert plan["lower_bound"]["tier"] == "enumerated"
    assert "downset: no plan takes less than" in printed(*verify, "--require-tier", "enumerated")
    slower, _ = planned(tmp_path, "450MiB")
    slower["system"]["memory_bytes"] = plan["system"]["memory_bytes"]
    (tmp_path / "plan.json").write_text(json.dumps(slower))
    assert "downset: there is a plan that takes less than" in printed(*verify, code=1)


@pytest.mark.parametrize("off", [0, 1, -1])
def test_the_least_memory_is_the_least(off: int, tmp_path: Path) -> None:
    """To the byte."""
    plan, verify = planned(tmp_path, "443MiB")
    assert not plan["feasible"]
    assert plan["proven"]
    plan["least_memory_bytes"] += off
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = run(*verify)
    assert done.returncode == (1 if off else 0), done.stdout + done.stderr
    if not off:
        assert f"there is a plan with {format_bytes(plan['least_memory_bytes'])}, and none with less" in done.stdout


def test_no_more_of_the_links_is_as_asked_for_than_was_asked(tmp_path: Path) -> None:
    """A bandwidth is that of the innermost level; the document still chose the others."""
    _, verify = planned(tmp_path, "1500MiB")
    shown = printed(*verify, "--shallow", "--bandwidth", "300GB/s", code=3)
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "ok bandwidth 300 GB/s, as asked for; further out 25 GB/s, the plan's own choice" in rows


def _write(folder: Path, document: Any, model: dict[str, Any], **changes: Any) -> list[str]:
    file = folder / "model.json"
    file.write_text(json.dumps(model))
    document["model"]["sha256"] = sha256(file.read_bytes()).hexdigest()
    plan = folder / "plan.json"
    plan.write_text(json.dumps({**document, **changes}, default=float))
    return [str(plan), "--model", str(file)]


def _optimal() -> tuple[dict[str, Any], dict[str, Any], Any]:
    found, seed = None, -1
    while found is None or len(found[1]["stages"]) < 2:
        seed += 1
        model, asked = random_graph_case(seed)
        found = best_pipeline(model, asked)
    bound = {"value": found[0], "method": "exhaustive", "tier": "enumerated", "proof": {}}
    return model, asked, graph_plan_document(model, asked, planned_stages(model, found[1]), bound)


def test_exit_codes(tmp_path: Path) -> None:
    """0: everything holds; 3: a search was left out; 1: something is false; 2: nothing that can be checked."""
    model, _, plan = _optimal()
    proven = run("verify", *_write(tmp_path, plan, model))
    assert (proven.returncode, "proven optimal" in proven.stdout) == (0, True), proven
    assert run("verify", "--shallow", *_write(tmp_path, plan, model)).returncode == 3
    false = run("verify", *_write(tmp_path, plan, model, depth=9))
    assert (false.returncode, "depth" in false.stdout) == (1, True)
    bad = run("verify", *_write(tmp_path, plan, model, planner="magic"))
    assert (bad.returncode, "/planner" in bad.stderr) == (2, True)
    newer = run("verify", *_write(tmp_path, plan, model, version=3))
    assert (newer.returncode, "version 3" in newer.stderr) == (2, True)


@pytest.mark.parametrize(("value", "verdict"), [(250_000, "ok"), (400_000, "false")])
def test_chains(tmp_path: Path, value: int, verdict: str) -> None:
    """Bounds by chains of stages are searched again."""
    model, asked, stages = diamond()
    bound = {"value": value, "method": "chains", "tier": "enumerated", "proof": {"left_out": []}}
    plan, _, file = _write(tmp_path, graph_plan_document(model, asked, stages, bound), model)
    report = mtpp.verify(plan, file)
    assert report.verdict == verdict, report


def test_no_plan(tmp_path: Path) -> None:
    """That there is no plan is searched again, and so is the memory that every plan needs."""
    model, asked, _ = diamond()
    asked = {**asked, "memory_bytes": 20}
    stages = [Planned([name], 1, 2, in_flight) for name, in_flight in zip("abcd", (3, 2, 2, 1), strict=True)]
    bound = {"value": 34, "method": "chains", "tier": "enumerated", "proof": {"left_out": []}}
    plan, _, file = _write(tmp_path, no_graph_plan_document(model, asked, bound, stages), model)
    report = mtpp.verify(plan, file)
    assert report.verdict == "ok", report
    assert run("verify", plan, "--model", file).returncode == 0
