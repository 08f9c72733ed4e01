"""Limits on memory that no partition meets as weights are counted: no proof where stages may hold less than that."""

from __future__ import annotations

from mtpp.errors import Infeasible
from mtpp.inference.graph import CostGraph

_PROVEN = "proven infeasible"
_MEMORY = "‹stage_memory›"


def as_counted(error: Infeasible, graph: CostGraph) -> Infeasible:
    """Return an error without its claim to a proof, where weights of the graph count as more than its file holds."""
    counted = graph.metadata.get("counted_weights")
    if not counted or error.source != _MEMORY or not error.problem.startswith(_PROVEN):
        return error
    why = " and ".join(
        text
        for key, text in (("unpacked_bytes", "as they are computed with"), ("repeated_bytes", "at each reader"))
        if key in counted
    )
    problem = f"infeasible as weights are counted ({why}){error.problem.removeprefix(_PROVEN)}"
    return Infeasible(problem, source=error.source, where=error.where, remedy=error.remedy)
