"""Training runs of ``mtpp run --engine torch``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console
    from mtpp.host.deadline import Deadline


def trained(
    ctx: click.Context,
    options: Mapping[str, Any],
    deadline: Deadline,
    console: Console,
    output: str | None,
    output_format: str,
) -> None:
    """Train the stages of a folder and print what came of it; exit code 1 if they do not train as the model does."""
    from mtpp.api.training.run_training import TrainingRequest, train_stages
    from mtpp.cli.terminal.delivery import deliver

    if options["model"] is None:
        raise click.UsageError("--engine torch trains a model: give --model FILE", ctx)
    asked = {name: options[name] for name in ("steps", "threads", "seed")}
    run = train_stages(TrainingRequest(Path(options["folder"]), Path(options["model"]), **asked), deadline, console)
    deliver(output, run, output_format)
    if not run.agrees:
        console.complain("the stages do not train as the unsplit model does")
        ctx.exit(1)
