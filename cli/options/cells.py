"""Options of the commands that work at the cells of a table of certificates, and what they turn into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.cli.options.file_types import STORE
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.shared import FiniteRange, stack
from mtpp.cli.options.stage_counts import StageCounts
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.solvers.certify.cells.cell import CellLimits

_PROCESS_BYTES = 160 * 2**20
"""Memory of a process for cells before it has any, with all that is imported and compiled."""

_PARENT_GROWS_BYTES = 32 * 2**20
"""Memory that this process may take more while cells are worked at in others."""

_TOGETHER = 2
"""Bounds at a cell that may keep much in memory at once: an exhaustive search, and HiGHS in its own process."""

F = TypeVar("F", bound=Callable[..., Any])

BOUND_NAMES = (
    *("simple", "downset", "node", "crossings", "fraction", "bottleneck-no-dag", "bottleneck-no-cut-io", "bottleneck"),
    *("bottleneck-guess", "node-convex", "configuration", "exact-mip"),
)
"""Those of the registry, which would be slow to import for a page of help."""


def cell_options(*, bounds: str) -> Callable[[F], F]:
    """Add ``-k`` and what bounds the work at a cell; *bounds* is the help of ``--bounds``, before their names."""
    options = (
        click.option(
            "-k", "--stages", "stage_counts", type=StageCounts(), required=True, metavar="K,K,…",
            help="Numbers of stages, such as 2,4,8: a cell for each model and each of them.",
        ),
        click.option("--bounds", metavar="NAME,NAME,…", help=f"{bounds} {', '.join(BOUND_NAMES)}."),
        click.option(
            "--time-limit", type=FiniteRange(min=0, min_open=True), default=60.0, show_default=True, metavar="S",
            help="Seconds for each cell, reading its model included.",
        ),
        click.option(
            "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of all random choices."
        ),
        memory_limit_option("; by default the exhaustive searches of all cells at once may take half of what is free"),
        click.option(
            "--as", "shown_as", type=click.Choice(["ratio", "fraction"]), default="ratio", show_default=True,
            help="Bounds in summaries: best partition / bound, or bound / best partition.",
        ),
    )  # fmt: skip
    return stack(*options)


def run_options() -> Callable[[F], F]:
    """Add where the cells are worked at, how many at once, for how long, and where their rows are kept."""
    options = (
        total_time_option(),
        click.option(
            "-j", "--jobs", type=click.IntRange(min=1),
            help="Cells at once, a process each [default: all cores]; not with --scheduler.",
        ),
        click.option(
            "--store", type=STORE, metavar="FILE.db",
            help="Keep each row as soon as there is one; what is there already is not worked at again.",
        ),
        click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster to work on, such as tcp://host:8786."),
    )  # fmt: skip
    return stack(*options)


def total_time_option() -> Callable[[F], F]:
    """Add ``--total-time-limit``."""
    return click.option(
        "--total-time-limit", type=FiniteRange(min=0, min_open=True), metavar="S",
        help="Seconds for the whole run, from process start; cells that had no turn by then have no row.",
    )  # fmt: skip


def cell_limits(options: dict[str, Any], *, each: bool = False) -> CellLimits:
    """Read what :func:`cell_options` collected, and what only one of the commands has.

    Raises
    ------
    InputError
        If an option names what there is not.
    """
    from mtpp.cli.options.shared import bytes_option
    from mtpp.solvers.certify.cells.cell import CellLimits
    from mtpp.solvers.registry import partitioner

    given = options["memory_limit"]
    return CellLimits(
        time_limit_s=options["time_limit"],
        target_ratio=Fraction(repr(options.get("target_ratio", 1.0))),
        bounds=parse_bounds(options["bounds"], every=each),
        algorithm=partitioner(options.get("algorithm", "auto")).name,
        seed=options["seed"],
        memory_bytes=bytes_option("--memory-limit", given),
        each=each,
        proofs_only=options.get("require_ratio") is not None,
        cutoff=options.get("cutoff"),
    )


def shared_out(limits: CellLimits, cells: int, jobs: int, *, processes: bool = True) -> CellLimits:
    """Return the limits of each of so many cells that share this machine's cores and memory, *jobs* at once.

    Parameters
    ----------
    processes
        Whether each cell gets a process of its own, with its part of a limit on memory.
    """
    from mtpp.cli.options.limits import search_memory
    from mtpp.host.free_memory import memory_budget
    from mtpp.host.memory_limit import memory_left

    at_once = max(1, min(cells, jobs))
    left = memory_left()
    if left is None:
        return replace(limits, threads=jobs // at_once, memory_bytes=memory_budget() // at_once)
    if not processes:
        return replace(limits, threads=jobs // at_once, memory_bytes=search_memory("") // _TOGETHER)
    share = max(0, left - _PARENT_GROWS_BYTES) // at_once
    memory_bytes = max(0, share - _PROCESS_BYTES) // _TOGETHER
    return replace(limits, threads=jobs // at_once, memory_bytes=memory_bytes, process_bytes=share)


def most_at_once(jobs: int) -> int:
    """Return how many of *jobs* processes a limit on memory has room for, at least 1."""
    from mtpp.host.memory_limit import memory_left

    left = memory_left()
    return jobs if left is None else max(1, min(jobs, left // (2 * _PROCESS_BYTES)))


def parse_bounds(text: str | None, *, every: bool = False) -> tuple[str, ...]:
    """Read ``--bounds``: names with commas between them, put in the order of the registry.

    None: every one, or those that pay where the aim is one good bound.
    """
    from mtpp.solvers.bounds.registry import BOUNDS, BY_DEFAULT, bound_entry

    if text is None or text.strip() == "all":
        return tuple(BOUNDS) if every or text else BY_DEFAULT
    names = {bound_entry(name.strip()).name for name in text.split(",") if name.strip()}
    if not names:
        raise InputError("no bound is named", source="--bounds", remedy=f"use some of {', '.join(BOUNDS)}")
    return tuple(name for name in BOUNDS if name in names)
