"""State of the work at one cell of a table of certificates, as it travels between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.certificate_table import BoundFigure
from mtpp.inference.partition import Partition


@dataclass(frozen=True)
class Certification:
    """What is known of a cell, at its end or on the way.

    Attributes
    ----------
    partition, upper, upper_algorithm
        The best partition, its bottleneck in ticks, and what found it; all None where none was looked for.
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
