"""Dictionaries and lists that nobody can change, all the way down: what several results rest on stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


def frozen(value: Any) -> Any:
    """Return a copy of a JSON value whose objects and arrays refuse changes; they compare and pickle as before."""
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return FrozenList(map(frozen, value))
    return value


def thawed(value: Any) -> Any:
    """Return a copy of a JSON value that may be changed, of plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: thawed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(thawed, value))
    return value


def _refuse(self: Any, *arguments: Any, **named: Any) -> NoReturn:
    kind = "dict" if isinstance(self, dict) else "list"
    raise TypeError(f"a {type(self).__name__} cannot be changed; copy it with {kind}()")


class FrozenDict(dict[Any, Any]):
    """A dictionary that cannot be changed."""

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[Any, Any]]]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed."""

    __setitem__ = __delitem__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[type[FrozenList], tuple[list[Any]]]:
        return FrozenList, (list(self),)
