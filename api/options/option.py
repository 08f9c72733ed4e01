"""Options as fields of frozen records: type, kind, default and text of each, said once for Python and for a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from mtpp.errors import renamed

if TYPE_CHECKING:
    from mtpp.api.options.kinds import Kind

REQUIRED = MISSING
"""Default of a field that has to be given."""

_KEY = "option"
_QUOTED = re.compile(r"(?<!\w)'(\S+?)'(?!\w)")


@dataclass(frozen=True, slots=True)
class Option:
    """What a field says besides its type.

    Attributes
    ----------
    kind
        Reads values, and says what a shell has for them.
    help
        Sentence that a shell shows; it names other fields as ``‹k›``.
    metavar
        Value in a shell's help.
    also
        Another flag.
    more
        Sentences that the reference adds.
    shown
        Default in a shell's help where it depends.
    """

    default: Any
    kind: Kind
    help: str
    metavar: str | None = None
    also: str | None = None
    more: str = ""
    shown: str | None = None

    @property
    def told(self) -> str:
        """The sentences of the reference; a shell has a flag for the opposite of what is so by default."""
        help = _QUOTED.sub(r"``\1``", renamed(self.help, "*{}*".format))  # a star in it would begin an emphasis
        return f"{'False: ' if self.default is True else ''}{help} {self.more}".rstrip()


def option(
    default: Any, kind: Kind, help: str, metavar: str | None = None, *,
    also: str | None = None, more: str = "", shown: str | None = None,
) -> Any:  # fmt: skip
    """Declare a field of a record; see :class:`Option`."""
    return field(default=default, metadata={_KEY: Option(default, kind, help, metavar, also, more, shown)})


class _Signature:
    """Signature of a record's constructor, for readers of it."""

    def __get__(self, instance: object, record: type[Options]) -> Any:
        kind = Parameter.KEYWORD_ONLY
        fields = [one for one in _fields(record).values() if _KEY in one.metadata]
        given = [Parameter.empty if one.default is REQUIRED else one.default for one in fields]
        pairs = zip(fields, given, strict=True)
        return Signature([Parameter(one.name, kind, default=value, annotation=one.type) for one, value in pairs])


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """A frozen record whose fields are options: values are read as their kinds say, wrong ones refused by name.

    Subclasses are dataclasses of keywords. A field whose default is None takes None for "not given". The docstring of
    a record lists its fields.
    """

    __signature__ = _Signature()

    about: ClassVar[str]
    """The docstring without the list."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # of Generic
        # Methods that the base class has for all of them: writing some for each takes a millisecond.
        dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
        told = [f"{name}\n    {one.told}" for name, one in options_of(cls).items()]
        cls.about = cleandoc(cls.__doc__ or "")
        cls.__doc__ = "\n".join([cls.about, "", "Parameters", "----------", *told])

    def __init__(self, *unnamed: Any, **given: Any) -> None:
        if unnamed:
            raise TypeError(f"{type(self).__name__}() takes keywords only")
        for name, one in options_of(type(self)).items():
            value = given.pop(name, one.default)
            if value is REQUIRED:
                raise TypeError(f"{type(self).__name__}() needs the keyword argument {name!r}")
            if value is not None or one.default is not None:
                value = one.kind.read(value, name)
            object.__setattr__(self, name, value)
        for name in given:
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {name!r}")
        self.__post_init__()

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Do the same where fields are annotated with the types that their values are read as, not given in."""
        return cls(**given)

    @classmethod
    def among(cls, keywords: Mapping[str, Any], **others: Any) -> Self:
        """Make a record of the keywords of a function, its ``locals()``, that name fields, and of *others*."""
        return cls(**{name: value for name, value in keywords.items() if name in options_of(cls)} | others)

    def __post_init__(self) -> None:
        """Refuse values that do not go together."""

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        values = ((name, getattr(self, name), one.default) for name, one in options_of(type(self)).items())
        told = [f"{name}={value!r}" for name, value, default in values if value != default]
        return f"{type(self).__name__}({', '.join(told)})"

    def values(self) -> dict[str, Any]:
        """Return the values by name."""
        return {name: getattr(self, name) for name in options_of(type(self))}

    def values_of(self, other: type) -> dict[str, Any]:
        """Return the values whose names another dataclass has for fields of its own."""
        return {name: value for name, value in self.values().items() if name in _fields(other)}


def options_of(record: type[Options]) -> Mapping[str, Option]:
    """Return the options of a record by name, in the order in which help lists them."""
    return {name: one.metadata[_KEY] for name, one in _fields(record).items() if _KEY in one.metadata}


def _fields(record: type) -> Mapping[str, Field[Any]]:
    return getattr(record, "__dataclass_fields__", {})
