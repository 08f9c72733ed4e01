"""Links between pairs of devices: figures, classes, refusals with their places, and the way through a document."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from mtpp.errors import InputError
from mtpp.machine.machine import Machine
from mtpp.machine.pair_link import GivenLink, PairLink

FOUR = """
transport = "neighbours"
[[device]]
name = "a"
count = 2
bandwidth = "10GB/s"
latency = "5us"
link_speed = 2
[[device]]
name = "b"
bandwidth = "30GB/s"
[[device]]
name = "c"
bandwidth = "30GB/s"
"""


def machine(folder: Path, links: str = "", text: str = FOUR) -> Machine:
    """Write a file and read it."""
    path = folder / "machine.toml"
    path.write_text(text + links, encoding="utf-8")
    return Machine.read(str(path))


def link(machine: Machine, one: int, other: int) -> PairLink | None:
    """Return the link between two devices."""
    class_of = machine.class_of
    return machine.pairs.link_of[class_of[one]][class_of[other]]


def test_a_pair_without_a_figure_has_the_worse_of_the_two(tmp_path: Path) -> None:
    """The slower bandwidth with its speed, the longer latency, the smaller link speed; each is given alone."""
    found = machine(tmp_path, '[[link]]\nbetween = ["c", "a"]\nlatency = "1us"\n')
    assert link(found, 0, 1) == PairLink(20 * 10**9, 5 * 10**6, 2)
    assert link(found, 1, 2) == PairLink(20 * 10**9, 5 * 10**6, 1)
    assert link(found, 0, 3) == link(found, 3, 0) == PairLink(20 * 10**9, 10**6, 1)
    assert link(found, 2, 3) == PairLink(30 * 10**9, 0, 1)
    given = machine(tmp_path, '[[link]]\nbetween = ["a", "a"]\nbandwidth = "7B/s"\nlink_speed = "3/2"\n')
    assert link(given, 0, 1) == PairLink(7, 5 * 10**6, Fraction(3, 2))


def test_equal_devices_are_of_one_class_where_their_links_are_equal(tmp_path: Path) -> None:
    """Equal tables share a class as long as no third device, nor the link between them, tells them apart."""
    assert list(machine(tmp_path).class_of) == [0, 0, 1, 1]
    apart = machine(tmp_path, '[[link]]\nbetween = ["a", "b"]\nbandwidth = "9GB/s"\n')
    assert list(apart.class_of) == [0, 0, 1, 2]
    both = '[[link]]\nbetween = ["a", "b"]\nbandwidth = "9GB/s"\n[[link]]\nbetween = ["c", "a"]\nbandwidth = "9GB/s"\n'
    assert list(machine(tmp_path, both).class_of) == [0, 0, 1, 1]
    assert list(machine(tmp_path, both + '[[link]]\nbetween = ["b", "c"]\nlatency = "1us"\n').class_of) == [0, 0, 1, 1]
    more = FOUR.replace('name = "b"', 'name = "b"\ncount = 2')
    inner = machine(tmp_path, '[[link]]\nbetween = ["b", "b"]\nlatency = "1us"\n', more)
    assert list(inner.class_of) == [0, 0, 1, 1, 2]
    assert list(apart.on([0, 2]).class_of) == [0, 1]
    assert list(apart.on([2, 3]).class_of) == [0, 0]


def test_documents_hold_links_as_read(tmp_path: Path) -> None:
    """What is given, and the digest covers it; without links there is no such key."""
    found = machine(tmp_path, '[[link]]\nbetween = ["a", "b"]\nbandwidth = "9GB/s"\nlink_speed = 1.5\n')
    document = found.to_document()
    assert document["links"] == [{"between": ["a", "b"], "bandwidth_bytes_per_s": 9 * 10**9, "link_speed": "3/2"}]
    assert Machine.from_document(document).pair_links == found.pair_links
    assert "links" not in machine(tmp_path).to_document()
    assert document["sha256"] != machine(tmp_path).to_document()["sha256"]
    assert "a to b: 9 GB/s, link speed 3/2" in found.describe()


@pytest.mark.parametrize(
    ("links", "problem"),
    [
        ("link = 3\n", "/link: is not a list of links"),
        ("[[link]]\n", "/link/0/between: missing key"),
        ('[[link]]\nbetween = ["a"]\n', "/link/0/between: is not a pair of devices"),
        ('[[link]]\nbetween = ["a", 3]\n', "/link/0/between/1: is not a text"),
        ('[[link]]\nbetween = ["a", "x"]\n', "/link/0/between/1: no device is called 'x'"),
        ('[[link]]\nbetween = ["b", "b"]\n', "/link/0/between: there is one 'b' alone"),
        (
            '[[link]]\nbetween = ["a", "b"]\n[[link]]\nbetween = ["b", "a"]\n',
            "/link/1/between: 'b' and 'a' have a link",
        ),
        ('[[link]]\nbetween = ["a", "b"]\nspeed = 3\n', "/link/0/speed: unknown key"),
        ('[[link]]\nbetween = ["a", "b"]\nbandwidth = 3\n', "/link/0/bandwidth: 3 has no unit"),
        ('[[link]]\nbetween = ["a", "b"]\nlatency = "1.5ps"\n', "/link/0/latency: is not a whole number"),
        ('[[link]]\nbetween = ["a", "b"]\nlink_speed = 0\n', "/link/0/link_speed: must be above zero"),
    ],
)
def test_refusals_name_the_place(links: str, problem: str, tmp_path: Path) -> None:
    """Each broken link is refused at its place."""
    text = links + FOUR if links.startswith("link") else FOUR + links
    with pytest.raises(InputError) as caught:
        machine(tmp_path, "", text)
    assert problem in str(caught.value)


def test_links_and_times_of_stages_go_with_their_transport(tmp_path: Path) -> None:
    """Links are refused with direct transport, times of stages with neighbours, in Python as well."""
    found = machine(tmp_path)
    with pytest.raises(InputError, match="links of pairs need transport neighbours"):
        replace(found, transport="direct", pair_links=(GivenLink(("a", "b")),))
    with pytest.raises(InputError, match="neighbours do not go with times of stages"):
        machine(tmp_path, "", 'transport = "neighbours"\n[[device]]\nstage_times = ["1ms"]\n')
