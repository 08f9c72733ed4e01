"""Small random cells of tables under goals, with optima by brute force: latency, limits, replicas, on all devices."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

from random_chains import random_chain
from random_devices import NEVER, random_case
from random_neighbours import random_neighbours
from random_replicas import replicated_optimum

import mtpp
from mtpp.formats.graphs.native import to_document
from mtpp.names import DEVICE_ORDERS

KINDS = ("equal", "direct", "neighbours", "chain")
"""Devices: k equal ones, those of a machine, with links between neighbours, and with times of stages of a chain."""

GOALS = ("latency", "latency within", "within a latency", "replicas")
"""Least latency, the same within a bottleneck, the least bottleneck within a latency, and with replicas."""


@dataclass(frozen=True)
class GoalCell:
    """A cell: a model as it was read, devices that may be used, options, and the optimum; None: there is no plan."""

    model: mtpp.Model
    k: int
    asked: dict[str, Any]
    least: int | None

    @property
    def of_latency(self) -> bool:
        """Whether the latency is the objective."""
        return "objective" in self.asked


def random_cell(seed: int, kind: str, goal: str) -> GoalCell:
    """Return a random cell of one of the kinds and goals; replicas do not go with neighbours."""
    chance = Random(seed)
    if kind == "neighbours":
        linked = random_neighbours(seed)
        free, most = chance.random() < 0.5, chance.randint(1, linked.count)
        model = mtpp.read(json.dumps(linked.document()).encode(), machine=linked.machine(free=free))
        return _asked(model, most, goal, linked.frontier(most, free=free), chance)
    if kind == "chain":
        return _chain(chance, goal)
    case = random_case(seed)
    if kind == "equal":
        *_, limit, _ = case.devices[0]
        case = replace(case, devices=((Fraction(1), Fraction(1), 0, limit, None),) * len(case.devices))
    free, most = kind == "direct" and chance.random() < 0.5, chance.randint(1, len(case.devices))
    graph = json.dumps(case.document()).encode()
    if kind == "equal":
        reserve = 3 if case.peak == "reserve" else 0
        model = mtpp.read(graph, stage_memory=limit, activation_reserve=reserve, peak=case.peak)
    else:
        model = mtpp.read(graph, machine=case.machine(free=free))
    if goal == "replicas":
        best = replicated_optimum(
            case if kind == "direct" else replace(case, devices=case.devices[:most]), most, free=free
        )
        return GoalCell(model, most, {"replicas": True}, None if best >= NEVER else best)
    return _asked(model, most, goal, case.frontier(most, free=free), chance)


def _chain(chance: Random, goal: str) -> GoalCell:
    """Return a cell of a chain on devices with times of stages."""
    chain, order = random_chain(chance), chance.choice(DEVICE_ORDERS)
    most = chance.randint(1, len(chain.devices))
    model = mtpp.read(json.dumps(to_document(chain.graph())).encode(), machine=chain.machine(order))
    if goal == "replicas":
        return GoalCell(model, most, {"replicas": True}, chain.replicated_optimum(order, most))
    return _asked(model, most, goal, chain.frontier(order, most), chance)


def _asked(model: mtpp.Model, k: int, goal: str, points: list[tuple[int, int]], chance: Random) -> GoalCell:
    """Return a cell of a goal in which latency counts, given bottleneck and latency of all plans that none beats."""
    worst, total = chance.choice(points) if points else (50, 50)
    if goal == "latency":
        return GoalCell(model, k, {"objective": "latency"}, min((one for _, one in points), default=None))
    if goal == "latency within":
        within = max(0, worst + chance.choice([-1, 0, 1, 5]))
        least = min((one for ticks, one in points if ticks <= within), default=None)
        return GoalCell(model, k, {"objective": "latency", "max_bottleneck": f"{within}ps"}, least)
    within = max(0, total + chance.choice([-1, 0, 5]))
    least = min((ticks for ticks, one in points if one <= within), default=None)
    return GoalCell(model, k, {"max_latency": f"{within}ps"}, least)
