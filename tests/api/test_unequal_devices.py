"""Plans for devices that differ: reference values, proven and verified; forged proofs."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from device_cells import FORK
from reference_machines import machine_text

import mtpp


@pytest.mark.parametrize("machine", ["2-slow-2-fast", "fast-first", "eight", "tight"])
@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("name", ["resnet50", "convnext", "efficientnet"])
def test_reference_values(
    name: str, order: str, machine: str, shared_data: Path, shared_reference: Path, tmp_path: Path
) -> None:
    """Exactly the least bottleneck, proven; and the proof holds when it is searched again."""
    reference = json.loads((shared_reference / "machine.json").read_text())
    model = shared_data / "instances" / f"{name}.json"
    params = sum(op.get("param_bytes", 0) for op in json.loads(model.read_text())["ops"])
    path = tmp_path / "machine.toml"
    path.write_text(machine_text(reference["about"]["machines"][machine], order, params))
    plan = mtpp.partition(mtpp.read(model, machine=path))
    assert plan.bottleneck == reference["graphs"][name][machine][order]
    assert plan.optimal
    found = mtpp.verify(plan, model, machine=path)
    assert found.passed, found.sentence


MACHINE = """
order = "free"
[[device]]
name = "slow"
count = 2
[[device]]
name = "fast"
speed = 2
link_speed = "1/2"
"""


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """Return a proven plan of a small graph on three devices, which embeds it."""
    (tmp_path / "graph.json").write_text(json.dumps(FORK))
    (tmp_path / "machine.toml").write_text(MACHINE)
    plan = mtpp.partition(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"))
    document: dict[str, Any] = json.loads(json.dumps(plan.document(embed=True)))
    assert document["optimal"]
    assert "order" in document["lower_bound"]["proof"]
    assert mtpp.verify(document).passed
    return document


def test_forged_proofs_are_refused(document: dict[str, Any]) -> None:
    """Another cutoff, order, k, rule, count or digest; a bound above the optimum with all that follows from it."""
    proof = document["lower_bound"]["proof"]
    changes: list[tuple[str, Any]] = [
        ("cutoff", proof["cutoff"] + 1),
        ("order", "fixed"),
        ("k", 2),
        ("rules", []),
        ("rules", ["crossings", *proof["rules"]]),
        ("downsets", proof["downsets"] + 1),
        ("labels", proof["labels"] + 1),
        ("digest", "0" * 64),
        ("merges", [*proof["merges"], ["pull-down", 0, 8]]),
    ]
    for key, value in changes:
        forged = copy.deepcopy(document)
        forged["lower_bound"]["proof"][key] = value
        assert not mtpp.verify(forged).passed, (key, value)


def test_a_better_machine_is_not_proven_by_the_same_proof(document: dict[str, Any]) -> None:
    """The machine's figures are part of what the search is run on, and of the digest."""
    for key, value in (("speed", "3"), ("link_speed", "7"), ("stage_memory_bytes", 5)):
        forged = copy.deepcopy(document)
        forged["machine"]["devices"][2][key] = value
        assert not mtpp.verify(forged).passed


def test_given_stages_keep_their_bound(tmp_path: Path) -> None:
    """Stages and devices of a plan, evaluated: the same costs, and a bound on all plans that holds in free order."""
    (tmp_path / "graph.json").write_text(json.dumps(FORK))
    (tmp_path / "machine.toml").write_text(MACHINE)
    model = mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml")
    best = mtpp.partition(model)
    best.save(tmp_path / "plan.json")
    given = mtpp.evaluate(model, tmp_path / "plan.json")
    assert given.bottleneck == best.bottleneck
    assert 0 < given.lower_bound.value <= best.bottleneck
    assert mtpp.verify(given.document(embed=True)).passed


def test_bounds_below_and_on_devices(tmp_path: Path) -> None:
    """The exhaustive search bounds plans on the devices themselves, others on the envelope, never above."""
    (tmp_path / "graph.json").write_text(json.dumps(FORK))
    (tmp_path / "machine.toml").write_text(MACHINE)
    model = mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml")
    best = mtpp.partition(model)
    table = mtpp.bound(model, bounds=["simple", "node", "fraction", "downset"]).document()
    found = table["rows"][0]["bounds"]
    assert found["downset"] == best.bottleneck
    assert all(value is None or value <= best.bottleneck for value in found.values())


@pytest.mark.parametrize("algorithm", ["auto", "downset"])
def test_exhaustive_algorithms_prove_on_the_devices(algorithm: str, tmp_path: Path) -> None:
    """Both close the gap, and the proof is of the devices."""
    (tmp_path / "graph.json").write_text(json.dumps(FORK))
    (tmp_path / "machine.toml").write_text(MACHINE)
    plan = mtpp.partition(
        mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"), algorithm=algorithm, work_limit=50
    )
    assert plan.optimal
    assert mtpp.verify(plan.document(embed=True)).passed


def test_measured_times_are_those_of_the_files_that_a_machine_names(tmp_path: Path) -> None:
    """A plan of other times, with the digest of the files, is held to the files where the machine is given."""
    graph, machine = tmp_path / "graph.json", tmp_path / "machine.toml"
    graph.write_text(json.dumps(FORK))
    documents = []
    for work in (50, 1):
        ops = [{**op, "work": work} for op in FORK["ops"]]
        (tmp_path / "times.json").write_text(json.dumps({**FORK, "ops": ops}))
        machine.write_text('[[device]]\ncosts = "times.json"\n[[device]]\nspeed = 2\n')
        plan = mtpp.partition(mtpp.read(graph, machine=machine))
        documents.append(json.loads(json.dumps(plan.document(embed=True))))
        assert mtpp.verify(documents[-1], graph, machine=machine).passed
    forged, honest = documents[0], documents[1]
    forged["machine"]["sha256"] = honest["machine"]["sha256"]
    forged["machine"]["devices"] = [
        {**own, **({"costs_sha256": due["costs_sha256"]} if "costs_sha256" in due else {})}
        for own, due in zip(forged["machine"]["devices"], honest["machine"]["devices"], strict=True)
    ]
    assert not mtpp.verify(forged, machine=machine).passed
    assert not mtpp.verify(forged, graph, machine=machine).passed


def test_states_count_where_stages_are_given_other_devices(tmp_path: Path) -> None:
    """A state and a limit on one class, a fast memory on the other: 14 + 12 bytes are too many for 25."""
    graph = {
        "format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps",
        "ops": [{"name": "a", "work": 60, "param_bytes": 5}, {"name": "b", "work": 30, "param_bytes": 9}],
        "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 20}],
        "states": [{"name": "s", "input": "past", "output": "t", "bytes": 12, "readers": ["a", "b"]}],
    }  # fmt: skip
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    system = (
        '{name = "x", peak_flops = "1TFLOP/s", memory_bandwidth = "1TB/s", bandwidth = "1TB/s", fast_memory = "12B"}'
    )
    (tmp_path / "machine.toml").write_text(f'[[device]]\nmemory = "25B"\nspeed = 10\n[[device]]\nsystem = {system}\n')
    plan = mtpp.partition(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"))
    assert all(sum(row) <= 25 for row in [[s.param_bytes, s.state_bytes] for s in plan.stages[:1]])
    assert mtpp.verify(plan.document(embed=True)).passed


LAYERS = {
    "format": "mtpp-graph",
    "version": 1,
    "name": "layers",
    "time_unit": "ms",
    "ops": [{"name": f"layer{i}", "work": 1} for i in range(6)],
    "tensors": [
        {"name": f"t{i}", "producer": f"layer{i}", "consumers": [f"layer{i + 1}"], "bytes": 8} for i in range(5)
    ],
}


@pytest.mark.parametrize(
    ("machine", "graph", "said"),
    [
        ('stage_times = ["4ms"]\nspeed = 2', LAYERS, "speed"),
        ('stage_times = ["4ms"]\ncosts = "measured.json"', LAYERS, "costs"),
        ('stage_times = ["4ms"]\nsystem = "a100"', LAYERS, "system"),
        ("stage_times = []", LAYERS, "list of times"),
        ("stage_times = [4]", LAYERS, "no unit"),
        ('stage_times = ["4 fortnights"]', LAYERS, "unit"),
        ('stage_times = ["4ms", "9ms"]', FORK, "chain"),
    ],
)
def test_bad_stage_times(machine: str, graph: dict[str, Any], said: str, tmp_path: Path) -> None:
    """What goes wrong is said with its place in the machine file."""
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    (tmp_path / "machine.toml").write_text(f"[[device]]\n{machine}\n")
    with pytest.raises(mtpp.InputError) as caught:
        mtpp.partition(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"))
    assert said in str(caught.value)
    assert "/device/0" in str(caught.value)


def test_other_algorithms_refuse_stage_times(tmp_path: Path) -> None:
    """An algorithm that adds up the costs of ops does not take devices with times of stages."""
    (tmp_path / "graph.json").write_text(json.dumps(LAYERS))
    (tmp_path / "machine.toml").write_text('[[device]]\ncount = 2\nstage_times = ["4ms", "9ms", "8ms"]\n')
    model = mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml")
    with pytest.raises(mtpp.InputError, match="stage_times"):
        mtpp.partition(model, algorithm="anneal")
    assert mtpp.partition(model).bottleneck == 8 * 10**9
    assert mtpp.partition(model, algorithm="even").bottleneck == 8 * 10**9


@pytest.mark.parametrize("replicas", [False, True])
@pytest.mark.parametrize("cluster", ["10", "24"])
def test_helix_clusters(
    cluster: str, replicas: bool, shared_data: Path, shared_reference: Path, tmp_path: Path
) -> None:
    """Layers on devices whose throughput is known by their number: the best rate of Helix's clusters, proven."""
    data = json.loads((shared_data / "helix" / f"helix_{cluster}.json").read_text())
    n, lines = data["layers"], ['order = "free"']
    graph = {
        **LAYERS,
        "ops": [{"name": f"layer{i}", "work": 1} for i in range(n)],
        "tensors": [
            {"name": f"t{i}", "producer": f"layer{i}", "consumers": [f"layer{i + 1}"], "bytes": 8} for i in range(n - 1)
        ],
    }
    for one in data["classes"]:
        times = [f"{-(-(10**15) // rate)}ps" for rate in one["millitokens_per_s_of_layers"]]
        lines += ["[[device]]", f'name = "{one["name"]}"', f"count = {one['count']}"]
        lines += [f"stage_times = {json.dumps(times)}"]
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    (tmp_path / "machine.toml").write_text("\n".join(lines))
    plan = mtpp.partition(mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml"), replicas=replicas)
    best = json.loads((shared_reference / "machine.json").read_text())["chains"][cluster]["best_millitokens_per_s"]
    assert plan.bottleneck == -(-(10**15) // best)
    assert plan.optimal
    found = mtpp.verify(plan, tmp_path / "graph.json")
    assert found.passed, found.sentence


def test_stage_times_find_the_fewest_devices(tmp_path: Path) -> None:
    """Fewer devices of a chain keep to a bottleneck that longer stages meet."""
    (tmp_path / "graph.json").write_text(json.dumps(LAYERS))
    (tmp_path / "machine.toml").write_text('[[device]]\ncount = 6\nstage_times = ["4ms", "9ms", "8ms"]\n')
    model = mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml")
    assert mtpp.partition(model, max_bottleneck="8.5ms").k == 2
    assert mtpp.partition(model, max_bottleneck="4ms").k == 6


def test_tables_of_stage_times_verify(tmp_path: Path) -> None:
    """Rows of certificates and bounds of a chain on such devices are checked again."""
    (tmp_path / "graph.json").write_text(json.dumps(LAYERS))
    (tmp_path / "machine.toml").write_text(
        'order = "free"\n[[device]]\ncount = 2\nstage_times = ["4ms", "9ms", "8ms"]\n[[device]]\n'
    )
    model = mtpp.read(tmp_path / "graph.json", machine=tmp_path / "machine.toml")
    for table in (mtpp.certify(model), mtpp.bound(model, bounds=["simple", "downset"])):
        found = mtpp.verify(table, tmp_path / "graph.json")
        assert found.passed, found.sentence
        assert found.verdict == "ok"
