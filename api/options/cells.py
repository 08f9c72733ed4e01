"""Cells of tables: numbers of stages, bounds, and limits of the work at each cell and at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.api.options.goal import TableGoals
from mtpp.api.options.kinds import Flag, MemoryLimit, Names, Quantity, Ratio, Seconds, StageCounts, Text, Whole
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import OutputPath
from mtpp.names import ALGORITHMS, AUTO, BOUNDS
from mtpp.ranges import MOST_CUTOFF, MOST_SEED

if TYPE_CHECKING:
    from fractions import Fraction

_BOUNDS = ", ".join(BOUNDS)


class Cells(Options):
    """Limits of the work at a cell."""

    k: tuple[int, ...] | None = option(
        None, StageCounts(),
        "Numbers of stages, such as 2,4,8 or 1-16: a cell for each model and each of them [default of a machine: its "
        "devices].", "K,K-K,…", also="--stages",
    )  # fmt: skip
    bounds: tuple[str, ...] | None = option(
        None, Names(BOUNDS), f"Those to try, or all [default: those that pay], of {_BOUNDS}.", "NAME,NAME,…"
    )
    time_limit_s: float | None = option(
        60.0, Seconds(), "Seconds for each cell, reading its model included.", "S", more="None: until nothing is left."
    )
    seed: int = option(0, Whole(0, MOST_SEED), "Of all random choices.")
    memory_limit: int | None = option(
        None, MemoryLimit(processes=True),
        "Of all processes together, at least 512MiB; by default the exhaustive searches of all cells at once may take "
        "half of what is free.", "SIZE",
    )  # fmt: skip
    proof_limit: int = option(
        "8MB", Quantity(), "Of the proof of a bound by branch and bound; what takes more is of tier solver.", "SIZE"
    )


class GoalCells(TableGoals, Cells):
    """Limits of the work at a cell, and its goal."""


class _Run(Options):
    """Limits of all cells together."""

    total_time_limit_s: float | None = option(
        None, Seconds(),
        "Seconds for the whole run, from process start; cells that had no turn by then have no row.", "S",
        more="In Python: from the call.",
    )  # fmt: skip


class _Partitions(Options):
    """Partitions, and how good they have to be."""

    algorithm: str = option(AUTO, Text(ALGORITHMS), "Of the partitions, as in `mtpp partition`.")
    target_ratio: Fraction = option(1.0, Ratio(), "A cell is done when a ratio ≤ R is proven.", "R")


class _Places(_Run):
    """Where cells are worked at."""

    jobs: int | None = option(
        None, Whole(), "Cells at once, a process each [default: all cores]; not with ‹scheduler›.", also="-j"
    )
    store: str | None = option(
        None, OutputPath(beside=lambda path: [f"{path}{end}" for end in ("-journal", "-wal", "-shm")]),
        "Keep each row as soon as there is one; what is there already is not worked at again.", "FILE.db",
    )  # fmt: skip
    scheduler: str | None = option(None, Text(), "Of a Dask cluster to work on, such as tcp://host:8786.", "ADDRESS")


class Certifying(_Places, _Partitions, GoalCells):
    """Cells to be certified."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_algorithm(self.algorithm)


class Bounding(_Run, GoalCells):
    """Bounds to work at, each for itself, with an equal share of a cell's time."""

    bounds: tuple[str, ...] | None = option(
        None, Names(BOUNDS), f"Those to work at [default: all], of {_BOUNDS}.", "NAME,NAME,…"
    )
    export: str | None = option(
        None, OutputPath(),
        "Write the MIP of the one bound named, for one model and one k, as MPS or LP (FILE.lp), and stop.", "FILE.mps",
    )  # fmt: skip
    position: int | None = option(
        None, Whole(), "With ‹export› of bottleneck-guess, a MIP for each J: the stage that has the average work.", "J"
    )
    overlapping: bool = option(
        False, Flag(),
        "Bound the throughput of a chain of layers on devices with stage_times whose ranges of layers may overlap.",
    )  # fmt: skip
    cutoff: int | None = option(
        None, Whole(1, MOST_CUTOFF),
        "Look for no partition, and for no bound above TICKS, which need not be what any partition costs.", "TICKS",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.export is not None:
            self.refuse_goals("‹export›")
        if self.overlapping:
            self.refuse_goals("‹overlapping›")
