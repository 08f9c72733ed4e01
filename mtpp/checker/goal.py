"""Objective of a plan, the limit on its other figure, and the claim that its lower bound makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.checker.claim import BOTTLENECK, LATENCY, PLAN_PROOF, BoundClaim
from mtpp.checker.devices.replicas import REPLICAS, DeviceList
from mtpp.checker.graph import TickGraph
from mtpp.checker.machine import ENVELOPE, PlacedGraph, rate_of
from mtpp.checker.report import BOUND_CHECK, Check
from mtpp.document_shape import Path, refuse, whole

OF_STAGES = "of_stages"
"""Key of a proof: number of stages, no fewer than the plan's, of all partitions that the bound is on.

Stages may be empty, and devices that may be used but are not cost nothing: such a bound holds for fewer as well.
"""


@dataclass(frozen=True)
class PlanGoal:
    """Objective of a plan, and the most ticks of its other figure; None: any."""

    objective: str
    limit: int | None

    @classmethod
    def of(cls, plan: Mapping[str, Any], path: Path = ()) -> PlanGoal:
        """Return the goal that a plan, or a row of a table at *path*, states.

        Raises
        ------
        InputError
            If it limits its objective, a frontier has one goal, or stages with several devices count their latency.
        """
        objective = plan.get("objective", BOTTLENECK)
        own, other = _LIMITS[objective], _LIMITS[LATENCY if objective == BOTTLENECK else BOTTLENECK]
        if own in plan:
            refuse(f"the {objective} is the objective, and not limited", (*path, own))
        if "frontier" in plan and (objective == LATENCY or other in plan):
            refuse("a frontier begins with the least bottleneck, whatever the latency", (*path, "frontier"))
        if REPLICAS in plan and (objective == LATENCY or other in plan or "frontier" in plan):
            refuse("stages on several devices do not go with latency as an objective or a limit", (*path, REPLICAS))
        return cls(objective, plan.get(other))

    @property
    def other(self) -> str:
        """The figure that is no objective."""
        return LATENCY if self.objective == BOTTLENECK else BOTTLENECK

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows on the limit."""
        return () if self.limit is None else (f"{self.other} limit",)

    @property
    def words(self) -> str:
        """The limit in words; nothing where there is none."""
        return "" if self.limit is None else f", of a {self.other} of at most {self.limit} ticks,"

    def value(self, plan: Mapping[str, Any]) -> int:
        """Return the objective as a plan states it."""
        value: int = plan.get(self.objective, 0)
        return value

    def limit_rows(self, bottleneck: int, latency: int) -> list[Check]:
        """Return the row on the limit, given the figures as derived."""
        if self.limit is None:
            return []
        found = latency if self.other == LATENCY else bottleneck
        if found > self.limit:
            return [Check(self.rows[0], False, f"the {self.other} is {found} ticks, the limit {self.limit}")]
        return [Check(self.rows[0], True, f"{found} of {self.limit} ticks")]


_LIMITS = {BOTTLENECK: "max_bottleneck", LATENCY: "max_latency"}
"""Keys of limits on figures."""


def claim_of_bound(
    plan: Mapping[str, Any],
    graph: TickGraph,
    placed: PlacedGraph | DeviceList | None,
    bound: Mapping[str, Any],
    goal: PlanGoal,
    path: Path = PLAN_PROOF,
) -> BoundClaim | Check:
    """Return the claim of a lower bound; of devices that differ on these, or on their envelope, as its proof says.

    Parameters
    ----------
    bound
        As it stands in the plan.
    path
        Where its proof stands.

    Returns
    -------
    The claim, or the row of a proof that is for other devices or for fewer stages.
    """
    method, proof, system, k = bound["method"], bound["proof"], plan["system"], plan["k"]
    if isinstance(proof, dict) and OF_STAGES in proof:
        stages = proof[OF_STAGES]
        whole(1)(stages, (*path, OF_STAGES))
        most = len(plan["machine"]["devices"]) if "machine" in plan else stages
        if not k <= stages <= most or isinstance(placed, DeviceList):
            return Check(BOUND_CHECK, False, f"{method}: its proof is for {stages} stages, the plan has {k}")
        of_more = {**bound, "proof": {key: value for key, value in proof.items() if key != OF_STAGES}}
        return claim_of_bound({**plan, "k": stages}, graph, placed, of_more, goal, path)
    if isinstance(placed, DeviceList):
        fault = placed.fault(method, proof)
        if fault is not None:
            return Check(BOUND_CHECK, False, f"{method}: {fault}")
        return placed.claim(plan, graph, bound, path)
    of_goal = isinstance(proof, dict) and "objective" in proof
    order = "fixed" if placed is None or placed.uniform else plan["machine"]["order"]
    if placed is not None:
        system = {**system, **placed.best}
        if placed.one_class:
            system["bandwidth_bytes_per_s"] = rate_of(placed.devices[0])
    on_devices = of_goal or (placed is not None and not placed.uniform and isinstance(proof, dict) and "order" in proof)
    if on_devices:
        if proof.get("order") != order:
            said = f"{method}: its proof is not for the machine's order of devices"
            return Check(BOUND_CHECK, False, said)
        by_class, class_of = [(graph, system)], [0] * k
        if placed is not None and not placed.uniform:
            by_class, class_of = list(placed.by_class), placed.class_of
        return BoundClaim(
            graph,
            system,
            k,
            plan["together"],
            bound["value"],
            proof,
            path,
            by_class,
            class_of,
            goal.objective,
            goal.limit,
            None if placed is None else placed.pairs,
        )
    if placed is not None and not placed.uniform:
        if not isinstance(proof, dict) or proof.get(ENVELOPE) is not True:
            return Check(BOUND_CHECK, False, f"{method}: its proof is not of the envelope of the devices")
        graph, proof = placed.envelope, {key: value for key, value in proof.items() if key != ENVELOPE}
    return BoundClaim(
        graph, system, k, plan["together"], bound["value"], proof, path, objective=goal.objective, limit=goal.limit
    )
