"""Limits of the cells of a table: bounds by name, and shares of the cores and the memory of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.host.memory_limit import memory_left, search_share
from mtpp.inference.goal import Goal
from mtpp.solvers.aim import bounds_of
from mtpp.solvers.bounds.registry import BOUNDS, BY_DEFAULT, bound_entry
from mtpp.solvers.certify.cell_state import CellLimits

if TYPE_CHECKING:
    from mtpp.api.options.cells import GoalCells

__all__ = ["CellLimits", "bound_names", "cell_limits", "most_at_once", "shared_out"]

_PROCESS_BYTES = 160 * 2**20
"""Memory of a process for cells before it has any, with all that is imported and compiled."""

_PARENT_GROWS_BYTES = 32 * 2**20
"""Memory that this process may take more while cells are worked at in others."""

_TOGETHER = 2
"""Bounds at a cell that may keep much in memory at once: an exhaustive search, and HiGHS in its own process."""


def cell_limits(
    asked: GoalCells, *, each: bool = False, warn: Callable[[str], None] = lambda text: None, **more: Any
) -> CellLimits:
    """Return the limits of every cell, *more* of them as :class:`CellLimits` has them.

    Parameters
    ----------
    warn
        Is told of bounds that are left out, for they do not hold for the goal.

    Raises
    ------
    InputError
        If such a bound is asked for by name.
    """
    bounds = bound_names(asked.bounds, every=each)
    holding = bounds_of(Goal(asked.objective), replicas=asked.replicas)
    out = [name for name in bounds if name not in holding]
    if out:
        of = "stages on several devices" if asked.replicas else "the latency"
        if asked.bounds is not None and list(asked.bounds) != ["all"]:
            first = f"{out[0]} does not bound {of}"
            raise InputError(first, parameter="bounds", remedy=f"use some of {', '.join(holding)}")
        if each:
            warn(f"left out {', '.join(out)}: they do not bound {of}")
        bounds = tuple(name for name in bounds if name in holding)
    return CellLimits(
        time_limit_s=asked.time_limit_s,
        bounds=bounds,
        seed=asked.seed,
        memory_bytes=asked.memory_limit,
        proof_bytes=asked.proof_limit,
        each=each,
        **more,
    )


def bound_names(names: Sequence[str] | None, *, every: bool = False) -> tuple[str, ...]:
    """Return bounds in the order of the registry, each once.

    Parameters
    ----------
    names
        Those asked for, ``all`` alone for every one; None: every one, or those that pay where the aim is one good
        bound.
    """
    if names is None or list(names) == ["all"]:
        return tuple(BOUNDS) if every or names else BY_DEFAULT
    chosen = {bound_entry(name).name for name in names}
    if not chosen:
        raise InputError("no bound is named", parameter="bounds", remedy=f"use some of {', '.join(BOUNDS)}")
    return tuple(name for name in BOUNDS if name in chosen)


def shared_out(limits: CellLimits, cells: int, jobs: int, *, processes: bool = True) -> CellLimits:
    """Return the limits of each of so many cells that share this machine's cores and memory, *jobs* at once.

    Parameters
    ----------
    limits
        Those of all cells; ``memory_bytes`` is what all may take together.
    processes
        Whether each cell gets a process of its own, with its part of a limit on memory.
    """
    from mtpp.host.capacity import memory_budget

    at_once = max(1, min(cells, jobs))
    left = _left_bytes(limits.memory_bytes)
    if left is None:
        return replace(limits, jobs=jobs // at_once, memory_bytes=memory_budget() // at_once)
    if not processes:
        return replace(limits, jobs=jobs // at_once, memory_bytes=search_share(left) // _TOGETHER)
    share = max(0, left - _PARENT_GROWS_BYTES) // at_once
    memory_bytes = max(0, share - _PROCESS_BYTES) // _TOGETHER
    return replace(limits, jobs=jobs // at_once, memory_bytes=memory_bytes, process_bytes=share)


def most_at_once(jobs: int, memory_bytes: int | None = None) -> int:
    """Return how many of *jobs* processes a limit on memory has room for, at least 1."""
    left = _left_bytes(memory_bytes)
    return jobs if left is None else max(1, min(jobs, left // (2 * _PROCESS_BYTES)))


def _left_bytes(given: int | None) -> int | None:
    """Return what may still be allocated: what this process's own limit leaves, else all that is given."""
    left = memory_left()
    return given if left is None else left
