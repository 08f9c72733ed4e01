"""The two models of the pages about training: layers for a pipeline of stages, and a chain of ops with a schedule."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from typing import Any

import mtpp
from docs.drawing.example import FOLDER

LAYERS = FOLDER / "layers.json"
CHAIN = FOLDER / "chain.json"

MS = 10**9
"""Ticks of a millisecond."""

DEVICES = 2
SAMPLES = 4
MEMORY_BYTES = 64 * 10**6
SYSTEM: dict[str, Any] = {"devices": DEVICES, "memory": MEMORY_BYTES, "bandwidth": "4GB/s"}


@cache
def layers() -> dict[str, int]:
    """Return the milliseconds of both passes by layer."""
    document = json.loads(LAYERS.read_text())
    return {one["name"]: one["configurations"]["1"][0]["time"] for one in document["layers"]}


@cache
def edges() -> tuple[tuple[str, str], ...]:
    """Return which layers read from which; each tensor takes a millisecond on the link."""
    document = json.loads(LAYERS.read_text())
    found = []
    for one in document["edges"]:
        assert one["bytes"] * 1000 == 4 * 10**9
        found.append((one["source"], one["target"]))
    return tuple(found)


@cache
def piper_plan() -> dict[str, Any]:
    """Return the plan of ``mtpp plan docs/bounds/layers.json``, without replicas."""
    plan = mtpp.plan_training(str(LAYERS), planner=mtpp.Piper(max_micro_batches=SAMPLES, data_parallel=False), **SYSTEM)
    return dict(plan.document())


@cache
def graph_plan() -> dict[str, Any]:
    """Return the plan of the same with ``--planner graphpipe``, without replicas, one sample in a micro-batch."""
    planner = mtpp.GraphPipe(batch_size=SAMPLES, micro_batch_size=1, micro_batch_sizes=[1], data_parallel=False)
    plan = mtpp.plan_training(str(LAYERS), planner=planner, **SYSTEM)
    return dict(plan.document())


@cache
def split_plan(micro_batches: int = 2, transport: str = "neighbours") -> dict[str, Any]:
    """Return the plan of ``mtpp plan docs/bounds/chain.json --planner pfeife``."""
    planner = mtpp.Pfeife(micro_batches=micro_batches, transport=transport)
    plan = mtpp.plan_training(str(CHAIN), planner=planner, devices=DEVICES)
    return dict(plan.document())


@cache
def chain() -> dict[str, int]:
    """Return the milliseconds of a forward pass by op of the chain; a backward pass takes twice that."""
    return {one["name"]: one["work"] for one in json.loads(CHAIN.read_text())["ops"]}


def fits(stage: str, in_flight: int) -> bool:
    """Tell whether layers fit into the memory of a device, with so many micro-batches in flight."""
    document = json.loads(LAYERS.read_text())
    chosen = [one["configurations"]["1"][0] for one in document["layers"] if one["name"] in stage]
    each = sum(one["memory_bytes_per_micro_batch"] for one in chosen)
    return in_flight * each + sum(one["memory_bytes"] for one in chosen) <= MEMORY_BYTES


def layer_chains() -> list[tuple[str, ...]]:
    """Return every line of at most two stages that edges lead along, each stage as the names of its layers."""
    names = "".join(layers())
    found: list[tuple[str, ...]] = [(names,)]
    for sides in product((0, 1), repeat=len(names)):
        side = dict(zip(names, sides, strict=True))
        if 0 < sum(sides) < len(names) and all(side[u] <= side[v] for u, v in edges()):
            found.append(tuple("".join(name for name in names if side[name] == s) for s in (0, 1)))
    return found
