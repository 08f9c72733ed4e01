"""What a verification reports: one line per claim, and how far the lower bound can be trusted.

Part of the independent verifier (:mod:`mtpp.verify`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mtpp.errors import InputError
from mtpp.verify_document import TIERS

NO_TIER = "none"
"""Tier of a report whose lower bound did not pass."""

BOUND_CHECK = "lower bound"
"""Name of the check of the lower bound's proof."""


@dataclass(frozen=True)
class Check:
    """One line of a report.

    Attributes
    ----------
    passed
        None if it could not be, or was not, checked; *detail* says why.
    """

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True)
class Report:
    """What a verification found.

    Attributes
    ----------
    tier
        Of the lower bound as re-checked: ``"exact"``, ``"enumerated"``, ``"solver"``, or ``"none"`` if it failed.
    ratio
        Bottleneck over lower bound, both as re-derived; None if either is missing or the bound is zero below a
        positive bottleneck.
    bound_rechecked
        Whether the lower bound's proof was gone through, and not just its value compared.
    subject
        What *tier* speaks of: the lower bound, unless it is that there is no plan.
    """

    checks: tuple[Check, ...]
    tier: str
    ratio: float | None
    bound_rechecked: bool
    subject: str = "the lower bound"

    @property
    def passed(self) -> bool:
        """Whether nothing that was checked is wrong."""
        return all(check.passed is not False for check in self.checks)

    def with_deep_recheck(self, passed: bool, detail: str) -> Report:
        """Return this report with the outcome of re-running the search that proved an enumerated bound."""
        checks = tuple(
            Check(BOUND_CHECK, passed, detail) if check.name == BOUND_CHECK else check for check in self.checks
        )
        if not passed:
            return replace(self, checks=checks, tier=NO_TIER, ratio=None, bound_rechecked=False)
        return replace(self, checks=checks, bound_rechecked=True)

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of this report."""
        return {
            "format": "mtpp-verification",
            "version": 1,
            "valid": self.passed,
            "tier": self.tier,
            "ratio": self.ratio,
            "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in self.checks],
        }


def meets_tier(report: Report, required: str) -> bool:
    """Tell whether the lower bound is trusted at least as far as *required*, one of exact, enumerated, solver.

    An enumerated bound counts as such only once the search was re-run; until then it is taken on trust, like a
    solver's.
    """
    if required not in TIERS:
        raise InputError(f"unknown tier {required!r}", remedy=f"use one of {', '.join(TIERS)}")
    if report.tier not in TIERS:
        return False
    reached = report.tier if report.bound_rechecked else "solver"
    return TIERS.index(reached) <= TIERS.index(required)
