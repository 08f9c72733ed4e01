"""Options of ``mtpp plan``, and the request that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.api.training.parameters import CHOICES, MOST_DEVICES, MOST_INTERVALS
from mtpp.cli.flags import flag_of
from mtpp.cli.options.file_types import TOPOLOGY
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.made import stack
from mtpp.cli.options.shared import FiniteRange
from mtpp.cli.options.values import parse_whole_numbers, whole_numbers
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.training.graph_task import GraphPlanRequest
    from mtpp.api.training.task import TrainingPlanRequest, TrainingSystem

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT = "default"
"""Value of ``--sweep`` without a list."""

SCHEMES = ("data_parallel", "tensor_parallel", "recompute")
"""Parameters that the options ``--no-data-parallel`` and so on are the opposites of."""

_MOST_MICRO_BATCHES = 10**9
_MOST_SAMPLES = 10**9


def planner_option() -> Callable[[F], F]:
    """Add ``--planner``."""
    return click.option(
        "--planner", type=click.Choice(CHOICES["planner"]), show_default=True, default=CHOICES["planner"][0],
        help="Any stages, the equal ones of two baselines, a graph of stages, or splits with a schedule.",
    )  # fmt: skip


def system_options() -> Callable[[F], F]:
    """Add what says which devices there are and how large a batch may be; see :class:`TrainingSystem`."""
    return stack(
        click.option("--devices", type=click.IntRange(1, MOST_DEVICES), metavar="K", help="Devices at most."),
        click.option("--memory", metavar="SIZE", help="Of each device, such as 8GiB; of pfeife: also one of each."),
        click.option("--bandwidth", metavar="RATE", help="Of each device's link, such as 25GiB/s or 25GiB/ms."),
        click.option(
            "--topology", type=TOPOLOGY, metavar="FILE.toml",
            help="In place of --devices and --bandwidth: networks within networks."
        ),
        click.option(
            "--max-micro-batches", type=click.IntRange(1, _MOST_MICRO_BATCHES), metavar="N",
            help="Degrees of data parallelism add up to at most N.",
        ),
        click.option(
            "--batch-size", type=click.IntRange(1), metavar="B",
            help="Largest safe batch, which gives N = ⌊B / (g · b)⌋; of graphpipe: samples of an iteration.",
        ),
        click.option(
            "--micro-batch-size", type=click.IntRange(1), metavar="b", help="Samples that the layers' times are of."
        ),
        click.option(
            "--gradient-accumulation", type=click.IntRange(1), metavar="g", help="Passes to an update [default: 1]."
        ),
        click.option("--exact-micro-batches", is_flag=True, help="Degrees of data parallelism add up to exactly N."),
    )  # fmt: skip


def rule_options() -> Callable[[F], F]:
    """Add what says which plans are allowed and what they cost."""
    return stack(
        click.option(
            "--convention", type=click.Choice(CHOICES["convention"]), show_default=True,
            default=CHOICES["convention"][0],
            help="Piper's paper, or its published program: gradients cost less, every d divides N.",
        ),
        click.option("--no-data-parallel", is_flag=True, help="Only d = 1."),
        click.option("--no-tensor-parallel", is_flag=True, help="Only t = 1."),
        click.option("--no-recompute", is_flag=True, help="No configurations that compute activations twice."),
    )  # fmt: skip


def graph_options() -> Callable[[F], F]:
    """Add what says which plans the planner graphpipe may make."""
    return stack(
        click.option(
            "--latency", metavar="TIME", help="Of graphpipe and pfeife: of each transfer, such as 10us [default: 0]."
        ),
        click.option(
            "--micro-batch-sizes", callback=whole_numbers(_MOST_SAMPLES), metavar="LIST",
            help="Of graphpipe: samples of micro-batches to try [default: all that a layer lists, or powers of two].",
        ),
        click.option(
            "--per-stage-micro-batch", is_flag=True, help="Of graphpipe: stages may differ in their micro-batches."
        ),
        click.option(
            "--kfkb", callback=whole_numbers(MOST_INTERVALS), metavar="LIST",
            help="Of graphpipe: numbers of forward and of backward passes in turn [default: 1].",
        ),
        click.option(
            "--in-flight", type=click.Choice(CHOICES["in_flight"]), show_default=True, default=CHOICES["in_flight"][0],
            help="Of graphpipe: any number of micro-batches, or the least by GraphPipe's rule, for free transfers.",
        ),
        click.option("--sequential", is_flag=True, help="Of graphpipe: one line of stages."),
    )  # fmt: skip


def run_options() -> Callable[[F], F]:
    """Add what bounds a planner."""
    return stack(
        click.option(
            "--knapsack", type=click.Choice(CHOICES["knapsack"]), show_default=True, default=CHOICES["knapsack"][0],
            help="Choose configurations of layers as well as possible, or by the paper's bang per buck.",
        ),
        click.option(
            "--time-limit", type=FiniteRange(min=0, min_open=True), metavar="S", help="From process start."
        ),
        click.option("-j", "--jobs", type=click.IntRange(min=1), help="Threads [default: all cores]."),
        memory_limit_option(),
    )  # fmt: skip


def sweep_options() -> Callable[[F], F]:
    """Add ``--sweep`` and ``--sums``, whose values are ascending numbers, or :data:`DEFAULT`."""
    return stack(
        click.option(
            "--sweep", is_flag=False, flag_value=DEFAULT, callback=_numbers, metavar="[LIST]",
            help="In place of a plan: best times for numbers of devices up to K, or for those listed, as 8,16,32-64.",
        ),
        click.option(
            "--sums", callback=_numbers, metavar="LIST", help="Of --sweep: sums of degrees [default: N and below]."
        ),
    )  # fmt: skip


def _numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> list[int] | str | None:
    """Read a list such as ``8,16,32-64`` of whole numbers above zero."""
    if text is None or (text == DEFAULT and param.name == "sweep"):
        return text
    return parse_whole_numbers(text, MOST_DEVICES, ", after MODEL" if param.name == "sweep" else "")


def training_request(model: str, options: Mapping[str, Any]) -> TrainingPlanRequest:
    """Return the request that all these options make; a limit counts from the start of the process."""
    from mtpp.api.training.graph_task import OWN, refuse_idle
    from mtpp.api.training.parameters import request_of
    from mtpp.cli.terminal.clock import deadline_from_start

    names = ("planner", "knapsack", "convention", "exact_micro_batches", "time_unit", "jobs")
    schemes = {name: not options[f"no_{name}"] for name in SCHEMES}
    try:
        refuse_idle({**{name: options[name] for name in OWN}, "kfkb": options["kfkb"] or (1,)}, OWN, options["planner"])
    except InputError as error:
        raise click.UsageError(error.told(flag_of)) from None
    parameters = {**{name: options[name] for name in names}, **schemes}
    return request_of(model, _system(options), deadline_from_start(options["time_limit"]), parameters)


def graph_request_of(model: str, options: Mapping[str, Any]) -> GraphPlanRequest:
    """Return the request that all these options make for the planner graphpipe.

    Raises
    ------
    click.UsageError
        If an option means nothing to it.
    """
    from mtpp.api.training.graph_task import IDLE, graph_request, refuse_idle
    from mtpp.api.training.parameters import system_parameters
    from mtpp.cli.terminal.clock import deadline_from_start

    given = {**options, **{name: not options[f"no_{name}"] for name in SCHEMES}, "kfkb": options["kfkb"] or (1,)}
    try:
        refuse_idle({name: given[name] for name in IDLE}, IDLE, options["planner"])
    except InputError as error:
        raise click.UsageError(error.told(flag_of)) from None
    if options["sweep"] is not None:
        raise InputError("the planner graphpipe has none", parameter="sweep", remedy="use ‹planner› piper")
    names = ("devices", "memory", "bandwidth")
    system = system_parameters(**{name: options[name] for name in names}, topology=None, micro_batches=None)
    return graph_request(model, system, deadline_from_start(options["time_limit"]), given)


def _system(options: Mapping[str, Any]) -> TrainingSystem:
    """Return what :func:`system_options` collected."""
    from mtpp.api.training.parameters import batch_parameters, system_parameters

    batch = ("max_micro_batches", "batch_size", "micro_batch_size", "gradient_accumulation")
    try:
        micro_batches = batch_parameters(*(options[name] for name in batch))
    except InputError as error:
        raise click.UsageError(error.told(flag_of)) from None
    names = ("devices", "memory", "bandwidth", "topology")
    for option in ("devices", "bandwidth"):
        if options["topology"] is not None and options[option] is not None:
            raise click.UsageError(f"--topology says what --{option} does: give one of them")
    return system_parameters(**{name: options[name] for name in names}, micro_batches=micro_batches)
