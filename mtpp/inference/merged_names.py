"""Names of ops that stand for several others, put together when somebody asks: a million ops may be merged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array

_SPELLED_OUT = 6


class MemberNames(Sequence[tuple[str, ...]]):
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
        self._names = names
        self._order = order
        self._group_of = group_of
        self._count = count

    def __len__(self) -> int:
        """Return the number of groups."""
        return self._count

    @overload
    def __getitem__(self, group: int) -> tuple[str, ...]: ...

    @overload
    def __getitem__(self, group: slice) -> tuple[tuple[str, ...], ...]: ...

    def __getitem__(self, group: int | slice) -> tuple[str, ...] | tuple[tuple[str, ...], ...]:
        """Return the names of a group's members."""
        if isinstance(group, slice):
            return tuple(self[i] for i in range(self._count)[group])
        offsets, ops = self._members
        row = range(self._count)[group]
        return tuple(self._names[v] for v in ops[offsets[row] : offsets[row + 1]].tolist())

    @cached_property
    def _members(self) -> tuple[Int64Array, Int32Array]:
        in_order = self._group_of[self._order]
        offsets = np.zeros(self._count + 1, dtype=np.int64)
        np.cumsum(np.bincount(in_order, minlength=self._count), out=offsets[1:])
        return offsets, self._order[np.argsort(in_order, kind="stable")]


class JoinedNames(Sequence[str]):
    """What messages call every group: its members' names, the middle of a large group left out."""

    def __init__(self, members: MemberNames) -> None:
        self._members = members

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._members)

    @overload
    def __getitem__(self, group: int) -> str: ...

    @overload
    def __getitem__(self, group: slice) -> tuple[str, ...]: ...

    def __getitem__(self, group: int | slice) -> str | tuple[str, ...]:
        """Return what a group is called."""
        if isinstance(group, slice):
            return tuple(self[i] for i in range(len(self))[group])
        names = self._members[group]
        if len(names) > _SPELLED_OUT:
            names = (*names[:3], f"… {len(names) - 5} more …", *names[-2:])
        return " + ".join(names)
