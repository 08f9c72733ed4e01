"""Signatures as text: one for each that numba compiles for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, typeof, types

from mtpp.solvers.kernel_stamp import NoStamp, signature_text


class Ends(NamedTuple):
    """Two numbers."""

    first: int
    last: int


def _other_ends() -> Any:
    class Ends(NamedTuple):
        last: int
        first: int

    return Ends(1, 2)


def test_each_type_has_its_own() -> None:
    """Types that machine code differs for differ as text, those that numba calls by one name included."""
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    kinds = [
        *map(typeof, (1, 1.0, True, None, np.int32(1), np.uint64(1), (1, 2), (1, 2.0), Ends(1, 2), _other_ends())),
        *map(typeof, (np.zeros(3), np.zeros(3, dtype=np.int32), np.zeros((3, 3)), np.zeros((3, 3)).T, read_only)),
        *map(typeof, (np.zeros(6)[::2], Ends(np.zeros(3), 2), Ends(np.zeros((3, 3)), 2), (Ends(1, 2), 3))),
        *(types.literal(value) for value in (0, 1, True, False)),
        types.Optional(types.int64),
        types.Optional(typeof(Ends(1, 2))),
        types.Optional(typeof(_other_ends())),
        types.Omitted(1),
        types.Omitted(2),
        types.Omitted(1.0),
        types.Omitted(True),
    ]
    assert len({signature_text([kind]) for kind in kinds}) == len(kinds)
    assert len({signature_text([kinds[0], kind]) for kind in kinds}) == len(kinds)


def test_it_is_the_same_each_time() -> None:
    """The text of a signature holds nothing of the process that asks for it."""
    values = (1, np.zeros(3), Ends(np.zeros(3), 2), None)
    first, second = (signature_text(map(typeof, values)) for _ in range(2))
    assert first == second
    assert "0x" not in first


def test_types_that_text_does_not_tell_have_none() -> None:
    """A function is named by where it lies in memory, where another may lie the next time."""
    function = njit(lambda x: x)
    kind = typeof(function)
    kinds = (
        kind,
        types.Tuple([types.int64, kind]),
        types.Optional(kind),
        types.List(types.int64),
        types.Omitted(function),
    )
    for kind in kinds:
        with pytest.raises(NoStamp):
            signature_text([types.int64, kind])
