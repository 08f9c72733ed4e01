"""Partitions that users bring along: read from a file or from cut points, and scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.cli.options.shared import MOST_STAGES
from mtpp.errors import InputError, InvalidPartition
from mtpp.inference.objective import check_stage_memory
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan

if TYPE_CHECKING:
    from mtpp.api.model import Model
    from mtpp.cli.terminal.console import Console
    from mtpp.formats.io.source import Source
    from mtpp.inference.graph import CostGraph


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
    from mtpp.formats.graphs.placement_split import looks_like_split, stages_of_split
    from mtpp.formats.io.source import read_source

    source = source or read_source(path)
    document = assignment_document(source)
    prefix = ""
    if looks_like_split(document):
        document = stages_of_split(document, source.display, graph)
    elif isinstance(document, dict) and "assignment" in document and "stages" in document:
        document, prefix = document["assignment"], "/assignment"
    if not isinstance(document, dict):
        remedy = 'give a plan, {"op": stage, …}, a CSV with op and stage, or a split'
        raise InputError("no assignment", source=source.display, remedy=remedy)
    known = {name: v for v, name in enumerate(graph.op_names)}
    labels: list[int | None] = [None] * graph.op_count
    for name, stage in document.items():
        where = f"{prefix}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in known:
            raise InputError("the model has no such op", source=source.display, where=where)
        if isinstance(stage, bool) or not isinstance(stage, int) or not 0 <= stage < MOST_STAGES:
            raise InputError(f"{stage!r} is not the number of a stage", source=source.display, where=where)
        labels[known[name]] = stage
    missing = [graph.op_names[v] for v, label in enumerate(labels) if label is None]
    if missing:
        raise InvalidPartition(
            f"{len(missing)} of {graph.op_count} ops have no stage, the first is {missing[0]!r}", source=source.display
        )
    return [label for label in labels if label is not None]


def assignment_document(source: Source) -> Any:
    """Return the JSON of a file with an assignment; of a CSV with the columns ``op`` and ``stage``, {op: stage}.

    Raises
    ------
    InputError
        If it is neither JSON nor such a CSV.
    """
    from mtpp.formats.io.json_text import parse_json
    from mtpp.formats.results.stage_csv import looks_like_stage_csv, read_stage_csv

    if looks_like_stage_csv(source.data):
        return read_stage_csv(source.data, source.display)
    return parse_json(source.data, source.display)


def labels_of_cuts(graph: CostGraph, cuts: str) -> list[int]:
    """Return the stage of each op when the stages end after the named ops, in the graph's own order.

    Raises
    ------
    InputError
        If a name is no op of the graph.
    """
    position = {graph.op_names[v]: i for i, v in enumerate(graph.order.tolist())}
    ends = []
    for name in (part.strip() for part in cuts.split(",")):
        if name not in position:
            raise InputError(
                f"no op is called {name!r}", source="--cuts", remedy="`mtpp inspect --ops` lists the names"
            )
        ends.append(position[name] + 1)
    stage = np.searchsorted(np.array(sorted(set(ends))), np.arange(graph.op_count), side="right")
    labels = np.empty(graph.op_count, dtype=np.int64)
    labels[graph.order] = stage
    return [int(label) for label in labels]


def given_plan(model: Model, labels: Sequence[int], k: int | None) -> Plan:
    """Score a partition; *k* defaults to the number of stages that the labels span.

    Raises
    ------
    InvalidPartition
        If the quotient graph has a cycle, more than k stages are used, or one needs more than the stage memory.
    """
    from mtpp.solvers.bounds.simple import simple_bound

    instance = model.instance(k or max(labels) + 1)
    partition = Partition.from_labels(instance, labels)
    lower = simple_bound(instance)
    plan = Plan(
        graph=model.graph,
        instance=instance,
        partition=partition,
        lower=lower,
        algorithm="given",
        found_by="given",
        seed=0,
        evaluations=1,
        stopped="finished",
    )
    _ = plan.certificate
    check_stage_memory(instance, plan.costs)
    return plan


def plan_against(model: Model, given: Plan, against: str, console: Console) -> tuple[Plan, Plan]:
    """Return what a given partition is to be held against, and that partition with the better bound of the two.

    Parameters
    ----------
    against
        An algorithm, whose best partition into as many stages it is, or what :func:`labels_of_assignment` reads.

    Raises
    ------
    InvalidPartition
        If that is no partition.
    """
    from mtpp.cli.planning import PlanRequest, available_cores, make_plan
    from mtpp.solvers.registry import ALIASES, PARTITIONERS

    k = given.partition.k
    if ALIASES.get(against, against) in PARTITIONERS:
        from mtpp.cli.options.limits import search_memory

        request = PlanRequest(
            k=k,
            max_bottleneck=None,
            algorithm=against,
            together=(),
            time_limit_s=None,
            work_limit=None,
            seed=0,
            jobs=available_cores(),
            memory_bytes=search_memory(None),
        )
        other = make_plan(model, request, console)
    else:
        labels = labels_of_assignment(model.graph, against)
        other = given_plan(model, labels, max(k, max(labels) + 1))
    if other.partition.k == k and other.lower.value > given.lower.value:
        given = replace(given, lower=other.lower)
    return other, given
