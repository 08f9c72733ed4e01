"""Options of ``mtpp plan``: those of all planners, each once, and what each of them takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import click

from mtpp.api.options.kinds import Choice, Flag, Module, Repeated, Sizes, Wholes
from mtpp.api.options.machine import Devices
from mtpp.api.options.option import Option, Options, option, options_of
from mtpp.api.options.planners import PLANNERS, GraphPipe, LinePlanner, Pfeife, Piper, TrainingPlanner
from mtpp.cli.flags import flag_of
from mtpp.cli.options.made import checked, given, made, stack
from mtpp.cli.options.sizes import size_options
from mtpp.cli.options.values import parse_whole_numbers
from mtpp.errors import InputError
from mtpp.names import FORMS, PFEIFE
from mtpp.ranges import MOST_DEVICES

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT = "default"
"""Value of ``--sweep`` without a list."""


class Swept(NamedTuple):
    """Values of ``--sweep`` and ``--sums``: ascending numbers, or :data:`DEFAULT`."""

    devices: list[int] | str | None
    sums: list[int] | None


class Emitted(Options):
    """Files for another program."""

    form: str | None = option(
        None, Choice(FORMS),
        "Of pfeife, graphpipe: write plan, schedule and stages for PyTorch's pipelining; -o is a folder.",
    )  # fmt: skip
    force: bool = option(False, Flag(), "Of --emit: replace what an earlier run wrote there.")
    imports: tuple[str, ...] = option(
        (), Repeated(Module()),
        "Of --emit: a Python module that registers operators of MODEL; the files name it for `mtpp run` (repeatable).",
        "MODULE",
    )  # fmt: skip


def planner_options() -> Callable[[F], F]:
    """Add the options of all planners, ``--emit``, ``--sweep`` and what belongs to them.

    The command gets a ``planner`` with its options, ``emitted`` and ``swept``.
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def run(*arguments: Any, devices: Devices, sweep: Any, sums: Any, **values: Any) -> Any:
            emitted = cast("Emitted", checked(Emitted, given(options_of(Emitted), values)))
            planner = _planner_of(values, devices.topology, emitted.form)
            if sweep is not None and not isinstance(planner, LinePlanner):
                raise InputError(
                    f"the planner {planner.name} has none", parameter="sweep", remedy="use ‹planner› piper"
                )
            asked = {"planner": planner, "devices": devices, "swept": Swept(sweep, sums), "emitted": emitted}
            return command(*arguments, **asked, **values)

        return cast(F, stack(*_decorators())(run))

    return decorate


def knapsack_option() -> Callable[[F], F]:
    """Add ``--knapsack`` of the planner piper, below :func:`planner_options`, which takes it."""
    return made("knapsack", options_of(Piper)["knapsack"])


def _decorators() -> list[Callable[[Any], Any]]:
    every = {**options_of(Pfeife), **options_of(GraphPipe), **options_of(LinePlanner)}
    names = dict.fromkeys(name for planner in (LinePlanner, GraphPipe, Pfeife) for name in options_of(planner))
    return [
        *(_made(name, every[name]) for name in names),
        *(made(name, one) for name, one in options_of(Emitted).items()),
        click.option(
            "--sweep", is_flag=False, flag_value=DEFAULT, callback=_numbers, metavar="[LIST]",
            help="In place of a plan: best times for numbers of devices up to K, or for those listed, as 8,16,32-64.",
        ),
        made("sums", Option(None, Wholes(MOST_DEVICES), "Of --sweep: sums of degrees [default: N and below].", "LIST")),
    ]  # fmt: skip


def _made(name: str, one: Option) -> Callable[[Any], Any]:
    """Return the decorator of an option, whose help says which planners have it; those of lines are not named."""
    if isinstance(one.kind, Sizes):
        return size_options(_of([PFEIFE], one.help), _of([PFEIFE], one.kind.proposed))
    texts: dict[str, list[str]] = {}
    for planner in (GraphPipe, Pfeife):
        if name in options_of(planner):
            texts.setdefault(options_of(planner)[name].help, []).append(planner.name)
    if name not in options_of(LinePlanner):
        return made(name, one, {name: _of(texts[one.help], one.help)})
    others = [_in_sentence(_of(planners, text)) for text, planners in texts.items() if text != one.help]
    return made(name, one, {name: "; ".join([one.help.rstrip("."), *others])} if others else {})


def _of(planners: Sequence[str], text: str) -> str:
    return f"Of {' and '.join(planners)}: {_in_sentence(text)}"


def _in_sentence(text: str) -> str:
    return text[0].lower() + text[1:]


def _planner_of(values: dict[str, Any], topology: object, form: str | None) -> TrainingPlanner[Any]:
    """Take the options of planners out of the values of a command, and make the planner that is asked for."""
    kind = PLANNERS[values.pop("planner")]
    every = {**options_of(Pfeife), **options_of(GraphPipe), **options_of(Piper)}
    asked = {name: value for name, value in given(every, values).items() if value != every[name].default}
    own = {*options_of(kind), "topology" if issubclass(kind, LinePlanner) else "form"}
    for name, value in {**asked, "form": form, "topology": topology}.items():
        if value is not None and name not in own:
            error = InputError(f"has no effect on the planner {kind.name}", parameter=name, remedy="leave it out")
            raise click.UsageError(error.told(flag_of))
    return cast("TrainingPlanner[Any]", checked(kind, asked))


def _numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> list[int] | str | None:
    """Read a list such as ``8,16,32-64`` of whole numbers above zero."""
    return text if text in (None, DEFAULT) else parse_whole_numbers(str(text), MOST_DEVICES, ", after MODEL")
