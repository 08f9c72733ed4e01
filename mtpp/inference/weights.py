"""Weights that several ops read: a stage holds each once, however many of its ops read it.

They are to memory what tensors are to transfers: hyperedges. Every stage that reads a weight holds all of it, so the
bytes of a stage are no sum over its ops. They are at least such a sum: each weight is charged on its last reader, and
a stage holds no less than its ops' shares. Bounds and reductions use that sum, costs of stages the weights themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.errors import InputError
from mtpp.inference.graph_columns import LARGEST_SIZE, check_bytes, unknown_op


class Weight(NamedTuple):
    """One weight, as a reader hands it over; *readers* are names of ops."""

    name: str
    bytes: int
    readers: Sequence[str]


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights in the order of the file, with the ops that read each; inputs of a graph have the same form.

    Attributes
    ----------
    names
        Of each weight.
    bytes
        Of each weight, int64, shape (w,).
    offsets, readers
        Ops that read each weight, CSR, int64, shape (w + 1,), and int32.
    shares
        Bytes of the weight that each of *readers* is charged with where a sum over ops has to do, int64: at first all
        to the last reader, often the most expensive one (a tied embedding); those of merged ops add up.
    """

    names: tuple[str, ...]
    bytes: Int64Array
    offsets: Int64Array
    readers: Int32Array
    shares: Int64Array

    @classmethod
    def build(cls, rows: Sequence[Weight], op_names: Sequence[str], key: str = "weights") -> Weights:
        """Check rows and lay them out.

        Parameters
        ----------
        key
            Place of the rows in a graph file.

        Raises
        ------
        InputError
            On an empty or duplicate name, a size that is negative or reaches 2^62 bytes, no reader, an unknown op, a
            duplicate reader; *where* is a JSON pointer (``/weights/3/readers/0``).
        """
        if not rows:
            return NO_WEIGHTS
        index = {name: v for v, name in enumerate(op_names)}
        seen: set[str] = set()
        for i, (name, size, readers) in enumerate(rows):
            where = f"/{key}/{i}"
            if not name or name in seen:
                raise InputError(f"duplicate name {name!r}" if name else "empty name", where=f"{where}/name")
            seen.add(name)
            check_bytes(size, f"{where}/bytes")
            if not readers:
                raise InputError(f"no op reads the {key[:-1]}", where=f"{where}/readers", remedy="name one of /ops")
            known: set[str] = set()
            for r, reader in enumerate(readers):
                if reader not in index:
                    raise unknown_op(reader, f"{where}/readers/{r}")
                if reader in known:
                    raise InputError(f"duplicate reader {reader!r}", where=f"{where}/readers/{r}")
                known.add(reader)
        if sum(row.bytes for row in rows) >= LARGEST_SIZE:
            raise InputError(f"the {key} are too large: their total reaches 2^62 bytes", where=f"/{key}")
        return cls.of(
            [row.name for row in rows], [row.bytes for row in rows], [[index[v] for v in row.readers] for row in rows]
        )

    @classmethod
    def of(cls, names: Sequence[str], sizes: Sequence[int], readers: Sequence[Sequence[int]]) -> Weights:
        """Return weights with their sizes and the numbers of the ops that read each, at least one."""
        counts = np.array([len(row) for row in readers], dtype=np.int64)
        offsets = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        held = np.array(sizes, dtype=np.int64)
        shares = np.zeros(offsets[-1], dtype=np.int64)
        shares[offsets[1:] - 1] = held
        return cls(tuple(names), held, offsets, np.array([v for row in readers for v in row], dtype=np.int32), shares)

    @property
    def weight_of_reader(self) -> Int64Array:
        """Weight that each of :attr:`readers` reads, int64."""
        return np.repeat(np.arange(len(self.bytes)), np.diff(self.offsets))

    def reader_lists(self) -> list[list[int]]:
        """Return the readers of each weight."""
        return [row.tolist() for row in np.split(self.readers, self.offsets[1:-1])] if self.names else []

    def shared_out(self, op_count: int) -> Int64Array:
        """Return the sum of each op's shares, int64, shape (n,)."""
        return sum_by(self.readers, self.shares, op_count)

    def read_by(self, op_count: int) -> Int64Array:
        """Return the bytes of all weights that each op reads, int64, shape (n,)."""
        return sum_by(self.readers, self.bytes[self.weight_of_reader], op_count)

    def held(self, stage: Int32Array, k: int) -> Int64Array:
        """Return the bytes of the weights that each of *k* stages reads, each once, int64, shape (k,)."""
        pairs = np.unique(self.weight_of_reader * k + stage[self.readers])
        return sum_by(pairs % k, self.bytes[pairs // k], k)

    def beside(self, other: Weights) -> Weights:
        """Return these and others behind them."""
        if not (self.names and other.names):
            return self if self.names else other
        return Weights(
            self.names + other.names,
            np.concatenate([self.bytes, other.bytes]),
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.readers, other.readers]),
            np.concatenate([self.shares, other.shares]),
        )

    def merged(self, group_of: Int32Array, op_count: int, *, all_kept: bool = False) -> Weights:
        """Return the weights that several of the merged ops read; the others are all shared out to one op.

        Parameters
        ----------
        group_of
            Merged op of each op, int32.
        op_count
            Number of merged ops.
        all_kept
            Whether those that one of them reads are kept too.
        """
        if not self.names:
            return self
        keys, place = np.unique(self.weight_of_reader * op_count + group_of[self.readers], return_inverse=True)
        shares = sum_by(place, self.shares, len(keys))
        weight = keys // op_count
        counts = np.bincount(weight, minlength=len(self.bytes))
        several = (counts > 1) | all_kept
        offsets = np.zeros(np.count_nonzero(several) + 1, dtype=np.int64)
        np.cumsum(counts[several], out=offsets[1:])
        kept = several[weight]
        return Weights(
            tuple(name for name, keep in zip(self.names, several.tolist(), strict=True) if keep),
            self.bytes[several],
            offsets,
            (keys[kept] % op_count).astype(np.int32),
            shares[kept],
        )

    def rows(self, op_names: Sequence[str]) -> list[Weight]:
        """Return one row a weight, with the names of its readers."""
        readers, offsets = self.readers.tolist(), self.offsets.tolist()
        spans = zip(self.names, self.bytes.tolist(), offsets[:-1], offsets[1:], strict=True)
        return [Weight(name, size, [op_names[v] for v in readers[start:stop]]) for name, size, start, stop in spans]

    def by_name(self, op_names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return ``{"bytes", "readers"}`` of each weight by its name."""
        return {row.name: {"bytes": row.bytes, "readers": list(row.readers)} for row in self.rows(op_names)}


def sum_by(group: Int32Array | Int64Array, value: Int64Array, size: int) -> Int64Array:
    """Sum *value* per group in int64 (``np.bincount`` with weights would go through float64)."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, group, value)
    return total


_EMPTY = np.zeros(0, dtype=np.int64)

NO_WEIGHTS = Weights((), _EMPTY, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), _EMPTY)
"""Of a graph each of whose weights one op reads."""
