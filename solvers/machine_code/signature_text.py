"""Signatures of kernels as text that tells apart all that numba compiles differently."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def signature_text(types: Iterable[Any]) -> str:
    """Return the types of a kernel's arguments as text.

    numba's own text of a named tuple leaves out its fields and where its class stands; both are part of it here.
    """
    return ", ".join(map(_type_text, types))


def _type_text(kind: Any) -> str:
    inner = getattr(kind, "types", None)
    if isinstance(inner, tuple):
        cls = getattr(kind, "instance_class", None)
        named = "" if cls is None else f" {cls.__module__}.{cls.__qualname__} {getattr(cls, '_fields', '')}"
        return f"{type(kind).__name__}{named} ({', '.join(map(_type_text, inner))})"
    optional = getattr(kind, "type", None)
    if type(kind).__name__ == "Optional" and optional is not None:
        return f"Optional ({_type_text(optional)})"
    return str(kind)
