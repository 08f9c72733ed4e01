"""``mtpp verify`` of plans of stage graphs: files, exit codes, and the library."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from graph_plan_documents import Planned, diamond, graph_plan_document, no_graph_plan_document, planned_stages
from graph_plan_oracles import best_pipeline, random_graph_case
from processes import run

import mtpp


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
