"""Searches over downsets with labels, run again: downset by downset from the smallest on, as proofs describe them.

A downset holds with each op all that it reads from. So every downset inside another one is smaller, and the labels of
one are complete once all smaller ones have been gone on from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mtpp.solvers.recheck.arrays import ClaimArrays, Limits, ground_arrays
from mtpp.solvers.recheck.claim import DownsetClaim, SearchTooLarge
from mtpp.solvers.recheck.compiled import Watcher
from mtpp.solvers.recheck.kernels.downsets import FULL, PAUSED, stages_after
from mtpp.solvers.recheck.kernels.state import PAIRS
from mtpp.solvers.recheck.layout import Store, nodes, scratch

Label = tuple[int, ...]
L = TypeVar("L")

_FIRST_ROWS = 256
_STEPS = 2_000_000
_LABEL_BYTES = 200


class FoundLabels(NamedTuple):
    """Outcome of a search: how many downsets have labels, how many labels, and their digest; whether all ops have one.

    The digest is None where the search was ended early.
    """

    downsets: int
    labels: int
    digest: str | None
    complete: bool


class LabelSearch(ABC, Generic[L]):
    """One search; downsets are numbers with a bit for each op.

    Parameters
    ----------
    claim, arrays
        Ops and edges, and what the kernel takes of them.
    matters
        Whether memory does.
    memory_bytes
        That the downsets and their labels may take.
    """

    def __init__(
        self, claim: DownsetClaim, arrays: ClaimArrays, watcher: Watcher, memory_bytes: int, *, matters: bool
    ) -> None:
        self._watcher, self._memory = watcher, memory_bytes
        self._op_count = claim.op_count
        self._whole = claim.everything
        self._words = (claim.op_count + 63) // 64
        self._ground = ground_arrays(claim, matters)
        self._scratch = scratch(arrays, self._ground, self._words)
        self._nodes = nodes(claim.op_count)
        self._rows = np.zeros((_FIRST_ROWS, self._words), dtype=np.uint64)
        self._base = Store(
            np.zeros((1, self._words), dtype=np.uint64), np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int64)
        )

    def run(self, first: L, most_labels: int) -> FoundLabels:
        """Search from the label of the empty downset on.

        Parameters
        ----------
        most_labels
            The search ends early, without a digest, once more cannot be dropped: those of downsets gone on from.
        """
        fronts: dict[int, list[L]] = {0: [first]}
        waiting: defaultdict[int, list[int]] = defaultdict(list, {0: [0]})
        kept, expanded, final = 1, 0, 0
        while waiting:
            for downset in waiting.pop(min(waiting)):
                self._watcher.searched(expanded)
                expanded += 1
                kept += self._complete(downset, fronts[downset])
                final += len(fronts[downset])
                for reached, label in self._labels_after(downset, fronts[downset]):
                    front = fronts.get(reached)
                    if front is None:
                        front = fronts[reached] = []
                        waiting[reached.bit_count()].append(reached)
                    before = len(front)
                    if not self._keep(label, front):
                        continue
                    kept += len(front) - before
                    if reached == self._whole:
                        return FoundLabels(len(fronts), kept, None, complete=True)
                if final > most_labels:
                    return FoundLabels(len(fronts), kept, None, complete=False)
                if kept * (_LABEL_BYTES + 16 * self._words) > self._memory:
                    raise SearchTooLarge(f"{kept} labels take all the memory that it may ({self._memory >> 20} MiB)")
        numbers = {downset: [self._numbers(one) for one in front] for downset, front in fronts.items()}
        return FoundLabels(len(fronts), kept, digest_of_labels(numbers, self._op_count), complete=False)

    def _keep(self, label: L, front: list[L]) -> bool:
        """Add a label to those of a downset unless it is needless, and drop those that it makes needless."""
        if any(self._covers(one, label) for one in front):
            return False
        front[:] = [one for one in front if not self._covers(label, one)] + [label]
        return True

    def _complete(self, downset: int, front: list[L]) -> int:
        """Add labels that lead to the downset itself, before it is gone on from; return how many more there are."""
        return 0

    @abstractmethod
    def _labels_after(self, downset: int, front: Sequence[L]) -> Iterable[tuple[int, L]]:
        """Yield the downsets that one more stage leads to, each with a label of it."""

    @abstractmethod
    def _covers(self, one: L, other: L) -> bool:
        """Tell whether one label makes another one of the same downset needless."""

    @abstractmethod
    def _numbers(self, label: L) -> Label:
        """Return the numbers of a label as a record has them."""

    def _rows_after(self, downset: int, arrays: ClaimArrays, limits: Limits) -> NDArray[np.uint64]:
        """Return the downsets that one more stage leads to, as words of bits, each as often as a stage does."""
        state = self._scratch.state
        state[:] = 0
        self._base.sets[0] = np.frombuffer(downset.to_bytes(8 * self._words, "little"), dtype="<u8")
        while True:
            status = stages_after(
                arrays, limits, self._ground, self._base, self._scratch, self._nodes, self._rows, _STEPS
            )
            if status == FULL:
                if 2 * self._rows.nbytes > self._memory:
                    raise SearchTooLarge("the stages after one downset take all the memory that it may")
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            elif status == PAUSED:
                self._watcher.alive()
            else:
                return self._rows[: state[PAIRS]]


def digest_of_labels(fronts: Mapping[int, Sequence[Label]], op_count: int) -> str:
    """Return the SHA-256 of all labels of downsets: their numbers in 4 bytes each, and the bits of their downset."""
    length = (op_count + 7) // 8
    records = sorted(
        b"".join(number.to_bytes(4, "big") for number in label) + downset.to_bytes(length, "little")
        for downset, front in fronts.items()
        for label in front
    )
    return sha256(b"".join(records)).hexdigest()


def covers(one: Label, other: Label) -> bool:
    """Tell whether no number of one label is above the same of another one."""
    return all(a <= b for a, b in zip(one, other, strict=True))
