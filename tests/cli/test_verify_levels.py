"""``mtpp plan --topology``, then ``mtpp verify`` of what it wrote, as processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from given_training_plans import chain_model
from processes import run

from mtpp.formats.training.native import write_training_model

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
    done = run(*verify, "--require-tier", "enumerated")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "downset: no plan takes less than" in done.stdout
    slower, _ = planned(tmp_path, "450MiB")
    slower["system"]["memory_bytes"] = plan["system"]["memory_bytes"]
    (tmp_path / "plan.json").write_text(json.dumps(slower))
    done = run(*verify)
    assert done.returncode == 1
    assert "downset: there is a plan that takes less than" in done.stdout


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
        assert f"there is a plan with {plan['least_memory_bytes']} bytes, and none with less" in done.stdout


def test_no_more_of_the_links_is_as_asked_for_than_was_asked(tmp_path: Path) -> None:
    """A bandwidth is that of the innermost level; the document still chose the others."""
    _, verify = planned(tmp_path, "1500MiB")
    done = run(*verify, "--shallow", "--bandwidth", "300GB/s")
    assert done.returncode == 3
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "ok bandwidth 300 GB/s, as asked for; further out 25 GB/s, the plan's own choice" in rows
