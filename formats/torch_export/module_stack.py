"""Modules around the nodes of an exported program, and how often each had been called before."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

NO_VISITS: Mapping[str, int] = MappingProxyType({})


def innermost_module(metadata: Mapping[str, Any]) -> tuple[str | None, int]:
    """Return the path of the innermost module around a node, and its earlier calls; ``""`` is the whole model."""
    stack = metadata.get("nn_module_stack")
    if not isinstance(stack, str):
        return None, 0
    key, *path = stack.rpartition(";")[2].split(",")
    if len(path) < 2 or path[0].startswith("_empty_nn_module"):
        return None, 0
    return path[0], _visit(key)


def _visit(key: str) -> int:
    number = key.rpartition("@")[2] if "@" in key else ""
    return int(number) if number.isdecimal() and len(number) < 7 else 0


def visits_of(metadata: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the earlier calls of the modules around a node, of those that have some."""
    stack = metadata.get("nn_module_stack")
    if not isinstance(stack, str) or "@" not in stack:
        return NO_VISITS
    entries = [entry.split(",") for entry in stack.split(";")]
    return {path[0]: visit for key, *path in entries if len(path) > 1 and (visit := _visit(key))}
