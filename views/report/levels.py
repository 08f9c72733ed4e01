"""A graph at several levels of detail: stages, modules of the model, single ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph

MOST_BOXES = 4_000
"""Of a level that is drawn."""

_DEEPEST = 8
"""Names of a module's path that levels tell modules apart by, at most."""

_MOST_OF_OPS, _LEAST_MORE = 0.6, 1.25
"""Boxes of a level of modules: at most this part of the ops, and this many times those of the level before."""

_READABLE = 70
"""Boxes of the level that is shown first, at most, where there is one with so few."""


@dataclass(frozen=True)
class Group:
    """Ops that are one box: their name, the stage that runs them, and the ops."""

    name: str
    stage: int
    ops: Sequence[int]


@dataclass(frozen=True)
class Flow:
    """Tensors from one box to another: how many, their bytes (None: not all are known), and if stages differ."""

    source: int
    target: int
    tensors: int
    size_bytes: int | None
    crosses: bool


@dataclass(frozen=True)
class Level:
    """The graph drawn in one way: ops in the graph's order, groups stage by stage in that of their first ops."""

    title: str
    groups: Sequence[Group]
    flows: Sequence[Flow]


def levels_of(graph: CostGraph, stages: Sequence[int], modules: Mapping[str, str] | None) -> list[Level]:
    """Return the levels that can be drawn, coarse ones first.

    Parameters
    ----------
    stages
        Stage of each op.
    modules
        Path of the module of each op, by name, where they are known. A module in several stages is a box in each.

    Notes
    -----
    O((ops + pins) · depth of the modules).
    """
    names = graph.op_names
    keys: list[tuple[str, list[str]]] = [("Stages", [f"stage {stage}" for stage in stages])]
    paths = _paths(graph, modules or {})
    deepest = max(map(len, paths), default=0)
    for depth in range(1, min(deepest, _DEEPEST) + 1):
        own = [".".join(path[:depth]) or name for path, name in zip(paths, names, strict=True)]
        keys.append((f"Modules {depth} deep" if deepest > 1 else "Modules", own))
    keys.append(("Ops", list(names)))
    found: list[Level] = []
    for title, key in keys:
        level = _level(title, graph, stages, key)
        boxes = len(level.groups)
        if title.startswith("Modules"):
            if boxes < _LEAST_MORE * len(found[-1].groups) or boxes > _MOST_OF_OPS * graph.op_count:
                continue
        elif found and boxes == len(found[-1].groups):
            found.pop()
        found.append(level)
    return [level for level in found if len(level.groups) <= MOST_BOXES]


def _paths(graph: CostGraph, modules: Mapping[str, str]) -> list[list[str]]:
    """Return the path of the module of each op, names apart; empty where nothing is known.

    An op whose module the file does not say is taken to be in the innermost module around the ones before and behind
    it in the file, and where there is none in that before it.
    """
    known = [modules.get(name) for name in graph.op_names]
    split = [None if path is None else [part for part in path.split(".") if part] for path in known]
    if not any(split):
        return [[] for _ in split]
    behind: list[list[str] | None] = [None] * len(split)
    after: list[str] | None = None
    for v in reversed(range(len(split))):
        after = split[v] or after
        behind[v] = after
    paths: list[list[str]] = []
    before: list[str] | None = None
    for own, later in zip(split, behind, strict=True):
        if own:
            before = own
            paths.append(own)
        elif own is not None:
            paths.append(own)  # the whole model
        else:
            shared = _shared(before, later) if before and later else []
            paths.append(shared or before or later or [])
    return paths


def _shared(first: Sequence[str], second: Sequence[str]) -> list[str]:
    shared = []
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        shared.append(one)
    return shared


def first_shown(levels: Sequence[Level]) -> int:
    """Return the level that shows most without being too much to read."""
    readable = [i for i, level in enumerate(levels) if len(level.groups) <= _READABLE]
    return max(readable, default=0)


def _level(title: str, graph: CostGraph, stages: Sequence[int], keys: Sequence[str]) -> Level:
    order = graph.order.tolist()
    if title != "Ops":
        order.sort(key=lambda v: stages[v])
    number: dict[tuple[int, str], int] = {}
    group_of = [0] * graph.op_count
    members: list[list[int]] = []
    for v in order:
        key = (stages[v], keys[v])
        if key not in number:
            number[key] = len(members)
            members.append([])
        group_of[v] = number[key]
        members[number[key]].append(v)
    groups = [Group(name, stage, members[g]) for (stage, name), g in number.items()]
    return Level(title, groups, _flows(graph, group_of, groups))


def _flows(graph: CostGraph, group_of: Sequence[int], groups: Sequence[Group]) -> list[Flow]:
    """Return what flows between groups: each tensor counts once for each group that reads it."""
    found: dict[tuple[int, int], tuple[int, int | None]] = {}
    for t, size in enumerate(graph.tensor_bytes.tolist()):
        source = group_of[int(graph.tensor_producer[t])]
        for target in {group_of[v]: None for v in graph.tensor_consumers(t).tolist()}:
            if target == source:
                continue
            count, total = found.get((source, target), (0, 0))
            found[source, target] = (count + 1, None if total is None or size == UNKNOWN_BYTES else total + size)
    return [
        Flow(u, v, count, total, groups[u].stage != groups[v].stage) for (u, v), (count, total) in found.items()
    ]  # fmt: skip
