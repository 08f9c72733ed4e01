"""Searches for weights on small graphs over devices that differ, with their optima and the checks of their proofs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from random_devices import NEVER, RandomCase, random_case
from random_neighbours import NeighbourCase, random_neighbours

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.checker.claim import BOTTLENECK, BoundClaim, Verdict
from mtpp.checker.goal import PlanGoal, claim_of_bound
from mtpp.checker.machine import placed_graph
from mtpp.checker.report import Check
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder, scan_orders
from mtpp.solvers.bounds.relaxed_race import LimitSearch
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance


@dataclass(frozen=True)
class ScannedDevices:
    """A graph on devices that differ, as it is or reduced, an order of its ops, and its optimum by brute force.

    Attributes
    ----------
    most
        Devices that may be used.
    """

    seed: int
    case: RandomCase | NeighbourCase
    most: int
    free: bool
    reduced: ReducedInstance
    order: ScanOrder
    optimum: int

    @property
    def original(self) -> Instance:
        """The instance before all merges."""
        return self.reduced.original

    def proof(self, search: LimitSearch) -> dict[str, Any]:
        """Return the proof of a search as documents hold it."""
        proof: dict[str, Any] = json.loads(json.dumps(search.document()))
        return {**proof, "merges": self.reduced.record()} if self.reduced.rounds else proof

    def verdict(self, method: str, value: int, proof: dict[str, Any]) -> Verdict:
        """Check a proof of a bound on the devices."""
        return judged_on(self.case, self.original.machine, self.most, method, value, proof)


def judged_on(
    case: RandomCase | NeighbourCase, machine: Machine, most: int, method: str, value: int, proof: dict[str, Any]
) -> Verdict:
    """Check a proof of a bound on devices."""
    claim = claim_on(case, machine, most, method, value, proof)
    return CHECKERS[method](claim.holding_states()) if isinstance(claim, BoundClaim) else (False, claim.detail)


def claim_on(
    case: RandomCase | NeighbourCase, machine: Machine, most: int, method: str, value: int, proof: dict[str, Any]
) -> BoundClaim | Check:
    """Return the claim of a bound on devices, in ticks that the checker makes of the documents of graph and machine."""
    devices = machine.to_document()
    placed = placed_graph(devices, case.document(), most, None, embedded=False)
    plan = {"k": most, "system": dict(placed.best), "together": [], "machine": devices}
    bound = {"method": method, "value": value, "proof": json.loads(json.dumps(proof))}
    return claim_of_bound(plan, placed.by_device[0], placed, bound, PlanGoal(BOTTLENECK, None))


def scanned(seeds: Sequence[int], *, free: bool, neighbours: bool = False) -> Iterator[ScannedDevices]:
    """Draw devices in some order: several speeds and links, memories, and some that may be left without ops."""
    for seed in seeds:
        pick = Random(seed)
        case = random_neighbours(seed) if neighbours else random_case(seed)
        count = case.count if isinstance(case, NeighbourCase) else len(case.devices)
        most = pick.choice((count, count, pick.randint(1, count)))
        instance = case.instance(most, free=free)
        if instance.uniform or count < 2:
            continue
        optimum = case.optimum(most, free=free)
        if optimum < NEVER:
            reduced = reduce_instance(instance) if pick.random() < 0.5 else ReducedInstance(instance)
            yield ScannedDevices(seed, case, most, free, reduced, pick.choice(scan_orders(reduced.instance)), optimum)
