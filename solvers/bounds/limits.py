"""Limits, guesses and results that all lower bounds share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mtpp.inference.certificate import LowerBound
from mtpp.inference.goal import Goal
from mtpp.inference.partition import Partition
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.limits import InstanceLimits
from mtpp.solvers.reduction.reduced_instance import ReducedInstance

DEFAULT_PROOF_BYTES = 8_000_000
"""What a proof may take in a document where nobody says otherwise."""


@dataclass(frozen=True)
class BoundLimits(InstanceLimits):
    """Limits of the work at a bound, and what is known already.

    Attributes
    ----------
    upper
        No bound above so many ticks is looked for: the bottleneck of *start*, or a cutoff that may be false.
    start
        A partition of that bottleneck; None: there is none at hand.
    lower
        Ticks already proven: what cannot rise above them is not worth much time.
    enough
        A bound of so many ticks is all that is asked for, at most *upper*; None: *upper*.
    proof_bytes
        A longer proof is not kept, and what it proves is of tier ``solver``.
    reduced
        How the instance came from a larger one with the same optimum; None if it did not.
    goal
        Of the bound, for those that hold for one goal alone.
    shares
        Weights of the instance's ops of which no stage holds more than a capacity, each up to a limit of its own.
    """

    upper: int
    start: Partition | None = None
    lower: int = 0
    enough: int | None = None
    proof_bytes: int = DEFAULT_PROOF_BYTES
    reduced: ReducedInstance | None = None
    goal: Goal = field(default=Goal())
    shares: tuple[StageShares, ...] = ()

    @property
    def target(self) -> int:
        """Ticks at which the work at a bound is done."""
        return self.upper if self.enough is None else min(self.enough, self.upper)

    @property
    def most(self) -> int:
        """Ticks that a bound of tier ``solver`` may claim at most: never a cutoff that no partition backs."""
        return self.upper if self.start is not None else self.upper - 1


@dataclass(frozen=True)
class BoundResult:
    """What a bound has come to.

    Attributes
    ----------
    lower
        The bound, which may be lower than one known before; None if nothing was proven in the time.
    solved
        Whether the bound completed: more time would not raise it.
    partition
        A partition of the instance that is better than the one known, if the bound found one on its way.
    left_out
        Why the bound was not worked at; empty if it was.
    resume
        Goes on where the work ended, with other limits; None where that is of no use.
    shares
        Weights for other searches of the instance, as in :attr:`BoundLimits.shares`.
    """

    lower: LowerBound | None
    solved: bool
    partition: Partition | None = None
    left_out: str = ""
    resume: Callable[[BoundLimits], BoundResult] | None = None
    shares: tuple[StageShares, ...] = ()
