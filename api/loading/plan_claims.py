"""Claims of a plan's document that contradict each other, found without its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mtpp.document_shape import pointer
from mtpp.errors import InputError
from mtpp.inference.certificate import approximation_ratio
from mtpp.machine.device import Device


def refuse_contradictions(document: Mapping[str, Any]) -> None:
    """Refuse a well-formed plan whose own figures contradict each other.

    Every plan that any version of mtpp wrote passes. Early ones call a plan optimal whose bound of tier ``solver``
    meets its bottleneck; that is taken here, and shown as what it is.

    Raises
    ------
    InputError
        With the place of the figure that the others contradict.
    """
    Device.from_document(document["system"])
    for contradictions in (_in_stages, _in_assignment, _in_groups, _in_graph, _in_certificate):
        for problem, *place in contradictions(document):
            raise InputError(str(problem), where=pointer(*place))


def _in_stages(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    k, stages = document["k"], document["stages"]
    if len(stages) != k:
        yield f"{len(stages)} stages, but k is {k}", "stages"
    for i, row in enumerate(stages):
        if row["index"] != i:
            yield f"expected {i}, found {row['index']}", "stages", i, "index"
        parts = sum(row[part] for part in ("work", "input", "output", "overflow"))
        if row["cost"] != parts:
            yield f"{row['cost']}, but its parts add up to {parts}", "stages", i, "cost"
    most = max(row["cost"] for row in stages)
    if document["bottleneck"] != most:
        yield f"{document['bottleneck']}, but the most expensive stage costs {most}", "bottleneck"


def _in_assignment(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    k, assignment, ops = document["k"], document["assignment"], document["model"]["ops"]
    for name, stage in assignment.items():
        if not 0 <= stage < k:
            yield f"{stage} is not the number of a stage", "assignment", name
    if len(assignment) != ops:
        yield f"{ops}, but {len(assignment)} ops have a stage", "model", "ops"
    held = Counter(assignment.values())
    for i, row in enumerate(document["stages"]):
        if row["ops"] != held[i]:
            yield f"{row['ops']}, but {held[i]} ops are assigned to it", "stages", i, "ops"
        for end in ("first", "last"):
            if (row[end] is None) != (held[i] == 0) or (row[end] is not None and assignment.get(row[end]) != i):
                yield f"{row[end]!r} is no op of this stage", "stages", i, end


def _in_groups(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    assignment = document["assignment"]
    for i, group in enumerate(document["together"]):
        for j, name in enumerate(group):
            if name not in assignment:
                yield f"no op is called {name!r}", "together", i, j
            elif assignment[name] != assignment[group[0]]:
                yield f"{name!r} is not in the stage of {group[0]!r}", "together", i, j


def _in_graph(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for part in ("ops", "tensors") if "graph" in document else ():
        stated, there = document["model"][part], len(document["graph"][part])
        if stated != there:
            yield f"{stated}, but the graph has {there}", "model", part


def _in_certificate(document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    upper, bound = document["bottleneck"], document["lower_bound"]
    lower = bound["value"]
    if lower > upper:
        yield f"{lower} is above the bottleneck, {upper}", "lower_bound", "value"
    due, stated = approximation_ratio(upper, lower), document["ratio"]
    if (None if stated is None else float(stated)) != due:
        said, is_ = ("none" if one is None else f"{float(one)!r}" for one in (stated, due))
        yield f"{said}, but bottleneck / lower bound is {is_}", "ratio"
    if document["optimal"] and lower < upper:
        yield f"true, but the lower bound, {lower}, is below the bottleneck, {upper}", "optimal"
    if not document["optimal"] and lower == upper and bound["tier"] != "solver":
        yield "false, but a proof meets the bottleneck", "optimal"
