"""Signatures of kernels as text that tells apart all that numba compiles differently."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtpp.solvers.machine_code.kernel_digest import NoDigest

_NUMBERS = ("Integer", "Float", "Complex", "Boolean", "IntegerLiteral", "BooleanLiteral")
_TOLD_BY_NAME = frozenset((*_NUMBERS, "NoneType", "UnicodeType", "StringLiteral", "Array"))
"""Types of numba, as their classes are called, whose text says all of them."""


def signature_text(types: Iterable[Any]) -> str:
    """Return the types of a kernel's arguments as text.

    numba's own text of a named tuple leaves out its fields and where its class stands; both are part of it here.

    Raises
    ------
    NoDigest
        If there is a type among them that text may not tell from others, such as that of a function, which numba names
        by an address.
    """
    return ", ".join(map(_type_text, types))


def _type_text(kind: Any) -> str:
    name = type(kind).__name__
    inner = getattr(kind, "types", None)
    if isinstance(inner, tuple):
        cls = getattr(kind, "instance_class", None)
        named = "" if cls is None else f" {cls.__module__}.{cls.__qualname__} {getattr(cls, '_fields', '')}"
        return f"{name}{named} ({', '.join(map(_type_text, inner))})"
    if name == "Optional":
        return f"{name} ({_type_text(kind.type)})"
    if name == "Omitted" and (kind.value is None or isinstance(kind.value, bool | int | float)):
        return f"{name} {type(kind.value).__name__} {kind.value!r}"
    if name not in _TOLD_BY_NAME:
        raise NoDigest(f"argument {kind}")
    return str(kind)
