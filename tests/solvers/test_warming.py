"""Kernels by command: all that real runs call is among them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from graph_strategies import LINK, random_graph

from mtpp.cli.main import COMMANDS as CLI_COMMANDS
from mtpp.inference.instance import Instance
from mtpp.inference.system import override
from mtpp.names import PEAK_MODES
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.compilation import watched_compilation
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.registry import PARTITIONERS
from mtpp.solvers.warming import COMMANDS, RARE, load_for


def test_commands_are_those_of_the_command_line() -> None:
    """Whatever can be named is a command, and rare partitioners are partitioners."""
    assert set(COMMANDS) <= set(CLI_COMMANDS)
    assert set(RARE) <= set(PARTITIONERS)


def _instances() -> list[Instance]:
    systems: list[Any] = [LINK]
    for peak in PEAK_MODES:
        systems += [override(LINK, fast_memory_bytes=memory, peak=peak) for memory in (300, 10**9)]
    return [Instance.build(random_graph(seed, 30, time_unit="us"), system, 3) for seed in (4, 5) for system in systems]


@pytest.mark.slow
def test_partition_and_certify_compile_nothing_more() -> None:
    """With what they name at hand, every partitioner and every bound runs on other graphs and memories."""
    load_for(["certify"])
    said: list[str] = []
    with watched_compilation(lambda: said.append("compiled")):
        for instance in _instances():
            for entry in PARTITIONERS.values():
                if entry.peaks_in_order or not instance.peaks_in_order:
                    entry.load()(instance, SearchLimits(40))
            cut = slice_order(instance, instance.order)
            assert cut is not None
            for name in ("simple", "node", "crossings", "fraction", "relaxation", "configuration"):
                BOUNDS[name].load()(instance, BoundLimits(cut.bottleneck, cut.partition, interrupted=_after_looks()))
    assert not said


def _after_looks() -> Callable[[], bool]:
    """Return what ends a search after some looks: bounds may go on as long as there is time."""
    looks = count()
    return lambda: next(looks) > 200


@pytest.mark.slow
@pytest.mark.parametrize("backwards", [False, True])
def test_either_direction_loads_all(backwards: bool) -> None:
    """Forwards or backwards, all of several commands are ready in the end."""
    load_for(["simulate", "bound"], backwards=backwards)
    said: list[str] = []
    with watched_compilation(lambda: said.append("compiled")):
        load_for(["bound", "simulate"])
    assert not said
