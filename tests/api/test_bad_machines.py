"""Machine files that are refused: by every function that takes one, with the same line, and by the commands as well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import refused

import mtpp
from mtpp.errors import InputError, InvalidPartition, MtppError

ONE = '[[device]]\nname = "one"\n'
FORK = {
    "format": "mtpp-graph", "version": 1, "name": "fork", "time_unit": "ms",
    "ops": [{"name": name, "work": work, "param_bytes": 10 * work} for name, work in (("a", 1), ("b", 2), ("c", 3))],
    "tensors": [{"name": f"t{reader}", "producer": "a", "consumers": [reader], "bytes": 10} for reader in "bc"],
}  # fmt: skip
ASSIGNMENT = {"a": 0, "b": 0, "c": 1}

COMMANDS = {
    "partition": ("fork.json",),
    "certify": ("fork.json",),
    "bound": ("fork.json",),
    "evaluate": ("fork.json", "--assignment", "assignment.json"),
    "compare": ("fork.json",),
    "verify": ("plan.json", "--model", "fork.json"),
}


def _read(folder: Path) -> Any:
    return mtpp.read(folder / "fork.json", machine=folder / "machine.toml")


FUNCTIONS: dict[str, Callable[[Path], Any]] = {
    "partition": lambda folder: mtpp.partition(_read(folder)),
    "certify": lambda folder: mtpp.certify(_read(folder)),
    "bound": lambda folder: mtpp.bound(_read(folder)),
    "evaluate": lambda folder: mtpp.evaluate(_read(folder), ASSIGNMENT),
    "compare": lambda folder: mtpp.compare(_read(folder)),
    "verify": lambda folder: mtpp.verify(folder / "plan.json", folder / "fork.json", machine=folder / "machine.toml"),
}

REFUSED = [
    (ONE + "colour = 1", "/device/0/colour: unknown key; use one of name, "),
    (ONE + "count = 0", "/device/0/count: must be above zero, not 0"),
    (ONE + "count = 1000000000", "/device: more than 1000000 devices"),
    (ONE + "speed = 0", "/device/0/speed: must be above zero, not 0"),
    (ONE + "speed = nan", "/device/0/speed: 'NaN' is not finite"),
    (ONE + '[[device]]\n[[link]]\nbetween = ["one", "d1"]', "/link: links of pairs need transport neighbours"),
    (ONE + 'speed = 2\ncosts = "x.json"', "/device/0/speed: does not go with costs"),
    ('[device]\nname = "one"', "/device: is not a list of devices; describe each: [[device]]"),
    (ONE + 'memory = "32gb"', "/device/0/memory: size '32gb' has an unknown unit 'gb'"),
    (ONE + 'memory = "-1GB"', "/device/0/memory: size '-1GB' must be at least zero"),
    (ONE + 'memory = "1GB"\nutilization = 0', "/device/0/utilization: must be above zero, not 0"),
    (ONE * 2, "/device/1/name: 'one' is the name of another device"),
    ("", "describes no devices"),
    ('[[device]]\n[[device]]\nname = "two"\ncosts = "there/x.json"',
     "/device/1/costs: of 'two': {folder}/there/x.json: no such file; check the path"),
    ('[[device]]\n[[device]]\nname = "two"\ncount = 2\nplace = ["cpu", "cuda:0"]\ncosts = "fork.txt"',
     "/device/1/costs: of 'two': {folder}/fork.txt: holds no measured times"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a graph, an assignment and a plan for two devices."""
    made = tmp_path_factory.mktemp("machines")
    (made / "fork.json").write_text(json.dumps(FORK))
    (made / "fork.txt").write_text("no times")
    (made / "assignment.json").write_text(json.dumps(ASSIGNMENT))
    (made / "two.toml").write_text(ONE + "[[device]]\nspeed = 2\n")
    mtpp.partition(mtpp.read(made / "fork.json", machine=made / "two.toml")).save(made / "plan.json")
    return made


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_bad_machines_are_refused(folder: Path, function: Callable[[Path], Any], text: str, message: str) -> None:
    """One line names the machine's file, the place in it and the fault."""
    (folder / "machine.toml").write_text(text)
    with pytest.raises(MtppError) as caught:
        function(folder)
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith(f"{folder}/machine.toml: {message.format(folder=folder)}")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_the_same(folder: Path, name: str) -> None:
    """Nothing else is printed; paths are as they were given."""
    (folder / "machine.toml").write_text(ONE + 'costs = "there/x.json"')
    line = refused(name, *COMMANDS[name], "--machine", "machine.toml", cwd=folder)
    assert line == "error: machine.toml: /device/0/costs: of 'one': there/x.json: no such file; check the path\n"


def test_machines_that_do_not_go_with_a_model_are_refused(folder: Path) -> None:
    """More stages than devices, times of stages of what is no chain, and rates that a model needs."""
    (folder / "machine.toml").write_text(ONE + "[[device]]\n")
    for function in (mtpp.partition, mtpp.certify, mtpp.bound, mtpp.compare):
        with pytest.raises(InputError, match="k: 3 stages are more than the machine has devices, 2"):
            function(_read(folder), 3)
    (folder / "machine.toml").write_text(ONE + 'stage_times = ["1ms"]\n')
    for name in FUNCTIONS.keys() - {"verify"}:
        with pytest.raises(InputError, match=r"machine\.toml: /device/0/stage_times: stage_times are of a chain"):
            FUNCTIONS[name](folder)
    assert FUNCTIONS["verify"](folder).verdict == "false"
    (folder / "machine.toml").write_text(ONE + '[device.system]\npeak_flops = "1TFLOP/s"\nbandwidth = "1GB/s"\n')
    with pytest.raises(InputError, match=r"machine\.toml: /device/0/system: device one: its system has no"):
        mtpp.read(mtpp.datasets.sample_path("resnet50"), machine=folder / "machine.toml")


def test_too_many_devices_that_differ_are_refused(folder: Path) -> None:
    """Searches look at each of them; equal ones may be many more."""
    (folder / "machine.toml").write_text(ONE + "[[device]]\nspeed = 2\ncount = 20000\n")
    with pytest.raises(InputError, match="machine: 20,001 devices that differ are more than 20,000; leave some out"):
        FUNCTIONS["partition"](folder)


def test_stages_above_a_memory_name_the_device(folder: Path) -> None:
    """Of the assignment that is scored."""
    (folder / "machine.toml").write_text(ONE + '[[device]]\nname = "two"\nmemory = "29B"\n')
    with pytest.raises(InvalidPartition, match=r"stage 1 on device 'two' needs 30 bytes .*, more than the 29"):
        FUNCTIONS["evaluate"](folder)


COMPLETE = '[[device]]\nsystem = "v100"\n[[device]]\nsystem = "a100"\nbandwidth = "5GB/s"\n'
"""Devices that leave no system and no bandwidth open, and activations to the caller."""


@pytest.mark.parametrize(("name", "value"), [("system", "l4"), ("bandwidth", "1GB/s")])
def test_a_figure_that_every_device_has_is_refused_beside_the_machine(name: str, value: str, tmp_path: Path) -> None:
    """It would have no effect; where one device leaves it open it has one, also with the value of the default."""
    machine = tmp_path / "machine.toml"
    machine.write_text(COMPLETE)
    with pytest.raises(InputError, match=f"has no effect: the devices of {machine} say all that it would") as caught:
        mtpp.read(FORK, machine=machine, **{name: value})
    assert caught.value.parameter == name
    machine.write_text(f"{COMPLETE}[[device]]\n")
    for one in (value, {"system": "reference", "bandwidth": "25GB/s"}[name]):
        assert mtpp.read(FORK, machine=machine, **{name: one}).machine is not None
    machine.write_text(f'{COMPLETE}[[device]]\nbandwidth = "1GB/s"\n')
    if name == "system":  # rates are open, the link is not
        assert mtpp.read(FORK, machine=machine, system="l4").machine is not None


def test_how_activations_count_is_open_where_no_device_says_it(tmp_path: Path) -> None:
    """Beside devices that say all else."""
    (tmp_path / "machine.toml").write_text(COMPLETE)
    model = mtpp.read(FORK, machine=tmp_path / "machine.toml", peak="order")
    assert model.machine is not None
    assert {device.peak for device in model.machine.classes} == {"order"}
