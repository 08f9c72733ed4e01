"""Versions of training plans: version 1, and version 2 by planner, each with a shape of its own."""

from __future__ import annotations

from typing import Any

from mtpp.checker.training.document import FORMAT, check_training_plan
from mtpp.checker.training.graphpipe.document import PLANNER as GRAPHPIPE
from mtpp.checker.training.graphpipe.document import check_graph_plan
from mtpp.checker.training.pfeife.document import PLANNER as PFEIFE
from mtpp.checker.training.pfeife.document import check_split_plan
from mtpp.document_shape import Path, Rule, choice, refuse

BY_PLANNER: dict[str, Rule] = {GRAPHPIPE: check_graph_plan, PFEIFE: check_split_plan}
"""Rules of documents of version 2."""


def check_any_training_plan(value: Any, path: Path) -> None:
    """Take a training plan of any version, or a document that says that there is none.

    Raises
    ------
    InputError
        If it is malformed, or of a version or a planner that this program does not know.
    """
    if not is_version_2(value):
        check_training_plan(value, path)
        return
    if "planner" not in value:
        refuse("missing key", (*path, "planner"))
    choice(*BY_PLANNER)(value["planner"], (*path, "planner"))
    BY_PLANNER[value["planner"]](value, path)


def is_split_plan(value: Any) -> bool:
    """Tell whether a document says that it is a plan of split points and a schedule."""
    return is_version_2(value) and value.get("planner") == PFEIFE


def is_version_2(value: Any) -> bool:
    """Tell whether a document says that it is a training plan of version 2."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return False
    return type(value.get("version")) is int and value["version"] == 2
