"""Plans for machines with links between pairs: verified, forged, and two nodes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_devices import NEVER
from random_neighbours import NeighbourCase, random_neighbours
from seeds import sampled

import mtpp
from mtpp.errors import Infeasible, InputError

SEEDS = sampled(range(10_000), 200)
FREE_TO_CHANGE = ("seed", "evaluations", "elapsed_s", "ticks_per_unit", "merges")
"""Numbers that say nothing about the plan; merges may be others that hold as well."""


def plan_of(case: NeighbourCase, folder: Path, *, free: bool) -> dict[str, Any] | None:
    """Return the document of a plan that embeds its graph; None where there is no plan."""
    (folder / "graph.json").write_text(json.dumps(case.document()))
    model = mtpp.read(folder / "graph.json", machine=case.machine(free=free))
    try:
        plan = mtpp.partition(model, work_limit=300)
    except Infeasible:
        return None
    document: dict[str, Any] = json.loads(json.dumps(plan.document(embed=True)))
    return document


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all numbers of a document but for its graph."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in (*FREE_TO_CHANGE, "graph"):
                yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from numbers(inner, (*path, i))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path


def forged(document: dict[str, Any], chance: Random) -> dict[str, Any]:
    """Return a document with one number changed; a proof within a wider limit would be one as well."""
    found = copy.deepcopy(document)
    place = chance.choice([place for place in numbers(document) if place[-2:] != ("proof", "limit")])
    within: Any = found
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = max(0, within[place[-1]] + chance.choice([-3, -1, 1, 2, 10]))
    return found


def passes(document: dict[str, Any]) -> bool:
    """Tell whether a document is verified; one that is malformed is not."""
    try:
        return bool(mtpp.verify(document).passed)
    except InputError:
        return False


@pytest.mark.parametrize("seed", SEEDS)
def test_verified_and_never_forged(seed: int, tmp_path: Path) -> None:
    """The plan is optimal and verified; with any number changed it is not."""
    case, chance = random_neighbours(seed), Random(seed)
    free = chance.random() < 0.5
    document = plan_of(case, tmp_path, free=free)
    optimum = case.optimum(case.count, free=free)
    if document is None:
        assert optimum == NEVER
        return
    assert document["bottleneck"] == optimum
    assert document["optimal"]
    assert passes(document)
    for _ in range(3):
        changed = forged(document, chance)
        if changed["k"] != document["k"]:  # fewer devices may be as good
            assert not passes(changed) or case.optimum(changed["k"], free=free) == optimum
        else:
            assert changed == document or not passes(changed)


def test_labels_that_are_dropped_later_count_for_nothing(tmp_path: Path) -> None:
    """On its way the search has more labels than at its end, and the proof holds."""
    case = random_neighbours(40_814)
    document = plan_of(case, tmp_path, free=True)
    assert document is not None
    assert document["lower_bound"]["method"] == "downset"
    assert passes(document)


@pytest.mark.parametrize("goal", [{"objective": "latency"}, {"frontier": True}, {"max_latency": "70ns"}])
def test_the_latency_of_one_device_without_links(tmp_path: Path, goal: dict[str, Any]) -> None:
    """No boundary may follow its stage; the search is run again all the same."""
    ops = [{"name": "a", "work": 0}, {"name": "b", "work": 22, "param_bytes": 7}]
    tensors = [{"name": "unread", "producer": "a", "consumers": [], "bytes": 9}]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ns", "ops": ops, "tensors": tensors}
    (tmp_path / "machine.toml").write_text(
        'transport = "neighbours"\n[[device]]\nsystem = {fast_memory = "14B", bandwidth = "1GB/s", peak = "order"}\n'
    )
    plan = mtpp.partition(mtpp.read(graph, machine=tmp_path / "machine.toml"), **goal)
    assert (plan.latency, plan.optimal) == (24_000, True)
    document = plan.document(embed=True)
    assert mtpp.verify(document).passed
    document["graph"]["tensors"][0]["transfer"] = 1
    assert mtpp.verify(document, mtpp.read(graph)).verdict == "false"


def goal_of(points: list[tuple[int, int]], chance: Random) -> tuple[dict[str, Any], int | None]:
    """Return what may be asked of a plan where latency counts, and the least objective; None: there is no plan."""
    worst, total = chance.choice(points) if points else (50, 50)
    within = max(0, chance.choice([0, 1, 5]) + worst)
    at_most = max(0, chance.choice([-1, 0, 5]) + total)
    return chance.choice(
        [
            ({"objective": "latency"}, min((latency for _, latency in points), default=None)),
            (
                {"objective": "latency", "max_bottleneck": f"{within}ps"},
                min((latency for ticks, latency in points if ticks <= within), default=None),
            ),
            (
                {"max_latency": f"{at_most}ps"},
                min((ticks for ticks, latency in points if latency <= at_most), default=None),
            ),
            ({"frontier": True}, points[0][0] if points else None),
        ]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_latency_and_frontier(seed: int, tmp_path: Path) -> None:
    """The least latency, also within a bottleneck, the least bottleneck within a latency, and all between them."""
    case, chance = random_neighbours(seed), Random(seed)
    free, most = chance.random() < 0.5, chance.randint(1, case.count)
    points = case.frontier(most, free=free)
    asked, least = goal_of(points, chance)
    (tmp_path / "graph.json").write_text(json.dumps(case.document()))
    model = mtpp.read(tmp_path / "graph.json", machine=case.machine(free=free))
    if least is None:
        with pytest.raises(Infeasible, match="proven"):
            mtpp.partition(model, most, work_limit=2_000, **asked)
        return
    document = json.loads(json.dumps(mtpp.partition(model, most, work_limit=2_000, **asked).document(embed=True)))
    assert document[document["objective"]] == least
    assert document["optimal"]
    assert passes(document)
    if "frontier" in asked:
        found = document["frontier"]
        assert [(point["bottleneck"], point["latency"]) for point in found] == points
        assert all(point["lower_bound"]["value"] == point["latency"] for point in found)
    changed = forged(document, chance)
    if changed != document and changed["k"] == document["k"]:
        assert not passes(changed)


@pytest.mark.parametrize("seed", SEEDS)
def test_fewest_devices(seed: int, tmp_path: Path) -> None:
    """The least number of devices on which no stage takes longer, and none where all do not suffice."""
    case, chance = random_neighbours(seed), Random(seed)
    free = chance.random() < 0.5
    least = [case.optimum(used, free=free) for used in range(1, case.count + 1)]
    within = chance.choice([*(ticks for ticks in least if ticks < NEVER), 50])
    (tmp_path / "graph.json").write_text(json.dumps(case.document()))
    model = mtpp.read(tmp_path / "graph.json", machine=case.machine(free=free))
    if least[-1] > within:
        with pytest.raises(Infeasible, match="proven"):
            mtpp.partition(model, max_bottleneck=f"{within}ps")
        return
    plan = mtpp.partition(model, max_bottleneck=f"{within}ps")
    assert plan.k == next(used for used, ticks in enumerate(least, 1) if ticks <= within)
    assert plan.bottleneck <= within


@pytest.mark.parametrize("seed", SEEDS)
def test_other_links_are_other_problems(seed: int, tmp_path: Path) -> None:
    """A plan said to be for a machine with other links is verified only where it is the best there, at that cost."""
    case, chance = random_neighbours(seed), Random(seed)
    free = chance.random() < 0.5
    document = plan_of(case, tmp_path, free=free)
    if document is None or not case.links:
        return
    at = chance.randrange(len(case.links))
    pair, (bandwidth, latency, speed) = case.links[at]
    figures = chance.choice([(bandwidth, 7, speed), (10**11, latency, speed), (4 * 10**12, 0, speed)])
    other = replace(case, links=(*case.links[:at], (pair, figures), *case.links[at + 1 :]))
    document["machine"] = json.loads(json.dumps(other.machine(free=free).to_document()))
    if passes(document):
        assert other.optimum(case.count, free=free) == document["bottleneck"]


MACHINE = """
transport = "neighbours"
order = "{order}"
[[device]]
name = "left"
count = 2
[[device]]
name = "right"
count = 2
[[link]]
between = ["left", "left"]
bandwidth = "300GB/s"
[[link]]
between = ["right", "right"]
bandwidth = "300GB/s"
[[link]]
between = ["left", "right"]
bandwidth = "3GB/s"
latency = "50us"
"""


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_two_nodes(order: str, tmp_path: Path) -> None:
    """ResNet-50 on two nodes with fast links inside and a slow one between: proven, and verified against the model."""
    (tmp_path / "machine.toml").write_text(MACHINE.format(order=order))
    model = mtpp.datasets.sample_path("resnet50")
    plan = mtpp.partition(mtpp.read(model, machine=tmp_path / "machine.toml"))
    assert plan.optimal
    assert mtpp.verify(plan, model, machine=tmp_path / "machine.toml").passed
    document = plan.document()
    assert document["machine"]["transport"] == "neighbours"
    assert [link["between"] for link in document["machine"]["links"]] == [
        ["left", "left"],
        ["right", "right"],
        ["left", "right"],
    ]
    for rule in ("even", "slice"):
        assert (
            mtpp.partition(mtpp.read(model, machine=tmp_path / "machine.toml"), algorithm=rule).bottleneck
            >= plan.bottleneck
        )
