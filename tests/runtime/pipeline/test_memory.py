"""Shared memory holds tensors side by side, is seen by other mappings, and has no name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mtpp.errors import InputError
from mtpp.runtime.pipeline import memory
from mtpp.runtime.pipeline.memory import Layout, OpenTensor, Ring, arrays

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


def test_tensors_of_open_size_differ_between_slots() -> None:
    """Each slot holds one with its sizes, none of them too; more than there is room for is refused, not cut off."""
    layout = Layout.of([("a", "int16", (3,)), ("open", "float32", (None, 2)), ("b", "int8", (4,))], {"open": 24})
    assert [(region.offset, region.room) for region in layout.regions] == [(0, 6), (64, 24), (192, 4)]
    ring = Ring.make(layout, 2, "a test")
    here, there = ring.views(), ring.views()
    for slot, rows in enumerate((3, 0)):
        view = here[slot]["open"]
        assert isinstance(view, OpenTensor)
        view.put(np.arange(2 * rows, dtype=np.float32).reshape(2, rows).T)
        here[slot]["b"][...] = 7  # type: ignore[index]
    for slot, rows in enumerate((3, 0)):
        found = arrays(there[slot])
        assert found["open"].tolist() == np.arange(2 * rows).reshape(2, rows).T.tolist()
        assert found["b"].tolist() == [7] * 4
    full = here[0]["open"]
    assert isinstance(full, OpenTensor)
    with pytest.raises(InputError, match=r"tensor 'open': it takes 32 B, more than in the runs before: there is room"):
        full.put(np.zeros((4, 2), np.float32))
    ring.close()


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
