"""Searches for the highest limit of ticks that weights rule out, by scans along an order, and their proofs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.inference.partition import Partition
from mtpp.solvers.bounds.frontier.device_terms import DeviceTerms
from mtpp.solvers.bounds.frontier.scan import room_within
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.tensor_places import tensor_places
from mtpp.solvers.downsets.stage_shares import StageShares

_CLOSE = 0.00005
"""Limits so close together are not told apart."""


@dataclass(frozen=True, eq=False)
class ScanProof(ABC):
    """That no partition into k stages stays within a limit, by scans along an order.

    Attributes
    ----------
    limit
        In ticks: OPT is above it.
    costs
        Of the stages.
    """

    limit: int
    costs: DeviceTerms
    order: ScanOrder

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""

    def terms(self) -> dict[str, Any]:
        """Return what proofs of all kinds say first."""
        instance = self.order.instance
        on_devices = {} if instance.uniform else {"order": instance.machine.order}
        return {**on_devices, "cutoff": self.limit + 1, "stages": instance.k, **self.terms_of_scan()}

    def terms_of_scan(self) -> dict[str, Any]:
        """Return what is scanned."""
        instance, places = self.order.instance, tensor_places(self.order.instance)
        classes = self.costs.classes
        streamed = [one.streamed for one in classes]
        prices = [[one.per_tick, one.per_byte] for one in classes] if any(one.per_byte for one in classes) else None
        return {
            "streamed": streamed[0] if instance.uniform else streamed,
            **({} if prices is None else {"prices": prices}),
            "scan": instance.first_members[self.order.order].tolist(),
            "forgotten": [int(places[t]) for t in self.order.forgotten],
        }


class ScanSearch(ABC):
    """Limits from the target downwards, and the highest one ruled out on the way.

    Parameters
    ----------
    order
        Of an instance of at least two stages: on equal devices, or on devices that differ.
    limits
        What is known of the optimum; each :meth:`run` has limits of its own.

    Attributes
    ----------
    proven
        Proof of the highest limit that was ruled out here, None if none was.
    partition
        The best one found on the way that is better than the one known; None if there is none.
    """

    def __init__(self, order: ScanOrder, limits: BoundLimits) -> None:
        instance = order.instance
        self._order, self._instance, self._limits = order, instance, limits
        self._terms = DeviceTerms.of(instance, limits.target)
        self._steps = self._terms.steps(order)
        self._room = room_within(limits.memory_bytes)
        self._low = limits.lower - 1
        self._target = self._failed = limits.target
        self._at = limits.target - 1
        self._cramped = False
        self.proven: ScanProof | None = None
        self.partition: Partition | None = None

    @abstractmethod
    def run(self, limits: BoundLimits) -> None:
        """Go on until the deadline, or the end, with what is known by now."""

    @abstractmethod
    def put_off(self) -> None:
        """Give the memory of what need not be kept back, until the next run."""

    @property
    def shares(self) -> Sequence[StageShares]:
        """Weights for other searches, of limits that were not ruled out."""
        return ()

    @property
    def reached(self) -> int:
        """The highest limit that was ruled out here, in ticks; −1 if none was."""
        return -1 if self.proven is None else self.proven.limit

    @property
    def ended(self) -> bool:
        """Whether no higher limit can be ruled out here, or need be."""
        return self._near or self._low >= self._target - 1

    @property
    def _near(self) -> bool:
        """Whether no limits are left to be tried."""
        return self._close

    @property
    def _close(self) -> bool:
        """Whether limits that could not be ruled out follow at once on those that were."""
        return self._failed < self._target and self._failed - self._low <= max(1, int(_CLOSE * self._failed))

    @property
    def solved(self) -> bool:
        """Whether it has ended, and not for want of memory."""
        return self.ended and not self._cramped

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        assert self.proven is not None
        return self.proven.document()

    def _take(self, proof: ScanProof) -> None:
        """Keep a proof that a limit is ruled out, if that was not known."""
        if proof.limit > self._low:
            self._low, self.proven = proof.limit, proof
            self._limits.observer.bound(proof.limit + 1)
