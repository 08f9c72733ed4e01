"""Weights that count as more than the file of a graph holds, and words for limits on memory where they do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mtpp.errors import Infeasible
from mtpp.inference.graph import CostGraph

_PROVEN = "proven infeasible"
_MEMORY = "‹stage_memory›"

_HOW = (("unpacked_bytes", "as they are computed with"), ("repeated_bytes", "at each reader"))


def counted_weights_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of the metadata of a graph that say which weights count as more: none where it says nothing."""
    stated = metadata.get("counted_weights")
    return tuple(key for key, _ in _HOW if key in stated) if isinstance(stated, Mapping) else ()


def as_weights_count(counted: Collection[str]) -> str:
    """Return how weights count, behind what is said of memory; nothing where they count as the file holds them.

    Parameters
    ----------
    counted
        Of :func:`counted_weights_of`.
    """
    why = " and ".join(text for key, text in _HOW if key in counted)
    return f" as weights are counted ({why})" if why else ""


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
