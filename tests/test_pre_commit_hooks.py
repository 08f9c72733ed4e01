"""Hooks for pre-commit: what they are called with, and that they stop a commit of what does not hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans_beside_models import plan_of, write_model, write_plan
from processes import ROOT
from shells import shell_environment

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
HOOKS: dict[str, dict[str, Any]] = {hook["id"]: hook for hook in yaml.safe_load(MANIFEST.read_text())}
HERE = ("id", "name", "entry", "args", "files", "pass_filenames", "require_serial")

needs_pre_commit = pytest.mark.skipif(
    find_spec("pre_commit") is None or not shutil.which("git"), reason="needs pre-commit and git"
)


@pytest.mark.parametrize(
    ("name", "plan", "model"),
    [
        ("plan.json", True, False),
        ("plans/resnet50.plan.json", True, False),
        ("plans/resnet50-plan.json.gz", True, False),
        ("models/resnet50.onnx", False, True),
        ("models/decoder.pt2", False, True),
        ("floorplan.json", False, False),
        ("plan.json.txt", False, False),
        ("plans/stages/manifest.json", False, False),
        ("docs/onnx.md", False, False),
    ],
)
def test_patterns_tell_plans_and_models(name: str, plan: bool, model: bool) -> None:
    """Changed plans are verified; changed models have all plans verified."""
    assert (re.search(HOOKS["mtpp-verify"]["files"], name) is not None) == plan
    assert (re.search(HOOKS["mtpp-verify-all"]["files"], name) is not None) == (plan or model)


@needs_pre_commit
def test_the_manifest_is_one() -> None:
    """pre-commit finds nothing wrong with it."""
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@needs_pre_commit
def test_hooks_stop_what_does_not_hold(tmp_path: Path) -> None:
    """In a repository with two plans: all is well; a false plan; a model that has changed; what no hook is about."""
    repository, env = (
        tmp_path / "repository",
        {**shell_environment(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / "home")},
    )
    graph = write_model(repository / "models" / "chain.json")
    write_model(repository / "models" / "other.onnx", (1, 2, 3))
    plan = plan_of(repository / "models" / "chain.json", graph)
    write_plan(repository / "models" / "a.plan.json", plan)
    write_plan(repository / "models" / "b.plan.json", plan)
    hooks = [{key: hook[key] for key in HERE if key in hook} | {"language": "system"} for hook in HOOKS.values()]
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    for command in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(command, cwd=repository, env=env, check=True)

    def run_hook(name: str, *files: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pre_commit", "run", name, "--color", "never", "--files", *files]
        done = subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True)
        return done.returncode, done.stdout

    plans = ("models/a.plan.json", "models/b.plan.json")
    assert run_hook("mtpp-verify", *plans)[0] == 0
    assert run_hook("mtpp-verify-all", "models/other.onnx")[0] == 0
    assert "Skipped" in run_hook("mtpp-verify", "models/other.onnx", "models/chain.json")[1]

    write_plan(repository / plans[1], {**plan, "bottleneck": plan["bottleneck"] - 1})
    code, said = run_hook("mtpp-verify", *plans)
    assert code == 1
    assert "exit code: 1" in said
    assert f"2 files: 1 valid; false: {plans[1]}" in said
    write_plan(repository / plans[1], plan)

    write_model(repository / "models" / "chain.json", (10, 20, 30, 50))
    code, said = run_hook("mtpp-verify-all", "models/other.onnx")
    assert (code, "exit code: 3" in said) == (1, True)
    assert json.loads((repository / plans[0]).read_text()) == json.loads(json.dumps(plan, default=float))
