"""Verdicts of a verification: one row per claim, how far the lower bound can be trusted, and all in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mtpp.errors import InputError


class Tier(StrEnum):
    """How far a lower bound can be trusted, the strongest first; ``none`` if it did not pass."""

    EXACT = "exact"
    ENUMERATED = "enumerated"
    SOLVER = "solver"
    NONE = "none"

    __repr__ = str.__repr__  # records that hold one show the string


STATED_TIERS = (Tier.EXACT, Tier.ENUMERATED, Tier.SOLVER)
"""Tiers that a document may state, the strongest first."""


FORMAT = "mtpp-verification"
VERSION = 2

BOUND_CHECK = "lower bound"
"""Name of the check of the lower bound's proof."""

OUT_OF_TIME = "out of time"
"""Reason why a claim is unchecked that the time limit came before."""

SHALLOW = "the search behind it was left out by ‹shallow›"


class Verdict(StrEnum):
    """The three verdicts on a claim."""

    OK = "ok"
    FALSE = "false"
    UNCHECKED = "unchecked"

    __repr__ = str.__repr__  # records that hold one show the string


Interrupts = tuple[type[BaseException], ...]
"""Exceptions by which a caller ends work in its midst: claims not looked at by then are unchecked."""


@dataclass(frozen=True)
class Check:
    """One row of a report.

    Attributes
    ----------
    passed
        None if it could not be, or was not, checked; *detail* says why.
    fact
        Something that is recorded, or a check that does not apply: no claim, and no verdict.
    """

    name: str
    passed: bool | None
    detail: str
    fact: bool = False

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the claim; None for what is no claim."""
        if self.fact:
            return None
        return Verdict.UNCHECKED if self.passed is None else Verdict.OK if self.passed else Verdict.FALSE

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of this row."""
        return {"name": self.name, "verdict": None if self.fact else str(self.verdict), "detail": self.detail}


def fact(name: str, detail: str) -> Check:
    """Return a row that makes no claim."""
    return Check(name, None, detail, fact=True)


def complete(checks: Sequence[Check], claims: Iterable[str], why: str) -> tuple[Check, ...]:
    """Return the rows made before work ended, and one for each of the other claims, unchecked."""
    made = {check.name for check in checks}
    return (*checks, *(Check(name, None, why) for name in claims if name not in made))


@dataclass(frozen=True)
class Report:
    """The outcome of a verification.

    Attributes
    ----------
    tier
        Of the lower bound as stated, or ``none`` if it failed.
    ratio
        Bottleneck over lower bound, both as re-derived; None if either was not, or the bound is zero below a
        positive bottleneck.
    bound_rechecked
        Whether the lower bound was re-derived in this run, and not just its value compared.
    proven
        What is proven if every claim holds, as the sentence goes on after ``valid, ``.
    subject
        What *tier* speaks of: the lower bound, unless it is that there is no plan.
    """

    checks: tuple[Check, ...]
    tier: Tier
    ratio: float | None
    bound_rechecked: bool
    proven: str
    subject: str = "the lower bound"

    @property
    def passed(self) -> bool:
        """Whether nothing that was checked is false."""
        return not self.named(Verdict.FALSE)

    @property
    def verdict(self) -> Verdict:
        """``"false"`` if any claim is, else ``"unchecked"`` if any is, else ``"ok"``."""
        return worst(check.verdict for check in self.checks)

    def named(self, verdict: Verdict) -> list[str]:
        """Return the names of the claims with a verdict."""
        return [check.name for check in self.checks if check.verdict == verdict]

    def sentence(self) -> str:
        """Say what is proven, and what is merely claimed."""
        held, false, open_ = (self.named(verdict) for verdict in Verdict)
        if false:
            rest = f"; not checked: {listed(open_)}" if open_ else ""
            return f"INVALID: {listed(false)} {'is' if len(false) == 1 else 'are'} false{rest}"
        if open_:
            if not held:
                return "NOT PROVEN: nothing could be checked"
            return f"NOT PROVEN: {listed(open_)} {'is' if len(open_) == 1 else 'are'} merely claimed; all else holds"
        return f"valid, {self.proven}"

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of this report."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "valid": VALID[self.verdict],
            "verdict": str(self.verdict),
            "sentence": self.sentence(),
            "tier": str(self.tier),
            "ratio": self.ratio,
            "checks": [check.to_document() for check in self.checks],
        }


VALID = {Verdict.OK: True, Verdict.FALSE: False, Verdict.UNCHECKED: None}
"""``valid`` of a JSON report: true if every claim holds, false if one does not, null if that is not known."""


def worst(verdicts: Iterable[Verdict | None]) -> Verdict:
    """Return the verdict on all claims together; nothing claimed is nothing wrong."""
    found = set(verdicts)
    return next((one for one in (Verdict.FALSE, Verdict.UNCHECKED) if one in found), Verdict.OK)


def listed(names: Sequence[str]) -> str:
    """Write names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def meets_tier(report: Report, required: str) -> bool:
    """Tell whether the lower bound is trusted at least as far as *required*, one of exact, enumerated, solver.

    A bound counts as exact or enumerated only once it was re-derived; until then it is taken on trust, like a
    solver's.
    """
    if required not in STATED_TIERS:
        raise InputError(f"unknown tier {required!r}", remedy=f"use one of {', '.join(STATED_TIERS)}")
    if report.tier is Tier.NONE:
        return False
    reached = report.tier if report.bound_rechecked else Tier.SOLVER
    return STATED_TIERS.index(reached) <= STATED_TIERS.index(Tier(required))


Outcome = tuple[bool | None, str]
"""Verdict on a claim of an exhaustive search run again, None if it could not tell, and that in words."""

Search = Callable[..., Outcome]
"""Runs an exhaustive search again; the caller of the verifier brings it, as it needs more than plain Python."""
