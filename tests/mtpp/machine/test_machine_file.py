"""Files of devices in order: each key, each refusal with its place, and figures that are left out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.machine_file import Defaults
from mtpp.machine.presets import load_device

THREE = """
name = "three"
description = "two and another"
order = "free"
[[device]]
name = "old"
count = 2
system = "a100"
memory = "32.5B"
utilization = 0.9
reserve = "2B"
bandwidth = "12.5GB/s"
latency = "20us"
[[device]]
speed = 1.5
link_speed = "1/2"
place = "cuda:0"
"""


def written(folder: Path, text: str) -> str:
    """Write a file and return its path."""
    path = folder / "machine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_every_key_is_read(tmp_path: Path) -> None:
    """Devices stand in order; limits are ⌊memory · utilization⌋ − reserve; numbers are decimals or ratios."""
    machine = Machine.read(written(tmp_path, THREE))
    a100, reference = load_device("a100"), load_device()
    old = replace(a100, link=Link(12_500_000_000, 20_000_000), memory_bytes=32 * 9 // 10 - 2)
    new = replace(reference, link=replace(reference.link, speed=Fraction(1, 2)), speed=Fraction(3, 2))
    assert machine.devices == (old, old, new)
    assert (machine.names, machine.places) == (("old", "old", "d1"), ("cpu", "cpu", "cuda:0"))
    assert (machine.name, machine.order, machine.transport, machine.count) == ("three", "free", "direct", 3)
    assert (list(machine.class_of), len(machine.links)) == ([0, 0, 1], 2)


def test_defaults_take_the_place_of_what_is_left_out(tmp_path: Path) -> None:
    """A device without a system has the default one; rates and modes of its own system win over those given."""
    text = '[[device]]\n[[device]]\nsystem = {peak_flops = "1TFLOP/s", activation_reserve = "7B"}\nbandwidth = "5B/s"\n'
    given = Defaults(load_device("h100"), 3, "order", 9)
    one, other = Machine.read(written(tmp_path, text), defaults=given).devices
    due = load_device("h100").overriding(bandwidth_bytes_per_s=3, peak="order", activation_reserve_bytes=9)
    assert one == due
    assert other == Device("device", 10**12, None, Link(5), None, 7, "order")


def test_costs_are_found_beside_the_file(tmp_path: Path) -> None:
    """A path is relative to the folder of the machine's file, and makes a class of its own."""
    machine = Machine.read(written(tmp_path, '[[device]]\ncosts = "a.json"\n[[device]]\n'))
    assert [device.costs for device in machine.devices] == [str(tmp_path / "a.json"), ""]
    assert len(machine.classes) == 2


ONE = "[[device]]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device = []", "/device: is not a list of devices"),
        ("device = 3", "/device: is not a list of devices"),
        ("device = [3]", "/device: is not a list of devices"),
        ("colour = 1\n" + ONE, "/colour: unknown key"),
        ("levels = []\n" + ONE, "/levels: unknown key"),
        ("name = 1\n" + ONE, "/name: is not a text"),
        ('order = "any"\n' + ONE, "/order: 'any' is unknown; use one of fixed, free"),
        ('transport = "air"\n' + ONE, "/transport: 'air' is unknown; use one of neighbours, direct"),
        (ONE + '[[link]]\nbetween = ["d0", "d0"]', "/link: links of pairs need transport neighbours"),
        (ONE + "colour = 1", "/device/0/colour: unknown key"),
        (ONE + ONE + "count = 0", "/device/1/count: must be above zero, not 0"),
        (ONE + "count = 1.5", "/device/0/count: 1.5 is not a whole number"),
        (ONE + "count = 2000000", "/device: more than 1000000 devices"),
        (ONE + ONE + "speed = 0", "/device/1/speed: must be above zero, not 0"),
        (ONE + "speed = -1.5", "/device/0/speed: must be above zero, not -1.5"),
        (ONE + 'speed = "3/0"', "/device/0/speed: 3/0 is out of range"),
        (ONE + 'speed = "3/"', "/device/0/speed: '' is not a number"),
        (ONE + 'speed = "fast"', "/device/0/speed: 'fast' is not a number"),
        (ONE + "speed = inf", "/device/0/speed: "),
        (ONE + "speed = true", "/device/0/speed: True is no number"),
        (ONE + "link_speed = 0.0", "/device/0/link_speed: must be above zero, not 0.0"),
        (ONE + 'speed = 2\ncosts = "a.json"', "/device/0/speed: does not go with costs"),
        (ONE + 'costs = ""', "/device/0/costs: is empty; name a file"),
        (ONE + 'stage_times = ["4ms"]\nsystem = "a100"', "/device/0/stage_times: do not go with system"),
        (ONE + 'stage_times = ["4ms"]\ntensor_parallel = 2\ntensor_link = "1B/s"', "/device/0: stage_times do not go"),
        (ONE + 'costs = "a.json"\ntensor_parallel = 2\ntensor_link = "1B/s"', "/device/0: tensor_parallel does not go"),
        (ONE + "tensor_parallel = 8", "/device/0/tensor_link: missing key; give the bandwidth between the GPUs"),
        (ONE + 'tensor_link = "450GB/s"', "/device/0/tensor_link: is a link between the GPUs of a stage"),
        (ONE + 'tensor_parallel = 8\ntensor_link = "0B/s"', "/device/0/tensor_link: "),
        (ONE + "tensor_parallel = 8\ntensor_link = 450", "/device/0/tensor_link: 450 has no unit"),
        (ONE + "tensor_parallel = []", "/device/0/tensor_parallel: is an empty list; write it like 8"),
        (ONE + "tensor_parallel = 0", "/device/0/tensor_parallel: must be above zero, not 0"),
        (ONE + "tensor_parallel = [1, 2.5]", "/device/0/tensor_parallel/1: 2.5 is not a whole number"),
        (ONE + 'tensor_parallel = "8"', "/device/0/tensor_parallel: 8 is not a whole number"),
        (ONE + "tensor_parallel = [2, 1, 2]", "/device/0/tensor_parallel: names a number twice"),
        (ONE + "tensor_parallel = 5000", "/device/0/tensor_parallel: 5000 is not between 1 and 4,096"),
        (ONE + 'stage_times = ["4ms", 9]', "/device/0/stage_times/1: 9 has no unit"),
        (ONE + 'stage_times = ["4ms", "0.1ps"]', "/device/0/stage_times/1: is not a whole number of picoseconds"),
        (ONE + 'name = "x"\n' + ONE + 'name = "x"', "/device/1/name: 'x' is the name of another device"),
        (ONE + 'name = ""', "/device/0/name: is empty"),
        (ONE + 'name = " "', "/device/0/name: is empty"),
        (ONE + "place = 0", "/device/0/place: is not a text"),
        (ONE + 'place = "gpu"', '/device/0/place: \'gpu\' is no place; use "cpu" or "cuda:0"'),
        (ONE + 'place = ["cpu", 1]', "/device/0/place: is not a text"),
        (ONE + 'count = 3\nplace = ["cpu", "cuda:1"]', "/device/0/place: 2 places for 3 devices"),
        (ONE + "system = {}", "/device/0/system: its rates are open; fill in peak_flops, memory_bandwidth, bandwidth"),
        ('order = "free"', "/device: missing key; describe each: [[device]]"),
        (
            ONE + 'system = "abacus"',
            "/device/0/system: 'abacus' is neither a preset nor a table; `mtpp systems`",
        ),
        (ONE + 'system = {colour = "red"}', "/device/0/system/colour: unknown key"),
        (ONE + 'system = {name = 3, bandwidth = "1B/s"}', "/device/0/system/name: is not a text"),
        (ONE + "system = {bandwidth = 3}", "/device/0/system/bandwidth: 3 has no unit"),
        (ONE + 'system = {peak_flops = "1TFLOP/s"}', "/device/0/bandwidth: missing key"),
        (ONE + "memory = 32", "/device/0/memory: 32 has no unit"),
        (ONE + 'memory = "32"', "/device/0/memory: size '32' has no unit"),
        (ONE + "utilization = 0.5", "/device/0/utilization: is a part of the memory, which is not given"),
        (ONE + 'memory = "1GB"\nutilization = 1.5', "/device/0/utilization: must be at most 1"),
        (ONE + 'memory = "1GB"\nreserve = "2GB"', "/device/0/reserve: the reserve (1.863 GiB) is above the memory"),
        (ONE + 'bandwidth = "0B/s"', "/device/0/bandwidth: bandwidth '0B/s' must be above zero"),
        (ONE + "latency = 1", '/device/0/latency: 1 has no unit; write it like "20us"'),
        (ONE + 'latency = "0.5ps"', "/device/0/latency: is not a whole number of picoseconds"),
        (ONE + 'system = {peak = "guess", bandwidth = "1B/s"}', "/device/0: unknown peak mode"),
        (ONE + "[[device]]\nsystem = {peak = 'order', bandwidth = '1B/s'}", "/device: devices differ in how"),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    """One line that names the file, the place and the fault."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        Machine.read(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_marks_of_byte_order_are_passed_over(tmp_path: Path) -> None:
    """Editors write them at the beginning of a file."""
    assert Machine.read(written(tmp_path, "\ufeff[[device]]\ncount = 2\n")).count == 2


def test_files_of_any_size_are_refused(tmp_path: Path) -> None:
    """No more of a file is read than people write."""
    path = written(tmp_path, ONE + "#" * 2**24)
    with pytest.raises(InputError, match="is larger than 16 MiB"):
        Machine.read(path)
