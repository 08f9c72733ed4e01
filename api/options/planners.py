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

    Raises
    ------
    InputError
        If it is none of those *allowed*.
    """
    if value is None:
        return Piper()
    if isinstance(value, allowed or tuple(PLANNERS.values())):
        return value
    named = PLANNERS.get(value, Piper) if isinstance(value, str) else Piper
    remedy = f"write planner=mtpp.{named.__name__}(…)"
    raise InputError(f"{shortened(value)} is no planner with its options", parameter="planner", remedy=remedy)


def refuse_keywords(function: str, given: Mapping[str, object], planner: object) -> None:
    """Refuse keywords that a function does not have, and say which planner has them.

    Raises
    ------
    TypeError
        If there are any.
    """
    named = [PLANNERS[planner]] if isinstance(planner, str) and planner in PLANNERS else []
    for name in given:
        owners = [one for one in (*named, *PLANNERS.values()) if name in options_of(one)]
        if not owners:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        form = f"planner=mtpp.{owners[0].__name__}({name}=…)"
        raise TypeError(f"{function}() has no keyword {name!r}, which belongs to a planner: write {form}")
