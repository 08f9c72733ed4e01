"""Devices that the stages of a chain may stand on, and how many of them may and have to have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

from mtpp.errors import InputError

MOST_COUNTS = 2**16
"""Ways to have used some devices of each class, and no others, that searches tell apart in free order."""


class ChainStage(NamedTuple):
    """Interval [start, stop) of a chain on a device, by its number in the list, as an alternative, by its number."""

    device: int
    alternative: int
    start: int
    stop: int


@dataclass(frozen=True)
class ChainDevices:
    """Devices in order.

    Attributes
    ----------
    class_of
        Class of each device.
    free
        Whether stages may stand on devices in any order; else a later stage stands on a later device.
    most_used, least_used
        Devices that may have a stage at most, and have to have one at least.

    Raises
    ------
    InputError
        If the numbers do not go together, or there are too many ways to choose devices in free order.
    """

    class_of: tuple[int, ...]
    free: bool
    most_used: int
    least_used: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.most_used <= len(self.class_of):
            raise InputError(
                f"must be from 1 to {len(self.class_of)}, the number of devices, not {self.most_used}", parameter="k"
            )
        if not 1 <= self.least_used <= self.most_used:
            raise InputError(f"no {self.least_used} of at most {self.most_used} devices can be used", parameter="k")
        if self.counted and self.ways > MOST_COUNTS:
            raise InputError(
                f"{len(self.classes)} classes of devices in free order have too many orders",
                parameter="machine",
                remedy='use order = "fixed"',
            )

    @classmethod
    def of(
        cls, class_of: Sequence[int], *, free: bool, most_used: int | None = None, none_empty: bool = False
    ) -> ChainDevices:
        """Return devices of which all may have a stage, or *most_used* of them; with *none_empty* so many have to."""
        most = len(class_of) if most_used is None else most_used
        return cls(tuple(class_of), free, most, most if none_empty else 1)

    @cached_property
    def classes(self) -> list[int]:
        """Classes that there are, ascending."""
        return sorted(set(self.class_of))

    @property
    def counted(self) -> bool:
        """Whether it is all the same which devices of a class are used: in free order, and where all are equal."""
        return self.free or len(self.classes) == 1

    def counts(self, op_count: int) -> list[int]:
        """Return how many devices of each class can have a stage of a chain of so many ops."""
        most = min(self.most_used, op_count)
        return [min(most, self.class_of.count(c)) for c in self.classes]

    @property
    def ways(self) -> int:
        """Ways to have used some devices of each class."""
        return prod(self.class_of.count(c) + 1 for c in self.classes)

    @property
    def limited(self) -> bool:
        """Whether the number of devices used matters in fixed order."""
        return self.most_used < len(self.class_of) or self.least_used > 1
