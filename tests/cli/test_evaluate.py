"""``mtpp evaluate``: partitions from elsewhere, and why they are slower than they need be."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain
from processes import interrupted, printed, refused, run

from mtpp.api.inputs.user_assignment import labels_of_assignment
from mtpp.datasets.layered import layered_network
from mtpp.formats.graphs.native import write_native
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device

WORKLOADS = {
    "a": {"id": 1, "fpgaLatency": 40},
    "b": {"id": 2, "fpgaLatency": 40},
    "c": {"id": 3, "fpgaLatency": 10},
    "d": {"id": 4, "fpgaLatency": 10},
}


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Return a chain a → b → c → d of 40, 40, 10 and 10 ms, with 250 MB (10 ms at the default bandwidth) in between."""
    nodes = [{"name": name, **node} for name, node in WORKLOADS.items()]
    edges = [{"sourceId": i, "destId": i + 1, "size": 250_000_000} for i in (1, 2, 3)]
    path = tmp_path / "chain.json"
    path.write_text(json.dumps({"nodes": nodes, "edges": edges}))
    return path


def _split(folder: Path, *stages: list[int]) -> Path:
    path = folder / "split.json"
    path.write_text(json.dumps({"fpgas": [{"load": -1, "nodes": nodes} for nodes in stages], "cpus": []}))
    return path


def test_a_split_by_ids(workload: Path, tmp_path: Path) -> None:
    """Accelerators are put in the order of the data flow, which is said."""
    done = run("evaluate", workload, "--assignment", _split(tmp_path, [3, 4], [1, 2]), "--format", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["assignment"] == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert plan["bottleneck"] == 9 * 10**10
    assert done.stderr == "warning: the stages were numbered anew, in the order of the data flow\n"


def test_an_incomplete_split(workload: Path, tmp_path: Path) -> None:
    """An op without a stage is an invalid partition, one that is apart a bad file."""
    done = run("evaluate", workload, "--assignment", _split(tmp_path, [1, 2], [3]))
    assert (done.returncode, done.stdout) == (1, "")
    assert "1 of 4 ops have no stage, the first is 'd'" in done.stderr
    said = refused("evaluate", workload, "--assignment", _split(tmp_path, [1, 7]))
    assert "/fpgas/0/nodes/1: the model has no node 7" in said


def test_a_comparison_with_what_an_algorithm_finds(workload: Path, tmp_path: Path) -> None:
    """{a, b} {c, d} costs 90 ms; {a} {b, c, d} costs 70, of which 10 is input."""
    plan = tmp_path / "plan.json"
    arguments = ("evaluate", workload, "--assignment", _split(tmp_path, [1, 2], [3, 4]), "--against", "auto", "-q")
    document = json.loads(printed(*arguments, "--format", "json", "-o", plan))
    assert (document["format"], document["version"]) == ("mtpp-stage-comparison", 1)
    assert (document["given"]["bottleneck"], document["against"]["bottleneck"]) == (9 * 10**10, 7 * 10**10)
    assert (document["given"]["stage"], document["against"]["stage"]) == (0, 1)
    assert document["against"]["optimal"] is True
    assert document["difference"] == {
        "work": 2 * 10**10, "input": -(10**10), "output": 10**10, "overflow": 0, "cost": 2 * 10**10,
    }  # fmt: skip
    assert document["elsewhere"] == [
        {"stage": 0, "ops": 1, "work": 4 * 10**10},
        {"stage": 1, "ops": 1, "work": 4 * 10**10},
    ]
    assert [row["given"]["cost"] for row in document["stages"]] == [9 * 10**10, 3 * 10**10]
    assert [row["against"]["cost"] for row in document["stages"]] == [5 * 10**10, 7 * 10**10]
    scored = json.loads(plan.read_text())
    assert (scored["bottleneck"], scored["lower_bound"]["value"]) == (9 * 10**10, 7 * 10**10)
    assert run("verify", plan, "--model", workload).returncode == 0


def test_the_comparison_in_words(workload: Path, tmp_path: Path) -> None:
    """Every figure is there for people too."""
    split = _split(tmp_path, [1, 2], [3, 4])
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"a": 0, "b": 1, "c": 1, "d": 2}))
    table = run("evaluate", workload, "--assignment", split, "--against", other).stdout.splitlines()
    assert table[0] == "split.json against other.json, stage by stage (times in ms)"
    assert table[2].split() == [
        "0",
        "2",
        "80.0",
        "0.0",
        "10.0",
        "90.0",
        "│",
        "1",
        "40.0",
        "0.0",
        "10.0",
        "50.0",
        "+40.0",
    ]
    assert table[4].split() == ["2", "–", "–", "–", "–", "–", "│", "1", "10.0", "10.0", "0.0", "20.0", "-20.0"]
    text = "\n".join(table)
    assert "90.00 ms (stage 0) against 70.00 ms (stage 1): 20.00 ms, 28.6% more" in text
    assert "+30.00 ms work, -10.00 ms input" in text
    assert "its 2 ops are in stage 0 (1 op, 40.00 ms), stage 1 (1 op, 40.00 ms) of the other" in text
    rows = run("evaluate", workload, "--assignment", split, "--against", other, "--format", "csv").stdout
    first = next(csv.DictReader(io.StringIO(rows)))
    assert (first["given_cost"], first["against_cost"]) == (str(9 * 10**10), str(5 * 10**10))
    markdown = run("evaluate", workload, "--assignment", split, "--against", split, "--format", "markdown").stdout
    assert "| 0 | 2 | 80.0 | 0.0 | 10.0 | 90.0 | 2 | 80.0 | 0.0 | 10.0 | 90.0 | +0.0 |" in markdown
    assert "90.00 ms (stage 0) against 90.00 ms (stage 0): the same" in markdown


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_comparison_is_one_with_the_best_so_far(tmp_path: Path) -> None:
    """Ctrl-C during the search of --against ends it with exit code 130, the comparison shown and the plan written."""
    model, given, output = (tmp_path / f"{name}.json" for name in ("model", "given", "output"))
    model.write_text(write_native(layered_network(4_000, tensors=6_000)))
    assert run("partition", model, "-k", "8", "--algorithm", "slice", "-q", "-o", given).returncode == 0
    command = ("evaluate", model, "--assignment", given, "--against", "random", "-o", output)
    code, stdout, stderr = interrupted(*command, after="best so far")
    assert (code, stderr.splitlines()[-1]) == (130, "error: interrupted")
    assert "random" in stdout
    assert json.loads(output.read_text())["format"] == "mtpp-plan"


def test_plans_of_files_read_as_told_bring_their_graph(tmp_path: Path) -> None:
    """Reading the file again would give other costs, so the plan is complete."""
    profile = tmp_path / "graph.txt"
    fields = "forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=0.0"
    profile.write_text(f"node1 -- Input -- {fields}\nnode2 -- ReLU() -- {fields}\n\tnode1 -- node2\n")
    plan = tmp_path / "plan.json"
    told = ("--backward", "--loading-time", "--time-unit", "us")
    printed("evaluate", profile, "--cuts", "node1", *told, "-o", plan, stderr="")
    assert [op["work"] for op in json.loads(plan.read_text())["graph"]["ops"]] == [3 * 10**6] * 2
    assert run("verify", plan, "--model", profile, *told).returncode == 0
    assert run("verify", plan, "--model", profile).returncode == 1
    assert run("verify", plan).returncode == 0
    done = run("evaluate", profile, "--cuts", "node1")
    assert done.stderr == f"warning: {profile}: loading data takes no time: 1.000 ms of node1 left out\n"
    assert "loading data takes no time" in done.stdout


@pytest.mark.parametrize("name", ["bert24", "gnmt", "resnet50"])
def test_experts_cost_what_the_published_programs_say(name: str, shared_data: Path) -> None:
    """At the bandwidth behind the files' own edge costs, a stage costs what their objective says of a device.

    Their edge costs are sizes / 2 GiB in the unit of the node times, whatever that is: 2 GiB per millisecond.
    """
    folder = shared_data / "placement"
    model, split = folder / f"LayerGraphs/{name}_inference.json", folder / f"human-experts/{name}_inference_expert.json"
    graph = read_graph(read_source(str(model)))
    instance = Instance.build(graph, Machine.uniform(6, load_device().overriding(bandwidth_bytes_per_s=2**31 * 1000)))
    partition = Partition.from_labels(instance, labels_of_assignment(graph, str(split)))
    costs = stage_costs(instance, partition).cost / 10**9
    document, devices = json.loads(model.read_text()), json.loads(split.read_text())["fpgas"]
    sending = {edge["sourceId"]: edge["cost"] for edge in document["edges"]}
    loads = []
    for ids in (set(device["nodes"]) for device in devices):
        load = sum(node["fpgaLatency"] for node in document["nodes"] if node["id"] in ids)
        cut = {e["sourceId"] for e in document["edges"] if (e["sourceId"] in ids) != (e["destId"] in ids)}
        loads.append(load + sum(sending[node] for node in cut))
    assert costs.tolist() == pytest.approx(loads)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert24", "gnmt", "resnet50"])
@pytest.mark.parametrize("bandwidth", ["2GiB/s", "25GB/s"])
def test_experts_are_no_better_than_the_optimum(name: str, bandwidth: str, shared_data: Path) -> None:
    """The published splits by hand lose against a partition that is proven optimal, and the parts say where."""
    folder = shared_data / "placement"
    model, split = folder / f"LayerGraphs/{name}_inference.json", folder / f"human-experts/{name}_inference_expert.json"
    options = ("--assignment", split, "--against", "auto", "--bandwidth", bandwidth, "--format", "json")
    document: dict[str, Any] = json.loads(printed("evaluate", model, *options))
    given, against = document["given"], document["against"]
    assert against["optimal"] is True
    assert given["bottleneck"] > against["bottleneck"] == given["lower_bound"]["value"]
    assert given["k"] == against["k"] == 6
    for side in ("given", "against"):
        rows = [row[side] for row in document["stages"]]
        assert max(row["cost"] for row in rows) == document[side]["bottleneck"]
        assert all(row["cost"] == row["work"] + row["input"] + row["output"] for row in rows)
    parts = document["difference"]
    assert parts["cost"] == parts["work"] + parts["input"] + parts["output"]
    assert parts["cost"] == given["bottleneck"] - against["bottleneck"]


@pytest.mark.parametrize("speed", [1, 2])
def test_an_even_share_is_of_equal_devices(workload: Path, tmp_path: Path, speed: int) -> None:
    """On devices that differ no stage is held to an even share of the work."""
    machine = tmp_path / "machine.toml"
    machine.write_text(f'[[device]]\nname = "x"\n[[device]]\nname = "y"\nspeed = {speed}\n')
    split = _split(tmp_path, [1, 2], [3, 4])
    arguments = ("evaluate", workload, "--assignment", split, "--against", "auto", "--machine", machine, "-q")
    assert ("an even share" in printed(*arguments)) == (speed == 1)


def test_devices_of_the_stages_on_a_machine(tmp_path: Path) -> None:
    """A column where both have the same devices, one for each where they stand in other orders; as CSV always both."""
    graph, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    graph.write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    for order, columns in (("fixed", 1), ("free", 2)):
        machine = tmp_path / f"{order}.toml"
        machine.write_text(f'order = "{order}"\n[[device]]\nname = "fast"\nspeed = 2\n[[device]]\nname = "slow"\n')
        on_machine = ("--machine", machine)
        assert run("partition", graph, *on_machine, "-o", plan).returncode == 0
        asked = ("evaluate", graph, "--assignment", plan, "--against", "even", *on_machine)
        done = run(*asked)
        assert ("in the order of the machine's file, as engines do" in done.stderr) == (order == "free")
        lines = done.stdout.splitlines()
        assert lines[1].split().count("device") == columns
        devices = ["fast", "slow"] if order == "fixed" else ["slow", "fast"]
        assert [line.split()[1] for line in lines[2:4]] == devices
        rows = list(csv.DictReader(io.StringIO(run(*asked, "--format", "csv").stdout)))
        assert [row["given_device"] for row in rows] == devices
        assert [row["against_device"] for row in rows] == ["fast", "slow"]
        page = tmp_path / f"{order}.html"
        assert run("report", plan, "--model", graph, "-o", page).returncode == 0
        assert "<title>chain: plan for 2 devices" in page.read_text()
