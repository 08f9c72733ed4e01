"""Terms of a verification: what the document is held to, what is searched again, and how models are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.cli.options.file_types import SYSTEM
from mtpp.cli.options.shared import input_limit, parse_dims, reading_of, stack, system_of
from mtpp.cli.terminal.clock import deadline_from_start
from mtpp.host.deadline import Deadline

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console

F = TypeVar("F", bound=Callable[..., Any])

_MODEL_SIZE, _DOCUMENT_SIZE = "2GiB", "256MiB"

_SYSTEM_KEYS = {
    "bandwidth": "bandwidth_bytes_per_s",
    "fast_memory": "fast_memory_bytes",
    "activation_reserve": "activation_reserve_bytes",
    "peak": "peak",
    "stage_memory": "stage_memory_bytes",
}
"""Option → key of a system that it overrides."""


def held_to_options() -> Callable[[F], F]:
    """Add what a document can be held to: without these options its system and sizes are its own choice."""
    return stack(
        click.option(
            "--system",
            type=SYSTEM,
            metavar="NAME|FILE",
            help="Preset or TOML file that it has to be for, with these overrides:",
        ),
        click.option("--bandwidth", metavar="RATE", help="The link between stages has to be that, such as 25GB/s."),
        click.option("--fast-memory", metavar="SIZE", help="The fast memory of a stage has to be that."),
        click.option("--activation-reserve", metavar="SIZE", help="The part of it kept for activations."),
        click.option("--peak", type=click.Choice(["reserve", "order"]), help="How activations have to be counted."),
        click.option("--stage-memory", metavar="SIZE", help="The limit on the memory of a stage has to be that."),
        click.option("--dim", "dims", multiple=True, metavar="NAME=VALUE", help="A dimension has to be that."),
    )


@dataclass(frozen=True)
class Terms:
    """Options of a run of ``verify``.

    Attributes
    ----------
    limit, document_limit
        On the bytes of a model, and of the document.
    trusted_size
        Whether the user set that limit, so that the memory which a document takes is not looked at.
    reading
        How to read it; see :func:`mtpp.cli.options.shared.reading_of`.
    console
        Where progress is shown.
    shallow
        Whether exhaustive searches are left out.
    costs_path
        File with the measured costs that a document was made with.
    system_due, dims_due
        What the user says of the system, by its keys, and of dimensions.
    deadline
        When work has to end.
    """

    limit: int
    document_limit: int
    trusted_size: bool
    reading: Mapping[str, Any]
    console: Console
    shallow: bool
    costs_path: str | None
    system_due: Mapping[str, Any]
    dims_due: Mapping[str, int]
    deadline: Deadline

    @classmethod
    def of(cls, options: dict[str, Any], console: Console) -> Terms:
        """Take them from the command line."""
        given = options["max_input_size"]
        return cls(
            input_limit(given or _MODEL_SIZE),
            input_limit(given or _DOCUMENT_SIZE),
            given is not None,
            reading_of(options),
            console,
            not options["deep"],
            options["costs"],
            _system_due(options),
            parse_dims(options["dims"]),
            deadline_from_start(options["time_limit"]),
        )


def _system_due(options: dict[str, Any]) -> dict[str, Any]:
    """Return what options say of a system, all of it with ``--system``."""
    given = [option for option in _SYSTEM_KEYS if options[option] is not None]
    if options["system"] is None and not given:
        return {}
    due = system_of(options).to_document()
    del due["name"]
    return (
        due if options["system"] is not None else {_SYSTEM_KEYS[option]: due[_SYSTEM_KEYS[option]] for option in given}
    )
