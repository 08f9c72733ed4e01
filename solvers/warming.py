"""Kernels by the commands that call them, compiled ahead of their use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from mtpp.inference.system import load_system, override
from mtpp.names import PEAK_MODES

RARE = ("random", "mla", "mla-weighted")
"""Partitioners whose own kernels take little to compile, and which few ask for."""

Loader = Callable[[bool], object]
"""Has kernels ready; with True also those that few need."""


def _load_partitioners(peak: str, rare: bool) -> None:
    from mtpp.solvers.compiling import load_kernels, tiny_instances
    from mtpp.solvers.limits import UNLIMITED, SearchLimits
    from mtpp.solvers.orders.fewest import find_fewest_stages
    from mtpp.solvers.registry import PARTITIONERS

    system = override(load_system(), fast_memory_bytes=0, peak=peak)
    load_kernels([name for name in PARTITIONERS if rare or name not in RARE], system, most_ops=UNLIMITED)
    for instance in tiny_instances(system):
        find_fewest_stages(instance, 10**15, SearchLimits(evaluations=2))


def _load_bounds(rare: bool) -> None:
    from mtpp.solvers.bounds.registry import BOUNDS
    from mtpp.solvers.compiling import load_bounds

    for peak in PEAK_MODES:
        load_bounds(BOUNDS, override(load_system(), fast_memory_bytes=0, peak=peak))


def _load_recheck(rare: bool) -> None:
    from mtpp.solvers.recheck.compiling import load_recheck

    load_recheck()


def _load_training_recheck(rare: bool) -> None:
    from mtpp.solvers.recheck.compiling import load_training_recheck

    load_training_recheck()


def _load_planners(rare: bool) -> None:
    from mtpp.solvers.planners.compiling import load_planners

    load_planners()


def _load_graph_planner(rare: bool) -> None:
    from mtpp.solvers.planners.compiling import load_graph_planner

    load_graph_planner()


def _load_split_planner(rare: bool) -> None:
    from mtpp.solvers.planners.compiling import load_split_planner

    load_split_planner(rare=rare)


def _load_simulation(rare: bool) -> None:
    from mtpp.solvers.planners.compiling import load_simulation

    load_simulation()


# Without memories, with those of a fixed peak and with those of peaks in order: kernels are compiled for each.
_PARTITIONERS = tuple(partial(_load_partitioners, peak) for peak in PEAK_MODES)
_RECHECKS = (_load_recheck, _load_training_recheck)

COMMANDS: Mapping[str, tuple[Loader, ...]] = {
    "partition": _PARTITIONERS,
    "certify": (*_PARTITIONERS, _load_bounds),
    "bound": (_load_bounds,),
    "evaluate": _PARTITIONERS,
    "compare": _PARTITIONERS,
    "simulate": (_load_simulation,),
    "verify": _RECHECKS,
    "report": (*_RECHECKS, _load_simulation),
    "run": (_load_simulation,),
    "plan": (_load_split_planner, _load_graph_planner, _load_planners),
}
"""Command → what loads the kernels that it may call; commands that call none are left out."""


def load_for(commands: Iterable[str], *, rare: bool = True, backwards: bool = False) -> None:
    """Have all kernels of some of :data:`COMMANDS` ready, from disk or compiled.

    Each is called for a tiny problem of every kind that it is compiled for.

    Parameters
    ----------
    rare
        Whether kernels that few need are among them.
    backwards
        Whether the last ones come first: of two processes that share a folder, each then finds what the other made.
    """
    loaders = list(dict.fromkeys(load for command in commands for load in COMMANDS[command]))
    for load in reversed(loaders) if backwards else loaders:
        load(rare)
