"""Machines of planners of training: pfeife takes speed and memory of each device, others equal devices alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from processes import run

import mtpp
from mtpp.datasets.transformer_training import transformer_training
from mtpp.errors import InputError

MACHINE = """
[[device]]
name = "big"
memory = "16GB"
reserve = "1GB"
speed = 2
[[device]]
name = "small"
count = 2
memory = "8GB"
"""
MODEL = transformer_training(4, hidden=512, heads=8)


def _machine(folder: Path, text: str) -> Path:
    path = folder / "machine.toml"
    path.write_text(text)
    return path


def _document(model: Any, planner: Any, **devices: Any) -> dict[str, Any]:
    document = mtpp.plan_training(model, planner=planner, **devices).document()
    del document["elapsed_s"]
    return document


def test_a_machine_says_what_options_would(tmp_path: Path) -> None:
    """Number, memory, speed, bandwidth and latency of the devices give the same plan, which is verified."""
    machine = _machine(tmp_path, MACHINE)
    found = _document(MODEL, mtpp.Pfeife(micro_batches=4), machine=machine)
    plain = {"devices": 3, "memory": ["15GB", "8GB", "8GB"], "bandwidth": "25GB/s"}
    assert found == _document(MODEL, mtpp.Pfeife(micro_batches=4, speed=(2, 1, 1)), **plain)
    assert mtpp.verify({**found, "elapsed_s": 0.1}, MODEL).verdict == "ok"
    slow = _machine(tmp_path, MACHINE.replace("count = 2", 'count = 2\nlatency = "5us"\nbandwidth = "1GB/s"'))
    with pytest.raises(InputError, match="its devices differ in links; speed and memory may differ"):
        _document(MODEL, mtpp.Pfeife(micro_batches=4), machine=slow)
    linked = MACHINE.replace("[[device]]", '[[device]]\nlatency = "5us"\nlink_speed = "1/5"')
    found = _document(MODEL, mtpp.Pfeife(micro_batches=4), machine=_machine(tmp_path, linked))
    plain["bandwidth"] = "5GB/s"
    assert found == _document(MODEL, mtpp.Pfeife(micro_batches=4, speed=(2, 1, 1), latency="5us"), **plain)


def test_models_are_read_for_the_rates_of_the_machine(tmp_path: Path) -> None:
    """All devices have one system, which takes the place of the reference; an order that is free is warned of."""
    system = 'system = "l4"\nbandwidth = "2GB/s"\n'
    text = f'order = "free"\n[[device]]\n{system}speed = 2\n[[device]]\n{system}'
    machine = _machine(tmp_path, text)
    path = mtpp.datasets.sample_path("resnet50")
    with pytest.warns(mtpp.MtppWarning, match="keeps devices in the order of the file"):
        found = _document(path, mtpp.Pfeife(micro_batches=2), machine=machine)
    model = mtpp.read(path, system="l4", bandwidth="2GB/s", fast_memory=10**18)
    due = _document(model, mtpp.Pfeife(micro_batches=2, speed=(2, 1)), devices=2)
    assert {key: found[key] for key in found if key != "model"} == {key: due[key] for key in due if key != "model"}


@pytest.mark.parametrize("planner", [mtpp.Piper(max_micro_batches=4), mtpp.Equi(max_micro_batches=4), mtpp.GraphPipe()])
def test_other_planners_take_equal_devices_alone(tmp_path: Path, planner: Any) -> None:
    """Of devices that differ, or have a speed of their own, they name the planner that takes them."""
    for text in (MACHINE, "[[device]]\nspeed = 2\n"):
        with pytest.raises(InputError, match=r"takes equal ones alone; use planner pfeife") as refused:
            _document(MODEL, planner, machine=_machine(tmp_path, text))
        assert refused.value.parameter == "machine"


def test_equal_devices_are_devices_with_memory(tmp_path: Path) -> None:
    """The plan is that of the options."""
    machine = _machine(tmp_path, '[[device]]\ncount = 2\nmemory = "16GB"\n')
    found = _document(MODEL, mtpp.Piper(max_micro_batches=4), machine=machine)
    assert found == _document(MODEL, mtpp.Piper(max_micro_batches=4), devices=2, memory="16GB", bandwidth="25GB/s")


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (MACHINE, {"devices": 3}, "devices: is a figure of the machine; leave it out"),
        (MACHINE, {"memory": "1GB"}, "memory: is a figure of the machine; leave it out"),
        (MACHINE, {"topology": "x.toml"}, "topology: is a figure of the machine; leave it out"),
        (MACHINE.replace("8GB", "9GB").replace('memory = "9GB"', ""), {}, "whether they have a memory"),
        (MACHINE.replace("speed = 2", 'system = "a100"'), {}, "its devices differ in rates of their systems"),
        (MACHINE.replace("speed = 2", 'costs = "a.json"'), {}, "times of its own for a device are not planned for"),
        (
            MACHINE.replace("speed = 2", 'speed = 2\ntensor_parallel = 2\ntensor_link = "9GB/s"'),
            {},
            "tensor_parallel is of layers of language models; leave it out",
        ),
        ("", {}, "describes no devices"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, text: str, given: dict[str, Any], message: str) -> None:
    """In one line that says what to do."""
    with pytest.raises(InputError) as refused:
        _document(MODEL, mtpp.Pfeife(micro_batches=4), machine=_machine(tmp_path, text), **given)
    assert message in str(refused.value)
    with pytest.raises(InputError, match="speed: is a figure of the machine; leave it out"):
        _document(MODEL, mtpp.Pfeife(micro_batches=4, speed=3), machine=_machine(tmp_path, MACHINE))


def test_verification_holds_a_plan_to_a_machine(tmp_path: Path) -> None:
    """Another memory, speed, link or number of devices is told, and a machine that no such plan is for is refused."""
    machine = _machine(tmp_path, MACHINE)
    found = mtpp.plan_training(MODEL, planner=mtpp.Pfeife(micro_batches=4), machine=machine)
    assert mtpp.verify(found, MODEL, machine=machine).verdict == "ok"
    for old, new, figure in (
        ('"8GB"', '"9GB"', "memory in bytes"),
        ("speed = 2", "speed = 3", "speed"),
        ("count = 2", "count = 3", "devices"),
        ("[[device]]", '[[device]]\nlatency = "1us"', "ticks of latency"),
        ("[[device]]", '[[device]]\nbandwidth = "1GB/s"', "bandwidth in bytes per second"),
    ):
        report = mtpp.verify(found, MODEL, machine=_machine(tmp_path, MACHINE.replace(old, new)))
        assert [(row.claim, row.detail.partition(":")[0]) for row in report.rows if row.verdict == "false"] == [
            ("machine", figure)
        ]
    with pytest.raises(InputError, match="its devices differ in rates of their systems"):
        mtpp.verify(found, MODEL, machine=_machine(tmp_path, MACHINE.replace("speed = 2", 'system = "v100"')))


def test_verification_holds_equal_devices_and_rates_to_a_machine(tmp_path: Path) -> None:
    """Plans of planners of equal devices, and rates that a model was read for."""
    text = '[[device]]\ncount = 2\nmemory = "16GB"\n'
    found = mtpp.plan_training(MODEL, planner=mtpp.Piper(max_micro_batches=4), machine=_machine(tmp_path, text))
    assert mtpp.verify(found, MODEL, machine=_machine(tmp_path, text)).verdict == "ok"
    report = mtpp.verify(found, MODEL, machine=_machine(tmp_path, text + "speed = 2\n"))
    assert [row.claim for row in report.rows if row.verdict == "false"] == ["machine"]
    path, system = mtpp.datasets.sample_path("resnet50"), 'system = "l4"\nbandwidth = "2GB/s"\n'
    found = mtpp.plan_training(
        path, planner=mtpp.Pfeife(micro_batches=2), machine=_machine(tmp_path, f"[[device]]\ncount = 2\n{system}")
    )
    for count, verdict in (("2\n" + system, "ok"), ('2\nsystem = "v100"\nbandwidth = "2GB/s"\n', "false")):
        report = mtpp.verify(found, path, machine=_machine(tmp_path, f"[[device]]\ncount = {count}"))
        assert report.verdict == verdict


@pytest.mark.parametrize(
    "planner",
    [mtpp.Pfeife(micro_batches=4), mtpp.Piper(max_micro_batches=4), mtpp.GraphPipe(batch_size=4, micro_batch_size=1)],
)
def test_devices_that_are_too_small_are_named_with_a_limit_that_would_do(tmp_path: Path, planner: Any) -> None:
    """The machine, its devices and their memories are in the refusal, no option beside them; the limit holds a plan."""
    device = '[[device]]\nname = "gpu"\ncount = 2\nmemory = "{}"\n'
    machine = _machine(tmp_path, f'name = "desk"\n{device.format("1MiB")}')
    with pytest.raises(mtpp.Infeasible) as refused:
        _document(MODEL, planner, machine=machine)
    found = re.search(r"\(machine desk: 2 × gpu of 1 MiB\); a limit of (\d+MiB) on each would do", str(refused.value))
    assert found is not None
    assert "‹memory›" not in str(refused.value)
    held = _machine(tmp_path, device.format(found[1]))
    assert _document(MODEL, planner, machine=held)["feasible"]


def test_memories_that_differ_are_each_named(tmp_path: Path) -> None:
    """Devices in order, each with its limit after reserve; the table of figures says the same as the refusal."""
    text = '[[device]]\nname = "big"\nmemory = "3MiB"\nreserve = "1MiB"\n[[device]]\nname = "small"\nmemory = "1MiB"\n'
    planner = ("--planner", "pfeife", "--micro-batches", "4", "--machine", _machine(tmp_path, text))
    done = run("plan", mtpp.datasets.sample_path("resnet50"), *planner)
    assert done.returncode == 1
    for said in (done.stdout, done.stderr):
        assert "(machine machine: big of 2 MiB, small of 1 MiB)" in said
        assert "a limit of 293MiB on each would do" in said
        assert "--memory" not in said
