"""Links between pairs of devices, as a plan for a machine states them; ticks of tensors between neighbours.

With transport by neighbours a tensor passes every boundary between the stage that makes it and its last reader, and
both stages of a boundary pay for it. A pair of devices has the figures of the link between their names; those that it
does not give are the slower bandwidth, the longer latency and the smaller link speed of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from mtpp.document_shape import Path, refuse

NEIGHBOURS = "neighbours"


class PairLink(NamedTuple):
    """Link between two devices: bytes per second, picoseconds of each tensor, speed of given transfers."""

    rate: Fraction
    latency: int
    speed: Fraction


@dataclass(frozen=True)
class PairTicks:
    """Ticks of tensors between devices of two classes.

    Attributes
    ----------
    rows
        By link the ticks of each tensor.
    row_of
        By two classes the link between a device of each; None where there are no two such devices.
    """

    rows: Sequence[Sequence[int]]
    row_of: Sequence[Sequence[int | None]]

    def between(self, one: int, other: int) -> Sequence[int]:
        """Return the ticks of each tensor between devices of two classes."""
        row = self.row_of[one][other]
        assert row is not None
        return self.rows[row]

    def least(self, c: int, tensors: int) -> list[int]:
        """Return the least ticks of each tensor between a device of a class and another one; 0 without another one."""
        rows = [self.rows[row] for row in self.row_of[c] if row is not None]
        return [min(ticks) for ticks in zip(*rows, strict=True)] if rows else [0] * tensors

    @property
    def one_link(self) -> bool:
        """Whether all pairs have one link."""
        return len(self.rows) <= 1


def pair_links(machine: Mapping[str, Any]) -> list[list[PairLink | None]]:
    """Return the link between each two devices of a machine, None of one to itself."""
    given = {frozenset(link["between"]): link for link in machine.get("links", [])}
    devices = machine["devices"]
    return [
        [None if i == j else _link(one, other, given) for j, other in enumerate(devices)]
        for i, one in enumerate(devices)
    ]


def _link(
    one: Mapping[str, Any], other: Mapping[str, Any], given: Mapping[frozenset[str], Mapping[str, Any]]
) -> PairLink:
    link = given.get(frozenset((one["name"], other["name"])), {})
    speeds = [Fraction(device["link_speed"]) for device in (one, other)]
    rates = [device["bandwidth_bytes_per_s"] * speed for device, speed in zip((one, other), speeds, strict=True)]
    return PairLink(
        Fraction(link.get("bandwidth_bytes_per_s", min(rates))),
        link.get("latency_ps", max(one["latency_ps"], other["latency_ps"])),
        Fraction(link["link_speed"]) if "link_speed" in link else min(speeds),
    )


def classes_by_links(keys: Sequence[Any], links: Sequence[Sequence[PairLink | None]]) -> list[int]:
    """Return the class of each device: equal ones whose links to all third devices are equal, and that among them.

    Parameters
    ----------
    keys
        Of each device, equal for devices with equal figures.
    """
    first: list[int] = []
    class_of = []
    for i, key in enumerate(keys):
        same = next((c for c, j in enumerate(first) if keys[j] == key and _alike(i, j, links)), len(first))
        if same == len(first):
            first.append(i)
        class_of.append(same)
    return class_of


def _alike(i: int, j: int, links: Sequence[Sequence[PairLink | None]]) -> bool:
    return all(links[i][third] == links[j][third] for third in range(len(links)) if third not in (i, j))


def check_links(machine: Mapping[str, Any], *, abstract: bool) -> None:
    """Raise InputError for links with direct transport, of no two devices, or of a pair that has one already."""
    at: Path = ("machine", "links")
    links, names = machine.get("links", []), [device["name"] for device in machine["devices"]]
    if links and machine["transport"] != NEIGHBOURS:
        refuse("links of pairs need transport neighbours", at)
    if machine["transport"] == NEIGHBOURS and any("stage_times" in device for device in machine["devices"]):
        refuse("neighbours do not go with times of stages", ("machine", "transport"))
    seen = set()
    for i, link in enumerate(links):
        between = link["between"]
        if len(between) != 2:
            refuse("a link is between two", (*at, i, "between"))
        for name in between:
            if names.count(name) < 1 + (between[0] == between[1]):
                refuse(f"no other device is called {name[:60]!r}", (*at, i, "between"))
        if frozenset(between) in seen:
            refuse("the two have a link already", (*at, i, "between"))
        seen.add(frozenset(between))
        if abstract and link.get("latency_ps"):
            refuse("a latency needs a graph with a time unit", (*at, i, "latency_ps"))
