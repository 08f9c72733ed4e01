"""Lower bounds with their trust tier, and the certificate that a partition carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from mtpp.errors import InconsistentBound


class Tier(StrEnum):
    """Trust in a lower bound, from the most to the least; equal to its name as a string.

    ``exact``: integer arithmetic, checked again by ``mtpp verify`` from the certificate alone. ``enumerated``: an
    exhaustive search in integers that has to be run again to be checked. ``solver``: a MIP solver's word, which nobody
    can check, and never a proof.
    """

    EXACT = "exact"
    ENUMERATED = "enumerated"
    SOLVER = "solver"

    __repr__ = str.__repr__  # records that hold one show the string


PROOF_TIERS = (Tier.EXACT, Tier.ENUMERATED)
"""Tiers of the bounds that are proofs."""

ENVELOPE = "envelope"
"""Key of a proof on the envelope of a machine."""

SOLVER_TOLERANCE = Fraction(1, 10**6)
"""A bound of tier ``solver`` that leaves a ratio of at most 1 + this closes a cell, as far as the solver can tell."""


@dataclass(frozen=True)
class LowerBound:
    """A number that no partition or plan is below: proven, or by a solver's word, as its tier says.

    Attributes
    ----------
    value
        In ticks; of a planner's memory in bytes.
    method
        Name of the bound.
    tier
        How far it is to be trusted.
    proof
        What a verifier needs to check it, in plain JSON values; its keys belong to the method.
    """

    value: int
    method: str
    tier: Tier
    proof: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_proof(self) -> bool:
        """Whether it can be checked."""
        return self.tier in PROOF_TIERS

    @property
    def on_envelope(self) -> bool:
        """Whether it is proven on equal devices with the best figure of any, and so holds on devices that differ."""
        return bool(self.proof.get(ENVELOPE))

    def sealed(self) -> LowerBound:
        """Return the same bound with a copy of its proof that cannot be changed."""
        from mtpp.inference.frozen import frozen

        return replace(self, proof=frozen(self.proof))

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of a plan's ``lower_bound``."""
        return {"value": self.value, "method": self.method, "tier": str(self.tier), "proof": dict(self.proof)}


@dataclass(frozen=True)
class Certificate:
    """A partition's bottleneck, or its latency where that is the objective, and a lower bound on every partition's.

    Raises
    ------
    InconsistentBound
        If the bound is above the bottleneck, which no correct program can produce.
    """

    upper: int
    lower: LowerBound
    objective: str = "bottleneck"

    def __post_init__(self) -> None:
        refuse_above(self.lower.value, self.lower.method, f"the {self.objective} {self.upper}", self.upper)

    @property
    def optimal(self) -> bool:
        """Whether bound and bottleneck meet in ticks, and the bound is a proof."""
        return self.lower.value == self.upper and self.lower.is_proof

    @property
    def closed_by_solver(self) -> bool:
        """Whether a bound of tier ``solver`` comes within :data:`SOLVER_TOLERANCE` of the bottleneck."""
        return not self.lower.is_proof and self.upper <= (1 + SOLVER_TOLERANCE) * self.lower.value

    @property
    def ratio(self) -> float | None:
        """Approximation ratio, bottleneck / lower bound ≥ 1; None where the bound is 0 and the cost is not."""
        return approximation_ratio(self.upper, self.lower.value)


def refuse_above(value: int | Fraction, method: str, what: str, reached: int | Fraction) -> None:
    """Raise InconsistentBound if a lower bound is above *what* was reached: no correct program can produce that."""
    if value > reached:
        raise InconsistentBound(f"the lower bound {value} ({method}) is above {what}")


def approximation_ratio(upper: int, lower: int) -> float | None:
    """Return upper / lower, correctly rounded; 1.0 where both are 0 and None where only the bound is."""
    if lower == 0:
        return 1.0 if upper == 0 else None
    return upper / lower
