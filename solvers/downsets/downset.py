"""The search over downsets that decides a limit: an exhaustive search that can be interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from mtpp.solvers.downsets.enumeration import DownsetEnumeration
from mtpp.solvers.downsets.kernels.downset_layout import PAIRS
from mtpp.solvers.reduction.reduced_instance import ReducedInstance


class DownsetSearch(DownsetEnumeration):
    """The search for a partition with every stage cost at most *limit* ticks.

    Where it has ended there is none: that is a proof.
    """

    def advance(self, steps: int, piece: int, ended: Callable[[], bool]) -> int:
        """Go on for that many steps, *piece* at a time, until the search is decided or *ended* says so.

        Returns
        -------
        The steps made.
        """
        first = self.steps
        while self.state == "open" and self.steps - first < steps and not ended():
            self.run(min(piece, steps - (self.steps - first)))
        return self.steps - first

    def proof(self, reduced: ReducedInstance) -> dict[str, Any]:
        """Return the proof, once there is none, that no partition of an instance so reduced stays within the limit."""
        assert self.state == "ended"
        terms = {"cutoff": self.limit + 1, "k": self._problem.instance.k, "rules": self._problem.rules}
        return {"merges": reduced.record(), **terms, **self.record()}

    def record(self) -> dict[str, Any]:
        """Return what was enumerated, for a proof: the counts, and a digest of the downsets reached.

        The digest is the SHA-256 of the records of all downsets reached, sorted as bytes. A record is the fewest stages
        that the downset takes, in 4 bytes, most significant first, and a set of bits, least significant first, one for
        each op: bit i for the i-th op in the order of the first of the graph's ops, in file order, that it stands for.
        """
        count = self.count
        instance = self._problem.instance
        first = instance.first_members
        rank = np.empty(instance.op_count, dtype=np.int64)
        rank[np.argsort(first)] = np.arange(instance.op_count)
        at = np.empty(instance.op_count, dtype=np.int64)  # of the op with each rank, its place in the order
        at[rank[instance.order]] = np.arange(instance.op_count)
        bits = self._store.bits[:count].astype("<u8").view(np.uint8)
        rows = np.empty((count, 4 + -(-instance.op_count // 8)), dtype=np.uint8)
        rows[:, :4] = self._store.level[:count].astype(">u4").reshape(-1, 1).view(np.uint8)
        for begin in range(0, count, _CHUNK):
            chunk = slice(begin, min(begin + _CHUNK, count))
            inside = np.unpackbits(bits[chunk], axis=1, bitorder="little")[:, at]
            rows[chunk, 4:] = np.packbits(inside, axis=1, bitorder="little")
        whole = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
        whole.sort()
        digest = hashlib.sha256(rows.data).hexdigest()
        return {"downsets": count, "pairs": int(self._registers[PAIRS]), "digest": digest}


_CHUNK = 4096
