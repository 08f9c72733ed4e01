"""Options as fields of frozen records: type, kind, default and text of each, said once for Python and for a shell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, field, fields
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.api.options.kinds import Kind

_KEY = "option"


class Option:
    """What a field says besides its type and its default.

    Parameters
    ----------
    kind
        Reads values, and says what a shell has for them.
    help
        Sentence that a shell shows.
    metavar
        Value in a shell's help.
    short
        Another flag, of one letter.
    more
        Sentences that the reference adds.
    """

    __slots__ = ("help", "kind", "metavar", "more", "short")

    def __init__(self, kind: Kind, help: str, metavar: str | None, short: str | None, more: str) -> None:
        self.kind = kind
        self.help = help
        self.metavar = metavar
        self.short = short
        self.more = more


def option(
    default: Any, kind: Kind, help: str, metavar: str | None = None, *, short: str | None = None, more: str = ""
) -> Any:
    """Declare a field of a record; see :class:`Option`."""
    return field(default=default, metadata={_KEY: Option(kind, help, metavar, short, more)})


class Options:
    """A frozen record whose fields are options: values are read as their kinds say, wrong ones refused by name.

    A field whose default is None takes None for "not given". The docstring of a record lists its fields.
    """

    def __init_subclass__(cls) -> None:
        inherited = {name: one for base in reversed(cls.__mro__[1:]) for name, one in _fields(base).items()}
        own = {name: one for name, one in vars(cls).items() if isinstance(one, Field)}
        listed = [line for name, one in (inherited | own).items() for line in (name, f"    {_told(option_of(one))}")]
        cls.__doc__ = "\n".join([cleandoc(cls.__doc__ or ""), "", "Parameters", "----------", *listed])

    def __post_init__(self) -> None:
        for name, default, one in options_of(type(self)):
            value = getattr(self, name)
            if value is not None or default is not None:
                object.__setattr__(self, name, one.kind.read(value, name))

    def values(self) -> dict[str, Any]:
        """Return the values by name."""
        return {name: getattr(self, name) for name, _, _ in options_of(type(self))}


def options_of(record: type[Options]) -> Iterator[tuple[str, Any, Option]]:
    """Yield name, default and option of each field of a record, in the order in which help lists them."""
    for one in fields(record):  # type: ignore[arg-type]  # every record is a dataclass
        yield one.name, one.default, option_of(one)


def option_of(one: Field[Any]) -> Option:
    """Return the option that a field declares."""
    declared: Option = one.metadata[_KEY]
    return declared


def _fields(base: type) -> dict[str, Field[Any]]:
    return getattr(base, "__dataclass_fields__", {})


def _told(one: Option) -> str:
    return f"{one.help} {one.more}".rstrip()
