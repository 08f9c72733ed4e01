"""Limits on resident memory, with readings that are made up."""

from __future__ import annotations

import os
import resource
import sys

import numpy as np
import pytest

from mtpp.host.memory_limit import (
    LEAST_BYTES,
    MemoryLimit,
    begin_search,
    family_resident_bytes,
    limited_memory,
    memory_left,
    memory_limited,
    short_of_memory,
)
from mtpp.solvers.limits import SearchLimits

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_nothing_is_limited_by_default() -> None:
    """Without a limit there is no end, and nobody is told of any."""
    with memory_limited(None):
        assert (limited_memory(), short_of_memory(), memory_left()) == (False, False, None)


def test_searches_end_before_all_is_used() -> None:
    """Near the limit searches are told to stop, and say that it was the memory."""
    readings = [LEAST_BYTES // 2]
    with memory_limited(LEAST_BYTES, read=lambda: readings[-1], end=lambda: None):
        left = memory_left()
        assert left is not None
        assert 0 < left <= LEAST_BYTES // 2
        assert SearchLimits(1).stop is None
        readings.append(LEAST_BYTES * 95 // 100)
        memory_left()
        assert short_of_memory()
        assert SearchLimits(1).stop == "memory-limit"
    assert SearchLimits(1).stop is None


def test_the_process_ends_where_nothing_else_helps() -> None:
    """A tenth above the limit the process is ended; at the limit it is not."""
    ended: list[int] = []
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        for reading, expected in ((LEAST_BYTES - 1, 0), (LEAST_BYTES * 11 // 10, 1)):
            MemoryLimit(LEAST_BYTES, lambda reading=reading: reading, lambda: ended.append(1)).look()  # type: ignore[misc]
            assert len(ended) == expected
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


@linux
def test_the_kernel_refuses_what_goes_beyond() -> None:
    """An allocation far beyond the limit is a MemoryError; afterwards it is possible again."""
    limit = family_resident_bytes() + 64 * 2**20
    with memory_limited(limit, end=lambda: None), pytest.raises(MemoryError):
        np.ones(2**30, dtype=np.int8)
    assert len(np.empty(2**28, dtype=np.int8)) == 2**28


@linux
def test_resident_memory_is_that_of_this_process() -> None:
    """What is read is at least what a large array takes."""
    before = family_resident_bytes(os.getpid())
    kept = np.ones(2**26, dtype=np.int8)
    assert family_resident_bytes(os.getpid()) >= before + len(kept) // 2


def test_one_search_near_the_limit_does_not_end_the_next() -> None:
    """What an earlier search has given back is there for the next one; what it has not still counts."""
    readings = [LEAST_BYTES * 95 // 100]
    with memory_limited(LEAST_BYTES, read=lambda: readings[-1], end=lambda: None):
        memory_left()
        assert short_of_memory()
        begin_search()
        assert short_of_memory()
        readings.append(LEAST_BYTES // 2)
        begin_search()
        assert not short_of_memory()


@linux
def test_a_large_process_is_left_enough_to_go_on() -> None:
    """Data that is there before the limit, and not in the reading, is no reason to refuse what is small."""
    ballast = np.ones(900 * 2**20 // 8)
    with memory_limited(LEAST_BYTES, read=lambda: LEAST_BYTES // 2, end=lambda: None):
        assert len(bytearray(8 * 2**20)) == 8 * 2**20
    assert ballast[-1] == 1
