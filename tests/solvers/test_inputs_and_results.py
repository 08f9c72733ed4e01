"""Inputs and results of a graph: working memory in order counts them while they are needed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
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
from mtpp.inference.relaxation import relax
from mtpp.inference.results import result_numbers
from mtpp.inference.weights import Weight, Weights
from mtpp.inference.working_memory import least_peaks
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.arrays import slicing_arrays
from mtpp.solvers.local_search.assignment import assignment_state, move_arrays
from mtpp.solvers.local_search.kernels.moves import start_from
from mtpp.solvers.orders.kernels.slicing import best_segmentation


def with_ends(graph: CostGraph, rows: list[Weight], results: list[str]) -> CostGraph:
    """Return the graph with the given inputs and results."""
    inputs = Weights.build(rows, graph.op_names, "inputs")
    return replace(graph, inputs=inputs, results=result_numbers(results, graph.tensor_names))


def random_ends(graph: CostGraph, pick: random.Random) -> CostGraph:
    """Return the graph with up to three inputs, and some of its tensors as results."""
    names = list(graph.op_names)
    rows = [
        Weight(f"x{i}", pick.choice((1, 10, pick.randint(0, 60))), pick.sample(names, pick.randint(1, len(names))))
        for i in range(pick.randint(0, 3))
    ]
    return with_ends(graph, rows, [name for name in graph.tensor_names if pick.random() < 0.4])


def random_case(seed: int) -> tuple[CostGraph, Device, int]:
    """Return a graph of 2 to 7 ops with inputs, results and weights, a device that counts peaks in order, and k."""
    pick = random.Random(seed)
    graph = random_graph(seed, pick.randint(2, 7), time_unit="ps", largest_cost=pick.choice((3, 20, 100)))
    graph = random_ends(graph, pick)
    names = list(graph.op_names)
    weights = [Weight("w", pick.randint(0, 60), pick.sample(names, min(2, len(names))))] if seed % 3 == 0 else []
    graph = replace(graph, weights=Weights.build(weights, names))
    room = sum(max(size, 0) for size in graph.tensor_bytes.tolist()) + int(graph.inputs.bytes.sum())
    most = graph.all_bytes + room
    limit = pick.choice((None, int(most * (0.2 + 0.8 * pick.random()))))
    fast = pick.choice((None, int(most * pick.random()))) if limit is not None else int(most * pick.random())
    return graph, Device("d", 10**12, 10**11, Link(10**12), fast, 0, "order", memory_bytes=limit), pick.randint(1, 4)


@pytest.mark.filterwarnings("ignore::mtpp.MtppWarning")
@pytest.mark.parametrize("first", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_partitions_and_bounds_meet_brute_force(first: int, tmp_path: Path) -> None:
    """No bound is above the optimum, no partition below it, and each plan is verified."""
    proven = 0
    seeds = range(40) if first == 0 else sampled(range(first, 240), 100)
    for seed, best, document in verified_plans(seeds, random_case, tmp_path):
        assert best <= document["bottleneck"], seed
        proven += document["optimal"]
    assert proven > 10


@pytest.mark.parametrize("seed", range(12))
def test_kernels_count_them_as_the_definition_does(seed: int) -> None:
    """Costs of stages, least peaks, moves and cuts of an order agree with the definition, merged ops included."""
    graph, device, _ = random_case(500 + seed)
    device = replace(device, fast_memory_bytes=graph.all_bytes // 2, memory_bytes=None)
    k = 3
    instance = Instance.build(graph, Machine.uniform(k, device))
    n, pick = instance.op_count, random.Random(seed)
    for v, least in enumerate(least_peaks(instance).tolist()):
        assert least == stage_figures(graph, device, [v], k)["peak_bytes"]
    place = instance.order.tolist()
    merged = contract(instance, [place[:2]]).instance
    state = None
    for _ in range(10):
        ends = sorted(pick.choices(range(n + 1), k=2))
        stage = np.zeros(n, dtype=np.int32)
        stage[place[ends[0] :]] = 1
        stage[place[ends[1] :]] = 2
        figures = [stage_figures(graph, device, np.flatnonzero(stage == s).tolist(), k) for s in range(k)]
        found = stage_costs(instance, Partition.from_stages(instance, stage))
        assert found.peak_bytes.tolist() == [figure["peak_bytes"] for figure in figures]
        moves = move_arrays(instance, k)
        state = assignment_state(moves, k, 1)
        start_from(stage, moves, state)
        assert state.cost.tolist() == [figure["cost"] for figure in figures]
    cuts = [(i, j) for i in range(n + 1) for j in range(i, n + 1)]
    best = min(
        max(stage_figures(graph, device, part, k)["cost"] for part in (place[:i], place[i:j], place[j:]))
        for i, j in cuts
    )
    assert best_segmentation(instance.order.copy(), k, best + 1, slicing_arrays(instance)) == best
    group = merged.ground.op_of if merged.ground is not None else np.zeros(0)
    for v, least in enumerate(least_peaks(merged).tolist()):
        assert least <= stage_figures(graph, device, np.flatnonzero(group == v).tolist(), k)["peak_bytes"]


@pytest.mark.parametrize("seed", range(20))
def test_leaving_ops_out_raises_no_peak(seed: int) -> None:
    """A stage without some of its ops has no more live than with them."""
    graph, device, k = random_case(700 + seed)
    instance = Instance.build(graph, Machine.uniform(k, device))
    pick = np.random.default_rng(seed)
    out = pick.random(instance.op_count) < 0.4
    if out.all():
        return
    relaxed = relax(instance, out).instance
    position = np.empty(instance.op_count, dtype=np.int64)
    position[instance.order] = np.arange(instance.op_count)
    stage = (position * k // instance.op_count).astype(np.int32)
    whole = stage_costs(instance, Partition.from_stages(instance, stage)).peak_bytes
    part = stage_costs(relaxed, Partition.from_stages(relaxed, stage[~out])).peak_bytes
    assert (part <= whole).all()


def test_an_input_lives_between_its_readers_and_a_result_to_the_end() -> None:
    """Inputs are live from the first to the last op that reads them; results from their op to the end of the stage."""
    graph = chain([1, 1, 1, 1], [1, 1, 1], "ps")
    graph = replace(graph, tensor_bytes=np.array([10, 20, 40], dtype=np.int64))
    device = Device("d", 1, 1, Link(1), peak="order")

    def peaks(graph: CostGraph, stage: list[int]) -> list[int]:
        instance = Instance.build(graph, Machine.uniform(2, device))
        return stage_costs(
            instance, Partition.from_stages(instance, np.array(stage, dtype=np.int32))
        ).peak_bytes.tolist()

    read = [Weight("x", 100, ["op0", "op1"])]
    assert peaks(graph, [0, 0, 0, 0]) == [60, 0]
    assert peaks(with_ends(graph, read, []), [0, 0, 0, 0]) == [130, 0]
    assert peaks(with_ends(graph, read, []), [0, 1, 1, 1]) == [110, 130]
    assert peaks(with_ends(graph, [], [graph.tensor_names[0]]), [0, 0, 0, 0]) == [70, 0]
    assert peaks(with_ends(graph, read, [graph.tensor_names[0]]), [0, 0, 1, 1]) == [130, 60]
    reserve = replace(device, peak="reserve", activation_reserve_bytes=7)
    instance = Instance.build(with_ends(graph, read, []), Machine.uniform(2, reserve))
    assert stage_costs(instance, Partition.from_stages(instance, np.zeros(4, np.int32))).peak_bytes.tolist() == [7, 0]


WRITERS: dict[str, Callable[[CostGraph], str]] = {
    "graph.json": write_native,
    "links.json": write_node_link,
    "graph.graphml": write_graphml,
}


def test_inputs_and_results_survive_files_and_networkx(tmp_path: Path) -> None:
    """Native, node-link and GraphML files and networkx graphs bring them back; without any, files stay as they were."""
    plain = chain([1, 2, 3], [1, 1], "ps")
    graph = with_ends(plain, [Weight("x", 100, ["op0", "op2"])], [plain.tensor_names[1]])
    read = []
    for name, write in WRITERS.items():
        (tmp_path / name).write_text(write(graph))
        read.append(mtpp.read(str(tmp_path / name)).graph)
        assert "inputs" not in write(plain)
        assert "results" not in write(plain)
    for other in (*read, CostGraph.from_networkx(graph.to_networkx())):
        assert other.inputs.rows(other.op_names) == [Weight("x", 100, ["op0", "op2"])]
        assert other.result_names == graph.result_names


@pytest.mark.parametrize("key", ["weights", "inputs", "results", "states"])
def test_attributes_of_that_name_in_graphs_of_others_are_passed_over(key: str) -> None:
    """A node-link graph or GraphML file that lists no tensors may mean anything by them."""
    nodes = [{"id": "a", "work": 1, "bytes": 3}, {"id": "b", "work": 2}]
    edges = [{"source": "a", "target": "b"}]
    links = {"directed": True, "graph": {key: [1, "x"], "time_unit": "ps"}, "nodes": nodes, "edges": edges}
    assert mtpp.read(links).graph.op_names == ("a", "b")
    text = (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="k" for="graph" attr.name="KEY" '
        'attr.type="string"/><key id="w" for="node" attr.name="work" attr.type="double"/><key id="t" for="node" '
        'attr.name="transfer" attr.type="double"/><graph edgedefault="directed"><data key="k">no JSON</data>'
        '<node id="a"><data key="w">1</data><data key="t">1</data></node><node id="b"><data key="w">1</data></node>'
        '<edge source="a" target="b"/></graph></graphml>'
    ).replace("KEY", key)
    assert mtpp.read(text.encode()).graph.op_names == ("a", "b")
    stored = {"t": {"producer": "a", "consumers": ["b"], "bytes": 3}}
    with pytest.raises(InputError) as caught:
        mtpp.read({**links, "graph": {key: [{}], "time_unit": "ps", "tensors": stored}})
    assert (caught.value.where or "").startswith(f"/graph/{key}")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"inputs": [{"name": "x", "bytes": 1, "readers": ["op9"]}]}, "/inputs/0/readers/0"),
        ({"inputs": [{"name": "x", "bytes": -1, "readers": ["op0"]}]}, "/inputs/0/bytes"),
        ({"inputs": [{"name": "x", "bytes": 1, "readers": []}]}, "/inputs/0/readers"),
        ({"inputs": [{"name": "x", "bytes": 1}]}, "/inputs/0"),
        ({"inputs": {}}, "/inputs"),
        ({"results": ["nothing"]}, "/results/0"),
        ({"results": ["t0", "t0"]}, "/results/1"),
        ({"results": "t0"}, "/results"),
    ],
)
def test_malformed_ends_are_refused_with_their_place(change: dict[str, Any], where: str, tmp_path: Path) -> None:
    """Each fault is named with its JSON pointer, by the reader and by the verifier's own."""
    graph = chain([1, 2], [1], "ps")
    file, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    file.write_text(write_native(graph))
    plan.write_text(mtpp.partition(mtpp.read(str(file)), 2).to_json())
    document = json.loads(file.read_text())
    assert document["tensors"][0]["name"] == "t0"
    file.write_text(json.dumps({**document, **change}))
    for run in (lambda: mtpp.read(str(file)), lambda: mtpp.verify(str(plan), model=str(file))):
        with pytest.raises(InputError) as caught:
            run()
        assert caught.value.where == where


@pytest.mark.parametrize("change", [{"inputs": 50}, {"results": []}, {"peak": 10}])
def test_forged_working_memory_is_found(change: dict[str, Any], tmp_path: Path) -> None:
    """A plan that embeds a smaller input, or no result, or says of a stage that it needs less is refused."""
    graph = chain([5, 5, 5], [1, 1], "ps")
    graph = replace(graph, tensor_bytes=np.array([8, 8], dtype=np.int64))
    graph = with_ends(graph, [Weight("x", 100, ["op0", "op2"])], [graph.tensor_names[0]])
    file, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    file.write_text(write_native(graph))
    made = mtpp.partition(mtpp.read(str(file), stage_memory="120B", peak="order"), 2)
    document = json.loads(json.dumps(made.document(embed=True)))
    plan.write_text(json.dumps(document))
    assert mtpp.verify(str(plan)).verdict == "ok"
    if "inputs" in change:
        document["graph"]["inputs"][0]["bytes"] = change["inputs"]
    elif "results" in change:
        del document["graph"]["results"]
    else:
        document["stages"][0]["peak_bytes"] = change["peak"]
    plan.write_text(json.dumps(document))
    assert mtpp.verify(str(plan), model=str(file)).verdict == "false"
