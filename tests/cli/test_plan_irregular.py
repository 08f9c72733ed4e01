"""Irregular models on the command line: the optimum of brute force, and ``mtpp verify`` finds nothing open."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from irregular_campaign import piper_problem, read_model, split_plan
from irregular_commands import graph_options, line_options, split_options
from irregular_freedoms import freed, freed_graph, freed_split, written_anew
from irregular_graph_oracle import best_graph_plan
from irregular_models import irregular_graph_case, irregular_line_case, irregular_split_case
from training_oracles import best_time

from mtpp.cli.main import root
from mtpp.errors import InputError

FEW = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 24))]


def planned(folder: Path, model: Any, options: list[str]) -> Any:
    """Run ``plan`` and ``verify``; return the plan's document, None where the request is refused."""
    file, plan = folder / "model.json", folder / "plan.json"
    file.write_text(json.dumps(model))
    done = CliRunner().invoke(root, ["plan", str(file), *options, "-q", "-o", str(plan)])
    if not plan.exists():
        assert getattr(done.exception, "exit_code", done.exit_code) in (1, 2), (done.output, done.exception)
        return None
    verified = CliRunner().invoke(root, ["verify", str(plan), "--model", str(file)])
    assert verified.exit_code == 0, verified.output
    return json.loads(plan.read_text())


@pytest.mark.parametrize("seed", FEW)
def test_stage_graphs(tmp_path: Path, seed: int) -> None:
    """The iteration of every plan is the shortest that there is."""
    document, asked = irregular_graph_case(seed)
    draw = random.Random(f"command {seed}")
    model = freed(document, draw)
    found, best = planned(tmp_path, written_anew(model, draw), graph_options(asked)), best_graph_plan(model, asked)
    assert (found and found["iteration_ticks"]) == (best and best.iteration)


@pytest.mark.parametrize("seed", FEW)
def test_pipelines_by_degrees(tmp_path: Path, seed: int) -> None:
    """The time per sample of every plan is the least that there is."""
    document, asked = irregular_line_case(seed)
    draw = random.Random(f"command {seed}")
    model = written_anew(freed(document, draw, degrees=True), draw)
    found = planned(tmp_path, model, line_options(asked))
    try:
        best = best_time(piper_problem(model, asked))
    except InputError:
        best = None
    assert (found and found.get("time_per_sample_ticks")) == (best and [best.numerator, best.denominator])


@pytest.mark.parametrize("seed", FEW)
def test_split_points(tmp_path: Path, seed: int) -> None:
    """The iteration is that of the plan in Python, which is held against brute force."""
    document, asked = irregular_split_case(seed)
    draw = random.Random(f"command {seed}")
    layers = "layers" in document
    model = written_anew(freed(document, draw) if layers else freed_graph(document, draw), draw)
    asked = freed_split(asked, draw)
    given = {key: asked[key] for key in ("devices", "micro_batches", "memory", "speed", "loops", "latency", "order")}
    given |= {key: asked[key] for key in ("transport", "buffers", "backward_ratio", "schedule")}
    given |= {"loops": (1,)} if asked["schedule"] else {key: asked[key] for key in ("loop_batch", "prefetch")}
    given |= {} if layers else {"state": asked["state"]}
    if layers or not all("transfer" in one for one in document["tensors"]):
        given["bandwidth"] = asked["bandwidth"]
    due, _ = split_plan(read_model(model) if layers else model, given)
    found = planned(tmp_path, model, split_options(given))
    assert (found and found["iteration_ticks"]) == (due and due.document()["iteration_ticks"])
