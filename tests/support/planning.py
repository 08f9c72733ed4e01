"""Plans for training whose options stand in one mapping, whichever planner takes them."""

from __future__ import annotations

from typing import Any

import mtpp
from mtpp.api.options.option import options_of
from mtpp.api.options.planners import PLANNERS


def plan_with(model: Any, *, planner: str = "piper", **asked: Any) -> Any:
    """Return the plan of a planner by name, with those of *asked* that are options of its own."""
    return mtpp.plan_training(model, **of_planner(planner, asked))


def sweep_with(model: Any, **asked: Any) -> Any:
    """Return a sweep of the planner piper."""
    return mtpp.sweep_training(model, **of_planner("piper", asked))


def of_planner(planner: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return keywords as functions take them: those of the planner in its record."""
    kind = PLANNERS[planner]
    own = {name: asked[name] for name in options_of(kind) if name in asked}
    return {"planner": kind(**own), **{name: value for name, value in asked.items() if name not in own}}


def line_of_ops(ops: int, unit: str = "1", transfer: int = 0, **keys: Any) -> dict[str, Any]:
    """Return a line of equal ops, mostly with nothing to hand over and in an abstract unit."""
    rows = [{"name": f"v{v}", "work": 1, **keys} for v in range(ops)]
    tensors = [
        {"name": f"t{v}", "producer": f"v{v}", "consumers": [f"v{v + 1}"], "transfer": transfer, "bytes": 1}
        for v in range(ops - 1)
    ]
    return {"format": "mtpp-graph", "version": 1, "name": "line", "time_unit": unit, "ops": rows, "tensors": tensors}
