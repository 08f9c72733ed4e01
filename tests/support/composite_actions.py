"""Composite actions, run the way a runner of GitHub's would: expressions, environment, bash, outputs."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
_BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""How a runner starts ``shell: bash``."""


@dataclass
class Runner:
    """A runner at work on one action.

    Attributes
    ----------
    folder
        The action's.
    inputs
        As a workflow gives them.
    workspace
        The folder that steps run in.
    outputs
        Of steps, by their ids; those of actions that a step uses are given beforehand.
    """

    folder: Path
    inputs: dict[str, str]
    workspace: Path
    environment: dict[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    printed: str = ""

    def __post_init__(self) -> None:
        self.action: dict[str, Any] = yaml.safe_load((self.folder / "action.yml").read_text(encoding="utf-8"))
        self.summary = self.workspace.parent / "summary.md"
        self.summary.touch()
        defaults = {name: spec.get("default", "") for name, spec in self.action["inputs"].items()}
        unknown = set(self.inputs) - set(defaults)
        assert not unknown, f"the action has no input {unknown}"
        self.inputs = defaults | self.inputs

    def run(self) -> int:
        """Run the steps with scripts up to the first that fails, and return its exit code, 0 if none does."""
        for number, step in enumerate(self.action["runs"]["steps"]):
            if "run" in step and (code := self._run_script(number, step)):
                return code
        return 0

    def run_step(self, name: str) -> int:
        """Run the step of that id alone, and return its exit code."""
        number, step = next(one for one in enumerate(self.action["runs"]["steps"]) if one[1].get("id") == name)
        return self._run_script(number, step)

    def results(self) -> dict[str, str]:
        """Return the outputs of the action."""
        return {name: self.value(spec["value"]) for name, spec in self.action["outputs"].items()}

    def value(self, text: str) -> str:
        """Return a text with its expressions replaced; only inputs and outputs of steps can be in them."""
        return EXPRESSION.sub(lambda match: self._value_of(match[1]), text)

    def _value_of(self, expression: str) -> str:
        kind, name, *rest = expression.split(".")
        if kind == "inputs":
            return self.inputs[name]
        assert (kind, rest[0]) == ("steps", "outputs"), expression
        return self.outputs.get(name, {}).get(rest[1], "")

    def _run_script(self, number: int, step: dict[str, Any]) -> int:
        script = self.workspace.parent / f"step{number}.sh"
        script.write_text(step["run"], encoding="utf-8")
        output = self.workspace.parent / f"output{number}.txt"
        output.touch()
        env = self.environment | {
            "GITHUB_ACTION_PATH": str(self.folder),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.workspace.parent),
        }
        env |= {name: self.value(text) for name, text in step.get("env", {}).items()}
        assert step["shell"] == "bash"
        done = subprocess.run(
            [*_BASH, str(script)], cwd=self.workspace, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        self.printed += done.stdout + done.stderr
        written = dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())
        self.outputs.setdefault(step.get("id", f"step {number}"), {}).update(written)
        return done.returncode


def program(path: Path, text: str) -> Path:
    """Write a shell script that can be run, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def clean_environment(home: Path) -> dict[str, str]:
    """Return what a job starts with: a path and a home, and nothing of ours."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
