"""Folders with plans and their models in them, the plans put together from the oracles alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graph_strategies import chain
from plan_documents import plan_document

from mtpp.formats.graphs.native import write_native
from mtpp.inference.graph import CostGraph
from mtpp.inference.system import load_system

WORK = (10, 20, 30, 40)


def write_model(path: Path, work: Sequence[int] = WORK) -> CostGraph:
    """Write a path of ops with 1 ms between neighbours, and return it."""
    graph = chain(list(work), [1] * (len(work) - 1), "ms")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write_native(graph))
    return graph


def plan_of(model: Path, graph: CostGraph, *, embed: bool = False, **changes: Any) -> dict[str, Any]:
    """Return a plan in two stages for a model that lies in a file; *changes* replace what it says."""
    stages = [0] * (graph.op_count - 1) + [1]
    plan: dict[str, Any] = plan_document(graph, load_system(), 2, stages, embed=embed)
    plan["model"]["dims"] = {}
    plan["model"]["sha256"] = hashlib.sha256(model.read_bytes()).hexdigest()
    return {**plan, **changes}


def write_plan(path: Path, plan: dict[str, Any], **how: Any) -> Path:
    """Write a plan as JSON, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plan, default=float, **how))
    return path
