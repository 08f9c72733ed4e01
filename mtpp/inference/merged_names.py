"""Names of ops that stand for several others, put together when somebody asks: a million ops may be merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar, overload

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array

_SPELLED_OUT = 6

Row = TypeVar("Row")


class _Rows(Sequence[Row], ABC):
    """A row for every group, made when it is asked for."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, group: int) -> Row: ...

    @overload
    def __getitem__(self, group: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, group: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(group, slice):
            return tuple(map(self._of, range(self._count)[group]))
        return self._of(range(self._count)[group])

    @abstractmethod
    def _of(self, row: int) -> Row: ...


class MemberNames(_Rows[tuple[str, ...]]):
    """Names of the ops in every group.

    Parameters
    ----------
    names
        One per op.
    order
        All ops, int32: the order in which the members of a group are listed.
    group_of
        Group of every op, int32, values 0 … *count* − 1.
    count
        Number of groups.

    Notes
    -----
    O(n log n) once, when the first name is asked for, then O(size of the group).
    """

    def __init__(self, names: Sequence[str], order: Int32Array, group_of: Int32Array, count: int) -> None:
        super().__init__(count)
        self._names = names
        self._order = order
        self._group_of = group_of

    def _of(self, row: int) -> tuple[str, ...]:
        offsets, ops = self._members
        return tuple(self._names[v] for v in ops[offsets[row] : offsets[row + 1]].tolist())

    @cached_property
    def _members(self) -> tuple[Int64Array, Int32Array]:
        in_order = self._group_of[self._order]
        offsets = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(np.bincount(in_order, minlength=len(self)), out=offsets[1:])
        return offsets, self._order[np.argsort(in_order, kind="stable")]


class JoinedNames(_Rows[str]):
    """What messages call every group: its members' names, the middle of a large group left out."""

    def __init__(self, members: MemberNames) -> None:
        super().__init__(len(members))
        self._members = members

    def _of(self, row: int) -> str:
        names = self._members[row]
        if len(names) > _SPELLED_OUT:
            names = (*names[:3], f"… {len(names) - 5} more …", *names[-2:])
        return " + ".join(names)
