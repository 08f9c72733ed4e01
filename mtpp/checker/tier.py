"""Trust in a lower bound, as documents state it and as far as it passed.

Part of the independent verifier (:mod:`mtpp.checker.plan`), so the names are its own.
"""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """How far a lower bound can be trusted, the strongest first; ``none`` if it did not pass."""

    EXACT = "exact"
    ENUMERATED = "enumerated"
    SOLVER = "solver"
    NONE = "none"

    __repr__ = str.__repr__  # records that hold one show the string


STATED_TIERS = (Tier.EXACT, Tier.ENUMERATED, Tier.SOLVER)
"""Tiers that a document may state, the strongest first."""
