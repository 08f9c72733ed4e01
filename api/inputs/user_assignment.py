"""Partitions that users bring along: stages of ops from a file, a document, a list, or cut points."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.errors import InputError, InvalidPartition
from mtpp.formats.results.plan_range import FORMAT as PLAN_RANGE
from mtpp.ranges import MOST_STAGES
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.inference.graph import CostGraph

_TRAINING_PLAN = "mtpp-training-plan"


@contextmanager
def brought_along(assignment: Any, parameter: str) -> Iterator[None]:
    """Name the parameter, or the file, in errors that a partition turns out to be none.

    Parameters
    ----------
    assignment
        As the caller gave it.
    parameter
        Name by which the caller knows it.
    """
    try:
        yield
    except InvalidPartition as error:
        is_path = isinstance(assignment, str | os.PathLike)
        error.source = error.source or (os.fspath(assignment) if is_path else f"‹{parameter}›")
        raise


@contextmanager
def at_place(where: str) -> Iterator[None]:
    """Add a place to errors of a parameter that do not know where in it they are."""
    try:
        yield
    except InputError as error:
        error.where = error.where or where
        raise


def stage_labels(graph: CostGraph, assignment: Any, parameter: str = "assignment") -> list[int]:
    """Return the stage of each op from what a caller gives.

    Parameters
    ----------
    assignment
        A path of what :func:`labels_of_assignment` reads; the content of such a JSON file as a dictionary; a plan with
        an ``assignment``, or another result by its document; or a list of stages in the order of the file's ops.
    parameter
        Name by which the caller knows it.
    """
    from mtpp.api.output import SavedResult
    from mtpp.api.parameters import path_text, shortened, whole

    if isinstance(assignment, str | os.PathLike):
        return labels_of_assignment(graph, path_text(assignment, parameter))
    if isinstance(assignment, SavedResult):
        assignment = assignment.document()
    elif not isinstance(assignment, Mapping) and isinstance(getattr(assignment, "assignment", None), Mapping):
        assignment = assignment.assignment
    if isinstance(assignment, Mapping):
        return labels_of_document(graph, dict(assignment), f"‹{parameter}›")
    if isinstance(assignment, bytes) or not isinstance(assignment, Iterable):
        raise InputError(
            f"{shortened(assignment)} is no assignment",
            parameter=parameter,
            remedy="give a path, a plan, a dictionary of ops, or a list of stages",
        )
    labels = []
    for i, stage in enumerate(assignment):
        with at_place(f"/{i}"):
            labels.append(whole(stage, parameter, least=0, most=MOST_STAGES - 1))
    if len(labels) != graph.op_count:
        raise InvalidPartition(f"{len(labels)} stages were given for {graph.op_count} ops", parameter=parameter)
    return labels


def labels_of_assignment(graph: CostGraph, path: str, source: Source | None = None) -> list[int]:
    """Read the stage of each op from a plan, a JSON object op → stage, a CSV, or a split of a placement workload.

    Raises
    ------
    InputError
        If the file is none of these, or names an op or a node that the graph has not, or a stage that is no whole
        number.
    InvalidPartition
        If an op has no stage.
    """
    return labels_of_document(graph, *read_assignment(path, source))


def read_assignment(path: str, source: Source | None = None) -> tuple[Any, str]:
    """Read the document of an assignment, and return its file's name in messages too."""
    from mtpp.formats.io.source import read_source

    source = source or read_source(path)
    return assignment_document(source), source.display


def _is_split_plan(document: Any) -> bool:
    from mtpp.checker.training.versions import is_split_plan

    return is_split_plan(document)


def _stages_of_plan(document: dict[str, Any], display: str, graph: CostGraph) -> dict[str, int]:
    """Return the stage of each op in a training plan by ``pfeife`` for a graph, or for layers that the graph names."""
    from mtpp.checker.training.versions import check_any_training_plan
    from mtpp.formats.graphs.placement_split import ops_of_nodes
    from mtpp.formats.io.json_shape import attributed

    with attributed(display):
        check_any_training_plan(document, ())
        if not document["feasible"]:
            raise InputError("says that there is no plan", where="/feasible")
        placed = {name: stage["index"] for stage in document["stages"] for name in stage["layers"]}
        if document["model"]["kind"] == "graph":
            return placed
        ops = ops_of_nodes(graph)
        if ops is None:
            raise InputError("is for layers, and the model does not say which ops they are", where="/model/kind")
        return {ops.get(layer, str(layer)): stage for layer, stage in placed.items()}


def labels_of_document(graph: CostGraph, document: Any, display: str) -> list[int]:
    """Do the same for a parsed document that messages call *display*."""
    from mtpp.document_shape import pointer
    from mtpp.formats.graphs.placement_split import looks_like_split, stages_of_split
    from mtpp.formats.modelled.node_names import named_as

    prefix = ""
    if isinstance(document, dict) and document.get("format") == "mtpp-plan" and "replicas" in document:
        remedy = "plan without ‹replicas›, or give the stage of each op, as its assignment says it"
        raise InputError("has stages on several devices", source=display, where="/replicas", remedy=remedy)
    if looks_like_split(document):
        document = stages_of_split(document, display, graph)
    elif _is_split_plan(document):
        document, prefix = _stages_of_plan(document, display, graph), "/stages"
    elif isinstance(document, dict) and document.get("format") == _TRAINING_PLAN:
        remedy = "give a plan of the planner pfeife, of version 2, or an assignment"
        raise InputError("a training plan that does not cut a graph", source=display, where="/planner", remedy=remedy)
    elif isinstance(document, dict) and "assignment" in document and "stages" in document:
        document, prefix = document["assignment"], "/assignment"
    if not isinstance(document, dict):
        remedy = 'give a plan, {"op": stage, …}, a CSV with op and stage, or a split'
        raise InputError("no assignment", source=display, remedy=remedy)
    known = {name: v for v, name in enumerate(named_as(graph, document).op_names)}
    labels: list[int | None] = [None] * graph.op_count
    for name, stage in document.items():
        where = prefix + pointer(name)
        if name not in known:
            near = did_you_mean(name, known, "") or None
            raise InputError("the model has no such op", source=display, where=where, remedy=near)
        number = int(stage) if isinstance(stage, Integral) and not isinstance(stage, bool) else -1
        if not 0 <= number < MOST_STAGES:
            raise InputError(f"{stage!r} is not the number of a stage", source=display, where=where)
        labels[known[name]] = number
    missing = [graph.op_names[v] for v, label in enumerate(labels) if label is None]
    if missing:
        raise InvalidPartition(
            f"{len(missing)} of {graph.op_count} ops have no stage, the first is {missing[0]!r}", source=display
        )
    return [label for label in labels if label is not None]


def assignment_document(source: Source) -> Any:
    """Return the JSON of a file with an assignment; of a CSV with the columns ``op`` and ``stage``, {op: stage}."""
    from mtpp.formats.io.json_text import parse_json
    from mtpp.formats.results.stage_csv import looks_like_stage_csv, read_stage_csv

    if looks_like_stage_csv(source.data):
        return read_stage_csv(source.data, source.display)
    document = parse_json(source.data, source.display)
    if _is_range(document):
        raise _several_plans(document, source.display)
    return document


def plan_among(assignment: Any, k: int | None, parameter: str = "assignment") -> Any:
    """Return the plan for *k* stages where a caller gives plans for several numbers, else what is given.

    Parameters
    ----------
    assignment
        As :func:`stage_labels` takes it, or a range of plans: its file, its document, or the result itself.

    Raises
    ------
    InputError
        If the range has no plan for *k*, or *k* is None.
    """
    from mtpp.api.inputs.file_contents import is_plan_range
    from mtpp.api.output import SavedResult
    from mtpp.formats.io.json_text import parse_json
    from mtpp.formats.io.source import read_source

    document, display = assignment, f"‹{parameter}›"
    if isinstance(assignment, SavedResult):
        document = assignment.document()
    elif isinstance(assignment, str | os.PathLike) and os.fspath(assignment) != "-":
        display = str(os.fspath(assignment))
        document = parse_json(read_source(display).data, display) if is_plan_range(display) else None
    if not _is_range(document):
        return assignment
    plans = document.get("plans")
    found = [plan for plan in plans if isinstance(plan, dict)] if isinstance(plans, list) else []
    if k is None:
        raise _several_plans(document, display)
    chosen = next((plan for plan in found if plan.get("k") == k), None)
    if chosen is None:
        raise InputError(f"has no plan for k = {k}", source=display, where="/plans", remedy=f"it has {_counts(found)}")
    return chosen


def _is_range(document: Any) -> bool:
    return isinstance(document, Mapping) and document.get("format") == PLAN_RANGE


def _several_plans(document: Mapping[str, Any], display: str) -> InputError:
    plans = document.get("plans")
    counts = _counts([plan for plan in plans if isinstance(plan, Mapping)] if isinstance(plans, list) else [])
    problem = f"has plans for several numbers of stages, {counts}"
    return InputError(problem, source=display, where="/plans", remedy="say which with `mtpp evaluate` and ‹k›")


def _counts(plans: list[Any]) -> str:
    return ", ".join(str(plan.get("k")) for plan in plans) or "none"


def labels_of_cuts(graph: CostGraph, cuts: Iterable[str]) -> list[int]:
    """Return the stage of each op when the stages end after the named ops, in the graph's own order."""
    position = {graph.op_names[v]: i for i, v in enumerate(graph.order.tolist())}
    ends = []
    for name in cuts:
        if name not in position:
            remedy = did_you_mean(name, position, "`mtpp inspect --ops` lists the names")
            raise InputError(f"no op is called {name!r}", parameter="cuts", remedy=remedy)
        ends.append(position[name] + 1)
    stage = np.searchsorted(np.array(sorted(set(ends))), np.arange(graph.op_count), side="right")
    labels = np.empty(graph.op_count, dtype=np.int64)
    labels[graph.order] = stage
    return [int(label) for label in labels]
