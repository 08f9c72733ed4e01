"""Options of commands, made from the records that declare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import click

from mtpp.api.options import kinds, path_kinds
from mtpp.api.options.option import REQUIRED, Option, Options, options_of
from mtpp.cli.flags import flag_of
from mtpp.cli.options.completing import list_completion, names_completion
from mtpp.cli.options.file_types import FileType
from mtpp.cli.options.sizes import size_options, sizes_of
from mtpp.cli.options.values import CoreList, FiniteRange, OneOf, StageCounts, counts, size, whole_numbers
from mtpp.errors import InputError, renamed
from mtpp.ranges import MOST_OPS

F = TypeVar("F", bound=Callable[..., Any])


def options(*records: type[Options], **said: str) -> Callable[[F], F]:
    """Add the options of *records*, in the order of their fields.

    The command gets a record for each of them, under its name in lower case.

    Parameters
    ----------
    said
        Help of single options, in place of the record's.
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def run(*arguments: Any, **values: Any) -> Any:
            for record in records:
                values[record.__name__.lower()] = checked(record, given(options_of(record), values))
            return command(*arguments, **values)

        return cast(
            F, stack(*(made(name, one, said) for record in records for name, one in options_of(record).items()))(run)
        )

    return decorate


def fields(record: type[Options], *names: str, **said: str) -> Callable[[F], F]:
    """Add the options of a record that have these names; the command gets the value of each."""
    chosen = {name: one for name, one in options_of(record).items() if name in names}

    def decorate(command: F) -> F:
        @wraps(command)
        def run(*arguments: Any, **values: Any) -> Any:
            read = checked(record, given(chosen, values))
            return command(*arguments, **values, **{name: getattr(read, name) for name in names})

        return cast(F, stack(*(made(name, one, said) for name, one in chosen.items()))(run))

    return decorate


def checked(record: type[Options], values: Mapping[str, Any]) -> Options:
    """Return a record; of values that do not go together the command line is told as of wrong usage."""
    try:
        return record(**values)
    except InputError as error:
        if error.source is None:
            raise click.UsageError(error.told(flag_of)) from None
        raise


def given(chosen: Mapping[str, Option], values: dict[str, Any]) -> dict[str, Any]:
    """Take the values of options out of those of a command; without what was left open."""
    found = {}
    for name, one in chosen.items():
        if isinstance(one.kind, kinds.Sizes):
            found[name] = sizes_of({part: values.pop(part) for part in ("dims", "auto_dims", "trips")}) or None
        else:
            found[name] = values.pop(name)
    return {name: value for name, value in found.items() if value is not None}


def stack(*decorators: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator that adds several options, in the order in which the help lists them."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def made(name: str, one: Option, said: Mapping[str, str] | None = None) -> Callable[[Any], Any]:
    """Return the decorator that adds an option of a record to a command; *said* is help in place of its own."""
    help = renamed((said or {}).get(name, one.help), flag_of)
    if isinstance(one.kind, kinds.Sizes):
        return size_options(help, renamed(one.kind.proposed, flag_of))
    if isinstance(one.kind, kinds.Flag) and one.kind.opposite:
        both = f"--{one.kind.opposite}/{flag_of(name)}"
        return click.option(both, name, default=True, show_default=True, callback=_opposite, help=help)
    flags = sorted(filter(None, (one.also, flag_of(name))), key=len)
    return click.option(*flags, name, help=help, metavar=one.metavar, **_terms(one))


def single(name: str, kind: kinds.Kind, help: str, metavar: str | None = None) -> Callable[[F], F]:
    """Add an option that a command has to itself; it gets the value, or None."""
    return made(name, Option(None, kind, help, metavar))


def _terms(one: Option) -> dict[str, Any]:
    """Return what click needs to know of an option's values and its default."""
    kind, default = one.kind, one.default
    if isinstance(kind, kinds.Flag):
        return {"is_flag": True, "callback": _opposite} if default else {"is_flag": True}
    if isinstance(kind, kinds.MemoryLimit):
        return {"callback": _limit_memory}
    if isinstance(kind, kinds.Wholes):
        return {"callback": whole_numbers(kind.most)}
    if isinstance(kind, kinds.Groups | kinds.Pairs):
        return {"multiple": True}
    if isinstance(kind, kinds.Repeated):
        return {"multiple": True, **_terms(replace(one, kind=kind.one, default=one.default or None))}
    if isinstance(kind, kinds.Counts):
        return {"callback": counts}
    if isinstance(kind, kinds.Cores):
        return {"type": CoreList(), "is_flag": False, "flag_value": "all"}
    if isinstance(kind, kinds.Size):
        text = "-".join(map(str, default)) if isinstance(default, tuple) else str(default)
        return {"callback": size(kind.least, MOST_OPS), "default": text, "show_default": True}
    if default is REQUIRED:
        terms: dict[str, Any] = {"required": True}
    else:
        terms = {"show_default": one.shown} if default is None else {"default": default, "show_default": True}
    if isinstance(kind, kinds.StageCounts):
        return terms | {"type": StageCounts()}
    if isinstance(kind, kinds.Names):
        return terms | {"shell_complete": list_completion(kind.names())}
    if isinstance(kind, kinds.Seconds):
        return terms | {"type": FiniteRange(min=0, min_open=True)}
    if isinstance(kind, kinds.Whole):
        return terms | {"type": click.IntRange(kind.least, kind.most)}
    if isinstance(kind, kinds.Ratio):
        return terms | {"type": FiniteRange(min=1)}
    if isinstance(kind, path_kinds.InputPath | path_kinds.OutputPath):
        return terms | {"type": FileType(kind)}
    if isinstance(kind, kinds.Choice) and one.metavar is None:
        return terms | {"type": OneOf(kind.known)}
    return terms | {"shell_complete": names_completion(kind.names)}


def _limit_memory(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Hold the process to a limit on memory from here on."""
    from mtpp.host.memory_limit import memory_limited

    if text is not None and not ctx.resilient_parsing:
        ctx.with_resource(memory_limited(kinds.MemoryLimit(processes=True).read(text, str(param.name))))
    return text


def _opposite(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    return not value
