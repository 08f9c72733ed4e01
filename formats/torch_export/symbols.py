"""Symbolic sizes of an exported program: expressions as SymPy prints them, evaluated exactly and without SymPy."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

Number = int | Fraction

LARGEST_SIZE = 2**62
_LONGEST = 20_000
_LARGEST_POWER = 64
_LONGEST_NAME = 100

_HARMLESS = (ast.Expression, ast.Call, ast.keyword, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
_TRUTHS = frozenset(("false", "int_oo", "oo", "true"))
_CONDITIONS = frozenset(
    (
        "And", "Equality", "GreaterThan", "LessThan", "Not", "Or", "Piecewise", "ExprCondPair", "StrictGreaterThan",
        "StrictLessThan", "Symbol", "Unequality",
    )
)  # fmt: skip
"""Functions that conditions on sizes are written with."""


class UnknownSymbol(Exception):
    """An expression that holds a symbol whose size is not given."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def symbols_of(text: str) -> list[str]:
    """Return the names of the symbols in an expression, each once."""
    found = []
    for call in ast.walk(_parsed(text)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Symbol":
            found.append(_symbol(call))
    return list(dict.fromkeys(found))


def check_arithmetic(text: str) -> None:
    """Raise ValueError if an expression is anything but functions of sizes, numbers and truth values.

    PyTorch evaluates expressions as Python: no other text may come there.
    """
    tree = _parsed(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        known = isinstance(node, _HARMLESS)
        if isinstance(node, ast.Name):
            known = node.id in (_FUNCTIONS.keys() | _CONDITIONS if id(node) in called else _TRUTHS)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            known = node.value.isidentifier() and len(node.value) < _LONGEST_NAME
        if not known:
            raise ValueError(f"{ast.unparse(node)[:80]} is not known")


def evaluated(text: str, values: Mapping[str, int]) -> Number:
    """Return the value of an expression such as ``Add(Symbol('s0', positive=True), Integer(1))``.

    Parameters
    ----------
    values
        Of symbols.
    """
    try:
        return _value(_parsed(text).body, values)
    except (ZeroDivisionError, OverflowError, RecursionError) as error:
        raise ValueError(f"{text[:80]}: {error}") from None


def _parsed(text: str) -> ast.Expression:
    if len(text) > _LONGEST:
        raise ValueError(f"an expression of {len(text):,} characters")
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise ValueError(f"{text[:80]!r} is no expression") from None


def _symbol(call: ast.Call) -> str:
    if len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str):
        return call.args[0].value
    raise ValueError("a symbol without a name")


def _value(node: ast.expr, values: Mapping[str, int]) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, values)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"{ast.unparse(node)[:80]} is not known")
    name = node.func.id
    if name == "Symbol":
        symbol = _symbol(node)
        if symbol not in values:
            raise UnknownSymbol(symbol)
        return values[symbol]
    if name not in _FUNCTIONS:
        raise ValueError(f"the function {name} is not known")
    result: Number = _FUNCTIONS[name](*(_value(one, values) for one in node.args))
    return _bounded(result)


def _bounded(value: int | Fraction) -> Number:
    if not -LARGEST_SIZE <= value <= LARGEST_SIZE:
        raise ValueError("a size above 2^62")
    return int(value) if value == int(value) else value


def _power(base: Number, exponent: Number) -> Number:
    if exponent != int(exponent) or not -_LARGEST_POWER <= exponent <= _LARGEST_POWER:
        raise ValueError(f"the power {exponent}")
    return Fraction(base) ** int(exponent)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda *terms: sum(terms),
    "CeilToInt": math.ceil,
    "CleanDiv": lambda a, b: a // b,
    "FloorDiv": lambda a, b: a // b,
    "FloorToInt": math.floor,
    "IntTrueDiv": lambda a, b: Fraction(a) / b,
    "Integer": lambda value: value,
    "Max": max,
    "Min": min,
    "Mod": lambda a, b: a % b,
    "ModularIndexing": lambda base, divisor, modulus: base // divisor % modulus,
    "Mul": lambda *factors: reduce(lambda a, b: a * b, factors, 1),
    "Pow": _power,
    "PythonMod": lambda a, b: a % b,
    "Rational": lambda a, b: Fraction(a) / b,
    "TruncToInt": math.trunc,
    "ceiling": math.ceil,
    "floor": math.floor,
}
"""Those of SymPy and of ``torch.utils._sympy.functions`` in sizes."""
