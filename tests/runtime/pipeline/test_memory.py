"""Shared memory holds tensors side by side, is seen by other mappings, and has no name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mtpp.errors import InputError
from mtpp.runtime.pipeline import memory
from mtpp.runtime.pipeline.memory import Layout, Ring

TENSORS = [("a", "float32", (3, 5)), ("s", "int64", ()), ("none", "float16", (0, 4)), ("b", "bool", (7,))]


def test_tensors_lie_side_by_side() -> None:
    """Aligned, without overlap, in a whole number of pages."""
    layout = Layout.of(TENSORS)
    assert [region.offset for region in layout.regions] == [0, 64, 128, 128]
    assert layout.slot_bytes == memory._PAGE
    assert Layout.of([]).slot_bytes == memory._PAGE
    assert Layout.of([("x", "uint8", (memory._PAGE + 1,))]).slot_bytes == 2 * memory._PAGE


def test_every_mapping_sees_the_same() -> None:
    """What is written through one is read through another, slot by slot, also after the descriptor is closed."""
    ring = Ring.make(Layout.of(TENSORS), 3, "a test")
    here, there = ring.views(), ring.views()
    for slot in range(3):
        for name, dtype, shape in TENSORS:
            assert (there[slot][name].dtype.name, there[slot][name].shape) == (dtype, shape)
            assert not there[slot][name].any()
            here[slot][name][...] = np.ones(shape, dtype) * (slot + 1)
    ring.close()
    for slot in range(3):
        assert there[slot]["a"].tolist() == [[slot + 1] * 5] * 3
        assert int(there[slot]["s"]) == slot + 1
        assert there[slot]["b"].all()


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than is free is refused before it is taken; so is what the system does not give."""
    with pytest.raises(
        InputError, match=r"no .*iB of shared memory for the moon's outputs: .* are free; use a smaller queue_depth"
    ):
        Ring.make(Layout.of([("x", "uint8", (2**50,))]), 8, "the moon's outputs")
    monkeypatch.setattr(memory, "free_bytes", lambda: None)

    def full(descriptor: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory, "_commit", full)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    with pytest.raises(InputError, match="shared memory for a test: No space left on device; use"):
        Ring.make(Layout.of(TENSORS), 1, "a test")
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_systems_without_nameless_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a name does as well, its pages written where they cannot be reserved."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    ring = Ring.make(Layout.of([("x", "uint8", (3 << 20,))]), 1, "a test")
    (views,) = ring.views()
    assert os.fstat(ring.descriptor).st_size == 3 << 20
    assert not views["x"].any()
    ring.close()
