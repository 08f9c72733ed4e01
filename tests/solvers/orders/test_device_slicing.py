"""Cuts of an order on devices that differ: the best there are, by brute force."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from random_devices import NEVER, RandomCase, random_case, random_order

from mtpp.solvers.orders import device_labels, device_slicing
from mtpp.solvers.orders.device_slicing import DeviceSlicer
from mtpp.solvers.orders.slicing import segment_below, slice_order

CASES = range(200)


def drawn(seed: int) -> tuple[RandomCase, np.ndarray, int]:
    """Return a case, an order of it, and how many devices may be used."""
    chance = Random(seed)
    case = random_case(seed)
    count = len(case.devices)
    return case, np.array(random_order(case, chance), dtype=np.int32), chance.choice([count, chance.randint(1, count)])


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", CASES)
def test_the_best_cut_is_that_of_brute_force(seed: int, free: bool) -> None:
    """And its bottleneck is the real one, on devices that are there, no more of them than allowed."""
    case, order, most = drawn(seed)
    least = case.cut_optimum(order.tolist(), most, free=free)
    cut = DeviceSlicer.of(case.instance(), most, free=free).best(order)
    if cut is None:
        assert least == NEVER
        return
    assert cut.bottleneck == case.bottleneck(cut.partition, cut.devices) == least
    assert len(set(cut.partition.assignment.tolist())) <= most
    assert free or cut.devices == tuple(range(len(case.devices)))


@pytest.mark.parametrize("seed", CASES[:50])
def test_a_cutoff_leaves_out_no_cut_below_it(seed: int) -> None:
    """Nothing is below the best, and the best is below one tick more."""
    case, order, _ = drawn(seed)
    slicer = DeviceSlicer.of(case.instance(), free=True)
    best = slicer.best(order)
    if best is not None:
        assert slicer.best(order, best.bottleneck) is None
        again = slicer.best(order, best.bottleneck + 1)
        assert again is not None
        assert again.bottleneck == best.bottleneck


@pytest.mark.parametrize("seed", CASES[:50])
def test_slicing_takes_the_devices_of_the_stages(seed: int) -> None:
    """An order of an instance whose devices differ is cut for them, stage i on device i."""
    case, order, _ = drawn(seed)
    instance = case.instance()
    least = case.cut_optimum(order.tolist(), len(case.devices), free=False)
    if len(instance.machine.classes) > 1:
        cut = slice_order(instance, order)
        assert (NEVER if cut is None else cut.bottleneck) == least
        if cut is not None:
            again = segment_below(instance, order, least + 1)
            assert case.bottleneck(again, range(len(case.devices))) == least
            with pytest.raises(ValueError, match="no cut of this order"):
                segment_below(instance, order, least)


def test_long_orders_are_cut_at_some_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is a cut of the order with its real bottleneck, never below the best one."""
    monkeypatch.setattr(device_slicing, "_MOST_CUTS", 4)
    found = 0
    for seed in CASES:
        case, order, most = drawn(seed)
        cut = DeviceSlicer.of(case.instance(), most, free=True).best(order)
        least = case.cut_optimum(order.tolist(), most, free=True)
        if cut is not None:
            found += cut.bottleneck == least
            assert least <= cut.bottleneck == case.bottleneck(cut.partition, cut.devices)
    assert found > 100


def test_no_cutoff_lets_a_stage_exceed_its_memory() -> None:
    """Not even one above the cost that stands for it."""
    for seed in CASES:
        case, order, most = drawn(seed)
        cut = DeviceSlicer.of(case.instance(), most).best(order, 2**63 - 1)
        least = case.cut_optimum(order.tolist(), most, free=False)
        assert (NEVER if cut is None else cut.bottleneck) == least


def test_many_different_devices_stand_in_the_machine_s_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts by class that do not fit into a word leave the order of the list."""
    monkeypatch.setattr(device_labels, "LABEL_BITS", 1)
    case, _, _ = drawn(4)
    assert not DeviceSlicer.of(case.instance(), free=True).free
