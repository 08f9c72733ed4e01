"""Cost of boundaries between stages on neighbouring devices, by the classes of the two devices.

With transport by neighbours a tensor passes every boundary between the stage that makes it and its last reader, and
both stages of a boundary pay for each tensor that passes. Boundaries lie between consecutive stages that are not empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.machine.pairs import PairedClasses

NO_PAIR = -1
"""In place of a row: there are no two devices of these classes."""


@dataclass(frozen=True, eq=False)
class BoundaryCost:
    """Ticks of each tensor at a boundary.

    Attributes
    ----------
    ticks
        By link and tensor, int64, shape (links, m).
    row_of
        Link between devices of two classes, or :data:`NO_PAIR`, int64, shape (classes, classes).
    """

    ticks: Int64Array
    row_of: Int64Array

    @classmethod
    def of(cls, pairs: PairedClasses, ticks: Int64Array) -> BoundaryCost:
        """Return the cost of boundaries, given the ticks of tensors on each of the links of pairs."""
        number = {link: i for i, link in enumerate(pairs.links)}
        rows = [[NO_PAIR if link is None else number[link] for link in row] for row in pairs.link_of]
        return cls(ticks, np.array(rows, dtype=np.int64))

    @property
    def least(self) -> Int64Array:
        """Ticks of each tensor over the best link of each class, int64, shape (classes, m); zeros without a link."""
        rows = [self.ticks[row[row != NO_PAIR]] for row in self.row_of]
        least = [
            of_class.min(axis=0) if len(of_class) else np.zeros(self.ticks.shape[1], dtype=np.int64)
            for of_class in rows
        ]
        return np.array(least, dtype=np.int64).reshape(len(rows), -1)

    @property
    def one_link(self) -> bool:
        """Whether all pairs of devices have one link."""
        return len(np.unique(self.row_of[self.row_of != NO_PAIR])) <= 1

    def of_tensors(self, ticks: Int64Array) -> BoundaryCost:
        """Return the same for other tensors, by their ticks."""
        return replace(self, ticks=ticks)

    def on(self, class_of: Sequence[int], old_class_of: Sequence[int]) -> BoundaryCost:
        """Return the cost on some of the devices.

        Parameters
        ----------
        class_of, old_class_of
            Of each of them, its class among these and among all.
        """
        classes = max(class_of) + 1
        row_of = np.full((classes, classes), NO_PAIR, dtype=np.int64)
        for i, one in enumerate(class_of):
            for j, other in enumerate(class_of):
                if i != j and row_of[one, other] == NO_PAIR:
                    row_of[one, other] = self.row_of[old_class_of[i], old_class_of[j]]
        return replace(self, row_of=row_of)
