"""Plans for machines of unequal devices: documents, verification, forged documents, and uniform machines."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import mtpp
from mtpp.checker.machine import digest_of
from mtpp.errors import InputError, InvalidPartition
from mtpp.formats.graphs.native import write_native
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine

GRAPH = {
    "format": "mtpp-graph", "version": 1, "name": "line", "time_unit": "ps",
    "ops": [{"name": name, "work": work, "param_bytes": 10} for name, work in zip("abcd", (4, 2.5, 3, 7), strict=True)],
    "tensors": [
        {"name": f"t{u}", "producer": u, "consumers": [v], "bytes": size}
        for u, v, size in (("a", "b", 2), ("b", "c", 3), ("c", "d", 1))
    ],
}  # fmt: skip

SLOW = Device("slow", 1, 1, Link(10**12), memory_bytes=20)
FAST = Device("fast", 1, 1, Link(10**12, 1, Fraction(1, 2)), memory_bytes=30, speed=Fraction(3, 2))


def machine(order: str = "fixed") -> Machine:
    """Return two slow devices and a fast one."""
    groups = (DeviceGroup(SLOW, 2, "slow"), DeviceGroup(FAST, 1, "fast", "cuda:0"))
    return Machine(groups, (Level(3, SLOW.link),), "three", order)


def model(order: str = "fixed") -> Any:
    """Return the graph read for the machine."""
    return mtpp.read(GRAPH, machine=machine(order))


@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("k", [None, 2])
def test_a_plan_is_optimal_and_verifies(order: str, k: int | None) -> None:
    """The plan names the device of each stage; its proof is checked from the document alone."""
    plan = mtpp.partition(model(order), k)
    document = plan.document(embed=True)
    assert plan.optimal
    assert document["k"] == (k or 3)
    assert sorted(stage["device"]["index"] for stage in document["stages"]) == [0, 1, 2]
    assert document["latency"] == sum(stage["cost"] for stage in document["stages"])
    assert mtpp.verify(document).passed
    assert mtpp.verify(document, machine=machine(order)).passed
    assert not mtpp.verify(document, machine=machine("free" if order == "fixed" else "fixed")).passed
    assert mtpp.verify(document, GRAPH).passed
    assert "slow" in plan.text("table")
    again = mtpp.load(plan.json_text(embed=True).encode())
    assert (again.k, again.bottleneck) == (plan.k, plan.bottleneck)
    assert again.text("table").splitlines()[2:5] == plan.text("table").splitlines()[2:5]


def test_the_figures_are_those_of_the_definition() -> None:
    """Speed 3/2, half the link, a picosecond for each message."""
    plan = mtpp.evaluate(model(), {"a": 0, "b": 0, "c": 2, "d": 2})
    first, empty, last = plan.document()["stages"]
    assert (first["work"], first["output"], first["cost"]) == (7, 3, 10)
    assert empty["ops"] == 0
    assert (last["work"], last["input"], last["cost"]) == (2 + 5, 2 * 3 + 1, 14)
    assert plan.document()["latency"] == 24


def test_a_plan_says_the_devices_of_its_stages() -> None:
    """In free order stages stand as a plan says, also where others would be better."""
    plan = mtpp.partition(model("free")).document()
    assert mtpp.evaluate(model("free"), plan).document()["stages"] == plan["stages"]
    plan["stages"][0]["device"], plan["stages"][1]["device"] = (plan["stages"][i]["device"] for i in (1, 0))
    kept = [stage["device"]["index"] for stage in mtpp.evaluate(model("free"), plan).document()["stages"]]
    assert kept == [stage["device"]["index"] for stage in plan["stages"]]


def test_stages_without_devices_stand_on_the_best_ones() -> None:
    """In free order, with direct transport; the order of the list stays where it is as good."""
    for cuts, devices in ((["b"], [0, 1, 2]), (["a"], [0, 2, 1]), (["c"], [2, 0, 1])):
        plan = mtpp.evaluate(model("free"), cuts=cuts)
        assert [stage["device"]["index"] for stage in plan.document()["stages"]] == devices
        assert mtpp.verify(plan.document(embed=True)).passed
    plan = mtpp.partition(model("free"))
    assert mtpp.evaluate(model("free"), plan.assignment).bottleneck == plan.bottleneck


def test_neighbours_and_engines_keep_the_order_of_the_list() -> None:
    """Which is said."""
    neighbours = mtpp.read(GRAPH, machine=replace(machine("free"), transport="neighbours"))
    with pytest.warns(mtpp.MtppWarning, match="in the order of the machine's file: devices of neighbours"):
        plan = mtpp.evaluate(neighbours, cuts=["b"])
    assert [stage["device"]["index"] for stage in plan.document()["stages"]] == [0, 1, 2]


def test_too_many_stages_are_refused() -> None:
    """Neither more than there are devices, nor more than k of them."""
    with pytest.raises(InputError, match="4 stages are more than the machine has devices, 3"):
        mtpp.partition(model(), 4)
    with pytest.raises(InvalidPartition, match="3 blocks were given, but k is 2"):
        mtpp.evaluate(model(), {"a": 0, "b": 1, "c": 2, "d": 2}, k=2)
    with pytest.raises(InvalidPartition, match="stage 0 on device 'slow' needs 40 bytes"):
        mtpp.evaluate(model(), dict.fromkeys("abcd", 0))


def test_equal_devices_are_the_problem_of_k_stages() -> None:
    """A machine of four equal devices in fixed order gives what k = 4 gives, and k = 3 what k = 3 gives."""
    equal = Machine(
        (DeviceGroup(Device("reference", 20 * 10**12, 2 * 10**11, Link(25 * 10**9)), 4),), (Level(4, Link(1)),)
    )
    path = mtpp.datasets.sample_path("resnet50")
    for k in (None, 3):
        plain = mtpp.partition(path, k or 4).document()
        on = mtpp.partition(mtpp.read(path, machine=equal), k).document()
        stages = [{key: value for key, value in stage.items() if key != "device"} for stage in on.pop("stages")]
        assert stages[: k or 4] == plain.pop("stages")
        assert all(stage["ops"] == 0 for stage in stages[k or 4 :])
        del on["machine"], on["elapsed_s"], plain["elapsed_s"]
        assert on == plain


@pytest.mark.parametrize("speed", [Fraction(1, 8), 3, Fraction(7, 3)])
def test_equal_devices_stream_over_links_of_their_speed(speed: Fraction | int) -> None:
    """The bound is checked at the rate of the link, not at its bandwidth."""
    device = Device("device", 1, 1, Link(10**12, 0, speed), fast_memory_bytes=5)
    equal = Machine((DeviceGroup(device, 2, "equal"),), (Level(2, device.link),))
    plan = mtpp.partition(mtpp.read(GRAPH, machine=equal))
    assert plan.optimal
    assert mtpp.verify(plan.document(embed=True)).passed


def _swap(document: dict[str, Any]) -> None:
    stages = document["stages"]
    stages[0]["device"], stages[2]["device"] = stages[2]["device"], stages[0]["device"]


def _twice(document: dict[str, Any]) -> None:
    document["stages"][1]["device"] = dict(document["stages"][0]["device"])


def _device(i: int, **figures: Any) -> Callable[[dict[str, Any]], None]:
    def forge(document: dict[str, Any]) -> None:
        document["machine"]["devices"][i].update(figures)

    return forge


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "devices swapped": _swap,
    "a device twice": _twice,
    "another name": lambda document: document["stages"][0]["device"].update(name="fast"),
    "no such device": lambda document: document["stages"][0]["device"].update(index=7),
    "a speed raised": _device(2, speed="2"),
    "a link speed raised": _device(2, link_speed="2"),
    "a latency lowered": _device(2, latency_ps=0),
    "a memory raised": _device(0, stage_memory_bytes=100),
    "a reserve lowered": _device(0, activation_reserve_bytes=1),
    "another place": _device(0, place="cuda:7"),
    "another order": lambda document: document["machine"].update(order="free"),
    "another name of the machine": lambda document: document["machine"].update(name="four"),
    "fewer devices": lambda document: document["machine"]["devices"].pop(),
    "less latency of a request": lambda document: document.update(latency=document["latency"] - 1),
    "a lower bottleneck": lambda document: document.update(bottleneck=document["bottleneck"] - 1),
    "k above the devices": lambda document: document.update(k=4),
    "k below the stages": lambda document: document.update(k=1),
    "times of its own": lambda document: (
        document["machine"].update(times=[[1, 1, 1, 1]]),
        document["machine"]["devices"][2].update(times=0),
    ),
    "a better system": lambda document: document["system"].update(bandwidth_bytes_per_s=10**13),
    "a proof of the envelope": lambda document: document["lower_bound"]["proof"].update(envelope=True),
    "fewer labels": lambda document: document["lower_bound"]["proof"].update(labels=1),
    "a proof for another order": lambda document: document["lower_bound"]["proof"].update(order="free"),
}


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("alone", [True, False])
def test_forged_plans_are_refused(forged: str, alone: bool) -> None:
    """Whatever is changed in a plan, something is false, or the document is none."""
    document = mtpp.partition(model()).document(embed=True)
    assert document["lower_bound"]["proof"]["labels"] > 1
    FORGED[forged](document)
    try:
        verdict = mtpp.verify(document, None if alone else GRAPH).verdict
    except InputError:
        return
    assert verdict == "false"


def test_a_forged_digest_is_held_to_the_machine() -> None:
    """Figures with a digest of their own are another machine: only who names the machine knows."""
    document = mtpp.evaluate(model(), {"a": 0, "b": 0, "c": 2, "d": 2}).document(embed=True)
    forged = copy.deepcopy(document)
    forged["machine"]["devices"][1]["place"] = "cuda:1"
    forged["machine"]["sha256"] = digest_of(forged["machine"])
    assert mtpp.verify(forged).passed
    assert not mtpp.verify(forged, machine=machine()).passed
    assert mtpp.verify(document, machine=machine()).passed


def test_models_are_modelled_on_each_system(tmp_path: Path) -> None:
    """The work of a model's ops is that of each device's system at its speed, and the document verifies."""
    path = tmp_path / "machine.toml"
    path.write_text('[[device]]\nsystem = "a100"\n[[device]]\nsystem = "h100"\nspeed = "3/2"\n')
    source = mtpp.datasets.sample_path("resnet50")
    read = mtpp.read(source, machine=path)
    a100, h100 = (mtpp.read(source, system=name).graph.work for name in ("a100", "h100"))
    cut = dict(zip(read.graph.op_names, [0] * 60 + [1] * 62, strict=True))
    plan = mtpp.evaluate(read, cut)
    work = [stage.work for stage in plan.stages]
    assert work[0] == sum(a100[:60])
    assert sum(h100[60:]) * 2 // 3 <= work[1] <= sum(h100[60:]) * 2 // 3 + 62
    assert mtpp.verify(plan, source, machine=path).passed
    assert mtpp.verify(plan.document(embed=True)).passed
    document = plan.document(embed=True)
    document["machine"]["times"][1][70] += 1
    assert not mtpp.verify(document, source).passed


def test_measured_times_of_a_device(tmp_path: Path) -> None:
    """They take the place of work and speed; the plan holds them with the digest of their file."""
    times = tmp_path / "times.json"
    times.write_text(json.dumps({**GRAPH, "ops": [{"name": name, "work": 1} for name in "abcd"]}))
    path = tmp_path / "machine.toml"
    path.write_text('[[device]]\n[[device]]\ncosts = "times.json"\n')
    read = mtpp.read(GRAPH, machine=path)
    plan = mtpp.evaluate(read, {"a": 0, "b": 0, "c": 1, "d": 1})
    assert [stage.work for stage in plan.stages] == [7, 2]
    assert mtpp.verify(plan, GRAPH, machine=path).passed
    assert mtpp.verify(plan.document(embed=True)).passed
    with pytest.raises(InputError, match="are figures of the machine"):
        mtpp.read(GRAPH, machine=path, costs=times)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"machine": machine(), "system": "a100"}, "system: is a figure of the machine at hand"),
        ({"machine": machine(), "bandwidth": "1GB/s"}, "bandwidth: is a figure of the machine at hand"),
        ({"machine": machine(), "stage_memory": "1GB"}, "stage_memory: is a figure of the machine"),
    ],
)
def test_figures_of_the_machine_are_not_given_twice(given: dict[str, Any], message: str) -> None:
    """Named by the parameter."""
    with pytest.raises(InputError) as caught:
        mtpp.read(GRAPH, **given)
    assert str(caught.value).startswith(message)


def test_figures_that_the_machine_leaves_open_are_filled_in(tmp_path: Path) -> None:
    """A file of networks is no machine of devices in order."""
    path = tmp_path / "machine.toml"
    path.write_text("[[device]]\ncount = 2\n")
    read = mtpp.read(GRAPH, machine=path, system="a100", bandwidth="3GB/s", stage_memory="1GB")
    device = read.machine.device
    assert (device.name, device.link.bandwidth_bytes_per_s, device.memory_bytes) == ("a100", 3 * 10**9, 10**9)
    path.write_text('[[levels]]\ndevices = 8\nbandwidth = "1GB/s"\n')
    with pytest.raises(InputError, match=r"machine\.toml: describes no devices in order"):
        mtpp.read(GRAPH, machine=path)


def test_a_device_that_can_hold_no_op_is_told(tmp_path: Path) -> None:
    """It is left out, which costs nothing."""
    path = tmp_path / "machine.toml"
    path.write_text('[[device]]\nname = "tiny"\nmemory = "9B"\n[[device]]\n')
    with pytest.warns(mtpp.MtppWarning, match="device tiny can hold no op"):
        read = mtpp.read(GRAPH, machine=path)
    plan = mtpp.partition(read)
    assert plan.optimal
    assert plan.assignment == dict.fromkeys("abcd", 1)
    assert mtpp.verify(plan.document(embed=True)).passed


def test_tables_are_of_all_devices_by_default() -> None:
    """Rows hold machine and devices; bounds of equal devices are of the envelope; verify derives such rows."""
    (row,) = mtpp.certify(model("free"), time_limit_s=None).document()["rows"]
    plan = mtpp.partition(model("free")).document()
    assert (row["k"], row["upper"], row["optimal"]) == (3, plan["bottleneck"], True)
    assert row["machine"] == plan["machine"]
    assert sorted(row["devices"]) == [0, 1, 2]
    table = mtpp.bound(model("free"), bounds=["simple", "node"], time_limit_s=None)
    assert all(one.ticks <= plan["bottleneck"] for one in table)
    assert mtpp.verify(mtpp.certify(model("free"), time_limit_s=None), GRAPH).verdict == "ok"
    runs = mtpp.compare(model("free"), algorithms=["slice", "auto"])
    assert min(run.bottleneck for run in runs) == plan["bottleneck"]
    with pytest.raises(InputError, match="give a number of stages"):
        mtpp.bound(GRAPH)


def test_an_embedded_graph_of_equal_devices_is_that_of_k_stages(tmp_path: Path) -> None:
    """Ticks of work and transfer stand in it; what is verified without the model is verified with it."""
    path = mtpp.datasets.sample_path("resnet50")
    (tmp_path / "machine.toml").write_text("[[device]]\ncount = 3\n")
    plan = mtpp.partition(mtpp.read(path, machine=tmp_path / "machine.toml"))
    document = plan.document(embed=True)
    assert document["graph"] == mtpp.partition(path, 3).document(embed=True)["graph"]
    assert all("transfer" in tensor for tensor in document["graph"]["tensors"])
    assert mtpp.verify(document).verdict == mtpp.verify(document, path).verdict == "ok"
    document["graph"]["tensors"][0]["transfer"] += 1
    assert mtpp.verify(document, path).verdict == "false"


@pytest.mark.parametrize("unit", ["ps", "ns", "us", "ms", "s"])
def test_an_embedded_graph_of_equal_devices_is_verified_in_any_unit(tmp_path: Path, unit: str) -> None:
    """Its costs are picoseconds, whatever the unit of the model's times; the plan has to say how many are in that."""
    ops = [{"name": name, "work": work} for name, work in (("a", 3), ("b", 1.5))]
    tensors = [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 1}]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": unit, "ops": ops, "tensors": tensors}
    (tmp_path / "machine.toml").write_text("[[device]]\ncount = 2\n")
    document = mtpp.partition(mtpp.read(graph, machine=tmp_path / "machine.toml")).document(embed=True)
    assert mtpp.verify(document).verdict == mtpp.verify(document, mtpp.read(graph)).verdict == "ok"
    document["ticks_per_unit"] *= 10
    assert mtpp.verify(document).verdict == "false"


def test_measured_times_are_checked_against_graphs_in_memory(tmp_path: Path) -> None:
    """Times in a plan have to be those of the machine's file, whether the graph is in a file or at hand."""
    ops = [Op(f"op{i}", work) for i, work in enumerate((5, 9, 4))]
    tensors = [Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), transfer=1) for i in range(2)]
    graph = CostGraph.build(name="g", time_unit="ms", ops=ops, tensors=tensors)
    measured = [Op(op.name, 2 * op.work + 1) for op in ops]
    other = CostGraph.build(name="g", time_unit="ms", ops=measured, tensors=tensors)
    (tmp_path / "times.json").write_text(write_native(other))
    machine = tmp_path / "machine.toml"
    machine.write_text('[[device]]\n[[device]]\ncosts = "times.json"\n')
    model = mtpp.read(graph, machine=machine)
    document = mtpp.partition(model).document()
    assert mtpp.verify(document, mtpp.read(graph), machine=machine).verdict == "ok"
    document.pop("graph", None)
    assert mtpp.verify(document, mtpp.read(graph), machine=machine).verdict == "ok"
    document["machine"]["times"][0][0] += 1
    assert mtpp.verify(document, mtpp.read(graph), machine=machine).verdict == "false"


def test_documents_of_decimal_times_are_json(tmp_path: Path) -> None:
    """The standard library writes them, with the embedded graph and measured times, and they are verified as read."""
    ops = [Op("a", Fraction("5.2")), Op("b", Fraction("0.1"))]
    tensors = [Tensor("t", "a", ("b",), transfer=Fraction("1.7"))]
    graph = CostGraph.build(name="g", time_unit="ns", ops=ops, tensors=tensors)
    (tmp_path / "times.json").write_text(write_native(graph))
    machine = tmp_path / "machine.toml"
    machine.write_text('[[device]]\nspeed = "3/2"\n[[device]]\ncosts = "times.json"\n')
    plan = mtpp.partition(mtpp.read(graph, machine=machine))
    written, saved = json.loads(json.dumps(plan.document(embed=True))), json.loads(plan.json_text(embed=True))
    assert all(written[key] == saved[key] for key in ("graph", "machine"))
    assert mtpp.verify(written).verdict == "ok"
