"""Plans in whose goals latency counts: reference values, random graphs, frontiers; forged figures and proofs."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_devices import random_case
from reference_machines import machine_text
from seeds import sampled

import mtpp

WITHIN = ("1.0", "1.1", "1.5", "2.0")


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample as a graph with parameters."""
    path = tmp_path_factory.mktemp("graphs") / "resnet50_p.json"
    mtpp.convert(mtpp.datasets.sample_path("resnet50"), path)
    return path


def machine_of(model: Path, devices: list[dict[str, Any]], order: str, path: Path) -> Path:
    """Write the machine of a reference value for a model."""
    params = sum(op.get("param_bytes", 0) for op in json.loads(model.read_text())["ops"])
    text = machine_text(devices, order, params)
    path.write_text(text.replace("[[device]]", '[[device]]\nbandwidth = "25GB/s"'))
    return path


@pytest.mark.parametrize("machine", ["2-slow-2-fast", "fast-first", "eight", "tight"])
@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("name", ["resnet50_p", "convnext"])
def test_reference_values(
    name: str, order: str, machine: str, resnet: Path, shared_data: Path, shared_reference: Path, tmp_path: Path
) -> None:
    """Exactly the least latency, also within so many times the least bottleneck, proven; and the proofs hold."""
    reference = json.loads((shared_reference / "machine.json").read_text())
    due = reference["latency"][f"{name} {machine}"]
    words = "" if order == "fixed" else "free "
    model = resnet if name == "resnet50_p" else shared_data / "instances" / f"{name}.json"
    path = machine_of(model, reference["about"]["machines"][machine], order, tmp_path / "machine.toml")
    read = mtpp.read(model, machine=path)
    assert mtpp.partition(read).bottleneck == due[f"{words}bottleneck"]
    for factor in (None, *WITHIN):
        key = f"{words}latency" if factor is None else f"{words}latency within {factor}"
        if key not in due:
            continue
        limit = None if factor is None else f"{int(Fraction(factor) * due[f'{words}bottleneck'])}ps"
        plan = mtpp.partition(read, objective="latency", max_bottleneck=limit)
        assert (plan.objective, plan.latency, plan.optimal) == ("latency", due[key], True), key
        found = mtpp.verify(plan, model)
        assert found.verdict == "ok", found.sentence


@pytest.mark.parametrize(("order", "points"), [("fixed", 13), ("free", 43)])
def test_reference_frontiers(order: str, points: int, resnet: Path, shared_reference: Path, tmp_path: Path) -> None:
    """As many points as there are, each proven, and the proofs hold."""
    devices = json.loads((shared_reference / "machine.json").read_text())["about"]["machines"]["2-slow-2-fast"]
    path = machine_of(resnet, devices, order, tmp_path / "machine.toml")
    plan = mtpp.partition(mtpp.read(resnet, machine=path), frontier=True)
    assert len(plan.frontier) == points
    assert plan.optimal
    assert all(point["latency"] == point["lower_bound"]["value"] for point in plan.frontier)
    found = mtpp.verify(plan, resnet)
    assert found.verdict == "ok", found.sentence


@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_frontiers_that_stay_open(order: str, seed: int) -> None:
    """The first point is no worse than the plan of a plain search with the same number of evaluations."""
    chance = Random(seed)
    case = replace(
        random_case(seed),
        work=tuple(chance.randint(5, 35) for _ in range(40)),
        params=(0,) * 40,
        tensors=tuple((v, (20 + v, 20 + (7 * v + 3) % 20), chance.randint(0, 3), 4) for v in range(20)),
        weights=(),
        devices=tuple((Fraction(speed), Fraction(1), 0, None, None) for speed in (1, 2, "3/2", 1, 3)),
    )
    model = mtpp.read(json.dumps(case.document()).encode(), machine=case.machine(free=order == "free"))
    for evaluations in (10, 100):
        plain = mtpp.partition(model, work_limit=evaluations)
        assert mtpp.partition(model, work_limit=evaluations, frontier=True).bottleneck <= plain.bottleneck


@cache
def plans_of(seed: int) -> list[dict[str, Any]]:
    """Return plans of a random case for each kind of goal, which embed their graph; none where there is no plan."""
    case, chance = random_case(seed), Random(seed)
    free = chance.random() < 0.5
    model = mtpp.read(json.dumps(case.document()).encode(), machine=case.machine(free=free))
    pairs = case.frontier(len(case.devices), free=free)
    if not pairs:
        return []
    tops, sums = zip(*pairs, strict=True)
    goals: list[dict[str, Any]] = [
        {"objective": "latency"},
        {"objective": "latency", "max_bottleneck": f"{chance.choice(tops)}ps"},
        {"max_latency": f"{chance.choice(sums)}ps"},
        {"frontier": True},
    ]
    documents = []
    for goal in goals:
        plan = mtpp.partition(model, **goal)
        if "frontier" in goal:
            assert [(point["bottleneck"], point["latency"]) for point in plan.frontier] == pairs
        assert plan.optimal
        documents.append(json.loads(json.dumps(plan.document(embed=True))))
    return documents


@pytest.mark.parametrize("seed", sampled(range(2_000), 40))
def test_random_plans_are_verified(seed: int) -> None:
    """Plans of random graphs and their proofs hold, and the frontier is that of brute force."""
    for document in plans_of(seed):
        found = mtpp.verify(document)
        assert found.verdict == "ok", found.sentence


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all whole numbers in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [place for key, one in items for place in numbers_in(one, (*path, key))]
    return [path] if isinstance(value, int) and not isinstance(value, bool) else found


CLAIMS = ("lower_bound", "bottleneck", "latency", "frontier", "max_bottleneck", "max_latency", "stages", "ratio")


def forge(document: dict[str, Any], chance: Random) -> dict[str, Any] | None:
    """Return a document with one number of what it claims changed; None where the new claim may be as true."""
    forged = copy.deepcopy(document)
    places = [place for place in numbers_in(document) if place[0] in CLAIMS]
    *way, last = place = chance.choice(places)
    if "assignment" in place or ("proof" in place and last not in ("cutoff", "k", "downsets", "labels")):
        return None  # others may do as well
    inside = forged
    for key in way:
        inside = inside[key]
    change = chance.choice([1, -1, 7])
    if inside[last] + change < 0:
        return None
    if place[0] == "frontier" and last in ("value", "cutoff") and change < 0:
        return None
    if last in ("max_bottleneck", "max_latency", "limit"):
        return None  # a limit that binds no plan may be another one
    inside[last] += change
    return forged


@pytest.mark.parametrize("seed", sampled(range(2_000), 40))
def test_forged_plans_are_never_verified(seed: int) -> None:
    """A changed cost, bottleneck, latency, bound, label count or point."""
    chance = Random(seed)
    for document in plans_of(seed):
        for _ in range(6):
            forged = forge(document, chance)
            if forged is None:
                continue
            try:
                found = mtpp.verify(forged)
            except mtpp.InputError:
                continue
            assert found.verdict != "ok", found.sentence


def test_a_bound_is_never_above_the_optimum(tmp_path: Path) -> None:
    """A bound above the least latency, with all that follows from it, fails whatever prices or search it names."""
    for seed in range(12):
        for document in plans_of(seed):
            own = document["lower_bound"]
            for value in (own["value"] + 1, own["value"] * 2 + 5):
                forged = copy.deepcopy(document)
                forged["lower_bound"]["value"] = forged["lower_bound"]["proof"]["cutoff"] = value
                try:
                    assert mtpp.verify(forged).verdict != "ok"
                except mtpp.InputError:
                    continue


@pytest.mark.parametrize(
    ("goal", "parameter"),
    [
        ({"objective": "latency", "max_latency": 9}, "max_latency"),
        ({"objective": "speed"}, "objective"),
        ({"frontier": True, "objective": "latency"}, "frontier"),
        ({"frontier": True, "max_latency": 9}, "frontier"),
        ({"frontier": True, "max_bottleneck": 9}, "frontier"),
        ({"max_latency": 9, "max_bottleneck": 9}, "max_latency"),
        ({"max_latency": "9 parsecs"}, "max_latency"),
        ({"objective": "latency", "algorithm": "slice"}, "algorithm"),
    ],
)
def test_goals_that_do_not_go_together(goal: dict[str, Any], parameter: str) -> None:
    """One line that names the option."""
    case = random_case(3)
    with pytest.raises(mtpp.InputError, match=parameter):
        mtpp.partition(json.dumps({**case.document(), "time_unit": "1"}).encode(), 2, **goal)


def test_impossible_limits_are_proven_so() -> None:
    """No plan is below the least latency, or the least bottleneck."""
    graph = json.dumps(random_case(3).document()).encode()
    for goal in ({"max_latency": "0ps"}, {"objective": "latency", "max_bottleneck": "0ps"}):
        with pytest.raises(mtpp.Infeasible, match="proven infeasible"):
            mtpp.partition(graph, 2, **goal)  # type: ignore[arg-type]
