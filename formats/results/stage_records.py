"""Stages of a folder and the tensors between them, as its manifest describes them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

MODEL_INPUT = -1
"""Source of a stage's input if it is an input of the whole model."""

CPU = "cpu"
"""Place of stages that nobody has put elsewhere."""

TEXT = "string"
"""Type of tensors of texts."""

_BITS = {
    **{f"{kind}{bits}": bits for kind in ("int", "uint") for bits in (2, 4, 8, 16, 32, 64)},
    **{"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "bool": 8, "complex64": 64, "complex128": 128},
    **{f"float8{dash}{kind}": 8 for dash in ("", "_") for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")},
    **{"float8e8m0": 8, "float8_e8m0fnu": 8, "complex32": 32, "float4e2m1": 4},
}


@dataclass(frozen=True)
class Described:
    """A tensor by name.

    Attributes
    ----------
    dtype
        ``float32``, ``int64``, …; ``sequence(float32)`` for a sequence of tensors.
    shape
        Sizes as planned; None where one is not known. A sequence has its length.
    limits
        Of an input of the whole model that holds whole numbers: the least and the largest that make sense, where
        something is known of them.
    fixed
        Of an input of the whole model that is a number: the one that the stages were made for, where sizes in them
        follow from it; else None.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    limits: tuple[int, int] | None = field(default=None, kw_only=True)
    fixed: int | None = field(default=None, kw_only=True)

    @property
    def bytes(self) -> int | None:
        """Size in bytes; None where a size or the type is not known, and for sequences."""
        bits = _BITS.get(self.dtype)
        if bits is None or None in self.shape:
            return None
        return -(-math.prod(size or 0 for size in self.shape) * bits // 8)


Constant = bool | int | float | str | None


@dataclass(frozen=True)
class ConstantResult(Described):
    """A result of the whole model that no stage makes: a plain number, a text, or None of a PyTorch program.

    Attributes
    ----------
    dtype
        ``none``, ``bool``, ``int``, ``float`` or ``str``; its shape is empty.
    """

    value: Constant

    @classmethod
    def of(cls, name: str, value: Constant) -> ConstantResult:
        """Return a result with its type."""
        return cls(name, "none" if value is None else type(value).__name__, (), value=value)


@dataclass(frozen=True)
class StageInput(Described):
    """What a stage reads; *source* is the index of the stage that makes it, or :data:`MODEL_INPUT`."""

    source: int


@dataclass(frozen=True)
class StageOutput(Described):
    """What a stage hands on; *readers* are indices of stages, *result* says that the whole model returns it."""

    readers: tuple[int, ...]
    result: bool


@dataclass(frozen=True)
class Stage:
    """One file of the folder.

    Attributes
    ----------
    index
        Number in the plan.
    file
        Plain name of the file.
    ops
        How many of the model's ops it runs.
    cost, work
        Predicted, with and without the transfer of what it reads and hands on, in ticks.
    device
        Name of the device of a machine that it is planned for; empty where the plan is for equal devices.
    place
        Where it runs: ``"cpu"`` or ``"cuda:0"``.
    """

    index: int
    file: str
    ops: int
    cost: int
    work: int
    inputs: tuple[StageInput, ...]
    outputs: tuple[StageOutput, ...]
    device: str = ""
    place: str = CPU


class PlannedStage(NamedTuple):
    """Figures of a stage that its plan has, as in :class:`Stage`."""

    cost: int
    work: int
    device: str = ""
    place: str = CPU

    def stage(
        self,
        index: int,
        file: str,
        ops: int,
        inputs: tuple[StageInput, ...],
        outputs: tuple[StageOutput, ...],
    ) -> Stage:
        """Return the record of the stage's file."""
        return Stage(index, file, ops, self.cost, self.work, inputs, outputs, self.device, self.place)


def tensors_of(results: Iterable[Described]) -> tuple[Described, ...]:
    """Return the tensors among results of the whole model, each once."""
    return tuple({one.name: one for one in results if not isinstance(one, ConstantResult)}.values())
