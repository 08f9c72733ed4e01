"""Options of the commands that work at the cells of a table of certificates, and the limits they turn into."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from mtpp.cli.options.completing import list_completion
from mtpp.cli.options.file_types import STORE
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.made import stack
from mtpp.cli.options.stage_counts import StageCounts
from mtpp.cli.options.values import FiniteRange
from mtpp.names import BOUNDS

if TYPE_CHECKING:
    from mtpp.api.cells.limits import CellLimits

F = TypeVar("F", bound=Callable[..., Any])


class CellOptions(TypedDict):
    """Values of :func:`cell_options`."""

    stage_counts: tuple[int, ...]
    bounds: str | None
    time_limit: float
    seed: int
    memory_limit: str | None
    proof_limit: str
    shown_as: str


class RunOptions(TypedDict):
    """Values of :func:`run_options`."""

    total_time_limit: float | None
    jobs: int | None
    store: str | None
    scheduler: str | None


def cell_options(*, bounds: str) -> Callable[[F], F]:
    """Add ``-k`` and what bounds the work at a cell; *bounds* is the help of ``--bounds``, before their names."""
    options = (
        click.option(
            "-k", "--stages", "stage_counts", type=StageCounts(), required=True, metavar="K,K,…",
            help="Numbers of stages, such as 2,4,8: a cell for each model and each of them.",
        ),
        click.option(
            "--bounds", metavar="NAME,NAME,…", shell_complete=list_completion(BOUNDS),
            help=f"{bounds} {', '.join(BOUNDS)}.",
        ),
        click.option(
            "--time-limit", type=FiniteRange(min=0, min_open=True), default=60.0, show_default=True, metavar="S",
            help="Seconds for each cell, reading its model included.",
        ),
        click.option(
            "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of all random choices."
        ),
        memory_limit_option("; by default the exhaustive searches of all cells at once may take half of what is free"),
        click.option(
            "--proof-limit", default="8MB", show_default=True, metavar="SIZE",
            help="Of the proof of a bound by branch and bound; what takes more is of tier solver.",
        ),
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


def cell_limits(
    options: CellOptions,
    *,
    each: bool = False,
    target_ratio: float = 1.0,
    algorithm: str = "auto",
    proofs_only: bool = False,
    cutoff: int | None = None,
) -> CellLimits:
    """Return the limits of every cell: what :func:`cell_options` collected, and what only one of the commands has.

    Raises
    ------
    InputError
        If an option names what there is not.
    """
    from mtpp.api.cells.limits import CellLimits, bound_names
    from mtpp.api.cells.parameters import algorithm_of
    from mtpp.cli.options.values import bytes_option

    proof_bytes = bytes_option("--proof-limit", options["proof_limit"])
    assert proof_bytes is not None
    return CellLimits(
        time_limit_s=options["time_limit"],
        target_ratio=Fraction(repr(target_ratio)),
        bounds=bound_names(listed(options["bounds"]), every=each),
        algorithm=algorithm_of(algorithm),
        seed=options["seed"],
        memory_bytes=bytes_option("--memory-limit", options["memory_limit"]),
        proof_bytes=proof_bytes,
        each=each,
        proofs_only=proofs_only,
        cutoff=cutoff,
    )


def listed(text: str | None) -> list[str] | None:
    """Read names with commas between them; None if there is no text."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
