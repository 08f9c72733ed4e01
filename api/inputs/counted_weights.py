"""Limits on memory that no partition meets as weights are counted: no proof where stages may hold less than that."""

from __future__ import annotations

from collections.abc import Collection

from mtpp.errors import Infeasible
from mtpp.inference.counted_weights import as_weights_count, counted_weights_of
from mtpp.inference.graph import CostGraph

_PROVEN = "proven infeasible"
_MEMORY = "‹stage_memory›"


def as_counted(error: Infeasible, graph: CostGraph) -> Infeasible:
    """Return an error without its claim to a proof, where weights of the graph count as more than its file holds."""
    if error.source != _MEMORY:
        return error
    problem = problem_as_counted(error.problem, counted_weights_of(graph.metadata))
    return Infeasible(problem, source=error.source, where=error.where, remedy=error.remedy)


def problem_as_counted(problem: str, counted: Collection[str]) -> str:
    """Return the text of such an error likewise.

    Parameters
    ----------
    counted
        Keys of the metadata that say which weights count as more.
    """
    if not counted or not problem.startswith(_PROVEN):
        return problem
    return f"infeasible{as_weights_count(counted)}{problem.removeprefix(_PROVEN)}"
