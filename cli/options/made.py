"""Options of commands, made from the records that declare them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import click

from mtpp.api.options import kinds
from mtpp.api.options.option import Option, Options, options_of
from mtpp.cli.flags import flag_of
from mtpp.cli.options.completing import names_completion
from mtpp.cli.options.file_types import InputFile
from mtpp.cli.options.sizes import size_options, sizes_of

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
                values[record.__name__.lower()] = record_of(record, values)
            return command(*arguments, **values)

        decorators = [one for record in records for one in _decorators(record, said)]
        return cast(F, stack(*decorators)(run))

    return decorate


def record_of(record: type[Options], values: dict[str, Any]) -> Options:
    """Take the values of a record's options out of those of a command, and make the record.

    Raises
    ------
    InputError
        If a value is wrong; the error names the parameter.
    """
    fields = {}
    for name, _, one in options_of(record):
        if isinstance(one.kind, kinds.Sizes):
            fields[name] = sizes_of({part: values.pop(part) for part in ("dims", "auto_dims", "trips")})
        else:
            fields[name] = values.pop(name)
    return record(**fields)


def stack(*decorators: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator that adds several options, in the order in which the help lists them."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def _decorators(record: type[Options], said: Mapping[str, str]) -> Iterator[Callable[[Any], Any]]:
    for name, default, one in options_of(record):
        help = said.get(name, one.help)
        if isinstance(one.kind, kinds.Sizes):
            yield size_options(help, one.kind.proposed)
        else:
            yield made(name, default, one, help)


def made(name: str, default: Any, one: Option, help: str) -> Callable[[Any], Any]:
    """Return the decorator that adds an option of a record to a command."""
    flags = [flag_of(name)] if one.short is None else [one.short, flag_of(name)]
    return click.option(*flags, name, help=help, metavar=one.metavar, **_terms(one, default))


def _terms(one: Option, default: Any) -> dict[str, Any]:
    """Return what click needs to know of an option's values and its default."""
    kind = one.kind
    if isinstance(kind, kinds.Flag):
        return {"is_flag": True, "callback": _opposite} if default else {"is_flag": True}
    terms: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    if isinstance(kind, kinds.Whole):
        return terms | {"type": click.IntRange(kind.least, kind.most)}
    if isinstance(kind, kinds.InputPath):
        return terms | {"type": InputFile(kind.noun, folder=kind.folder, names=kind.names)}
    if isinstance(kind, kinds.Choice) and one.metavar is None:
        return terms | {"type": click.Choice(kind.known)}
    return terms | {"shell_complete": names_completion(kind.names)}


def _opposite(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    return not value
