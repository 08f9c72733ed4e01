"""Classes of devices whose links to each other differ, and the links between devices of two classes.

Two devices are of one class where they are equal, have equal links to every third device, and neither the link between
them nor those to others of their tables tell them apart. So the link of two devices depends on their classes alone.

With transport by neighbours a stage pays at both of its boundaries for every tensor that passes. Let each class have
the best link that any pair gives it: for each tensor the least time to or from another device. A tensor that a stage
cuts passes at least one of its boundaries, the left one if an earlier stage makes it, the right one if a later stage
reads it. So the stage costs at least as much as with direct transport over these links: lower bounds may rest on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.machine.pair_link import GivenLink, PairLink
from mtpp.names import DIRECT
from mtpp.wording import did_you_mean

_Table = tuple[Device, str]


@dataclass(frozen=True)
class PairedClasses:
    """Classes of devices of one machine, and their links.

    Attributes
    ----------
    devices
        One of each class, in the order in which they first stand.
    class_of
        Class of each device.
    link_of
        By two classes the link between a device of each; None where there are no two such devices.
    """

    devices: Sequence[Device]
    class_of: Sequence[int]
    link_of: Sequence[Sequence[PairLink | None]]

    @classmethod
    def of(cls, devices: Sequence[Device], names: Sequence[str], links: Sequence[GivenLink]) -> PairedClasses:
        """Tell devices apart, given without names and with the names of their tables; O(tables² · classes)."""
        each = list(zip(devices, names, strict=True))
        counts = Counter(each)
        given = {frozenset(link.between): link for link in links}
        tables = _Tables(counts, given)
        first: list[_Table] = []
        number: dict[_Table, int] = {}
        for table in counts:
            same = next((c for c, other in enumerate(first) if tables.alike(table, other)), len(first))
            if same == len(first):
                first.append(table)
            number[table] = same
        members = [[table for table, c in number.items() if c == own] for own in range(len(first))]
        link_of = [[tables.between(one, other) for other in members] for one in members]
        return cls(tuple(device for device, _ in first), tuple(number[one] for one in each), link_of)

    @property
    def links(self) -> Sequence[PairLink]:
        """Links of pairs that differ, in the order of the classes."""
        return tuple(dict.fromkeys(link for row in self.link_of for link in row if link is not None))


@dataclass(frozen=True)
class _Tables:
    """Devices in tables: equal ones with one name, how many they are, and the links that are given."""

    counts: Mapping[_Table, int]
    given: Mapping[frozenset[str], GivenLink]

    def link(self, one: _Table, other: _Table) -> PairLink | None:
        """Return the link of two devices, one of each table; None where a table is both and has one device."""
        if one == other and self.counts[one] == 1:
            return None
        pair = (one[1], other[1])
        return self.given.get(frozenset(pair), GivenLink(pair)).joining(one[0], other[0])

    def between(self, some: Sequence[_Table], others: Sequence[_Table]) -> PairLink | None:
        """Return the link of two devices of two classes, given as their tables; None where there are no two."""
        return next(self._links(some, others), None)

    def _links(self, some: Sequence[_Table], others: Sequence[_Table]) -> Iterator[PairLink]:
        for one in some:
            for other in others:
                link = self.link(one, other)
                if link is not None:
                    yield link

    def alike(self, one: _Table, other: _Table) -> bool:
        """Tell whether devices of two tables are of one class."""
        if one[0] != other[0]:
            return False
        third = (table for table in self.counts if table not in (one, other))
        if any(self.link(one, table) != self.link(other, table) for table in third):
            return False
        joint = self.link(one, other)
        return all(inner in (None, joint) for inner in (self.link(one, one), self.link(other, other)))


def require_links(links: Sequence[GivenLink], names: Sequence[str], transport: str) -> None:
    """Raise InputError for links with direct transport, of no two devices, or of a pair that has one already.

    Parameters
    ----------
    names
        Of each device.
    """
    if transport == DIRECT:
        raise InputError("links of pairs need transport neighbours", where="/link", remedy="leave them out")
    counts = Counter(names)
    seen: dict[frozenset[str], int] = {}
    for i, link in enumerate(links):
        at = f"/link/{i}/between"
        for j, name in enumerate(link.between):
            if name not in counts:
                remedy = did_you_mean(name, counts, f"use {_listed(counts)}")
                raise InputError(f"no device is called {name!r}", where=f"{at}/{j}", remedy=remedy)
        one, other = link.between
        if one == other and counts[one] == 1:
            raise InputError(f"there is one {one!r} alone, which has no link to itself", where=at)
        pair = frozenset(link.between)
        if pair in seen:
            raise InputError(f"{one!r} and {other!r} have a link already, /link/{seen[pair]}", where=at)
        seen[pair] = i
        if link.bandwidth_bytes_per_s is not None and link.bandwidth_bytes_per_s < 1:
            raise InputError("must be above zero", where=f"/link/{i}/bandwidth")
        if link.latency_ps is not None and link.latency_ps < 0:
            raise InputError("must be at least zero", where=f"/link/{i}/latency")
        if link.speed is not None and link.speed <= 0:
            raise InputError("must be above zero", where=f"/link/{i}/link_speed")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(counts)
