"""``mtpp verify`` of training plans, as a process."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import training_oracles
from processes import run
from training_models import random_problem
from training_plan_documents import no_plan_document, training_plan_document

from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document, write_training_model
from mtpp.training.problem import PlanningProblem


def named(seed: int) -> PlanningProblem:
    """Return a random problem of a model whose layers are called what the native format calls them."""
    problem = random_problem(seed, most_layers=5)
    text = write_training_model(problem.model)
    return replace(problem, model=training_model_from_document(parse_json(text.encode(), "model"), "model"))


def with_a_device_less(problem: PlanningProblem) -> Any:
    """Return the best plan with one device less, and its time; None if there is none, or no such problem."""
    try:
        return training_oracles.best_plan(replace(problem, devices=problem.devices - 1))
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
    done = run("verify", tmp_path / "plan.json", *model, "--shallow")
    assert done.returncode == 3
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
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
    done = run("verify", tmp_path / "plan.json", *model, "--bandwidth", "77B/s")
    assert done.returncode == 1
    assert ", it has to be 77 B/s" in done.stdout
    assert run("verify", tmp_path / "plan.json", *model, "--fast-memory", "1MiB").returncode == 2


def test_false_plans_are_found_out(tmp_path: Path) -> None:
    """Exit code 1, and which claim is false."""
    problem, plan = with_plan()
    plan["stages"][1]["memory_bytes"] += 1
    done = verify(problem, plan, tmp_path, "--model", str(tmp_path / "model.json"))
    assert done.returncode == 1
    wrong = [" ".join(line.split()) for line in done.stdout.splitlines() if line.startswith("false")]
    memory = plan["stages"][1]["memory_bytes"]
    assert wrong == [f"false stage figures stage 1: the plan says memory_bytes {memory}, it is {memory - 1}"]
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
    problem = PlanningProblem(model, **limits)
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
    assert f"there is a plan with {least} bytes, and none with less" in done.stdout
    plan["least_memory_bytes"] = least + 1
    done = verify(problem, plan, tmp_path, *options)
    assert done.returncode == 1
    assert f"there is a plan with {least + 1} bytes, and one with less as well" in done.stdout
    plan["least_memory_bytes"] = least - 1
    done = verify(problem, plan, tmp_path, *options)
    assert done.returncode == 1
