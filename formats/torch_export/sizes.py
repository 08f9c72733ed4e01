"""Sizes of tensors in an exported program, with those of symbolic dimensions that the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.modelled.open_sizes import OpenSize, OpenSizes
from mtpp.formats.modelled.size_roles import InputShape, Role, roles_of
from mtpp.formats.modelled.size_terms import OTHERS, SizeTerms, are_proposed, size_of_others
from mtpp.formats.torch_export.symbols import LARGEST_SIZE, UnknownSymbol, evaluated, symbols_of
from mtpp.wording import did_you_mean

FLAG = "‹dims›"

_ANY_NUMBER = 2**31
"""Programs that limit nothing say the largest whole number."""


class Sizes:
    """Values of sizes and whole numbers that depend on symbols, checked against the program once.

    Parameters
    ----------
    symbols
        Those of the program, each with the value that it was exported with, None where there was none.
    places
        Symbol by user input and axis, ``x:0``, where such a size is a symbol by itself, and by the name of an input
        that is a number.
    ranges
        Least and largest value of each symbol, None where open.
    given
        What the user says, by symbol or by place; under ``*`` the size of all others, or ``auto`` for proposed ones.
    inputs
        Of the user's, for what their sizes stand for.
    spare
        Whether values for what the program does not have are left aside.
    """

    def __init__(
        self,
        symbols: Mapping[str, int | None],
        places: Mapping[str, str],
        ranges: Mapping[str, tuple[int | None, int | None]],
        given: SizeTerms,
        source: str,
        *,
        inputs: Sequence[InputShape] = (),
        spare: bool = False,
    ) -> None:
        self.symbols, self.places, self.source = symbols, places, source
        self._ranges, self._inputs = ranges, inputs
        self.given: dict[str, int] = {}
        self.values: dict[str, int] = {}
        self.proposed: list[str] = []
        for key, size in given.items():
            if key == OTHERS:
                continue
            if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= LARGEST_SIZE:
                raise InputError(f"{size!r} is not a positive size up to {LARGEST_SIZE:,}", source=FLAG, where=str(key))
            symbol = key if key in symbols else places.get(key)
            if symbol is None:
                if spare:
                    continue
                raise self._no_such_size(key)
            self._check_range(symbol, key, size)
            if self.values.setdefault(symbol, size) != size:
                problem = f"{symbol!r} is {self.values[symbol]} and {size}"
                raise InputError(problem, source=source, where=f"{FLAG} {key}", remedy="give it once")
            self.given[key] = size
        others = size_of_others(given)
        for symbol in symbols if others is not None or are_proposed(given) else ():
            if symbol in self.values:
                continue
            key = self._key(symbol)
            self.values[symbol] = size = self._proposal(symbol) if others is None else others
            self._check_range(symbol, key, size)
            self.given[key] = size
            if others is None:
                self.proposed.append(key)

    def _check_range(self, symbol: str, key: str, size: int) -> None:
        least, most = self._ranges.get(symbol, (None, None))
        if (least is not None and size < least) or (most is not None and size > most):
            between = f"from {least or 0} to {most}" if most is not None else f"of {least} and more"
            problem = f"the program was exported for sizes {between}"
            raise InputError(problem, source=self.source, where=f"{FLAG} {key}")

    def _key(self, symbol: str) -> str:
        """Return what the user calls a symbol: the first place that has it alone, else its own name."""
        return next((at for at, its in self.places.items() if its == symbol), symbol)

    def _proposal(self, symbol: str) -> int:
        """Return the size that a program was exported with; where it has none, the largest one it allows, else 1."""
        least, most = self._ranges.get(symbol, (None, None))
        limit = most if most is not None and most < _ANY_NUMBER else None
        return self.symbols.get(symbol) or limit or max(1, least or 1)

    def _no_such_size(self, key: str) -> InputError:
        named = set(self.places.values())
        known = [*self.places, *(symbol for symbol in self.symbols if symbol not in named)]
        remedy = did_you_mean(key, known, f"it has: {', '.join(known)}") if known else "all its sizes are fixed"
        return InputError(f"the program has no symbolic size {key!r}", source=self.source, where=FLAG, remedy=remedy)

    def of(self, size: Any, where: str) -> int:
        """Return a size as the file has it: ``{"as_int": 4}``, or an expression."""
        if isinstance(size, dict):
            whole = size.get("as_int")
            if type(whole) is int and abs(whole) <= LARGEST_SIZE:
                return whole
            expression = size.get("as_expr")
            if isinstance(expression, dict) and isinstance(expression.get("expr_str"), str):
                return self._evaluated(expression, where)
        raise InputError("is no size", source=self.source, where=where, remedy="the file may be damaged")

    def _evaluated(self, expression: Mapping[str, Any], where: str) -> int:
        text, hint = expression["expr_str"], hint_of(expression)
        try:
            value = evaluated(text, self.values)
            if value == int(value):
                return int(value)
            problem = f"the size {value} is not whole"
        except UnknownSymbol as error:
            raise self._open(error.name) from None
        except ValueError as error:
            if hint is not None and all(self.symbols.get(s) == self.values.get(s) for s in _symbols(text)):
                return hint
            problem = f"its size cannot be told ({error})"
        remedy = "export the program with fixed sizes"
        raise InputError(problem, source=self.source, where=where, remedy=remedy)

    def _open(self, symbol: str) -> OpenSizes:
        """Return the error that lists every size that is open."""
        missing = [one for one in self.symbols if one not in self.values]
        roles = {f"{one.name}:{axis}": role for one in self._inputs for axis, role in enumerate(roles_of(one))}
        sizes = []
        for one in missing if symbol in missing else [symbol, *missing]:
            key = self._key(one)
            places = tuple(
                (place.rpartition(":")[0], int(place.rpartition(":")[2]))
                for place, its in self.places.items()
                if its == one and ":" in place
            )
            hinted = self.symbols.get(one) is not None
            role = roles.get(key, Role.OTHER) if one in self.places.values() else Role.DATA
            note = "as exported" if hinted else ""
            sizes.append(OpenSize(key, places, role, self._proposal(one), note))
        error = OpenSizes(sizes, self.source)
        error.inputs = [
            {
                "name": one.name,
                "shape": [
                    self.places.get(f"{one.name}:{axis}", "?") if dim is None else dim
                    for axis, dim in enumerate(one.dims)
                ],
                "dtype": None,
            }
            for one in self._inputs
        ]
        return error


def hint_of(expression: Mapping[str, Any]) -> int | None:
    """Return the value that an expression had when the program was exported, None where the file has none."""
    hint = expression.get("hint")
    value = hint.get("as_int") if isinstance(hint, dict) else None
    return value if type(value) is int else None


def _symbols(text: str) -> Iterable[str]:
    try:
        return symbols_of(text)
    except ValueError:
        return ["?"]
