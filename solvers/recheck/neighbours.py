"""The search over downsets where tensors pass from neighbour to neighbour, run again from its proof's terms.

As :mod:`mtpp.solvers.recheck.unequal`, with other labels. A stage pays at its two boundaries for all tensors that pass.
What it pays at the right one is known when the device of the next stage is chosen. So a label has, beside the devices
that suffice, the class of the last one, and what its stage has paid before its right boundary. Of the latter all that
matters is how many classes it bars from coming next: those whose boundary would take the stage above the limit, the
most expensive boundaries first. A label is needless where another one with the same class has no larger numbers, that
of barred classes among them; and where it bars all classes while ops are left.

Transfers of the claim of a class are over the best link that it has to any other device. The rule *fit* holds with
them: the first stage that reads a tensor pays for it at its left boundary. So does the enumeration of stages, whose
limit is lower by what the cheapest left boundary is above the least that everything that crosses costs: a stage pays
for that, and not only for what it reads.

Where latency counts, a label also has the latency spent so far, without the right boundary of the last stage, and makes
another one needless only if it is no larger in that either. Each boundary counts twice. What is outside a downset takes
at least the least work of its ops on any device, and twice the cheapest boundary of the last class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.recheck.claim import members
from mtpp.solvers.recheck.compiled import Watcher
from mtpp.solvers.recheck.label_search import FoundLabels, Label, covers
from mtpp.solvers.recheck.unequal import DeviceSearch, UnequalClaim, as_bits

_HALF = 2**31
"""In a record a latency is two numbers, each below this."""

_MOST_KEPT = 1 << 18
"""Costs of stages."""


@dataclass(frozen=True)
class NeighbourClaim(UnequalClaim):
    """The claim that no partition whose tensors pass from neighbour to neighbour has all stages within the limit.

    Attributes
    ----------
    links
        By link the ticks of each of the tensors that the claims of classes have.
    link_of
        By two classes the link between a device of each; None where there are no two such devices.
    relays
        Whether devices may stand between two stages without ops: they pay for both boundaries.
    """

    links: tuple[tuple[int, ...], ...]
    link_of: tuple[tuple[int | None, ...], ...]
    relays: bool = False


class _Reached(NamedTuple):
    """A label: devices that suffice, the last one's class or −1, ticks paid by it, classes barred, latency spent."""

    devices: Label
    last: int
    paid: int
    barred: int
    spent: int

    def makes_needless(self, other: _Reached) -> bool:
        """Tell whether another label is needless beside this one."""
        if self.last != other.last or self.barred > other.barred or self.spent > other.spent:
            return False
        return covers(self.devices, other.devices)


def search_neighbours(
    claim: NeighbourClaim, most_latency: int | None, most_labels: int, watcher: Watcher, memory_bytes: int
) -> FoundLabels:
    """Search all chains of downsets, as :func:`mtpp.solvers.recheck.unequal.search_labels` does.

    Parameters
    ----------
    most_latency
        Only partitions within this latency are of interest; None: all.
    """
    search = _NeighbourSearch(claim, most_latency, watcher, memory_bytes)
    return search.run(_Reached(claim.first, -1, 0, 0, 0), most_labels)


class _NeighbourSearch(DeviceSearch[_Reached]):
    """One search, downset by downset from the smallest on."""

    _claim: NeighbourClaim

    def __init__(self, claim: NeighbourClaim, most_latency: int | None, watcher: Watcher, memory_bytes: int) -> None:
        super().__init__(claim, watcher, memory_bytes)
        self._most_latency = most_latency
        self._least_work: list[int] = [min(work) for work in zip(*(one.work for one in claim.of_class), strict=True)]
        first = claim.of_class[0]
        self._ticks = np.array(claim.links, dtype=np.int64).reshape(len(claim.links), len(first.edges))
        self._least = np.array([[edge.transfer for edge in one.edges] for one in claim.of_class], dtype=np.int64)
        self._least = self._least.reshape(len(claim.of_class), len(first.edges))
        self._at: dict[int, tuple[list[int], list[int]]] = {}
        self._own: dict[tuple[int, int], int] = {}

    def _complete(self, downset: int, front: list[_Reached]) -> int:
        """Add labels with relays; the devices before and after a relay pay for their boundaries with it."""
        claim, before = self._claim, len(front)
        if not claim.relays:
            return 0
        limit = claim.of_class[0].limit
        waiting = list(front)
        while waiting:
            old = waiting.pop()
            if old.last < 0:
                continue
            for c in range(len(claim.of_class)):
                label, left = claim.next(old.devices, c), self._boundary(downset, old.last, c)
                if label is None or left is None or old.paid + left > limit or not self._fits(downset, label):
                    continue
                barred = self._barred(downset, c, limit - left)
                if barred is not None and left <= limit:
                    relay = _Reached(label, c, left, barred, 0)
                    if self._keep(relay, front):
                        waiting.append(relay)
        return len(front) - before

    def _labels_after(self, downset: int, front: Sequence[_Reached]) -> Iterator[tuple[int, _Reached]]:
        claim, most = self._claim, self._most_latency
        limit = claim.of_class[0].limit
        for c in range(len(claim.of_class)):
            steps: list[tuple[Label, int, int]] = []
            allowed = -1
            for old in front:
                label = claim.next(old.devices, c)
                left = 0 if old.last < 0 else self._boundary(downset, old.last, c)
                if label is None or left is None or old.paid + left > limit:
                    continue
                spent = old.spent + 2 * left
                own = limit - left if most is None else min(limit - left, most - spent)
                if own >= 0:
                    steps.append((label, left, spent))
                    allowed = max(allowed, own)
            if not steps:
                continue
            within = allowed + self._crossing(downset)[1][c]
            for reached in self._stages_after(downset, c, [label for label, _, _ in steps], within):
                own = self._own_cost(reached & ~downset, c)
                floor = self._floor(reached, c)
                for label, left, spent in steps:
                    paid = left + own
                    in_time = most is None or spent + own + floor <= most
                    if paid <= limit and in_time and self._fits(reached, label):
                        barred = self._barred(reached, c, limit - paid)
                        if barred is not None:
                            yield reached, _Reached(label, c, paid, barred, 0 if most is None else spent + own)

    def _covers(self, one: _Reached, other: _Reached) -> bool:
        return one.makes_needless(other)

    def _numbers(self, label: _Reached) -> Label:
        numbers = (*label.devices, label.last + 1, label.barred)
        return numbers if self._most_latency is None else (*numbers, label.spent // _HALF, label.spent % _HALF)

    def _floor(self, downset: int, c: int) -> int:
        """Return the least latency of all after a downset and a stage of a class; 0 where latency does not count."""
        whole = self._claim.of_class[0].everything
        if self._most_latency is None or downset == whole:
            return 0
        boundaries = [self._boundary(downset, c, other) for other in range(len(self._claim.of_class))]
        work = sum(self._least_work[v] for v in members(whole & ~downset))
        return work + 2 * min((paid for paid in boundaries if paid is not None), default=0)

    def _crossing(self, downset: int) -> tuple[list[int], list[int]]:
        """Return what the tensors that cross from a downset cost over each link, and at least for each class."""
        known = self._at.get(downset)
        if known is None:
            outside = as_bits(~downset, self._measures.shape[1])
            goes = self._crossing_edges(outside)
            over_links: Int64Array = self._ticks[:, goes].sum(axis=1)
            least: Int64Array = self._least[:, goes].sum(axis=1)
            self._at[downset] = known = (over_links.tolist(), least.tolist())
        return known

    def _boundary(self, downset: int, one: int, other: int) -> int | None:
        """Return the ticks of the boundary after a downset between two classes; None if no two devices are of them."""
        link = self._claim.link_of[one][other]
        return None if link is None else self._crossing(downset)[0][link]

    def _barred(self, downset: int, c: int, left: int) -> int | None:
        """Return the number of classes whose boundary with a class is above *left* ticks; None if all are."""
        if downset == self._claim.of_class[0].everything:
            return 0
        every = [self._boundary(downset, c, other) for other in range(len(self._claim.of_class))]
        ticks = [paid for paid in every if paid is not None]
        barred = sum(paid > left for paid in ticks)
        return barred if barred < len(ticks) else None

    def _own_cost(self, stage: int, c: int) -> int:
        """Return the work and the overflow of a stage on a device of a class."""
        key = (stage, c)
        known = self._own.get(key)
        if known is None:
            claim = self._claim.of_class[c]
            ticks = sum(claim.work[v] for v in members(stage))
            if claim.memory.fast_bytes is not None:
                ticks += claim.memory.overflow(claim.held_by(stage) + claim.memory.peak(stage))
            if len(self._own) >= _MOST_KEPT:
                self._own.clear()
            self._own[key] = known = ticks
        return known
