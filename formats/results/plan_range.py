"""Ranges of plans, ``mtpp-plan-range`` version 1: a plan for each of several numbers of stages, and their gains.

:mod:`mtpp.checker.tables.plan_range` derives the same again from the plans alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.units import PICOSECONDS

FORMAT = "mtpp-plan-range"
VERSION = 1

TENTH = Fraction(1, 10)
"""Gain of throughput per further device below which a step counts for little."""


@dataclass(frozen=True)
class RangePoint:
    """One plan of a range.

    Attributes
    ----------
    bottleneck, latency
        In ticks.
    rate
        Inferences, or tokens of a language model, in a tick, or in a unit of cost without a unit of time; None where
        the bottleneck is 0.
    timed
        Whether a tick is a picosecond.
    comparable
        Whether its throughput is of the same task as that of other numbers of stages.
    """

    k: int
    bottleneck: int
    latency: int
    rate: Fraction | None
    timed: bool
    comparable: bool = True

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> RangePoint:
        """Return that of a well-formed plan."""
        latency = plan.get("latency", sum(stage["cost"] for stage in plan["stages"]))
        timed = plan["time_unit"] != "1"
        each = plan["model"].get("serving", {}).get("tokens", 1) * (1 if timed else plan["ticks_per_unit"])
        rate = Fraction(each, plan["bottleneck"]) if plan["bottleneck"] else None
        return cls(plan["k"], plan["bottleneck"], latency, rate, timed, "capacity" not in plan)

    @property
    def throughput_per_s(self) -> float | None:
        """Inferences, or tokens, in a second; None without a unit of time."""
        return float(self.rate * PICOSECONDS["s"]) if self.timed and self.rate is not None else None

    def gain_over(self, before: RangePoint | None) -> Fraction | None:
        """Return the throughput gained against fewer stages, as a part of it for each further device."""
        if before is None or not before.rate or self.rate is None or not self.comparable:
            return None
        return (self.rate / before.rate - 1) / (self.k - before.k)


def gains(points: Sequence[RangePoint]) -> list[Fraction | None]:
    """Return the gain of each point over the one before, which the first has not."""
    return [point.gain_over(before) for point, before in zip(points, [None, *points], strict=False)]


def knee(points: Sequence[RangePoint]) -> int | None:
    """Return the number of stages after which no step brings a tenth of throughput per further device.

    None where the last step brings that much, or where there is nothing to compare.
    """
    found = gains(points)[1:]
    known = [gain for gain in found if gain is not None]
    if not found or len(known) < len(found):
        return None
    last = max((i for i, gain in enumerate(known, 1) if gain >= TENTH), default=0)
    return None if last == len(points) - 1 else points[last].k


def range_document(plans: Sequence[Mapping[str, Any]], missing: Mapping[int, str]) -> dict[str, Any]:
    """Return the document.

    Parameters
    ----------
    plans
        Their documents, one at least, in increasing number of stages.
    missing
        Reason why there is no plan, by number of stages.
    """
    points = [RangePoint.of(plan) for plan in plans]
    rows = [
        {
            "k": point.k,
            "bottleneck": point.bottleneck,
            "latency": point.latency,
            "throughput_per_s": point.throughput_per_s,
            "gain_per_device": None if gain is None else float(gain),
        }
        for point, gain in zip(points, gains(points), strict=True)
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "rows": rows,
        "knee": knee(points),
        "missing": [{"k": k, "why": why} for k, why in sorted(missing.items())],
        "plans": list(plans),
    }
