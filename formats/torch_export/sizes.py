"""Sizes of tensors in an exported program, with those of symbolic dimensions that the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.torch_export.symbols import LARGEST_SIZE, UnknownSymbol, evaluated, symbols_of

FLAG = "‹dims›"


class Sizes:
    """Values of sizes and whole numbers that depend on symbols, checked against the program once.

    Parameters
    ----------
    symbols
        Those of the program, each with the value that it was exported with, None where there was none.
    places
        Symbol by user input and axis, ``x:0``, where such a size is a symbol by itself.
    ranges
        Least and largest value of each symbol, None where open.
    given
        What the user says, by symbol or by place.
    spare
        Whether values for what the program does not have are left aside.

    Raises
    ------
    InputError
        If a value is no size, out of range, or for nothing that the program has.
    """

    def __init__(
        self,
        symbols: Mapping[str, int | None],
        places: Mapping[str, str],
        ranges: Mapping[str, tuple[int | None, int | None]],
        given: Mapping[str, int],
        source: str,
        *,
        spare: bool = False,
    ) -> None:
        self.symbols, self.places, self.source = symbols, places, source
        self._proposed = {one: hint or ranges.get(one, (None, None))[1] or 1 for one, hint in symbols.items()}
        self.given: dict[str, int] = {}
        self.values: dict[str, int] = {}
        for key, size in given.items():
            if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= LARGEST_SIZE:
                raise InputError(f"{size!r} is not a positive size", source=FLAG, where=str(key))
            symbol = key if key in symbols else places.get(key)
            if symbol is None:
                if spare:
                    continue
                raise self._no_such_size(key)
            least, most = ranges.get(symbol, (None, None))
            if (least is not None and size < least) or (most is not None and size > most):
                between = f"from {least or 0} to {most}" if most is not None else f"of {least} and more"
                raise InputError(f"the program was exported for sizes {between}", source=source, where=f"{FLAG} {key}")
            if self.values.setdefault(symbol, size) != size:
                problem = f"{symbol!r} is {self.values[symbol]} and {size}"
                raise InputError(problem, source=source, where=f"{FLAG} {key}", remedy="give it once")
            self.given[key] = size

    def _no_such_size(self, key: str) -> InputError:
        named = set(self.places.values())
        known = [*self.places, *(symbol for symbol in self.symbols if symbol not in named)]
        remedy = f"it has: {', '.join(known)}" if known else "all its sizes are fixed"
        return InputError(f"the program has no symbolic size {key!r}", source=self.source, where=FLAG, remedy=remedy)

    def of(self, size: Any, where: str) -> int:
        """Return a size as the file has it: ``{"as_int": 4}``, or an expression.

        Raises
        ------
        InputError
            If it is neither, or depends on a symbol without a value.
        """
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
            raise self._open(error.name, where) from None
        except ValueError as error:
            if hint is not None and all(self.symbols.get(s) == self.values.get(s) for s in _symbols(text)):
                return hint
            problem = f"its size cannot be told ({error})"
        remedy = "export the program with fixed sizes"
        raise InputError(problem, source=self.source, where=where, remedy=remedy)

    def _open(self, symbol: str, where: str) -> InputError:
        missing = [symbol, *(one for one in self.symbols if one != symbol and one not in self.values)]
        texts = []
        for one in missing:
            place = next((at for at, its in self.places.items() if its == one), one)
            texts.append(f"{FLAG} {place}={self._proposed.get(one, 1)}")
        hinted = self.symbols.get(symbol) is not None
        remedy = f"set it with {' '.join(texts)}" + (", the size that it was exported with" if hinted else "")
        return InputError(f"the size {symbol!r} is not fixed", source=self.source, where=where, remedy=remedy)


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
