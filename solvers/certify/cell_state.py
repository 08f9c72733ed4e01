"""Limits of one cell of a table of certificates and state of the work at it, as they travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.certificate_table import BoundFigure
from mtpp.inference.goal import Goal
from mtpp.inference.partition import Partition
from mtpp.solvers.bounds.limits import DEFAULT_PROOF_BYTES
from mtpp.solvers.bounds.registry import BY_DEFAULT


@dataclass(frozen=True)
class CellLimits:
    """Time, memory and threads of a cell, and the ratio that is enough; all of it can be pickled.

    Attributes
    ----------
    time_limit_s
        Seconds for the cell, from its start.
    target_ratio
        Work ends when this ratio is proven.
    bounds
        Names of the bounds to try, in the order of the registry.
    algorithm
        Of the first partition.
    each
        Work at every bound for itself, for tables that compare bounds: none is told what others have proven or left
        out because the ratio will do, and each gets an equal share of the time.
    proofs_only
        Go on where a bound of tier ``solver`` reaches the ratio: it has to be proven.
    cutoff
        No bound above so many ticks is looked for, and no partition is; None: the bottleneck of a partition decides.
    proof_bytes
        As in :class:`~mtpp.solvers.bounds.limits.BoundLimits`.
    seed, jobs, memory_bytes
        As in :class:`~mtpp.solvers.limits.InstanceLimits`.
    goal
        Objective, and the most that the other figure may be.
    process_bytes
        Resident memory of the process that works at it, and of those that it starts; None: no limit.
    """

    time_limit_s: float | None = 60.0
    target_ratio: Fraction = Fraction(1)
    bounds: tuple[str, ...] = BY_DEFAULT
    algorithm: str = "auto"
    each: bool = False
    proofs_only: bool = False
    cutoff: int | None = None
    proof_bytes: int = DEFAULT_PROOF_BYTES
    seed: int = 0
    jobs: int = 1
    memory_bytes: int | None = None
    process_bytes: int | None = None
    goal: Goal = field(default=Goal())


@dataclass(frozen=True)
class Certification:
    """What is known of a cell, at its end or on the way.

    Attributes
    ----------
    partition, upper, upper_algorithm
        The best partition, its objective in ticks, and what found it; all None where none was looked for.
    lower
        The best bound, a proof before others of the same value.
    proven
        The best bound of tier ``exact`` or ``enumerated``.
    bounds
        Every bound tried so far.
    partition_seconds, total_seconds
        As in :class:`~mtpp.inference.certificate_table.CertificateRow`.
    stopped
        As there; None while the work goes on.
    left_out
        Why bounds were not worked at, by name.
    """

    partition: Partition | None
    upper: int | None
    upper_algorithm: str | None
    lower: LowerBound
    proven: LowerBound
    bounds: dict[str, BoundFigure]
    partition_seconds: float
    total_seconds: float
    stopped: StopReason | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
