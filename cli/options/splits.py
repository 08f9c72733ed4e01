"""Options of ``mtpp plan --planner pfeife``, and the request that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.api.training.emit_plan import FORMS
from mtpp.api.training.parameters import CHOICES
from mtpp.cli.flags import flag_of
from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.file_types import COSTS, SCHEDULE
from mtpp.cli.options.made import stack
from mtpp.cli.options.sizes import size_options, sizes_of
from mtpp.cli.options.training import SCHEMES
from mtpp.cli.options.values import whole_numbers
from mtpp.errors import InputError
from mtpp.names import FORMATS_READ
from mtpp.wording import one_of

if TYPE_CHECKING:
    from mtpp.api.training.split_task import SplitPlanRequest

F = TypeVar("F", bound=Callable[..., Any])

_MOST_LOOPS = 1_000
_MOST_MICRO_BATCHES = 10**6

_OF_THE_COMMAND = ("emit", "from_format")
"""Options that are no parameters of the planner."""


def split_options() -> Callable[[F], F]:
    """Add what says which splits and schedules the planner pfeife may make."""
    return stack(
        click.option(
            "--micro-batches", type=click.IntRange(1, _MOST_MICRO_BATCHES), metavar="B",
            help="Of pfeife: micro-batches of an iteration.",
        ),
        click.option(
            "--loops", callback=whole_numbers(_MOST_LOOPS), metavar="LIST",
            help="Of pfeife: numbers of stages of a device to try [default: 1,2,3].",
        ),
        click.option(
            "--loop-batch", type=click.Choice(CHOICES["loop_batch"]), show_default=True,
            default=CHOICES["loop_batch"][0],
            help="Of pfeife: micro-batches of a loop, divisors of B or any number, from K on.",
        ),
        click.option(
            "--prefetch", callback=_counts, metavar="LIST",
            help="Of pfeife: forward passes that each device prefetches, as 2,1,0 [default: the best].",
        ),
        click.option(
            "--schedule", type=SCHEDULE, metavar="NAME|FILE",
            help="Of pfeife: gpipe, 1f1b, interleaved, bfs, zero-bubble, or passes in JSON or CSV.",
        ),
        click.option(
            "--backward-ratio", metavar="X",
            help="Of pfeife: backward / forward pass where the model does not say [default: 2].",
        ),
        click.option(
            "--state", metavar="X", help="Of pfeife: bytes held for each byte of trained parameters [default: 4]."
        ),
        click.option("--speed", metavar="LIST", help="Of pfeife: of all devices or of each, as 1,1,0.5 [default: 1]."),
        click.option(
            "--transport", type=click.Choice(CHOICES["transport"]), show_default=True, default=CHOICES["transport"][0],
            help="Of pfeife: tensors go through all stages in between, or straight to their readers.",
        ),
        click.option(
            "--order", type=click.Choice(CHOICES["order"]), show_default=True, default=CHOICES["order"][0],
            help="Of pfeife: cut the ops in the file's order, or search for a better one.",
        ),
        click.option(
            "--search", type=click.Choice(CHOICES["search"]), show_default=True, default=CHOICES["search"][0],
            help="Of pfeife: annealing, or the paper's beam search.",
        ),
        click.option(
            "--buffers", type=click.Choice(CHOICES["buffers"]), show_default=True, default=CHOICES["buffers"][0],
            help="Of pfeife: room for received tensors of micro-batches in flight, or of all, as PyTorch's engine has.",
        ),
        size_options(
            "Of pfeife: set a size that an ONNX model or a PyTorch program leaves open; '*=1': all others.",
            "Of pfeife: propose the sizes that are left open, and say which.",
        ),
        click.option(
            "--from", "from_format", metavar="FORMAT", shell_complete=names_completion(FORMATS_READ),
            help=f"Of pfeife: read MODEL, a graph, as {one_of(FORMATS_READ)}; see `mtpp partition`.",
        ),
        click.option(
            "--costs", type=COSTS, metavar="FILE",
            help="Of pfeife: measured times of the ops (mtpp profile), backward passes too if it has them.",
        ),
        click.option(
            "--emit", type=click.Choice(FORMS),
            help="Of pfeife, graphpipe: write plan, schedule and stages for PyTorch's pipelining; -o is a folder.",
        ),
        click.option("--force", is_flag=True, help="Of --emit: replace what an earlier run wrote there."),
    )  # fmt: skip


def _counts(ctx: click.Context, param: click.Parameter, text: str | None) -> list[int] | None:
    """Read a list such as ``2,1,0``, in the order in which it is written."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) < 8 for word in words):
        raise click.BadParameter(f"{text!r} is no list of whole numbers, one for each device: write 2,1,0", ctx, param)
    return [int(word) for word in words]


def split_request_of(model: str, options: Mapping[str, Any]) -> SplitPlanRequest:
    """Return the request that all options make for the planner pfeife.

    Raises
    ------
    click.UsageError
        If an option means nothing to it.
    """
    from mtpp.api.training.graph_task import refuse_idle
    from mtpp.api.training.split_task import IDLE, split_request
    from mtpp.cli.terminal.clock import deadline_from_start

    given = {**options, **{name: not options[f"no_{name}"] for name in SCHEMES}, "kfkb": options["kfkb"] or (1,)}
    try:
        refuse_idle({name: given[name] for name in IDLE}, IDLE, options["planner"])
    except InputError as error:
        raise click.UsageError(error.told(flag_of)) from None
    if options["sweep"] is not None:
        raise InputError("the planner pfeife has none", parameter="sweep", remedy="use ‹planner› piper")
    given["dims"] = sizes_of(options) or None
    request = split_request(model, deadline_from_start(options["time_limit"]), given)
    return replace(request, from_format=options["from_format"])


def refuse_split_options(options: Mapping[str, Any]) -> None:
    """Raise click.UsageError if an option was given that means something to the planner pfeife alone."""
    from mtpp.api.training.graph_task import refuse_idle
    from mtpp.api.training.split_task import OWN

    given = {**{name: options[name] for name in OWN}, "dims": sizes_of(options) or None}
    given |= {name: options[name] for name in _OF_THE_COMMAND}
    try:
        refuse_idle(given, {**OWN, **dict.fromkeys(_OF_THE_COMMAND)}, options["planner"])
    except InputError as error:
        raise click.UsageError(error.told(flag_of)) from None
