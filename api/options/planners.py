"""Planners by name, and the keywords of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.api.options.graphpipe import GraphPipe
from mtpp.api.options.line_planners import Equi, LinePlanner, PipeDream2BW, Piper, TrainingPlanner
from mtpp.api.options.option import options_of
from mtpp.api.options.pfeife import Pfeife
from mtpp.api.parameters import shortened
from mtpp.errors import InputError

__all__ = ["PLANNERS", "Equi", "GraphPipe", "LinePlanner", "Pfeife", "PipeDream2BW", "Piper", "TrainingPlanner"]

PLANNERS: Mapping[str, type[TrainingPlanner[Any]]] = {
    one.name: one for one in (Piper, Equi, PipeDream2BW, GraphPipe, Pfeife)
}


def planner_of(value: Any, *allowed: type[TrainingPlanner[Any]]) -> Any:
    """Return a planner with its options, :class:`Piper` for None.

    Parameters
    ----------
    allowed
        Planners that the caller runs; all of them by default.
    """
    allowed = allowed or tuple(PLANNERS.values())
    if value is None:
        return Piper()
    if isinstance(value, allowed):
        return value
    named = _class_of(value)
    written = named if named in allowed else Piper
    shown = value.__name__ if isinstance(value, type) else shortened(value)
    problem = f"{shown} is no planner with its options"
    if isinstance(value, TrainingPlanner):
        problem = f"mtpp.{type(value).__name__} is not for this"
    raise InputError(problem, parameter="planner", remedy=f"write planner=mtpp.{written.__name__}(…)")


def _class_of(value: object) -> type[TrainingPlanner[Any]] | None:
    """Return the class of a planner that is given by its name, as a class, or with its options."""
    if isinstance(value, str):
        return PLANNERS.get(value)
    found = value if isinstance(value, type) else type(value)
    return found if issubclass(found, TrainingPlanner) else None


def refuse_keywords(
    function: str, given: Mapping[str, object], planner: object, *allowed: type[TrainingPlanner[Any]]
) -> None:
    """Refuse keywords that a function does not have, and say which planner has them.

    Parameters
    ----------
    allowed
        Planners that the function runs; all of them by default.

    Raises
    ------
    TypeError
        If there are any.
    """
    runs = allowed or tuple(PLANNERS.values())
    for name in given:
        owners = [one for one in runs if name in options_of(one)]
        if not owners:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        meant = _class_of(planner)
        form = f"planner=mtpp.{(meant if meant in owners else owners[0]).__name__}({name}=…)"
        raise TypeError(f"{function}() has no keyword {name!r}, which belongs to a planner: write {form}")
