"""Relaxed graphs on devices that differ: no bound is above the optimum, each is verified, and forged ones are not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from random_devices import RandomCase, random_case
from random_neighbours import NeighbourCase, random_neighbours
from seeds import sampled

import mtpp
from mtpp.errors import Infeasible
from mtpp.inference.certificate import LowerBound
from mtpp.inference.instance import Instance
from mtpp.inference.relaxation import relax
from mtpp.solvers.relaxation.relaxed_search import RelaxedSearch
from mtpp.solvers.unequal.neighbours import exhaustive_problem, relaxed_problem

SEEDS = sampled(range(10_000), 200)
MEMORY = 2**24


def relaxed_bound(instance: Instance, upper: int, chance: Random) -> LowerBound | None:
    """Return the optimum of an instance without some random ops, *upper* at most, as a bound."""
    share = chance.choice([0.0, 0.3, 0.5])
    left_out = np.array([chance.random() < share for _ in range(instance.op_count)])
    left_out[chance.randrange(instance.op_count)] = False
    search = RelaxedSearch(relax(instance, left_out), 0, upper, MEMORY, lambda: False, relaxed_problem)
    while not search.closed:
        search.run(0, upper, 10_000)
    return search.bound


@pytest.mark.parametrize("seed", SEEDS)
def test_no_bound_is_above_the_optimum(seed: int) -> None:
    """Over all partitions by brute force, in both orders, on some of the devices or all."""
    chance, case = Random(seed), random_case(seed)
    free, most = chance.random() < 0.5, chance.randint(1, len(case.devices))
    instance = case.instance(most, free=free)
    optimum = case.optimum(most, free=free)
    found = relaxed_bound(instance, min(optimum, instance.most_ticks) + 1, chance)
    assert found is None or found.value <= optimum


@pytest.mark.parametrize("seed", SEEDS)
def test_no_bound_of_neighbours_is_above_the_optimum(seed: int) -> None:
    """With links of pairs that differ, where ops are merged and stages without ops pass on what crosses."""
    chance, case = Random(seed), random_neighbours(seed)
    free, most = chance.random() < 0.5, chance.randint(1, case.count)
    instance = case.instance(most, free=free)
    optimum = case.optimum(most, free=free)
    found = relaxed_bound(instance, min(optimum, instance.most_ticks) + 1, chance)
    assert found is None or found.value <= optimum


def planned(
    case: RandomCase | NeighbourCase, folder: Path, *, free: bool
) -> tuple[mtpp.PartitionPlan, Instance] | None:
    """Return the default plan of a case, and its instance; None if there is none."""
    path = folder / "graph.json"
    path.write_text(json.dumps(case.document()))
    model = mtpp.read(path, machine=case.machine(free=free))
    try:
        return mtpp.partition(model), model.instance(None)
    except Infeasible:
        return None


def claimed(plan: mtpp.PartitionPlan, found: LowerBound) -> dict[str, Any]:
    """Return a plan's document with another bound."""
    document: dict[str, Any] = json.loads(json.dumps(plan.document(embed=True)))
    document["lower_bound"] = {
        "value": found.value,
        "method": found.method,
        "tier": found.tier.value,
        "proof": json.loads(json.dumps(found.proof)),
    }
    document["found_by"], document["stopped"] = "anneal", "budget"
    document["optimal"] = found.value == plan.bottleneck
    document["ratio"] = plan.bottleneck / found.value
    return document


@pytest.mark.filterwarnings("ignore:device .* can hold no op")
@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize("seed", sampled(range(10_000), 60))
def test_proofs_are_verified(seed: int, tmp_path: Path, *, neighbours: bool) -> None:
    """The graph is relaxed again in the ticks of each class and searched; with anything changed that fails."""
    chance, case = Random(seed), random_neighbours(seed) if neighbours else random_case(seed)
    made = planned(case, tmp_path, free=chance.random() < 0.5)
    if made is None or made[1].equal_devices:
        return
    plan, instance = made
    found = relaxed_bound(instance, plan.bottleneck, chance)
    if found is None:
        return
    document = claimed(plan, found)
    verified = mtpp.verify(document)
    assert verified.passed, verified.sentence
    for key, value in forgeries(document, chance):
        forged = copy.deepcopy(document)
        proof = forged["lower_bound"]["proof"]
        proof.update({key: value} if key in proof else {"relaxed": {**proof["relaxed"], key: value}})
        if proof != document["lower_bound"]["proof"]:
            assert not mtpp.verify(forged).passed, (key, value)


def forgeries(document: dict[str, Any], chance: Random) -> list[tuple[str, Any]]:
    """Return changed values of keys of a proof, and of what it leaves out."""
    proof = document["lower_bound"]["proof"]
    relaxed, ops = proof["relaxed"], list(document["assignment"])
    changes: list[tuple[str, Any]] = [
        ("cutoff", proof["cutoff"] + 1),
        ("k", proof["k"] + 1),
        ("order", "fixed" if proof["order"] == "free" else "free"),
        ("downsets", proof["downsets"] + 1),
        ("labels", proof["labels"] + 1),
        ("digest", "0" * 64),
        ("left_out", [*relaxed["left_out"], "nothing"]),
        ("left_out", ops),
        ("bypassed", [*relaxed["bypassed"], chance.choice(ops), chance.choice(ops)] * 2),
        ("charged", {**relaxed["charged"], "nothing": ops[0]}),
        ("lowered", {"nothing": 1}),
        ("rules", ["fit", "relays", "maximal"]),
    ]
    neighbours = document["machine"]["transport"] == "neighbours"
    changes.append(("charged", {ops[0]: ops[-1]}) if neighbours else ("rules", ["fit", "relays"]))
    if "relays" in proof["rules"] and (proof["merges"] or relaxed["left_out"]):
        changes.append(("rules", ["fit"]))
    return changes


RELAY = """
transport = "neighbours"
[[device]]
name = "first"
memory = "5B"
[[device]]
name = "relay"
memory = "2B"
[[device]]
name = "far"
memory = "9B"
[[link]]
between = ["first", "far"]
link_speed = "1/5"
[[link]]
between = ["relay", "far"]
link_speed = "1/5"
"""


def test_a_stage_without_ops_still_passes_on_what_crosses(tmp_path: Path) -> None:
    """An op without work merges with its reader, but the device it stood on spares the first one the slow link."""
    graph = {
        "format": "mtpp-graph",
        "version": 1,
        "name": "relay",
        "time_unit": "us",
        "ops": [
            {"name": "heavy", "work": 100, "param_bytes": 5},
            {"name": "view", "work": 0},
            {"name": "light", "work": 10, "param_bytes": 9},
        ],
        "tensors": [
            {"name": "a", "producer": "heavy", "consumers": ["view"], "transfer": 10},
            {"name": "b", "producer": "view", "consumers": ["light"], "transfer": 10},
        ],
    }
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    (tmp_path / "machine.toml").write_text(RELAY)
    model = mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml")
    plan = mtpp.partition(model)
    assert plan.bottleneck == 110 * 10**6
    assert plan.optimal
    instance = model.instance(None)
    relaxation = relax(instance, np.zeros(3, dtype=np.bool_))
    for problem_of, value in ((relaxed_problem, 110), (exhaustive_problem, 150)):
        search = RelaxedSearch(relaxation, 0, 200 * 10**6, MEMORY, lambda: False, problem_of)
        while not search.closed:
            search.run(0, 200 * 10**6, 10_000)
        assert search.lower == value * 10**6
