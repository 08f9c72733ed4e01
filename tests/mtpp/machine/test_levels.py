"""Topologies: what their files say, and every way in which one can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpp.errors import InputError
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine

TWO = """
name = "cluster"
description = "machines of eight"
[[levels]]
name = "GPUs"
devices = 8
bandwidth = "300GB/s"
[[levels]]
devices = 4
bandwidth = "200Gbit/s"
"""


def written(folder: Path, text: str) -> str:
    """Write a file and return its path."""
    path = folder / "topology.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_of_two_levels(tmp_path: Path) -> None:
    """The innermost level comes first; units are read."""
    machine = Machine.read(written(tmp_path, TWO))
    assert machine == Machine.of_levels((Level(8, Link(300 * 10**9), "GPUs"), Level(4, Link(25 * 10**9))))
    assert machine.count == 32
    assert machine.topology() == [
        {"devices": 8, "bandwidth_bytes_per_s": 300 * 10**9},
        {"devices": 4, "bandwidth_bytes_per_s": 25 * 10**9},
    ]


LEVEL = '[[levels]]\ndevices = 8\nbandwidth = "1GB/s"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "/levels: missing key; describe each level: [[levels]]"),
        ("levels = []", "/levels: the topology has no levels; give at least one: [[levels]]"),
        ("levels = 3", "/levels: is not a list of levels; describe each level: [[levels]]"),
        ("levels = [3]", "/levels: is not a list of levels; describe each level: [[levels]]"),
        ("speed = 1\n" + LEVEL, "/speed: unknown key; use one of levels, name, description"),
        ("name = 1\n" + LEVEL, "/name: is not a text; put it in quotes"),
        (LEVEL + "latency = 1", "/levels/0/latency: unknown key; use one of devices, bandwidth, name"),
        (LEVEL + '[[levels]]\nbandwidth = "1GB/s"', "/levels/1/devices: missing key"),
        ("[[levels]]\ndevices = 8", "/levels/0/bandwidth: missing key"),
        (LEVEL.replace("8", "0"), "/levels/0/devices: must be above zero, not 0"),
        (LEVEL.replace("8", "-2"), "/levels/0/devices: must be above zero, not -2"),
        (LEVEL.replace("8", "2.5"), "/levels/0/devices: 2.5 is not a whole number"),
        (LEVEL.replace("8", "true"), "/levels/0/devices: True is not a whole number"),
        (LEVEL.replace("8", "2000000"), "/levels: 2000000 devices are too many; at most 1048576 are planned for"),
        (LEVEL.replace('"1GB/s"', "25"), '/levels/0/bandwidth: 25 has no unit; write it like "25GB/s"'),
        (LEVEL.replace("1GB/s", "0GB/s"), "/levels/0/bandwidth: bandwidth '0GB/s' must be above zero"),
        (LEVEL.replace("1GB/s", "fast"), "/levels/0/bandwidth: 'fast' is not a bandwidth"),
        ("[[levels]\n", "not a TOML file: "),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    """One line that says where, what, and what to do."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        Machine.read(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    """So is a folder."""
    with pytest.raises(InputError, match="no such file"):
        Machine.read(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="Is a directory"):
        Machine.read(str(tmp_path))
