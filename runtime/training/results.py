"""Records of a training run, as its processes say them: losses and times, with the terms of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

GRADIENT, BUFFER = "gradient", "buffer"
"""Kinds of tensors that are compared, the first part of their key."""

Key = tuple[str, str]
"""Kind and name of a tensor in the program."""


@dataclass(frozen=True)
class FirstStep:
    """Gradients and buffers of one process after the first step.

    Attributes
    ----------
    digests
        Of their contents.
    copied
        Names of parameters that several stages hold: their gradients are added up in an order of its own.
    changed
        Those that any process has to have, each with all of its names: gradients that are there, and buffers that the
        step wrote.
    """

    digests: Mapping[Key, str]
    copied: frozenset[str] = frozenset()
    changed: Sequence[Sequence[Key]] = ()


@dataclass(frozen=True)
class TrainedStages:
    """What one process came to.

    Attributes
    ----------
    losses
        Of each step and micro-batch; empty rows where the last stage is elsewhere.
    begun, ended
        Of each step, by the machine's clock, in seconds.
    passes
        Seconds of each pass but those of the first step, by stage and kind (``F``, ``B``, ``I``, ``W``).
    handovers
        Seconds that tensors from a stage to the one behind take, by stage; measured alone, by the process that sends.
    """

    losses: Sequence[Sequence[float]]
    begun: Sequence[float]
    ended: Sequence[float]
    passes: Mapping[tuple[int, str], Sequence[float]] = field(default_factory=dict)
    handovers: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingTerms:
    """What all processes of a run do.

    Attributes
    ----------
    devices, micro_batches
        Of the plan.
    steps
        Iterations, each with a step of stochastic gradient descent.
    threads
        Of each process.
    learning_rate
        Of that descent.
    compare
        Whether the unsplit model is trained too, and what comes of the first step is compared.
    seed
        Of random numbers that a program draws, each process its own.
    """

    devices: int
    micro_batches: int
    steps: int
    threads: int
    learning_rate: float = 1e-3
    compare: bool = True
    seed: int = 0
