"""Options of ``mtpp run``: of pipelines that infer, and of those that train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mtpp.cli.options.file_types import INPUTS
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.pinning import Cores
from mtpp.cli.options.values import FiniteRange

TORCH = "torch"

INFERRING = ("batches", "warmup", "queue_depth", "optimise", "pin", "inputs")
"""Options of pipelines that infer."""

TRAINING = ("steps",)
"""Options of pipelines that train."""

_FLAGS = {"queue_depth": "--queue-depth"}


def inference_options() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the terms of a pipeline that infers."""
    return _all_of(
        click.option("--batches", type=click.IntRange(1, 10**7), default=200, show_default=True, help="To be timed."),
        click.option(
            "--warmup", type=click.IntRange(0, 10**6), default=10, show_default=True, help="Batches before those."
        ),
        click.option(
            "--pin", type=Cores(), is_flag=False, flag_value="all", metavar="[CORE,…]",
            help="Keep each worker to a core of its own, of these or of all [default: leave that to the system].",
        ),
        click.option(
            "--queue-depth", type=click.IntRange(1, 1000), default=2, show_default=True,
            help="Batches that may wait between two stages.",
        ),
        click.option(
            "--inputs", type=INPUTS, metavar="FILE.npz", help="Contents of the inputs by name [default: random]."
        ),
        click.option(
            "--optimise", is_flag=True, help="Let ONNX Runtime fuse ops [default: as `mtpp profile` measures them]."
        ),
    )  # fmt: skip


def training_options() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the terms of a pipeline that trains."""
    return _all_of(
        click.option(
            "--engine", type=click.Choice([TORCH]),
            help="Train the plan in FOLDER, which `mtpp plan --emit torch-pipelining` wrote, with PyTorch.",
        ),
        click.option(
            "--steps", type=click.IntRange(1, 10**6), default=5, show_default=True, help="Of training with --engine."
        ),
    )  # fmt: skip


def common_options() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add what both take."""
    return _all_of(
        click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="Of each worker."),
        click.option(
            "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of made-up values."
        ),
        click.option("--time-limit", type=FiniteRange(min=0, min_open=True), metavar="S", help="End the run then."),
        memory_limit_option(),
    )


def refuse_idle(ctx: click.Context, engine: str | None) -> None:
    """Refuse options that have no effect with the engine.

    Raises
    ------
    click.UsageError
        If one was given.
    """
    for name in TRAINING if engine is None else INFERRING:
        if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            flag = _FLAGS.get(name, f"--{name}")
            if engine is None:
                raise click.UsageError(f"{flag} goes with --engine {TORCH}", ctx)
            raise click.UsageError(f"{flag} has no effect with --engine {engine}: leave it out", ctx)


def _all_of(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add
