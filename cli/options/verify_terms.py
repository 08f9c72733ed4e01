"""Options of ``mtpp verify`` that hold a result to values, and the request that its options make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from mtpp.api.options.reading import Formats, Machine
from mtpp.cli.options.file_types import COSTS
from mtpp.cli.options.made import options, stack
from mtpp.cli.options.sizes import size_options, sizes_of
from mtpp.cli.options.values import FiniteRange, input_limit
from mtpp.cli.terminal.clock import deadline_from_start

if TYPE_CHECKING:
    from mtpp.api.verification.request import VerifyRequest

F = TypeVar("F", bound=Callable[..., Any])

_SYSTEM_KEYS = {
    "bandwidth": "bandwidth_bytes_per_s",
    "fast_memory": "fast_memory_bytes",
    "activation_reserve": "activation_reserve_bytes",
    "peak": "peak",
    "stage_memory": "stage_memory_bytes",
}
"""Option → key of a system that it overrides."""


class VerifyOptions(TypedDict):
    """Values of the options of ``mtpp verify``, but for those that decide on its exit code and output."""

    machine: Machine
    formats: Formats
    dims: tuple[str, ...]
    auto_dims: str | None
    trips: tuple[str, ...]
    costs: str | None
    deep: bool
    max_input_size: str | None
    memory_limit: str | None
    time_limit: float | None


def checking_options() -> Callable[[F], F]:
    """Add ``--costs``, ``--deep/--shallow`` and ``--time-limit``: what is checked, and for how long."""
    return stack(
        click.option(
            "--costs", type=COSTS, metavar="FILE", help="Measured times of the ops, if it was made with them."
        ),
        click.option(
            "--deep/--shallow",
            default=True,
            show_default=True,
            help="Run exhaustive searches again, or leave them out.",
        ),
        click.option(
            "--time-limit",
            type=FiniteRange(min=0, min_open=True),
            metavar="S",
            help="Seconds from the start of the process; what is not checked by then is unchecked.",
        ),
    )


def result_size_option() -> Callable[[F], F]:
    """Add ``--max-input-size``."""
    return click.option(
        "--max-input-size",
        metavar="SIZE",
        show_default="2GiB for models, 256MiB for FILE",
        help="Refuse larger inputs.",
    )


def held_to_options() -> Callable[[F], F]:
    """Add what a document can be held to: without these options its system and sizes are its own choice."""
    return stack(
        options(
            Machine,
            system="Preset or TOML file that it has to be for, with these overrides:",
            bandwidth="The link between stages has to be that, such as 25GB/s.",
            fast_memory="The fast memory of a stage has to be that.",
            activation_reserve="The part of it kept for activations.",
            peak="How activations have to be counted.",
            stage_memory="The limit on the memory of a stage has to be that.",
        ),
        size_options(
            "A dimension has to be that; '*=1': all others.", "All others have to be what is proposed for the model."
        ),
    )


def verify_request(result: str, models: Sequence[str], asked: VerifyOptions) -> VerifyRequest:
    """Return what the options of ``mtpp verify`` ask for."""
    from mtpp.api.verification.request import VerifyRequest

    request = VerifyRequest(
        result,
        tuple(models),
        deadline_from_start(asked["time_limit"]),
        shallow=not asked["deep"],
        costs=asked["costs"],
        read_as=asked["formats"],
        system_due=_system_due(asked["machine"]),
        dims_due=sizes_of(asked),
    )
    if asked["max_input_size"] is None:
        return request
    largest = input_limit(asked["max_input_size"])
    return replace(request, max_model_bytes=largest, max_result_bytes=largest, trusted_size=True)


def _system_due(machine: Machine) -> dict[str, Any]:
    """Return what options say of a system, all of it with ``--system``."""
    from mtpp.api.verify import system_values

    due = system_values(machine.machine)
    overridden = [key for option, key in _SYSTEM_KEYS.items() if getattr(machine, option) is not None]
    return due if machine.system is not None else {key: due[key] for key in overridden}
