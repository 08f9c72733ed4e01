"""Size of a stage: samples of its micro-batches, and replicas that share them."""

from __future__ import annotations

from typing import NamedTuple


class StageSize(NamedTuple):
    """Samples b of a stage's micro-batches, and its replicas d."""

    micro_batch: int
    data_parallel: int

    @property
    def samples(self) -> int:
        """Samples of a micro-batch on each device."""
        return self.micro_batch // self.data_parallel
