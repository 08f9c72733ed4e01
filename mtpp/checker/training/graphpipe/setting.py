"""Setting of a plan by ``graphpipe``: devices, links, the mini-batch, and the rules of the plans that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Setting:
    """Terms that a document states and everything in it rests on; names as in the document.

    Attributes
    ----------
    sizes
        Samples b that micro-batches may have, ascending.
    intervals
        Numbers k of kFkB orders, ascending.
    least
        Whether stages keep exactly the fewest micro-batches in flight.
    """

    devices: int
    memory_bytes: int
    bandwidth: int
    latency_ticks: int
    sequential: bool
    mini_batch: int
    times_of: int
    sizes: Sequence[int]
    per_stage: bool
    intervals: Sequence[int]
    least: bool
    data_parallel: bool
    recompute: bool

    @classmethod
    def of(cls, plan: dict[str, Any]) -> Setting:
        """Return that of a well-formed document."""
        system, rules = plan["system"], plan["rules"]
        return cls(
            system["devices"],
            system["memory_bytes"],
            system["bandwidth_bytes_per_s"],
            system["latency_ticks"],
            system["sequential"],
            plan["mini_batch"],
            rules["times_of"],
            tuple(rules["micro_batch_sizes"]),
            rules["per_stage_micro_batch"],
            tuple(rules["forwards_backwards"]),
            rules["in_flight"] == "least",
            rules["data_parallel"],
            rules["recompute"],
        )

    @cached_property
    def _degrees(self) -> Sequence[int]:
        """Degrees that divide the mini-batch, as all of a stage do."""
        most = min(self.devices, self.mini_batch) if self.data_parallel else 1
        return [d for d in range(1, most + 1) if self.mini_batch % d == 0]

    def degrees(self, size: int) -> list[int]:
        """Return the degrees d of data parallelism for micro-batches of so many samples, ascending."""
        return [d for d in self._degrees if size % d == 0]

    def ways(self, size: int | None = None) -> list[tuple[int, int]]:
        """Return all pairs of b and d that stages may have; with *size* only those of that b."""
        return [(b, d) for b in (self.sizes if size is None else (size,)) for d in self.degrees(b)]

    def batches(self, size: int) -> int:
        """Return the micro-batches of so many samples in a mini-batch."""
        return self.mini_batch // size
