"""Weights that several ops read: stages hold each once, bounds never more than in truth."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_strategies import chain, random_graph
from optimum_campaign import verified_plans
from oracles import stage_figures
from seeds import sampled

import mtpp
from mtpp.errors import InputError
from mtpp.formats.graphs.graphml import write_graphml
from mtpp.formats.graphs.native import write_native
from mtpp.formats.graphs.node_link import write_node_link
from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.weights import NO_WEIGHTS, Weight, Weights
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.arrays import slicing_arrays
from mtpp.solvers.local_search.assignment import assignment_state, move_arrays
from mtpp.solvers.local_search.kernels.moves import memory_after, move_op, start_from
from mtpp.solvers.orders.kernels.slicing import best_segmentation


def with_weights(graph: CostGraph, *rows: tuple[int, list[str]]) -> CostGraph:
    """Return the graph with weights that several ops read: bytes and readers of each."""
    weights = [Weight(f"w{i}", size, readers) for i, (size, readers) in enumerate(rows)]
    return replace(graph, weights=Weights.build(weights, graph.op_names))


def random_case(seed: int) -> tuple[CostGraph, Device, int]:
    """Return a graph of 2 to 7 ops with one to three shared weights, a device whose memory binds, and k."""
    pick = random.Random(seed)
    graph = random_graph(seed, pick.randint(2, 7), time_unit="ps", largest_cost=pick.choice((3, 20, 100)))
    names = list(graph.op_names)
    rows = [
        (pick.choice((1, 10, pick.randint(0, 60))), pick.sample(names, pick.randint(1, min(len(names), 4))))
        for _ in range(pick.randint(1, 3))
    ]
    graph = with_weights(graph, *rows)
    peak = pick.choice(("reserve", "reserve", "order"))
    reserve = pick.choice((0, 3)) if peak == "reserve" else 0
    room = sum(max(size, 0) for size in graph.tensor_bytes.tolist()) // 2 if peak == "order" else reserve
    limit = pick.choice((None, int(graph.all_bytes * (0.3 + 0.8 * pick.random())) + room))
    fast = pick.choice((None, max(reserve, int(graph.all_bytes * pick.random()))))
    device = Device("d", 10**12, 10**11, Link(10**12), fast, reserve, peak, memory_bytes=limit)
    return graph, device, pick.randint(1, 4)


@pytest.mark.filterwarnings("ignore::mtpp.MtppWarning")
@pytest.mark.parametrize("first", [0, pytest.param(15, marks=pytest.mark.slow)])
def test_partitions_and_bounds_meet_brute_force(first: int, tmp_path: Path) -> None:
    """Every optimum is found, proven and verified."""
    seeds = range(15) if first == 0 else sampled(range(first, 240), 100)
    for seed, best, document in verified_plans(seeds, random_case, tmp_path):
        assert best == document["bottleneck"] == document["lower_bound"]["value"], seed


def test_every_stage_that_reads_a_weight_holds_it_once() -> None:
    """Stages hold weights whole; sums over ops hold each weight once in all."""
    graph = with_weights(chain([1, 2, 3, 4], [1, 1, 1], "ps"), (100, ["op0", "op3", "op1"]), (7, ["op2"]))
    graph = replace(graph, param_bytes=np.array([1, 2, 3, 4], dtype=np.int64))
    instance = Instance.build(graph, Machine.uniform(2, Device("d", 1, 1, Link(1))))
    costs = stage_costs(instance, Partition.from_stages(instance, np.array([0, 0, 1, 1], dtype=np.int32)))
    assert costs.param_bytes.tolist() == [103, 114]
    whole = stage_costs(instance, Partition.from_stages(instance, np.zeros(4, dtype=np.int32)))
    assert whole.param_bytes.tolist() == [117, 0]
    assert instance.param_bytes.tolist() == [1, 2 + 100, 3 + 7, 4]
    assert instance.cost.read_bytes.tolist() == [101, 102, 10, 104]
    merged = contract(instance, [[0, 1]]).instance
    assert merged.param_bytes.tolist() == [103, 10, 4]
    assert merged.cost.own_bytes.tolist() == [3, 10, 4]
    assert merged.cost.weights.shares.tolist() == [100, 0]


@pytest.mark.parametrize("seed", range(6))
def test_searches_count_weights_as_costs_do(seed: int) -> None:
    """Moves and cuts of an order find the bytes and costs that the definition gives."""
    graph, device, _ = random_case(1000 + seed)
    half = max(device.activation_reserve_bytes, graph.all_bytes // 2)
    device = replace(device, fast_memory_bytes=half, memory_bytes=None)
    k = 3
    instance = Instance.build(graph, Machine.uniform(k, device))
    n, pick = instance.op_count, random.Random(seed)
    moves = move_arrays(instance, k)
    state = assignment_state(moves, k, 1)
    start_from(np.zeros(n, dtype=np.int32), moves, state)
    for _ in range(40):
        op, target = pick.randrange(n), pick.randrange(k)
        source = int(state.stage[op])
        if source != target:
            told = memory_after(op, source, target, moves, state)
            move_op(op, target, moves, state)
            assert told == (
                state.cost[source] - state.moved[source],
                state.cost[target] - state.moved[target],
            )
        groups = [[v for v in range(n) if state.stage[v] == s] for s in range(k)]
        figures = [stage_figures(graph, device, group, k) for group in groups]
        assert state.params.tolist() == [figure["param_bytes"] for figure in figures]
    cuts = [(i, j) for i in range(n + 1) for j in range(i, n + 1)]
    order = instance.order.tolist()
    best = min(
        max(stage_figures(graph, device, part, k)["cost"] for part in (order[:i], order[i:j], order[j:]))
        for i, j in cuts
    )
    assert best_segmentation(instance.order.copy(), k, best + 1, slicing_arrays(instance)) == best


@pytest.mark.parametrize(
    ("row", "where"),
    [
        (Weight("", 1, ["op0"]), "/weights/0/name"),
        (Weight("w", -1, ["op0"]), "/weights/0/bytes"),
        (Weight("w", 2**62, ["op0"]), "/weights/0/bytes"),
        (Weight("w", 1, []), "/weights/0/readers"),
        (Weight("w", 1, ["op0", "op9"]), "/weights/0/readers/1"),
        (Weight("w", 1, ["op0", "op1", "op0"]), "/weights/0/readers/2"),
    ],
)
def test_malformed_weights_are_refused_with_their_place(row: Weight, where: str) -> None:
    """Each fault is named with its JSON pointer."""
    with pytest.raises(InputError) as caught:
        Weights.build([row], ["op0", "op1"])
    assert caught.value.where == where


def test_weights_survive_files_and_networkx(tmp_path: Path) -> None:
    """Native, node-link and GraphML files and networkx graphs bring weights back."""
    graph = with_weights(chain([1, 2, 3], [1, 1], "ps"), (100, ["op0", "op2"]))
    (tmp_path / "graph.json").write_text(write_native(graph))
    (tmp_path / "links.json").write_text(write_node_link(graph))
    (tmp_path / "graph.graphml").write_text(write_graphml(graph))
    files = ("graph.json", "links.json", "graph.graphml")
    read = [mtpp.read(str(tmp_path / name)).graph for name in files]
    for other in (*read, CostGraph.from_networkx(graph.to_networkx())):
        assert other.weights.rows(other.op_names) == [Weight("w0", 100, ["op0", "op2"])]
    plain = replace(graph, weights=Weights.build([], graph.op_names))
    assert not any("weights" in write(plain) for write in (write_native, write_node_link, write_graphml))


def test_forged_weights_are_found(tmp_path: Path) -> None:
    """A plan whose stage says that it holds half of a weight is refused."""
    graph = with_weights(chain([5, 5, 5], [1, 1], "ps"), (100, ["op0", "op2"]))
    file = tmp_path / "graph.json"
    file.write_text(write_native(graph))
    plan = mtpp.partition(mtpp.read(str(file), stage_memory="100B"), 2)
    document = json.loads(plan.to_json())
    assert [stage["param_bytes"] for stage in document["stages"]] == [100, 100]
    document["stages"][1]["param_bytes"] = 50
    (tmp_path / "plan.json").write_text(json.dumps(document))
    assert mtpp.verify(str(tmp_path / "plan.json"), model=str(file)).verdict == "false"


def test_training_keeps_a_weight_at_each_op_that_reads_it(tmp_path: Path) -> None:
    """Two graphs with the same training plans: one lists a weight of two ops, one gives it to both of them."""
    graph = with_weights(chain([5, 5, 5, 5], [1, 1, 1], "ms"), (100, ["op0", "op3"]))
    graph = replace(graph, tensor_bytes=np.full(3, 8, dtype=np.int64))
    twice = replace(graph, weights=NO_WEIGHTS, param_bytes=np.array([100, 0, 0, 100], dtype=np.int64))
    planner = mtpp.Pfeife(micro_batches=2)
    found = []
    for number, one in enumerate((graph, twice)):
        file, plan = tmp_path / f"{number}.json", tmp_path / f"{number}-plan.json"
        file.write_text(write_native(one))
        made = mtpp.plan_training(str(file), planner=planner, devices=2, memory="900B")
        plan.write_text(made.to_json())
        assert mtpp.verify(str(plan), model=str(file)).verdict == "ok"
        document = json.loads(made.to_json())
        found.append((document["lower_bound"]["value"], document["stages"], document["schedule"]))
    assert found[0] == found[1]


def test_a_plan_alone_knows_what_one_stage_would_hold(tmp_path: Path) -> None:
    """Without its graph, a plan's total of parameters counts a weight of two stages once; a forged total is found."""
    graph = with_weights(chain([5, 5, 5, 5], [1, 1, 1], "ps"), (100, ["op0", "op3"]))
    file, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    file.write_text(write_native(graph))
    made = mtpp.partition(mtpp.read(str(file), stage_memory="100B"), 2)
    plan.write_text(made.to_json())
    assert "1.82" in made.text()
    assert "1.82" in mtpp.load(str(plan)).text()
    document = json.loads(made.to_json())
    document["model"]["param_bytes"] = 200
    plan.write_text(json.dumps(document))
    assert mtpp.verify(str(plan), model=str(file)).verdict == "false"


@pytest.mark.filterwarnings("ignore::mtpp.MtppWarning")
def test_series_parallel_refuses_sums_of_weights_beyond_its_integers(tmp_path: Path) -> None:
    """A weight of 2^60 bytes that 20 ops read counts 20 times there; other algorithms take it."""
    graph = chain([1] * 20, [1] * 19, "ps")
    file = tmp_path / "graph.json"
    file.write_text(write_native(with_weights(graph, (2**60, list(graph.op_names)))))
    model = mtpp.read(str(file), fast_memory="100B", bandwidth="1TB/s")
    with pytest.raises(InputError, match="2\\^61"):
        mtpp.partition(model, 3, algorithm="series-parallel")
    assert mtpp.partition(model, 3, algorithm="slice").bottleneck > 0


@pytest.mark.parametrize(
    "row", [None, 5, {}, {"bytes": 1}, {"bytes": 1, "readers": "op0"}, {"bytes": 1, "readers": None}]
)
def test_malformed_weights_of_networkx_graphs_are_refused(row: Any) -> None:
    """One line for each; a foreign graph's own attribute of that name is passed over."""
    graph = chain([1, 2], [1], "ps").to_networkx()
    graph.graph["weights"] = {"w": row}
    with pytest.raises(InputError):
        CostGraph.from_networkx(graph)
    del graph.graph["tensors"]
    for node in graph.nodes:
        graph.nodes[node]["transfer"] = 1
    assert CostGraph.from_networkx(graph).weights.names == ()


def test_inspection_counts_a_weight_once_in_each_kind(tmp_path: Path) -> None:
    """Kinds and the total hold it once, each op that reads it whole."""
    graph = with_weights(chain([1, 2, 3], [1, 1], "ps"), (100, ["op0", "op2"]))
    file = tmp_path / "graph.json"
    file.write_text(write_native(graph))
    document = json.loads(mtpp.inspect(mtpp.read(str(file)), ops=True).to_json())
    assert document["param_bytes"] == 100
    assert [row["param_bytes"] for row in document["kinds"]] == [100]
    assert [row["param_bytes"] for row in document["ops"]] == [100, 0, 100]
