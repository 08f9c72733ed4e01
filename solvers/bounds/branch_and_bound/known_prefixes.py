"""Ops known to be in the first blocks of stages, and ops known not to be, with all that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mtpp.array_types import BoolArray
from mtpp.inference.graph import Int32Array


def ops_in(bits: int) -> Iterator[int]:
    """Yield the ops of a set, whose bits are set in an integer."""
    while bits:
        op = bits.bit_length() - 1
        yield op
        bits ^= 1 << op


class Reach:
    """All ops that lead to each op, and all that it leads to, itself included, as bits of integers.

    Parameters
    ----------
    count
        Number of ops, in a topological order.
    edges
        Tails and heads.

    Notes
    -----
    O(n·edges/64) time and n²/4 bytes.
    """

    def __init__(self, count: int, edges: tuple[Int32Array, Int32Array]) -> None:
        self.leading = [1 << op for op in range(count)]
        self.following = [1 << op for op in range(count)]
        tails, heads = edges
        by_head = np.argsort(heads, kind="stable")
        for u, v in zip(tails[by_head].tolist(), heads[by_head].tolist(), strict=True):
            self.leading[v] |= self.leading[u]
        by_tail = np.argsort(-tails, kind="stable")
        for u, v in zip(tails[by_tail].tolist(), heads[by_tail].tolist(), strict=True):
            self.following[u] |= self.following[v]


@dataclass(frozen=True)
class KnownPrefixes:
    """Sets of ops for each boundary b = 1 … B − 1, as bits of integers.

    Attributes
    ----------
    inside
        Ops in the first b blocks.
    outside
        Ops in none of them.
    """

    inside: tuple[int, ...]
    outside: tuple[int, ...]

    @classmethod
    def complete(cls, inside: BoolArray) -> KnownPrefixes:
        """Return them with every op on one side of each boundary; *inside* has shape (boundaries, ops)."""
        rows = [np.packbits(np.stack([row, ~row]), axis=1, bitorder="little") for row in inside]
        sides = [[int.from_bytes(part.tobytes(), "little") for part in row] for row in rows]
        return cls(tuple(held for held, _ in sides), tuple(left for _, left in sides))

    def extended(self, inside: Sequence[int], outside: Sequence[int], reach: Reach) -> KnownPrefixes | None:
        """Add ops, those that lead to ops inside, and those that ops outside lead to; None if sets then overlap."""
        held, left = list(self.inside), list(self.outside)
        carried = 0
        for b in range(len(held)):
            for op in ops_in((inside[b] | carried) & ~held[b]):
                held[b] |= reach.leading[op]
            carried = held[b]
        carried = 0
        for b in reversed(range(len(left))):
            for op in ops_in((outside[b] | carried) & ~left[b]):
                left[b] |= reach.following[op]
            carried = left[b]
        if any(a & b for a, b in zip(held, left, strict=True)):
            return None
        return KnownPrefixes(tuple(held), tuple(left))

    def with_one(self, op: int, b: int, *, inside: bool, reach: Reach) -> KnownPrefixes | None:
        """Add an op on one side of boundary *b* (from 0 on)."""
        one = [0] * len(self.inside)
        one[b] = 1 << op
        none = [0] * len(one)
        return self.extended(one, none, reach) if inside else self.extended(none, one, reach)

    def arrays(self, count: int) -> tuple[BoolArray, BoolArray]:
        """Return both as arrays, shape (boundaries, count)."""
        return _as_bools(self.inside, count), _as_bools(self.outside, count)


def _as_bools(sets: Sequence[int], count: int) -> BoolArray:
    size = count // 8 + 1
    octets = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in sets), dtype=np.uint8)
    return np.unpackbits(octets.reshape(len(sets), size), axis=1, bitorder="little", count=count).astype(bool)
