"""Terms of a run of stages as a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mtpp.array_types import Array


@dataclass(frozen=True)
class RunRequest:
    """Terms of a run.

    Attributes
    ----------
    folder
        Of the stages and their manifest.
    model
        The model that was split, None if it is not at hand.
    batches, warmup
        To be timed, and before.
    queue_depth
        Batches that may wait between two stages.
    threads, optimise
        Of each worker; also of the model without a pipeline.
    pin
        Cores to spread the workers over, None to leave that to the system; empty for all that may be used.
    seed
        Of what is made up.
    inputs
        Contents of the model's inputs by name; others are random.
    """

    folder: Path
    model: Path | None = None
    batches: int = 200
    warmup: int = 10
    queue_depth: int = 2
    threads: int = 1
    optimise: bool = False
    pin: tuple[int, ...] | None = None
    seed: int = 0
    inputs: Mapping[str, Array] = field(default_factory=dict)
