"""Plans, models and other documents in files, put together from the oracles alone or written by commands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from graph_strategies import chain
from plan_documents import plan_document

from mtpp.cli.main import root
from mtpp.formats.graphs.native import write_native
from mtpp.formats.io.json_text import parse_json
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device

WORK = (10, 20, 30, 40)


def write_model(path: Path, work: Sequence[int] = WORK, transfer: int = 1) -> CostGraph:
    """Write a path of ops with so many ms between neighbours, and return it."""
    graph = chain(list(work), [transfer] * (len(work) - 1), "ms")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write_native(graph))
    return graph


def plan_of(model: Path, graph: CostGraph, *, embed: bool = False, **changes: Any) -> dict[str, Any]:
    """Return a plan in two stages for a model that lies in a file; *changes* replace what it says."""
    stages = [0] * (graph.op_count - 1) + [1]
    plan: dict[str, Any] = plan_document(graph, load_device(), 2, stages, embed=embed)
    plan["model"]["dims"] = {}
    plan["model"]["sha256"] = hashlib.sha256(model.read_bytes()).hexdigest()
    return {**plan, **changes}


def write_plan(path: Path, plan: dict[str, Any], **how: Any) -> Path:
    """Write a plan as JSON, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plan, default=float, **how))
    return path


def model_file(folder: Path, model: Any, name: str = "model.json") -> Path:
    """Write a model where a command finds it."""
    path = folder / name
    path.write_text(json.dumps(model))
    return path


def written(folder: Path, *arguments: str | Path) -> Any:
    """Run a command that writes a result, and return that as a reader of files does.

    Raises
    ------
    AssertionError
        If it wrote none.
    """
    target = folder / "result.json"
    target.unlink(missing_ok=True)
    done = CliRunner().invoke(root, [*map(str, arguments), "-q", "-o", str(target)])
    assert target.exists(), (done.output, done.exception)
    return parse_json(target.read_bytes(), "result")


def without_times(value: Any) -> Any:
    """Return a document, or rows of one, without its times and its model's path, which depends on where it lies."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in ("elapsed_s", "seconds", "path")}
    return list(map(without_times, value)) if isinstance(value, list) else value
