"""Options that several commands share, and the objects they turn into."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.file_types import COSTS, SYSTEM
from mtpp.cli.options.limits import memory_limit_option
from mtpp.cli.options.sizes import SizeOptions, size_options, sizes_of
from mtpp.cli.options.values import input_limit
from mtpp.names import FORMATS_READ, TIME_UNITS
from mtpp.wording import one_of

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model, Reading, Source, System

F = TypeVar("F", bound=Callable[..., Any])


class NoiseOptions(TypedDict):
    """Values of :func:`noise_options`, which are among those of :func:`output_options`."""

    quiet: bool
    verbose: bool


class ReadingOptions(TypedDict):
    """Values of :func:`reading_options`, as :func:`mtpp.formats.graphs.recognise.read_graph` takes them."""

    from_format: str | None
    time_unit: str | None
    backward: bool
    loading_time: bool


class SystemOptions(TypedDict):
    """Values of ``--system`` and of its overrides."""

    system: str | None
    bandwidth: str | None
    fast_memory: str | None
    activation_reserve: str | None
    peak: str | None
    stage_memory: str | None


class ModelOptions(SystemOptions, ReadingOptions, SizeOptions):
    """Values of :func:`model_options`."""

    costs: str | None
    max_input_size: str


class SearchOptions(ModelOptions, NoiseOptions):
    """Values of :func:`search_options`, for commands that read models."""

    time_limit: float | None
    work_limit: int | None
    seed: int
    jobs: int | None
    memory_limit: str | None


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN, which every comparison lets through, and without infinity."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number or fail."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


def stack(*decorators: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator that adds several options, in the order in which the help lists them."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def output_options(*formats: str) -> Callable[[F], F]:
    """Add ``--format``, ``-q``, ``-v`` and ``--debug``."""
    return stack(
        click.option(
            "--format", "output_format", type=click.Choice(formats), default=formats[0], show_default=True,
            help="What to print on standard output.",
        ),
        noise_options(),
    )  # fmt: skip


def noise_options() -> Callable[[F], F]:
    """Add ``-q``, ``-v`` and ``--debug``."""
    return stack(
        click.option("-q", "--quiet", is_flag=True, help="No progress and no warnings on standard error."),
        click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is being done."),
        click.option("--debug", is_flag=True, expose_value=False, help="Show a traceback when something fails."),
    )


def model_options() -> Callable[[F], F]:
    """Add what says how to read a model and what it runs on: see :class:`ModelOptions`."""
    return stack(
        click.option(
            "--system",
            type=SYSTEM,
            default=None,
            metavar="NAME|FILE",
            help="Preset or TOML file [default: reference].",
        ),
        click.option("--bandwidth", metavar="RATE", help="Of the link between stages, such as 25GB/s."),
        click.option("--fast-memory", metavar="SIZE", help="Of one stage, such as 24MiB; what exceeds it is streamed."),
        click.option("--activation-reserve", metavar="SIZE", help="Part of the memory kept for activations."),
        click.option(
            "--peak",
            type=click.Choice(["reserve", "order"]),
            help="Activations of a stage: the reserve, or as its ops run in the file's order [default: reserve].",
        ),
        click.option("--stage-memory", metavar="SIZE", help="No stage may need more for parameters and activations."),
        click.option(
            "--costs",
            type=COSTS,
            metavar="FILE",
            help="Measured times of the ops: of `mtpp profile`, or ONNX Runtime's profile.",
        ),
        size_options(
            "Set a size that the model leaves open (ONNX, PyTorch); '*=1': all others.",
            "Propose the sizes that are left open, and say which.",
        ),
        reading_options(),
        click.option(
            "--max-input-size", default="2GiB", show_default=True, metavar="SIZE", help="Refuse larger inputs."
        ),
    )


def reading_options() -> Callable[[F], F]:
    """Add what decides on the format and about things that some formats leave open; see :func:`reading_of`."""
    return stack(
        click.option(
            "--from",
            "from_format",
            metavar="FORMAT",
            shell_complete=names_completion(FORMATS_READ),
            help=f"Read as {one_of(FORMATS_READ)}. torch: MODEL is package.module:function, which is imported and "
            "called; it returns a PyTorch module and its args.",
        ),
        click.option(
            "--time-unit",
            metavar="UNIT",
            shell_complete=names_completion(TIME_UNITS),
            help=f"Of times in a file that names none: {one_of(TIME_UNITS)}.",
        ),
        click.option(
            "--backward", is_flag=True, help="Count the backward pass, where a file tells it from the forward pass."
        ),
        click.option("--loading-time", is_flag=True, help="Count the loading of data in a PipeDream profile."),
    )


def reading_of(options: ReadingOptions) -> ReadingOptions:
    """Return the values of :func:`reading_options` alone."""
    return {
        "from_format": options["from_format"],
        "time_unit": options["time_unit"],
        "backward": options["backward"],
        "loading_time": options["loading_time"],
    }


def search_options(*, time_limit: str) -> Callable[[F], F]:
    """Add what bounds a search; *time_limit* says in the help what the seconds are counted from."""
    return stack(
        click.option("--time-limit", type=FiniteRange(min=0, min_open=True), metavar="S", help=time_limit),
        click.option("--work-limit", type=click.IntRange(min=1), metavar="N", help="Evaluate at most N candidates."),
        click.option(
            "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of all random choices."
        ),
        click.option(
            "-j", "--jobs", type=click.IntRange(min=1),
            help="Threads [default: all cores]; without --time-limit they never change the result.",
        ),
        memory_limit_option("; by default an exhaustive search may take half of what is free"),
    )  # fmt: skip


def read_model(
    path: str,
    options: ModelOptions,
    warn: Callable[[str], None],
    *,
    source: Source | None = None,
    spare_dims: bool = False,
    assignment: str | None = None,
) -> Model:
    """Read the model at *path* with what :func:`model_options` collected; see :mod:`mtpp.api.inputs.model`."""
    from mtpp.api.inputs.model import read_model

    how = reading_of_model(options)
    return read_model(path, how, warn, source=source, spare_dims=spare_dims, assignment=assignment)


def reading_of_model(options: ModelOptions) -> Reading:
    """Return what :func:`model_options` collected."""
    from mtpp.api.inputs.model import Reading

    return Reading(
        system_of(options),
        sizes_of(options),
        costs=options["costs"],
        max_input_bytes=input_limit(options["max_input_size"]),
        bandwidth_given=bool(options["bandwidth"]),
        **reading_of(options),
    )


def system_of(options: SystemOptions) -> System:
    """Return the system that ``--system`` and its overrides describe."""
    from mtpp.api.inputs.reading import system_from

    return system_from(
        options["system"],
        bandwidth=options["bandwidth"],
        fast_memory=options["fast_memory"],
        activation_reserve=options["activation_reserve"],
        peak=options["peak"],
        stage_memory=options["stage_memory"],
    )
