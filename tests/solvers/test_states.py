"""State that a model keeps: stages that read it hold it for every sequence, within their memory limit."""

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
from mtpp.errors import Infeasible, InputError
from mtpp.formats.graphs.graphml import write_graphml
from mtpp.formats.graphs.native import write_native
from mtpp.formats.graphs.node_link import write_node_link
from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.results import result_numbers
from mtpp.inference.states import State, States
from mtpp.inference.weights import Weight, Weights
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.local_search.assignment import assignment_state, move_arrays
from mtpp.solvers.local_search.kernels.moves import start_from


def with_states(graph: CostGraph, *rows: State, inputs: tuple[Weight, ...] = ()) -> CostGraph:
    """Return the graph with states and inputs."""
    names = graph.op_names
    return replace(graph, states=States.build(rows, names), inputs=Weights.build(inputs, names, "inputs"))


def random_rows(kind: str, names: list[str], pick: random.Random, most: int) -> list[Weight]:
    """Return up to *most* rows of something that up to four ops read."""
    sizes = [pick.choice((1, 10, pick.randint(0, 60))) for _ in range(pick.randint(0, most))]
    return [
        Weight(f"{kind}{i}", size, pick.sample(names, pick.randint(1, min(len(names), 4))))
        for i, size in enumerate(sizes)
    ]


def random_case(seed: int) -> tuple[CostGraph, Device, int]:
    """Return a graph of 2 to 7 ops with weights, states, inputs and results, a device with little memory, and k."""
    pick = random.Random(seed)
    graph = random_graph(seed, pick.randint(2, 7), time_unit="ps", largest_cost=pick.choice((3, 20, 100)))
    names = list(graph.op_names)
    inputs, weights = random_rows("x", names, pick, 3), random_rows("w", names, pick, 2)
    states = [
        State(row.name, pick.choice((f"x{i}", f"in{i}")), f"out{i}", row.bytes, row.readers)
        for i, row in enumerate(random_rows("s", names, pick, 3))
    ]
    results = [name for name in graph.tensor_names if pick.random() < 0.3]
    graph = replace(
        with_states(graph, *states, inputs=tuple(inputs)),
        weights=Weights.build(weights, names),
        results=result_numbers(results, graph.tensor_names),
    )
    peak, sequences = pick.choice(("reserve", "order")), pick.choice((1, 1, 2, 3))
    reserve = pick.choice((0, 3)) if peak == "reserve" else 0
    most = graph.all_bytes + sequences * sum(graph.states.held.bytes.tolist())
    if peak == "order":
        most += sum(max(size, 0) for size in graph.tensor_bytes.tolist()) + sum(graph.inputs.bytes.tolist())
    given = pick.choice(
        (("memory_bytes",), ("memory_bytes",), ("fast_memory_bytes",), ("memory_bytes", "fast_memory_bytes"))
    )
    limits = {key: max(reserve, int(most * pick.uniform(0.2, 1))) for key in given}
    device = Device("d", 10**12, 10**11, Link(10**12), None, reserve, peak, sequences=sequences)
    return graph, replace(device, **limits), pick.randint(1, 4)


@pytest.mark.filterwarnings("ignore::mtpp.MtppWarning")
@pytest.mark.parametrize("first", [0, pytest.param(20, marks=pytest.mark.slow)])
def test_partitions_and_bounds_meet_brute_force(first: int, tmp_path: Path) -> None:
    """Partitions are the best ones, no bound is above them, and each plan is verified."""
    seeds = range(20) if first == 0 else sampled(range(first, 260), 100)
    for seed, best, document in verified_plans(seeds, random_case, tmp_path):
        assert best == document["bottleneck"], seed
        assert document["optimal"], seed


@pytest.mark.filterwarnings("ignore::mtpp.MtppWarning")
def test_the_kernel_of_the_second_search_holds_all_that_several_ops_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proofs that need weights and states whole stand by a kernel as well as in plain Python, for no higher bound."""
    monkeypatch.setattr("mtpp.solvers.recheck.downset.SMALL", 0)
    plan, whole = tmp_path / "forged.json", 0
    for seed, _, document in verified_plans(range(300, 360), random_case, tmp_path):
        forged = json.loads(json.dumps(document))
        bound = forged["lower_bound"]
        if "whole" in bound["proof"].get("rules", []):
            whole += 1
            bound["value"] = bound["proof"]["cutoff"] = document["bottleneck"] + 1
            plan.write_text(json.dumps(forged))
            assert mtpp.verify(str(plan), model=str(tmp_path / "graph.json")).verdict == "false", seed
    assert whole > 3


@pytest.mark.parametrize("seed", range(9))
def test_searches_count_states_as_costs_do(seed: int) -> None:
    """Costs of stages and of moves are those of the definition, with both memories, and of merged ops."""
    graph, device, _ = random_case(900 + seed)
    least = device.activation_reserve_bytes
    device = replace(
        device, fast_memory_bytes=max(least, graph.all_bytes // 2), memory_bytes=max(least, graph.all_bytes)
    )
    k = 3
    instance = Instance.build(graph, Machine.uniform(k, device))
    n, order = instance.op_count, instance.order.tolist()
    merged = contract(instance, [order[:2]])
    for cut in range(n + 1):
        stage = np.zeros(n, dtype=np.int32)
        stage[order[cut:]] = 1
        figures = [stage_figures(graph, device, np.flatnonzero(stage == s).tolist(), k) for s in range(k)]
        found = stage_costs(instance, Partition.from_stages(instance, stage))
        for key in ("param_bytes", "state_bytes", "peak_bytes", "overflow", "cost"):
            assert getattr(found, key).tolist() == [figure.get(key, 0) for figure in figures]
        if cut != 1:
            inner = np.zeros(merged.instance.op_count, dtype=np.int32)
            inner[merged.group_of] = stage
            again = stage_costs(merged.instance, Partition.from_stages(merged.instance, inner))
            assert again.state_bytes.tolist() == found.state_bytes.tolist()
            assert again.cost.tolist() == found.cost.tolist()
        moves = move_arrays(instance, k)
        state = assignment_state(moves, k, 1)
        start_from(stage, moves, state)
        limit = device.memory_bytes or 0
        for s, figure in enumerate(figures):
            held = figure["param_bytes"] + figure.get("state_bytes", 0) + figure["peak_bytes"]
            assert state.cost[s] == figure["cost"] if held <= limit else state.cost[s] >= 2**62


def test_a_state_counts_in_every_stage_that_reads_it_and_not_as_a_live_input() -> None:
    """Bytes of states by stage, for each sequence; its input takes no working memory, another one does."""
    graph = chain([1, 1, 1, 1], [1, 1, 1], "ps")
    graph = with_states(
        graph,
        State("cache", "past", "present", 100, ["op0", "op3"]),
        State("one", "h", "hn", 7, ["op1"]),
        inputs=(Weight("past", 90, ["op0", "op3"]), Weight("x", 20, ["op0"])),
    )
    graph = replace(graph, tensor_bytes=np.array([1, 1, 1], dtype=np.int64))
    for sequences in (1, 3):
        device = Device("d", 1, 1, Link(1), peak="order", sequences=sequences)
        instance = Instance.build(graph, Machine.uniform(3, device))
        costs = stage_costs(instance, Partition.from_stages(instance, np.array([0, 0, 1, 1], dtype=np.int32)))
        assert costs.state_bytes.tolist() == [107 * sequences, 100 * sequences, 0]
        assert costs.peak_bytes.tolist() == [21, 2, 0]
        assert costs.param_bytes.tolist() == [0, 0, 0]
        assert costs.held_bytes.tolist() == [107 * sequences + 21, 100 * sequences + 2, 0]


def test_states_count_in_the_memory_limit_and_are_never_streamed(tmp_path: Path) -> None:
    """A fast memory streams weights alone; a limit holds states too; too many sequences fit nowhere."""
    graph = chain([5, 5], [1], "ps")
    graph = replace(graph, param_bytes=np.array([10, 10], dtype=np.int64))
    graph = with_states(graph, State("s", "past", "present", 100, ["op1"]))
    file = tmp_path / "graph.json"
    file.write_text(write_native(graph))
    terms = {"bandwidth": "1TB/s", "fast_memory": "12B"}
    plan = json.loads(mtpp.partition(mtpp.read(str(file), **terms), 1).to_json())
    assert [stage["overflow"] for stage in plan["stages"]] == [8]
    assert plan["stages"][0]["state_bytes"] == 100
    assert plan["system"]["sequences"] == 1
    assert mtpp.partition(mtpp.read(str(file), stage_memory="120B", **terms), 1).bottleneck == plan["bottleneck"]
    with pytest.raises(Infeasible, match="proven infeasible"):
        mtpp.partition(mtpp.read(str(file), stage_memory="119B", **terms), 1)
    assert mtpp.partition(mtpp.read(str(file), stage_memory="210B", sequences=2), 2).optimal
    with pytest.raises(Infeasible, match="210 for parameters and states"):
        mtpp.partition(mtpp.read(str(file), stage_memory="209B", sequences=2), 2)


def test_states_survive_files_and_networkx(tmp_path: Path) -> None:
    """Native, node-link and GraphML files and networkx graphs bring them back; without any, files stay as they were."""
    plain = chain([1, 2, 3], [1, 1], "ps")
    row = State("s", "past", "present", 100, ["op0", "op2"])
    graph = with_states(plain, row)
    read = []
    for name, write in (("g.json", write_native), ("l.json", write_node_link), ("g.graphml", write_graphml)):
        (tmp_path / name).write_text(write(graph))
        read.append(mtpp.read(str(tmp_path / name)).graph)
        assert "states" not in write(plain)
    for other in (*read, CostGraph.from_networkx(graph.to_networkx())):
        assert other.states.rows(other.op_names) == [row]


STATE: dict[str, Any] = {"name": "s", "input": "past", "output": "present", "bytes": 1, "readers": ["op0"]}


@pytest.mark.parametrize(
    ("states", "where"),
    [
        ([{**STATE, "readers": ["op9"]}], "/states/0/readers/0"),
        ([{**STATE, "readers": []}], "/states/0/readers"),
        ([{**STATE, "bytes": -1}], "/states/0/bytes"),
        ([{**STATE, "input": ""}], "/states/0/input"),
        ([STATE, {**STATE, "name": "t", "output": "other"}], "/states/1/input"),
        ([STATE, {**STATE, "name": "t", "input": "other"}], "/states/1/output"),
        ([STATE, {**STATE, "input": "a", "output": "b"}], "/states/1/name"),
        ([{key: value for key, value in STATE.items() if key != "output"}], "/states/0"),
        ({}, "/states"),
    ],
)
def test_malformed_states_are_refused_with_their_place(states: Any, where: str, tmp_path: Path) -> None:
    """Each fault is named with its JSON pointer, by the reader and by the verifier's own."""
    file, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    file.write_text(write_native(chain([1, 2], [1], "ps")))
    plan.write_text(mtpp.partition(mtpp.read(str(file)), 2).to_json())
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "states": states}))
    for run in (lambda: mtpp.read(str(file)), lambda: mtpp.verify(str(plan), model=str(file))):
        with pytest.raises(InputError) as caught:
            run()
        assert caught.value.where == where


def falsify(document: dict[str, Any], what: str) -> None:
    """Make a plan say something else of the states that its stages keep."""
    if what == "sequences":
        document["system"]["sequences"] = 1
    elif what == "figure":
        document["stages"][0]["state_bytes"] -= 1
    elif what == "dropped figure":
        del document["stages"][0]["state_bytes"]
    elif what == "dropped":
        del document["graph"]["states"]
    elif what == "bytes":
        document["graph"]["states"][0]["bytes"] -= 1
    elif what == "input":
        document["graph"]["states"][0]["input"] = "x"


@pytest.mark.parametrize("what", ["sequences", "figure", "dropped figure", "dropped", "bytes", "input"])
def test_forged_states_are_found(what: str, tmp_path: Path) -> None:
    """A plan with fewer sequences, a smaller state, or without one, is refused."""
    graph = with_states(chain([5, 5, 5], [1, 1], "ps"), State("s", "past", "present", 100, ["op0", "op1"]))
    file, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    file.write_text(write_native(graph))
    made = mtpp.partition(mtpp.read(str(file), stage_memory="220B", sequences=2), 2)
    document = json.loads(json.dumps(made.document(embed=True)))
    plan.write_text(json.dumps(document))
    assert mtpp.verify(str(plan)).verdict == "ok"
    for count, verdict in ((2, "ok"), (3, "false")):
        device = Device.from_document({**document["system"], "sequences": count})
        assert mtpp.verify(str(plan), model=str(file), system=device).verdict == verdict
    falsify(document, what)
    plan.write_text(json.dumps(document))
    assert mtpp.verify(str(plan), model=str(file)).verdict == "false"


MACHINES = {
    "limits": ('[[device]]\nspeed = 2\nmemory = "330B"\n', '[[device]]\nmemory = "230B"\n'),
    "a fast memory": (
        '[[device]]\nmemory = "330B"\n[device.system]\nname = "s"\npeak_flops = "1TFLOP/s"\n'
        'memory_bandwidth = "1TB/s"\nbandwidth = "1TB/s"\nfast_memory = "5B"\n',
        '[[device]]\nspeed = 2\nmemory = "230B"\n',
    ),
}


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("order", ["fixed", "free"])
def test_devices_that_differ_keep_states(kind: str, order: str, tmp_path: Path) -> None:
    """The only devices that hold the states of two sequences get them, proven; three fit nowhere."""
    graph = chain([6, 6, 6, 6], [1, 1, 1], "ps")
    graph = replace(graph, param_bytes=np.array([10, 10, 10, 10], dtype=np.int64))
    graph = with_states(graph, State("s", "p", "q", 150, ["op0", "op1"]), State("t", "h", "hn", 100, ["op2"]))
    file, machine, plan = tmp_path / "graph.json", tmp_path / "machine.toml", tmp_path / "plan.json"
    file.write_text(write_native(graph))
    machine.write_text(f'order = "{order}"\n' + "".join(MACHINES[kind]))
    made = mtpp.partition(mtpp.read(str(file), machine=str(machine), sequences=2))
    document = json.loads(made.to_json())
    assert [stage["state_bytes"] for stage in document["stages"]] == [300, 200]
    assert made.optimal
    plan.write_text(json.dumps(document))
    assert mtpp.verify(str(plan), model=str(file)).verdict == "ok"
    document["stages"][1]["state_bytes"] = 100
    plan.write_text(json.dumps(document))
    assert mtpp.verify(str(plan), model=str(file)).verdict == "false"
    with pytest.raises(Infeasible):
        mtpp.partition(mtpp.read(str(file), machine=str(machine), sequences=3))


@pytest.mark.parametrize("sequences", [0, -1, 1.5, True, "two"])
def test_impossible_numbers_of_sequences_are_refused(sequences: Any) -> None:
    """One line that names the parameter."""
    with pytest.raises(InputError) as caught:
        mtpp.read({"format": "mtpp-graph"}, sequences=sequences)
    assert caught.value.parameter == "sequences"


def test_states_that_integers_cannot_tell_from_weights_are_refused(tmp_path: Path) -> None:
    """With both memories, states of odd sizes beside 2^50 bytes of weights; with one memory they are taken."""
    graph = chain([5, 5], [1], "ps")
    graph = replace(graph, param_bytes=np.array([2**50, 1], dtype=np.int64))
    graph = with_states(graph, State("s", "past", "present", 2**40 + 1, ["op1"]), State("t", "h", "hn", 2**39, ["op0"]))
    file = tmp_path / "graph.json"
    file.write_text(write_native(graph))
    assert mtpp.partition(mtpp.read(str(file), stage_memory="4096TiB"), 2).optimal
    with pytest.raises(InputError, match="too large to be told apart"):
        mtpp.partition(mtpp.read(str(file), stage_memory="4096TiB", fast_memory="1MiB"), 2)
