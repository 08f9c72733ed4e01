"""Chains of equal layers on devices with times of stages: against brute force, documents held to their proofs."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_chains import RESERVE, RandomChain, random_chain

import mtpp
from mtpp.checker.bounds.chain import check_chain
from mtpp.checker.claim import BoundClaim
from mtpp.checker.machine import placed_graph
from mtpp.errors import Infeasible, InputError
from mtpp.formats.graphs.native import to_document
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.replicas.costs import replica_costs
from mtpp.inference.replicas.partition import ReplicatedPartition, replicating
from mtpp.solvers.bounds.downset import bound
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.unequal.partition import partition_unequal
from mtpp.solvers.unequal.replicated import partition_replicated


@pytest.mark.parametrize("seed", range(200))
def test_best_plan_of_random_chains(seed: int) -> None:
    """The least bottleneck, proven; or proven that there is no plan."""
    case, draw = random_chain(Random(seed)), Random(seed + 10**6)
    order, most = draw.choice(("fixed", "free")), draw.randint(1, len(case.devices))
    due = case.optimum(order, most)
    instance = Instance.build(case.graph(), case.machine(order), most_used=most)
    if due is None:
        with pytest.raises(Infeasible, match="proven infeasible"):
            partition_unequal(instance, SearchLimits(UNLIMITED))
        return
    found = partition_unequal(instance, SearchLimits(UNLIMITED))
    assert found.bottleneck == due
    assert found.devices is not None
    assert stage_costs(instance.on(found.devices), found.partition).bottleneck == due
    assert due == 0 or (found.lower is not None and found.lower.value == due)
    alone = bound(instance, BoundLimits(due))
    assert due == 0 or (alone.lower is not None and alone.lower.value == due)


@pytest.mark.parametrize("times", [["4ps", "126ps"], ["3ps"]])
def test_transfers_do_not_bound_stages_on_several_devices(times: list[str], tmp_path: Path) -> None:
    """Times of stages hold those of tensors, however long these are."""
    path = tmp_path / "machine.toml"
    path.write_text(f"[[device]]\ncount = 4\nstage_times = {times}\n")
    ops = [{"name": name, "work": 7} for name in "ab"]
    tensors = [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 60}]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps", "ops": ops, "tensors": tensors}
    plan = mtpp.partition(mtpp.read(json.dumps(graph).encode(), machine=path), replicas=True)
    assert (plan.bottleneck, plan.optimal) == (2, True)
    assert mtpp.verify(json.loads(json.dumps(plan.document(embed=True)))).passed


@pytest.mark.parametrize("replicas", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_checker_takes_true_proofs_alone(seed: int, replicas: bool) -> None:
    """Proofs hold as they are, and not for a bound above the optimum, whatever the prices."""
    case, draw = random_chain(Random(seed)), Random(seed + 10**6)
    order, most = draw.choice(("fixed", "free")), draw.randint(1, len(case.devices))
    graph, machine = case.graph(), case.machine(order)
    instance = Instance.build(graph, machine, most_used=most)
    due = case.replicated_optimum(order, most) if replicas else case.optimum(order, most)
    search, asked = partition_unequal, instance
    if replicas:
        search, asked = partition_replicated, replicating(instance)
    if due is None:
        with pytest.raises(Infeasible, match="proven infeasible"):
            search(asked, SearchLimits(UNLIMITED))
        return
    found = search(asked, SearchLimits(UNLIMITED))
    assert found.bottleneck == due
    if replicas:
        assert isinstance(found.partition, ReplicatedPartition)
        costs = replica_costs(instance, found.partition)
        assert costs.keep_memory
        assert costs.bottleneck == due
    if found.lower is None:
        assert due == 0
        return
    placed = placed_graph(machine.to_document(), to_document(graph), most, None, embedded=False)

    def holds(**changes: Any) -> bool:
        proof = {**found.lower.proof, **changes} if found.lower is not None else {}
        of_classes = (placed.by_class, placed.class_of)
        claim = BoundClaim(placed.envelope, placed.best, most, [], proof["cutoff"], proof, ("proof",), *of_classes)
        return check_chain(claim)[0]

    proof = found.lower.proof
    assert holds()
    assert not holds(cutoff=due + 1)
    if "rule" in proof:
        return
    assert not holds(labels=proof["labels"] + 1)
    assert not holds(digest=proof["digest"][::-1])
    for name in proof.get("prices", ()):
        assert not holds(cutoff=due + 1, prices={**proof["prices"], name: draw.randint(0, 2**33)}, labels=10**6)


def _document(case: RandomChain, order: str, most: int, folder: Path) -> dict[str, Any] | None:
    """Return the plan of a chain as a document that embeds the graph; None where there is no plan."""
    (folder / "graph.json").write_text(json.dumps(_graph(case)))
    (folder / "machine.toml").write_text(_machine(case, order))
    model = mtpp.read(folder / "graph.json", machine=folder / "machine.toml")
    try:
        document: dict[str, Any] = json.loads(json.dumps(mtpp.partition(model, most).document(embed=True)))
    except Infeasible:
        return None
    return document


@pytest.mark.parametrize("seed", range(30))
def test_tensors_cost_nothing_where_stages_have_times(seed: int, tmp_path: Path) -> None:
    """However long tensors take, the least bottleneck with replicas is found, and verified."""
    case, draw = random_chain(Random(seed)), Random(seed + 10**6)
    case = replace(case, moved=tuple(1000 * (1 + moved) for moved in case.moved))
    order, most = draw.choice(("fixed", "free")), draw.randint(1, len(case.devices))
    due = case.replicated_optimum(order, most)
    (tmp_path / "graph.json").write_text(json.dumps(_graph(case)))
    (tmp_path / "machine.toml").write_text(_machine(case, order))
    given = {"machine": tmp_path / "machine.toml", "activation_reserve": f"{RESERVE}B"}
    model = mtpp.read(tmp_path / "graph.json", **given)
    if due is None:
        with pytest.raises(Infeasible, match="proven infeasible"):
            mtpp.partition(model, most, replicas=True)
        return
    plan = mtpp.partition(model, most, replicas=True)
    assert (plan.bottleneck, plan.optimal) == (due, True)
    assert mtpp.verify(plan, model).passed


def _graph(case: RandomChain) -> dict[str, Any]:
    ops = [
        {"name": f"o{v}", "work": w, "param_bytes": p}
        for v, (w, p) in enumerate(zip(case.work, case.params, strict=True))
    ]
    tensors = [
        {"name": f"t{v}", "producer": f"o{v}", "consumers": [f"o{v + 1}"], "bytes": 1, "transfer": moved}
        for v, moved in enumerate(case.moved)
    ]
    weights = [] if case.shared is None else [
        {"name": "w", "bytes": case.shared[0], "readers": [f"o{v}" for v in case.shared[1]]}
    ]  # fmt: skip
    head = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps"}
    return {**head, "ops": ops[::-1], "tensors": tensors, "weights": weights}


def _machine(case: RandomChain, order: str) -> str:
    lines = [f'order = "{order}"']
    for one in case.devices:
        lines += ["[[device]]", 'bandwidth = "1TB/s"']
        if one.times:
            lines += [f"stage_times = {json.dumps([f'{time}ps' for time in one.times])}"]
        else:
            fast = "" if one.fast is None else f', fast_memory = "{one.fast}B"'
            rates = f'peak_flops = "1TFLOP/s", memory_bandwidth = "1TB/s", bandwidth = "1TB/s"{fast}'
            lines += [f"system = {{ {rates} }}", f'speed = "{one.speed}"', f'latency = "{one.latency}ps"']
        lines += [f'link_speed = "{one.link_speed}"']
        lines += [] if one.limit is None else [f'memory = "{one.limit}B"']
    return "\n".join(lines) + "\n"


def _mutated(value: Any, draw: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + draw.choice((-3, -1, 1, 2)))
    if isinstance(value, str) and len(value) == 64:
        return value[::-1]
    return None


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all numbers and digests in a document."""
    if isinstance(value, dict):
        return [place for key, inner in value.items() for place in _numbers(inner, (*path, key))]
    if isinstance(value, list):
        return [place for i, inner in enumerate(value) for place in _numbers(inner, (*path, i))]
    return [path] if isinstance(value, int) or (isinstance(value, str) and len(value) == 64) else []


@pytest.mark.parametrize("seed", range(60))
def test_documents_hold_and_forged_ones_do_not(seed: int, tmp_path: Path) -> None:
    """What is written verifies; a plan with a forged number does not, unless other prices prove the same."""
    case, draw = random_chain(Random(seed)), Random(seed + 10**6)
    order, most = draw.choice(("fixed", "free")), draw.randint(1, len(case.devices))
    document = _document(case, order, most, tmp_path)
    if document is None:
        return
    report = mtpp.verify(document)
    assert report.passed, report.sentence
    claims = ("machine", "lower_bound", "stages", "assignment", "k", "bottleneck", "latency")
    places = [place for place in _numbers(document) if place[0] in claims]
    for place in draw.sample(places, min(25, len(places))):
        forged = copy.deepcopy(document)
        inner = forged
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = _mutated(inner[place[-1]], draw)
        if forged == document:
            continue
        try:
            passed = mtpp.verify(forged, tmp_path / "graph.json", machine=tmp_path / "machine.toml").passed
        except InputError:
            continue
        other_prices = place[0] == "lower_bound" and ("prices" in place or "price_of_any" in place)
        assert not passed or other_prices, place
