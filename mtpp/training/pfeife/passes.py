"""Passes of a pipeline schedule: forward and backward passes of stages (Jhoo et al. 2025, section 3.2).

Written as PyTorch writes them: ``2F0`` is the forward pass of stage 2 with micro-batch 0, ``2B0`` its backward pass. A
backward pass may come in halves, the gradients of inputs, ``2I0``, and those of weights, ``2W0``.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from mtpp.errors import InputError

LETTERS = "FBIW"
"""Of :class:`PassKind`."""

_PASS = re.compile(r"(0|[1-9][0-9]{0,6})([FBIW])(0|[1-9][0-9]{0,6})")

_SHOWN = 20


class PassKind(IntEnum):
    """Kind of a pass."""

    FORWARD = 0
    BACKWARD = 1
    INPUT = 2
    """Gradients of a stage's inputs: the half of a backward pass that the stage before it waits for."""
    WEIGHT = 3
    """Gradients of a stage's weights: the other half."""


class Pass(NamedTuple):
    """A pass of a stage with a micro-batch, both counted from 0."""

    stage: int
    kind: PassKind
    micro_batch: int

    @property
    def name(self) -> str:
        """``2F0`` and the like."""
        return f"{self.stage}{LETTERS[self.kind]}{self.micro_batch}"


def read_pass(text: str) -> Pass:
    """Read a pass that was written as ``2F0``."""
    match = _PASS.fullmatch(text)
    if match is None:
        remedy = "write 2F0 for the forward pass of stage 2 with micro-batch 0, 2B0 for its backward pass"
        raise InputError(f"{text[:_SHOWN]!r} is no pass", remedy=remedy)
    return Pass(int(match[1]), PassKind(LETTERS.index(match[2])), int(match[3]))
